"""The sentences of the report, written once for every form of it."""
# ruff: noqa: RUF001 -- minus signs and Greek letters are meant

from __future__ import annotations

from typing import Any

from probgap.report._rows import OURS
from probgap.report._shares import SMALLEST_COST
from probgap.report._text import fixed, listed, plural, signed, verdict

PAPER = (
    "F. He, T. Liu, G. I. Webb, D. Tao. Instance-Dependent PU Learning by Bayesian "
    "Optimal Relabeling. arXiv:1808.02180, 2018."
)
SHARE_RULE = (
    "The recovered share of a method is (method − SVM) / (clean − SVM), each an accuracy "
    "on true test labels, averaged over splits: 0 is as good as taking unlabelled for "
    "negative, 1 as good as knowing every label. The share of a block is the mean over "
    f"its labellings, of those where clean − SVM is at least {SMALLEST_COST} points; "
    "with less between them the ratio is noise. Where no labelling of a block qualifies, "
    "the gain on SVM in points is compared instead. The pooled share averages accuracies "
    "over all labellings of the block first and then takes one ratio, which is steadier. "
    "For the printed numbers the same is computed from the paper's tables."
)
TUNING = (
    "Read shares above 1 with care: they say that a method beats this clean SVM, not that "
    "missing labels help. The methods of the paper, SVM and clean among them, have the "
    "one setting given at the foot, C = 1 with it. probgap runs with its defaults, and these "
    "choose C themselves, by how well held-out samples are classified: part of what it "
    "wins, where a larger C suits the data, is that choice. The column probgap C=1 is the "
    "same method with the others' machine at the end."
)
MARK_RULE = (
    "Bold is the best mean of a line, clean apart, ours and the paper's each by itself. "
    "A double dagger (‡) marks a cell where our mean and the printed one differ by more "
    "than two standard deviations, the greater of our sample standard deviation over "
    "splits and the printed one; where the paper prints none, ours is taken."
)
CAUSES = (
    (
        "The paper does not give its SVM settings",
        (
            "Kernel, C and the kernel's width are not stated. Table 7 is headed as whitened, "
            "without saying how; here every feature is standardised by the training part of "
            "its split. Every accuracy depends on that, naive and clean too, so the "
            "recovered share is a better yardstick than the accuracy itself."
        ),
    ),
    (
        "The labelling has to be read into the text",
        (
            "The inverse rate is printed with an unmatched bracket. It is read here as "
            "α / ((α + ΔP)(1 + β)), the reading that puts the boundary inside (−1, 0) and "
            "makes a larger β mean less noise. The gap that decides who stays unlabelled is "
            "itself an estimate, Platt's on the true labels, and depends on the SVM again."
        ),
    ),
    (
        "The boundary rests on a few samples",
        (
            "PGPU takes the smallest observed gaps of labelled positives. One of them deep "
            "in negative ground is enough to sink the estimate, and then few negatives are "
            "left to learn from; where Platt's estimate is too sure of every label, it "
            "rises to 0 and beyond, and has to be moved below it. Above, the boundaries "
            "are set beside the true ones."
        ),
    ),
    (
        "Labelled positives in the undecided zone are dropped",
        (
            "Algorithm 1 as printed leaves out everything whose gap lies in (l, 0], labelled "
            "positives with it, though their label is known. The columns PGPU and PGPUcv do "
            "so to the letter; probgap keeps them."
        ),
    ),
    (
        "PGPUcv's validation labels are not stated",
        (
            "Observed labels are used here. Accuracy against them favours the naive answer "
            "and hardly changes with l, so ties and chance choose the boundary."
        ),
    ),
    (
        "The TCDB records survive only as bags of words",
        "Doc2Vec can therefore not use the order of words, as the paper's could.",
    ),
    (
        "Some printed lines look misplaced",
        (
            "The first seven lines of splice in the printed Table 7 resemble banana's. "
            "Differences there may say more about the print than about either method."
        ),
    ),
)


