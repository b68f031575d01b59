"""Accounts of fits, as the commands would hand them over, without fitting anything."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from probgap.boundary import Boundary
from probgap.diagnostics import Account, HeldOutCalibration, LabellingCurve, ScarTest
from probgap.diagnostics.account import (
    Caution,
    CurveBin,
    Found,
    Histogram,
    NextRow,
    OtherMethod,
    ReliabilityBin,
    Weights,
    Worlds,
)
from probgap.inspection import ColumnImportance
from probgap.page import (
    AllRows,
    RankedRow,
    RunRecord,
    TableRecord,
    expect_positives,
    render_page,
)
from probgap.reading import read
from probgap.reweight import LeftOutBound

COLUMNS = (
    "radius",
    "texture",
    "perimeter",
    "smoothness",
    "concavity",
    "symmetry",
    "clinic",
    "notes",
)


@dataclass(frozen=True)
class Told:
    """What a page is made of."""

    account: Account
    table: TableRecord
    ranked: tuple[RankedRow, ...]
    run: RunRecord
    rows: AllRows | None = None

    def change(self, **parts):
        """Return the same with other parts of the account."""
        return replace(self, account=replace(self.account, **parts))

    def render(self):
        return render_page(
            self.account,
            table=self.table,
            ranked=self.ranked,
            run=self.run,
            rows=self.rows,
        )


def bound():
    """Return what leaving out rows can cost."""
    return LeftOutBound(0.12, 0.92, 0.08, 0.01, 0.03, 569)


def typical():
    """Everything is there, and nothing is wrong."""
    rng = np.random.default_rng(0)
    edges = np.linspace(-1.0, 1.0, 41)
    unlabelled = np.concatenate(
        [rng.beta(1.0, 9.0, 340) * 1.5 - 1.0, rng.beta(4.0, 3.0, 109) * 1.4 - 0.7]
    )
    labelled = rng.beta(5.0, 2.0, 120) * 1.7 - 0.75
    counts = (np.histogram(gap, edges)[0] for gap in (unlabelled, labelled))
    ranked = tuple(ranked_row(rank, rng) for rank in range(1, 21))
    account = Account(
        found=Found(569, 120, 449, 80.3, (55.0, 110.0), 0.9, 0.352, (0.31, 0.40), 78),
        boundary=Boundary(-0.41, "auto", 0.05, 364, 47, 158),
        histogram=Histogram(*(tuple(n.tolist()) for n in (edges, *counts))),
        weights=Weights(True, 412.3, 522, 3.1, 1e-8, True, bound()),
        worlds=Worlds(71.0, 92.0, 0.6),
        held_out=HeldOutCalibration(
            reliability(), 0.021, 0.93, (0.87, 0.97), 120, 0.934
        ),
        labelling=LabellingCurve(bins(), True, 0.96, 0.001),
        scar=ScarTest(0.81, 0.005, 199, 0.0, 0.9, 0.4, 569),
        others=others(),
        n_compared=284,
        drivers=drivers(),
        next=tuple(next_row(place, rng) for place in range(50)),
    )
    return Told(account, table(), ranked, run())


def doubtful():
    """Twelve labels: warnings, and much that could not be computed."""
    told = typical()
    account = told.account
    found = replace(
        account.found,
        labelled=12,
        unlabelled=557,
        hidden=143.6,
        hidden_interval=(31.0, 402.0),
        called_positive=131,
        share_positive=0.273,
    )
    fallback = "the rule gave -1.00, so the 5% quantile was taken"
    error = "SVC needs two classes in every fold."
    cautions = (
        Caution(
            "mild",
            "Three columns are almost empty.",
            "Leave them out with --drop if they mean nothing.",
        ),
        Caution(
            "strong",
            "Only 12 positives are labelled.",
            "Label 20 more before you trust the count; the order of the list is worth "
            "more than the number.",
        ),
    )
    told = told.change(
        found=found,
        scar=None,
        labelling=None,
        held_out=HeldOutCalibration((), 0.1, 0.58, (0.32, 0.81), 12, 0.7),
        worlds=Worlds(60.0, 300.0, 0.1),
        others=(OtherMethod("naive SVM", error=error),),
        boundary=replace(account.boundary, fallback=fallback),
        weights=Weights(False, 12.0, 12, 1.0),
        drivers=None,
        next=(),
        warnings=cautions,
    )
    ranked = tuple(replace(row, id=None) for row in told.ranked)
    return replace(told, ranked=ranked, table=replace(told.table, id=None))


def unfit():
    """The assumption is violated, and the data do not settle the count."""
    told = typical()
    account = told.account
    falling = tuple(
        replace(
            item,
            frequency=frequency,
            fit=0.2,
            low=max(frequency - 0.08, 0.0),
            high=frequency + 0.09,
        )
        for item, frequency in zip(bins(), SAG, strict=True)
    )
    two = Caution("strong", "Two worlds fit these data.", "Trust the ranking.")
    return told.change(
        labelling=LabellingCurve(falling, False, -0.2, 0.9),
        scar=replace(account.scar, p_value=0.07, power=0.5),
        worlds=Worlds(30.0, 190.0, 0.3),
        found=replace(account.found, hidden_interval=(9.0, 240.0)),
        warnings=(two,),
    )


def lively(n_unlabelled=449, cells=None):
    """A page with all its rows, of which the first cells may be given."""
    told, rng = typical(), np.random.default_rng(1)
    positive = np.arange(n_unlabelled + 120) < 120 + n_unlabelled // 5
    scores = rng.normal(4.0 * positive - 2.0)
    labelled = np.arange(scores.size) < 120
    reading = read(scores, labelled)
    ranked = np.sort(reading.hidden_probability(scores[~labelled]))[::-1]
    likely = reading.probability_range(ranked, unlabelled=True)
    places = np.arange(n_unlabelled)
    table = pd.DataFrame(
        {
            "row": 1 + rng.permutation(n_unlabelled),
            "id": [f"P-{place:04d}" for place in places],
            "probability": ranked,
            "probability_low": likely.low,
            "probability_high": likely.high,
            "gap": np.linspace(0.9, -0.95, n_unlabelled),
        }
    )
    values = pd.DataFrame(
        {name: rng.gamma(9.0, 2.0, n_unlabelled).round(2) for name in COLUMNS[:6]}
        | {
            "clinic": rng.choice(["Leeds", "Dundee", "York"], n_unlabelled),
            "notes": [f"note {place % 97}" for place in places],
        }
    )
    for name, given in (cells or {}).items():
        values[name] = values.get(name, pd.Series([""] * n_unlabelled)).astype(object)
        values.loc[: len(given) - 1, name] = given
    found = replace(
        told.account.found,
        rows=scores.size,
        unlabelled=n_unlabelled,
        hidden=reading.n_hidden,
        hidden_interval=reading.n_hidden_interval,
    )
    rows = AllRows(table, values, expect_positives(reading, ranked))
    return replace(told.change(found=found), rows=rows)


def lively_hostile():
    """All rows of a page, with cells made to break out of it."""
    return lively(
        60,
        {
            "radius": [
                EVIL,
                "</script><script>alert(5)</script>",
                "<!--<script>",
                "\ud800",
            ],
            "=cmd|' /C calc'!A0": [
                "=1+1",
                "-1.5",
                "+x",
                "@y",
                'a "b", c',
                "\u202eevil",
                "\tt",
            ],
            "</script><script>alert(6)</script>": ["x" * 10_000, "\u2028", "]]>"],
        },
    )


SAG = (0.24, 0.28, 0.22, 0.19, 0.14, 0.11, 0.2, 0.16)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def hostile():
    """Cells made to break a page: markup, formulas, walls of text, bidi, 2000 columns."""
    told = typical()
    account = told.account
    names = [
        EVIL,
        "\u202eevil\u202c",
        "=cmd|' /C calc'!A0",
        "😀" * 40,
        "שלום עולם",
        "a\x00b",
    ]
    cells = [EVIL, "x" * 10_000, "=1+1", "🧪", "مرحبا", "\ud800"]
    values = dict(zip(names, cells, strict=True))
    ids = dict.fromkeys(range(20), '"><b onmouseover=alert(3)>')
    ids |= {1: "Z\u0301" + "\u0301" * 400, 2: "x" * 10_000}
    columns = tuple(
        column(f"{name} {place}", "left out" if place % 3 else "number")
        for place in range(334)
        for name in names
    )
    counts = (*account.histogram.unlabelled[:3], 10**12)
    importance = 1e9 / np.arange(1.0, 2001.0)
    told = told.change(
        found=replace(account.found, hidden=2e9, hidden_interval=(0.0, 4e9)),
        histogram=replace(
            account.histogram, unlabelled=counts + account.histogram.unlabelled[4:]
        ),
        drivers=replace(
            account.drivers,
            columns=[names[place % 6] for place in range(2000)],
            importance=importance,
            spread=np.full(2000, 1e308),
        ),
        others=(OtherMethod(EVIL, error=EVIL), *account.others[1:]),
        warnings=(Caution("strong", EVIL, "{{ 7 * 7 }}"),),
    )
    return Told(
        told.account,
        replace(
            told.table,
            name=EVIL,
            label="</title><script>alert(4)</script>",
            sentence=f"Reading {EVIL} as labelled.",
            notes=(EVIL, "\u2066note"),
            columns=columns,
        ),
        tuple(
            replace(row, id=ids[place], values=values)
            for place, row in enumerate(told.ranked)
        ),
        replace(
            told.run,
            command=f"probgap fit '{EVIL}'",
            settings={EVIL: [EVIL]},
            started=EVIL,
            pipeline=EVIL * 2000,
        ),
    )


ACCOUNTS = {
    "typical": typical,
    "doubtful": doubtful,
    "unfit": unfit,
    "hostile": hostile,
    "lively": lively,
    "lively_hostile": lively_hostile,
}


def table():
    columns = [column(name, "number") for name in COLUMNS[:6]]
    columns += [column("clinic", "category", example="Leeds"), column("notes", "text")]
    columns += [column("malignant", "label"), column("patient", "id")]
    columns += [column("seen", "left out", "date", "2024-03-01")]
    columns += [column("country", "left out", "the same in every row", "UK")]
    return TableRecord(
        name="tumours.csv",
        rows=569,
        sha256="5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        label="malignant",
        positive="yes",
        unlabelled={"no": 446, "": 3},
        sentence="Reading 'yes' as labelled positive (120 rows), 'no', empty cells as "
        "unlabelled.",
        id="patient",
        notes=("Read as UTF-8, separated by semicolons.",),
        columns=tuple(columns),
    )


def column(name, use, why="", example="17.99"):
    return {
        "name": name,
        "use": use,
        "why": why,
        "n_missing": 4,
        "n_distinct": 456,
        "example": example,
    }


def ranked_row(rank, rng):
    values = {name: f"{rng.gamma(9.0, 2.0):.2f}" for name in COLUMNS[:4]}
    return RankedRow(
        rank=rank,
        row=int(rng.integers(1, 570)),
        id=f"P-{rng.integers(1, 9999):04d}",
        probability=0.985 - 0.012 * rank,
        gap=0.45 - 0.03 * rank,
        values=values | {"clinic": "Leeds" if rank % 2 else "Dundee"},
        range=(0.91 - 0.03 * rank, 0.99 - 0.01 * rank),
        chance=0.96 if rank == 1 else None,
    )


def next_row(place, rng):
    return NextRow(
        row=int(rng.integers(1, 570)),
        id=f"P-{rng.integers(1, 9999):04d}",
        gap=-0.4 + 0.007 * place,
        probability=0.5 + 0.004 * place,
        why="near the boundary, unlike the others",
    )


def bins():
    frequencies = (0.0, 0.01, 0.03, 0.10, 0.22, 0.47, 0.66, 0.81)
    return tuple(
        CurveBin(
            gap_low=-1.0 + 0.25 * place,
            gap_high=-0.75 + 0.25 * place,
            gap=-0.875 + 0.25 * place,
            n=71,
            labelled=round(71 * frequency),
            frequency=frequency,
            low=max(frequency - 0.06, 0.0),
            high=min(frequency + 0.08, 1.0),
            fit=frequency,
        )
        for place, frequency in enumerate(frequencies)
    )


def reliability():
    pairs = [(0.01, 0.0), (0.06, 0.04), (0.15, 0.19), (0.31, 0.28), (0.48, 0.52)]
    pairs += [(0.67, 0.64), (0.82, 0.86)]
    return tuple(
        ReliabilityBin(p, o, 81, max(o - 0.08, 0.0), min(o + 0.09, 1.0))
        for p, o in pairs
    )


def others():
    return (
        OtherMethod("naive", 12, 0.87, 10, 68, 2, 1.93, 0.71),
        OtherMethod("Elkan-Noto", 61, 0.95, 57, 21, 4, 2.41, 0.89),
        OtherMethod("Natarajan", 70, 0.96, 66, 12, 4, 2.44, 0.9),
        OtherMethod("Liu-Tao", 57, 0.94, 54, 24, 3, 2.38, 0.88),
        OtherMethod("PGPU, as in the paper", 149, 0.84, 78, 0, 71, 1.7, 0.97),
        OtherMethod("PGPUcv", error="only 2 labelled rows in a fold"),
    )


def drivers():
    losses = (0.081, 0.064, 0.033, 0.021, 0.012, 0.004, 0.002, -0.001)
    scored_by = "ROC AUC of held-out labelled rows against unlabelled ones"
    spread = np.full(8, 0.004)
    return ColumnImportance(
        list(COLUMNS), np.array(losses), spread, 0.934, scored_by, 0, 228
    )


def run():
    return RunRecord(
        probgap="0.1.0",
        started="2026-11-16T08:00:00Z",
        command="probgap fit tumours.csv --label malignant --id patient --out found",
        seed=0,
        settings={"jobs": 1, "drop": [], "positive": None},
        versions={"python": "3.11.7", "numpy": "2.4.6", "scikit-learn": "1.9.0"},
        timings={"read": 0.1, "fit": 2.8, "examine": 14.2, "write": 0.9},
        pipeline="Pipeline(steps=[('columns', ColumnTransformer(...)),\n"
        "                ('classifier', PGPUClassifier(random_state=0))])",
        files=(
            "model.skops",
            "scores.csv",
            "report.html",
            "run.json",
            "label_next.csv",
        ),
    )
