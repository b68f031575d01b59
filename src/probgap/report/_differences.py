"""Where the run and the print part ways, counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap.report._rows import CLEAN, NAIVE, PAPER_METHODS, block_label

_OWN = ("PGPU", "PGPUcv")


def summarise_differences(
    tables: list[dict[str, Any]], blocks: list[dict[str, Any]]
) -> dict[str, Any]:
    """Count cells that differ, by block and method, and who wins where."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for table in tables:
        for group in table["groups"]:
            cells = found.setdefault((table["number"], group["data"]), {})
            for line in group["lines"]:
                for cell in line["cells"]:
                    if cell["difference"] is not None:
                        cells.setdefault(cell["method"], []).append(cell)
    lines = [
        {
            "label": block_label(block),
            "cells": [_count(cells.get(method, [])) for method in PAPER_METHODS],
        }
        for block, cells in found.items()
        if cells
    ]
    every = [c for cells in found.values() for group in cells.values() for c in group]
    marked = [cell for cell in every if cell["differs"]]
    return {
        "methods": list(PAPER_METHODS),
        "blocks": lines,
        "compared": len(every),
        "marked": len(marked),
        "higher": sum(cell["difference"] > 0 for cell in marked),
        "naive": _mean_difference(every, NAIVE),
        "clean": _mean_difference(every, CLEAN),
        "winners": _winners(blocks),
    }


def _count(cells: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not cells:
        return None
    return {
        "compared": len(cells),
        "marked": sum(cell["differs"] for cell in cells),
        "difference": float(np.mean([cell["difference"] for cell in cells])),
    }


def _mean_difference(
    cells: list[dict[str, Any]], method: str
) -> dict[str, float] | None:
    values = [cell["difference"] for cell in cells if cell["method"] == method]
    if not values:
        return None
    return {"signed": float(np.mean(values)), "size": float(np.mean(np.abs(values)))}


def _winners(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare who is best of the paper's methods, here and in print."""
    both = [b for b in blocks if b["known"] and b["best"] and b["paper_best"]]
    return {
        "blocks": len(both),
        "same": sum(b["best"]["method"] == b["paper_best"]["method"] for b in both),
        "own_here": sum(b["best"]["method"] in _OWN for b in both),
        "own_printed": sum(b["paper_best"]["method"] in _OWN for b in both),
        "parted": [
            {
                "label": b["label"],
                "here": b["best"]["method"],
                "printed": b["paper_best"]["method"],
            }
            for b in both
            if b["best"]["method"] != b["paper_best"]["method"]
        ],
    }
