"""Checks of whether the answer may be believed, each with a plain verdict.

The numbers come with the account; what they are taken to mean is decided here, by the
bounds below, so that the same numbers always read the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from probgap._core.pages import count, listed, plural
from probgap.page._words import p_words, percent, whole_number

if TYPE_CHECKING:
    from probgap.diagnostics import Account, LabellingCurve, ScarTest
    from probgap.diagnostics.account import OtherMethod, Worlds

FITS, LOOK, AGAINST, MISSING = "fits", "look", "against", "missing"
WORDS = {
    FITS: "Good sign",
    LOOK: "Look closer",
    AGAINST: "Bad sign",
    MISSING: "Not tested",
}
_GOOD_RECALL, _POOR_RECALL = 0.75, 0.5
# How far apart two counts may be that mean the same: by a factor, or by some rows.
_FACTOR, _FEW = 1.5, 5
_OVERLAP = 0.6  # of the rows that one of two methods finds: how many both do


@dataclass(frozen=True, slots=True)
class Check:
    """One question and what the numbers answer.

    Attributes
    ----------
    key : str
        Name of the check, for links.
    question : str
        What is asked.
    state : str
        ``"fits"``, ``"look"``, ``"against"`` or ``"missing"``.
    reply : str
        The answer in a word or two.
    answer : str
        The answer as a sentence.
    meaning : str
        What follows from it.
    """

    key: str
    question: str
    state: str
    reply: str
    answer: str
    meaning: str

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return WORDS[self.state]


def all_checks(account: Account) -> list[Check]:
    """Return what each check of an account answers."""
    return [
        _check_random(account.scar),
        _check_rising(account.labelling),
        _check_held_out(account),
        _check_settled(account.worlds),
        _check_others(account.others),
    ]


def overall(checks: list[Check], account: Account) -> dict[str, str]:
    """Sum the checks up: a state, a short answer and why."""
    tested = [check for check in checks if check.state != MISSING]
    bad = [check for check in tested if check.state == AGAINST]
    doubtful = [check for check in tested if check.state == LOOK]
    fitting = len(tested) - len(bad) - len(doubtful)
    tally = _tally(fitting, len(tested))
    untested = len(checks) - len(tested)
    tally += f"; {untested} could not be run." if untested else "."
    strong = any(item.level == "strong" for item in account.warnings)
    if bad:
        why = f"{tally} Against it: {_first_words(bad)}"
        return {"state": AGAINST, "answer": "Not as it stands.", "why": why}
    why = tally if not doubtful else f"{tally} Look at: {_first_words(doubtful)}"
    if strong or len(doubtful) > 1 or len(tested) < 3:
        why = f"{why} Heed the warning above." if strong else why
        return {"state": LOOK, "answer": "Only with care.", "why": why}
    return {"state": FITS, "answer": "Yes, as far as such data can tell.", "why": why}


def _tally(fitting: int, tested: int) -> str:
    if fitting == tested > 1:
        return f"All {tested} checks are good signs"
    if not fitting:
        some = f"of the {tested} checks" if tested > 1 else "check"
        return f"No{'ne' if tested > 1 else ''} {some} is a good sign"
    verb = "is a good sign" if fitting == 1 else "are good signs"
    return f"{fitting} of {plural(tested, 'check')} {verb}"


def _first_words(checks: list[Check]) -> str:
    names = {
        "random": "whether labels fell at random",
        "rising": "labels do not rise with the gap",
        "held-out": "few labelled rows are found again",
        "settled": "whether the data settle the count",
        "others": "other methods differ",
    }
    return listed([names[check.key] for check in checks]) + "."


def _check_random(scar: ScarTest | None) -> Check:
    question = "Did the labels fall at random among the positives?"
    if scar is None:
        return Check(
            "random",
            question,
            MISSING,
            "Not known",
            "The test of random labelling could not be run on this table.",
            "The range of the count allows for labels at random and for clearer "
            "positives first.",
        )
    sign = p_words(scar.p_value)
    if scar.verdict == "biased":
        return Check(
            "random",
            question,
            FITS,
            "No, as assumed",
            f"No: some positives were labelled more readily than others ({sign}).",
            "That is the case this method is made for. A count that takes labels for a "
            "random draw would be off here.",
        )
    if scar.verdict == "random":
        return Check(
            "random",
            question,
            LOOK,
            "Perhaps",
            f"They may have: the test sees no favourites ({sign}).",
            "A test that finds nothing proves nothing: with few labels it misses real "
            "favourites. If labels did fall at random, simpler methods should agree with "
            "this one; see the last check.",
        )
    return Check(
        "random",
        question,
        LOOK,
        "Cannot tell",
        f"The test cannot tell ({sign}).",
        "Too few rows are labelled, or positives and negatives overlap. Compare the "
        "count with that of other methods, in the last check.",
    )


def _check_rising(labelling: LabellingCurve | None) -> Check:
    question = "Were clearer positives labelled more often?"
    if labelling is None or labelling.rises is None:
        state = MISSING if labelling is None else LOOK
        return Check(
            "rising",
            question,
            state,
            "Cannot tell" if state == LOOK else "Not known",
            "The rows are too few, or their labels too even, to tell."
            if state == LOOK
            else "Too few labelled rows to compare groups of rows.",
            "The method assumes that labels do not become rarer as rows become surer.",
        )
    if labelling.rises:
        return Check(
            "rising",
            question,
            FITS,
            "Yes",
            "Yes: the surer a row is to be positive, the likelier it carries your label.",
            "The method assumes no more than that they do not become rarer.",
        )
    correlation = labelling.rank_correlation
    if correlation is None or correlation > 0.0:
        return Check(
            "rising",
            question,
            LOOK,
            "Not visibly",
            "Not visibly: among likely positives, the surer rows carry your label about "
            "as often as the others.",
            "Labels that fell at random look like this. The method then has no edge over "
            "simpler ones: see whether they agree, in the last check.",
        )
    return Check(
        "rising",
        question,
        AGAINST,
        "No",
        "No: labels become rarer as rows become surer.",
        "The method assumes that they do not. Do not use the count; have a person check "
        "some unlabelled rows drawn at random.",
    )


def chance_of(account: Account) -> float:
    """Return the share of unlabelled rows called positive: what chance would find."""
    return account.found.called_positive / max(1, account.found.unlabelled)


def _check_held_out(account: Account) -> Check:
    question = "Does it find positives whose label it was not shown?"
    held_out = account.held_out
    if held_out is None:
        return Check(
            "held-out",
            question,
            MISSING,
            "Not known",
            "Too few labelled rows to set some aside and look for them again.",
            "Check the top of the list by hand before you rely on it.",
        )
    chance, recall = chance_of(account), held_out.recall
    low, _ = held_out.recall_interval
    of = plural(held_out.n_labelled, "labelled row")
    answer = (
        f"It found {percent(recall)} of {of} again, each while its label was hidden."
    )
    meaning = (
        f"It calls {percent(chance)} of the unlabelled rows positive; by chance it "
        "would have found no more than that share."
    )
    state = FITS if recall >= _GOOD_RECALL else LOOK
    if recall < _POOR_RECALL or low <= chance:
        state = AGAINST
    reply = f"{percent(recall)} of them"
    return Check("held-out", question, state, reply, answer, meaning)


def _check_settled(worlds: Worlds) -> Check:
    question = "Do the data settle how many are hidden?"
    low, high = worlds.low, worlds.high
    span = f"{whole_number(low)} or {whole_number(high)}"
    if high <= _FACTOR * low or high - low <= _FEW:
        return Check(
            "settled",
            question,
            FITS,
            "Nearly",
            f"Nearly: about {span}, depending on how labels came about.",
            "The two ways to read the data, on the right, differ little.",
        )
    return Check(
        "settled",
        question,
        LOOK,
        f"{span}",
        f"Not by themselves: about {span}, depending on how labels came about.",
        "No method can tell the two from such labels. Trust the order of the list; to "
        "know the count, have a person check some unlabelled rows drawn at random.",
    )


def overlap(other: OtherMethod) -> float | None:
    """Return, of the rows that either method calls positive, the share both do.

    Where positives are few, any two methods agree on nearly every row; on this they
    need not.
    """
    if other.both is None or other.only_here is None or other.only_there is None:
        return other.agreement
    either = other.both + other.only_here + other.only_there
    return other.both / either if either else other.agreement


def _check_others(methods: tuple[OtherMethod, ...]) -> Check:
    question = "Do other methods say the same?"
    others = [other for other in methods if not other.error]
    alike = [share for other in others if (share := overlap(other)) is not None]
    if not alike:
        return Check(
            "others",
            question,
            MISSING,
            "Not known",
            "No other method could be run on this table.",
            "There is nothing to compare the count with.",
        )
    middle = median(alike)
    counts = [other.hidden for other in others if other.hidden is not None]
    span = f" They call {count(min(counts))} to {count(max(counts))} unlabelled rows positive."
    mostly = middle >= _OVERLAP
    return Check(
        "others",
        question,
        FITS if mostly else LOOK,
        "Mostly" if mostly else "Not quite",
        f"{'Mostly' if mostly else 'Not quite'}: of the rows that this or a typical "
        f"other method calls positive, both call {percent(middle)} so.{span}",
        "Most of them assume that labels fell at random. Where labels favour clear "
        "positives they are expected to find fewer.",
    )
