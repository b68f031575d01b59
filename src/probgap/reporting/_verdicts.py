"""What the numbers of a report mean: a verdict on each check, and warnings.

``sentences.toml`` has the words. Warnings of ``fit``, with their codes, are those of the fit:
"few" and "indistinct" told bad fits from good. Of those that the report finds itself, "leak",
a column that gives the label away, is right by construction; "boundary", "repeats", "fast" and
"not_run" state what was done.
Anything else that can be measured of a bad fit looks as in a good one (docs/design/default.md).
"""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any

from probgap._core.output import (
    clip,
    count_range,
    joined,
    p_words,
    percent,
    plural,
    whole,
)

_WORDS = {
    "fits": "Good sign",
    "look": "Look closer",
    "against": "Bad sign",
    "missing": "Not tested",
}
_GOOD_RECALL, _POOR_RECALL = 0.75, 0.5
# Two counts that differ by at most this factor, or this many rows, count as the same.
_FACTOR, _FEW = 1.5, 5
# A rate is given with a decimal below the first, and never as greater than the second.
_FEW_TIMES, _MOST_TIMES = 3.0, 50.0
_OVERLAP = 0.6  # share of the rows found by either of two methods that both find

_MUCH_LESS = 0.8  # upper end of a rate that is worth a sentence
_MOST_GROUPS = 10  # of a column to show
_HIGHEST_AUC = 0.999
# One column explains this share of the AUC above chance, and the next less than this
# share of what it explains.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2

# How a check came out, and the numbers that its sentences name.
Outcome = tuple[str, dict[str, str]]
# A question, its state (a key of _WORDS) in a word, the answer, what follows from it.
Check = dict[str, str]
Tree = dict[str, Any]


@cache
def _sentences() -> dict[str, dict[str, Any]]:
    """Return what the report says of checks, and its warnings."""
    text = files("probgap.reporting").joinpath("sentences.toml").read_text("utf-8")
    return tomllib.loads(text)


def all_checks(tree: Tree) -> dict[str, Check]:
    """Return what each check of a report answers."""
    belief = tree["belief"]
    outcomes = {
        "random": _judge_random(belief["scar"]),
        "rising": _judge_rising(belief["labelling"]),
        "held-out": _judge_held_out(tree),
        "settled": _judge_settled(belief["scenarios"]),
        "others": _judge_others(belief["others"], belief["n_compared"]),
    }
    return {key: _check(key, *outcome) for key, outcome in outcomes.items()}


def _check(key: str, outcome: str, numbers: dict[str, str]) -> Check:
    texts = {"reply": "", **_sentences()["checks"][key]}
    parts = {name: text for name, text in texts.items() if isinstance(text, str)}
    parts |= texts[outcome]
    numbers = {**numbers, "reply": parts["reply"]}
    check = {name: text.format(**numbers) for name, text in parts.items()}
    return check | {"word": _WORDS[check["state"]]}


def overall(checks: dict[str, Check], tree: Tree) -> dict[str, str]:
    """Summarise the checks: a state, a short answer and the reason."""
    doubts: dict[str, list[str]] = {state: [] for state in _WORDS}
    for check in checks.values():
        doubts[check["state"]].append(check["doubt"])
    n_fitting, n_tested = len(doubts["fits"]), len(checks) - len(doubts["missing"])
    verb = "is a good sign" if n_fitting == 1 else "are good signs"
    why = f"{n_fitting} of {plural(n_tested, 'check')} {verb}"
    why += f"; {len(doubts['missing'])} not run." if doubts["missing"] else "."
    if doubts["against"]:
        why += f" Against it: {joined(doubts['against'])}."
        return {"state": "against", "answer": "Not as it stands.", "why": why}
    if doubts["look"]:
        why += f" Look at {joined(doubts['look'])}."
    strong = any(item["level"] == "strong" for item in tree["warnings"])
    if strong or len(doubts["look"]) > 1 or n_tested < 3:
        why += " Heed the warning above." if strong else ""
        return {"state": "look", "answer": "Only with care.", "why": why}
    return {"state": "fits", "answer": "Yes, as far as such data can tell.", "why": why}


