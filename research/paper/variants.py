"""Which choice moves which column: the tables again, each time with another choice."""

from __future__ import annotations

import pandas as pd

from research.paper.printed import (
    CLEAN,
    LINE,
    NAIVE,
    Facts,
    Frame,
    count_lines,
    order_methods,
    read_printed,
)

# Labellings of the paper for which it prints no accuracies.
BOUNDARY_TABLE = "boundaries"
# Tables 1 to 8 with another choice: of features, their number, the form of a method, n'.
VARIANTS = (
    *("raw", "raw1000", "weighted", "smallest3", "smallest10"),
    *("semi", "semikept"),
)
_SETTINGS = {
    "tables": "standardised, 2,000 points",
    "raw": "as drawn, 2,000 points",
    "raw1000": "as drawn, 1,000 points",
}
_FORMS = ("scaling", "weighted")
# What becomes of rows that Algorithm 1 leaves out, by the letter and with labels kept.
_KEPT = {"semi": "", "semikept": ", kept"}
_FILLERS = ("self-training", "label spreading")


def compare_variants(jobs: Frame) -> Facts:
    """Compare the variants, the tables and the print, in accuracies in percent."""
    groups = jobs[jobs["ok"]].groupby([*LINE, "method"], as_index=False)["accuracy"]
    cells = groups.agg(mean="mean", sd="std")
    printed = read_printed().rename(columns={"table": "printed"})
    cells = cells.merge(printed, on=["data", "line", "method"])
    cells["difference"] = cells["mean"] - cells["paper_mean"]
    cells["setting"] = cells["table"].where(cells["table"].isin(VARIANTS), "tables")
    features = cells[cells["setting"].isin(_SETTINGS) & (cells["printed"] <= "6")]
    return {
        "settings": list(_SETTINGS.values()),
        "columns": _compare_columns(features) if _ran(cells, "raw") else [],
        "lines": [
            {"name": name, **count_lines(_pivot(features, setting))}
            for setting, name in _SETTINGS.items()
            if _ran(features, setting)
        ],
        "printed": count_lines(_pivot(features, "tables", "paper_mean")),
        "naive": _follow_naive(features),
        "smallest": _compare_smallest(cells[cells["data"] == "tcdb"]),
        "elkan": _compare_forms(cells[cells["method"] == "Elkan"]),
        **_compare_filled(jobs[jobs["ok"]]),
        **_lay_out_unprinted(jobs),
    }


def _ran(cells: Frame, setting: str) -> bool:
    return bool((cells["setting"] == setting).any())


def _pivot(cells: Frame, setting: str, values: str = "mean") -> Frame:
    """Return the accuracies of a setting: a row for each line, a column for each method."""
    chosen = cells[cells["setting"] == setting]
    return chosen.pivot(index=["data", "line"], columns="method", values=values)


def _compare_columns(cells: Frame) -> list[Facts]:
    """Return ours less the print, by table and setting, with a mean of all tables."""
    both = pd.concat([cells, cells.assign(printed="all six")])
    groups = both.groupby(["printed", "setting", "method"])["difference"]
    means = groups.mean().unstack()
    return [
        {"table": table, "setting": name} | means.loc[table, setting].dropna().to_dict()
        for table in both["printed"].sort_values().unique()
        for setting, name in _SETTINGS.items()
        if (table, setting) in means.index
    ]


def _follow_naive(cells: Frame) -> list[Facts]:
    """Return the SVM under constant rates, which neither gap nor bracket can move."""
    constant = cells["line"].str.startswith("constant")
    svm = cells[constant & (cells["method"] == NAIVE)]
    return [
        {"data": data, "line": line, "printed": group["paper_mean"].iloc[0]}
        | group.set_index("setting")["mean"].to_dict()
        for (data, line), group in svm.groupby(["data", "line"], sort=False)
        if _ran(group, "raw")
    ]


def _compare_smallest(cells: Frame) -> list[Facts]:
    """Return the accuracy of PGPU on the proteins by the number of gaps averaged."""
    pgpu = cells[cells["method"] == "PGPU"].set_index("setting")
    names = {"tables": 1, "smallest3": 3, "smallest10": 10}
    found = [(n, name) for name, n in names.items() if name in pgpu.index]
    return [{"n": n} | pgpu.loc[name].to_dict() for n, name in found]


def _compare_forms(cells: Frame) -> list[Facts]:
    """Return Elkan and Noto's two forms beside the print, by block."""
    cells = cells.replace({"setting": {"tables": "scaling"}})
    means = cells.groupby(["printed", "data", "setting"]).agg(
        {"difference": "mean", "sd": "median", "paper_sd": "median"}
    )
    means = means.astype(object).where(means.notna(), None)
    return [
        {"label": f"Table {table}" if table <= "6" else data}
        | {form: means.loc[table, data, form].to_dict() for form in _FORMS}
        for table, data in means.index.droplevel("setting").unique()
        if all((table, data, form) in means.index for form in _FORMS)
    ]


def _compare_filled(jobs: Frame) -> Facts:
    """Return accuracies with and without a class for rows left out, by data and rate."""
    suffix = jobs["table"].map(_KEPT)
    named = jobs.assign(method=jobs["method"] + suffix.fillna(""))
    named = named[suffix.notna() | jobs["table"].str.isdigit()]
    cells = named.groupby(["data", "line", "method"])["accuracy"].mean().unstack()
    done = [kept for kept in _KEPT.values() if f"unweighted{kept}" in cells]
    if not done:
        return {"filled": []}
    cells = cells.dropna(subset=[f"unweighted{kept}" for kept in done])
    rivals = [f"{m}{kept}" for kept in done for m in ("unweighted", *_FILLERS)]
    columns = [m for m in (NAIVE, "PGPU", *rivals, CLEAN) if m in cells]
    rate = cells.index.get_level_values("line").str.partition("(").get_level_values(0)
    means = cells[columns].groupby(["data", rate], sort=False).mean()
    left_out = {f"{m}{kept}": f"unweighted{kept}" for kept in done for m in _FILLERS}
    above = {m: cells[m] > cells[left_out[m]] + 1e-9 for m in columns if m in left_out}
    return {
        "filled_methods": columns,
        "filled": [
            {"data": data, "rate": rate, "cells": means.loc[data, rate].to_dict()}
            for data, rate in means.index
        ],
        "filled_counts": {
            m: (int(is_so.sum()), len(cells)) for m, is_so in above.items()
        },
    }


def _lay_out_unprinted(jobs: Frame) -> Facts:
    """Return the accuracies of labellings that the text announces and no table has."""
    cells = jobs[jobs["ok"] & (jobs["table"] == BOUNDARY_TABLE)]
    means = cells.groupby(["data", "line", "method"])["accuracy"].mean().unstack()
    lines = [
        {"data": data, "line": line, "cells": means.loc[data, line].dropna().to_dict()}
        for data, line in means.index
    ]
    return {"unprinted": lines, "unprinted_methods": order_methods(means)}