def headline(summary: dict[str, Any]) -> list[str]:
    """Say in plain words what was run and how it came out."""
    run, verdicts = summary["run"], summary["verdicts"]
    data_sets = len({b["data"] for b in summary["blocks"] if b["present"]})
    errors = len(run["errors"])
    sentences = [
        f"{plural(run['jobs'], 'job')}: {plural(run['settings'], 'labelling')} on "
        f"{plural(data_sets, 'data set')}, {plural(len(run['methods']), 'method')}, "
        f"{plural(run['splits'], 'split')}. "
        + ("None failed." if not errors else f"{errors} failed: see the foot."),
    ]
    if run["profiles"] != ["full"]:
        sentences.append(
            f"The profile of these rows is {listed(run['profiles'])}: fewer splits and "
            "smaller samples than the paper's. Read them as a check that things work, "
            "not as a reproduction."
        )
    missing = [b["label"] for b in summary["blocks"] if b["known"] and not b["present"]]
    if missing:
        sentences.append(f"Not run: {listed(missing)}.")
    if verdicts["compared"]:
        sentences.append(_standing(verdicts))
    else:
        sentences.append(
            f"No block has rows of {OURS}, SVM, clean and a method of the paper, so "
            "there is nothing to compare yet."
        )
    return sentences


def _standing(verdicts: dict[str, Any]) -> str:
    blocks = f"{verdicts['compared']} blocks"
    if verdicts["compared"] < verdicts["blocks"]:
        blocks += f" that could be compared (of {verdicts['blocks']})"
    text = (
        f"{OURS} is ahead of every method of the paper in this run in "
        f"{verdicts['ahead']} of the {blocks}, ahead of the best that the paper "
        f"prints in {verdicts['ahead_printed']}, and of both in {verdicts['ahead_both']}."
    )
    if verdicts["behind"]:
        text += f" It is not ahead in this run on {listed(verdicts['behind'])}."
    if verdicts["compared_plain"]:
        text += (
            f" With C = 1, as all the others have it, it is ahead in "
            f"{verdicts['ahead_plain']} of {verdicts['compared_plain']}."
        )
    return text


def double_shares(verdicts: dict[str, Any]) -> list[str]:
    """Say where ours has at least twice the share that the paper prints for PGPU."""
    lines = []
    for block in verdicts["double"]:
        ours, own = block["ours"], block["paper_own"]
        if block["double"] is None:
            lines.append(f"{block['label']}: cannot be said from these rows.")
            continue
        lines.append(
            f"{block['label']}: {verdict(block['double'])}, {fixed(ours['share'])} "
            f"against {fixed(own['share'])}. Pooled: {verdict(block['double_pooled'])}, "
            f"{fixed(ours['pooled'])} against {fixed(own['pooled'])}."
        )
    return lines


def differences(found: dict[str, Any]) -> list[str]:
    """Say how many cells differ from the print, in which direction, and who wins."""
    if not found["compared"]:
        return ["No cell of these rows has a printed counterpart."]
    lower = found["marked"] - found["higher"]
    share = 100.0 * found["marked"] / found["compared"]
    text = (
        f"Of {plural(found['compared'], 'cell')} with a printed counterpart, "
        f"{found['marked']} ({share:.0f}%) differ by more than two standard deviations: "
        f"ours is higher in {found['higher']} and lower in {lower}."
    )
    sentences = [text]
    for name, words in (("naive", "The naive SVM"), ("clean", "The clean SVM")):
        difference = found[name]
        if difference:
            sentences.append(
                f"{words} differs from the printed one by {signed(difference['signed'])} "
                f"points on average, by {fixed(difference['size'])} regardless of sign."
            )
    winners = found["winners"]
    if winners["blocks"]:
        sentences.append(
            "Among the methods of the paper, PGPU or PGPUcv has the best share in "
            f"{winners['own_here']} of {plural(winners['blocks'], 'block')} here, and in "
            f"{winners['own_printed']} of them in print; the best method is the same in "
            f"{winners['same']}."
        )
    return sentences


def caution(statistics: dict[str, Any]) -> str:
    """Say what the tests do not."""
    return (
        f"The {plural(statistics['settings'], 'labelling')} come from "
        f"{plural(statistics['data_sets'], 'data set')} and are not independent of one "
        "another, so p-values are smaller than they should be; the blocks won beside "
        "them are the more cautious count."
    )