def _judge_random(scar: Tree | None) -> Outcome:
    if scar is None:
        return "missing", {}
    return scar["verdict"], {"p": p_words(scar["p_value"])}


def _judge_rising(curve: Tree | None) -> Outcome:
    if curve is None:
        return "missing", {}
    if curve["rises"] is None:
        return "unclear", {}
    if curve["rises"]:
        return "yes", {}
    rank = curve["rank_correlation"]
    return "no" if rank is not None and rank <= 0.0 else "flat", {}


def chance_of(tree: Tree) -> float:
    """Return the share of unlabelled rows predicted positive: the recall by chance."""
    found = tree["found"]
    return float(found["called_positive"] / max(1, found["unlabelled"]))


def _judge_held_out(tree: Tree) -> Outcome:
    held_out, chance = tree["belief"]["held_out"], chance_of(tree)
    if held_out is None:
        return "missing", {}
    recall = held_out["recall"]
    outcome = "good" if recall >= _GOOD_RECALL else "fair"
    if recall < _POOR_RECALL or held_out["recall_interval"][0] <= chance:
        outcome = "poor"
    n_negative, words = held_out.get("n_negative", 0), ""
    if n_negative:
        rows = plural(n_negative, "row")
        words = f" Of {rows} checked and negative it takes {held_out['n_false']} for positive."
    return outcome, {
        "negatives": words,
        "recall": percent(recall),
        "labelled": plural(held_out["n_labelled"], "labelled row"),
        "chance": percent(chance),
    }


def _judge_settled(scenarios: Tree) -> Outcome:
    low, high = scenarios["low"], scenarios["high"]
    near = high <= _FACTOR * low or high - low <= _FEW
    numbers = {"low": whole(low), "high": whole(high)}
    return "nearly" if near else "apart", numbers


def _judge_others(others: list[Tree], n_compared: int) -> Outcome:
    ran = [other for other in others if other["error"] is None]
    if not ran:
        return "missing", {}
    alike = [other["overlap"] for other in ran]
    counts = [other["hidden"] for other in ran]
    return "mostly" if median(alike) >= _OVERLAP else "hardly", {
        "overlap": percent(median(alike)),
        "fewest": whole(min(counts)),
        "most": whole(max(counts)),
        "compared": plural(n_compared, "row"),
    }


def describe_looked(looked: Tree | None) -> list[Tree]:
    """Return what the rates by each column say, and the groups to show.

    Of more than ten groups those with the most hidden positives; ``left`` sums up others.
    """
    words, found = _sentences()["looked"], []
    looked = looked or {"columns": ()}
    for name in looked["columns"]:
        groups = [group for group in looked["groups"] if group["column"] == name]
        order = sorted(groups, key=lambda group: -float(group["hidden"]))
        shown = groups if len(groups) <= _MOST_GROUPS else order[:_MOST_GROUPS]
        left = [group for group in order if group not in shown]
        less = [group for group in order if group["rate_high"] < _MUCH_LESS]
        column = {"column": clip(name, 40)}
        says = words["equal"].format(**column)
        if less:
            says = words["says"].format(**column, **_words_of(less[0], groups))
        kept = "both" if name in looked["kept"] else "alone"
        assumes = words[kept].format(**column)
        left_out = {"n": len(left), "hidden": sum(group["hidden"] for group in left)}
        part = {"name": name, "groups": shown, "left": left_out}
        part["command"] = f"probgap audit . --by {shlex.quote(name)}"
        found.append(part | {"says": says, "assumes": assumes})
    return found


def _words_of(group: Tree, groups: Sequence[Tree]) -> dict[str, str]:
    best = max(groups, key=lambda other: float(other["rate"]))
    return {
        "level": clip(group["level"], 40),
        "best": clip(best["level"], 40),
        "rate": percent(group["rate"]),
        "positives": whole(group["labelled"] + group["hidden"]),
        "labelled": whole(group["labelled"]) if group["labelled"] else "none",
        "are": "is" if group["labelled"] < 2 else "are",
    }


def ask(tree: Tree) -> dict[str, str] | None:
    """Return the question whether a column says who was looked at, in sentences."""
    question, found = tree.get("question"), tree["found"]
    if question is None:
        return None
    rates = sorted(question["groups"], key=lambda group: float(group["rate"]))
    least, most = rates[0], rates[-1]
    times = min(1.0 / max(least["rate"], 0.01), _MOST_TIMES)
    option = f"labelled_by={question['declared']!r}"
    if tree["run"]["command"]:
        names = (
            f"--labelled-by {shlex.quote(str(name))}" for name in question["declared"]
        )
        option = " ".join(names)
    ends = found["hidden_interval"], question["n_hidden_interval"]
    first, second = (count_range(low, high, found["unlabelled"]) for low, high in ends)
    words = {
        "column": clip(question["name"], 40),
        "least": clip(least["level"], 40),
        "most": clip(most["level"], 40),
        "times": f"{times:.1f}" if times < _FEW_TIMES else f"{times:.0f}",
        "option": option,
        "first": first,
        "second": second,
    }
    return {
        name: text.format(**words) for name, text in _sentences()["question"].items()
    }


def all_warnings(
    tree: Tree,
    failures: Mapping[str, str],
    left_out: Sequence[str],
    caught: Iterable[Warning],
    repeated: Iterable[Any] = (),
) -> list[dict[str, str]]:
    """Return the warnings of a report, the gravest first.

    ``failures`` are the checks that failed, and why; ``left_out`` those not tried;
    ``repeated`` are columns that may say which rows belong together.
    """
    found = list(_find(tree))
    for one in repeated:
        kind = "repeats left out" if one.use == "left out" else "repeats"
        words = {"name": repr(one.name), "option": shlex.quote(one.name)}
        found.append(_warning("repeats", kind, values=whole(one.n_distinct), **words))
    if left_out:
        found.append(_warning("fast", names=joined(list(left_out))))
    for name, error in failures.items():
        found.append(_warning("not_run", name=name, error=error))
    for raised in caught:
        text, code = str(raised), getattr(raised, "code", "")
        what, do = split_sentence(text)
        if any(w["what"] in (what, text) or w["code"] == (code or None) for w in found):
            continue
        level = "strong" if code else "mild"
        found.append({"level": level, "code": code, "what": what, "do": do})
    return sorted(found, key=lambda warning: warning["level"] != "strong")


def split_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence, and the rest."""
    first, *rest = re.split(r"(?<=[.?!]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(rest)


def _warning(code: str, kind: str = "", **words: object) -> dict[str, str]:
    known = _sentences()["warnings"][kind or code]
    return {"code": code} | {key: text.format(**words) for key, text in known.items()}


def _find(tree: Tree) -> Iterator[dict[str, str]]:
    held_out = tree["belief"]["held_out"]
    if held_out is not None and held_out["roc_auc"] > _HIGHEST_AUC:
        culprit = _one_column(tree["drivers"])
        kind = "leak" if culprit is None else "leak by one column"
        yield _warning("leak", kind, culprit=culprit)
    if (moved := tree["boundary"]["fallback"]) is not None:
        yield _warning("boundary", moved=moved)


def _one_column(drivers: Tree | None) -> str | None:
    """Return the column that explains the labels by itself, if one does."""
    if drivers is None:
        return None
    gains = [each["importance"] for each in drivers["columns"]]
    top, second, *_ = [*gains, 0.0, 0.0]
    enough = top > _ALL_BY_ITSELF * (drivers["score"] - 0.5)
    alone = enough and second < _NEXT_TO_NOTHING * top
    return str(drivers["columns"][0]["column"]) if alone else None
