"""Draw the rooms of the package and what imports what.

    python docs/_ext/architecture.py rooms.png

Rows are the layers of the import contract in pyproject.toml, arrows are imports in the
code. A build of the documentation makes ``rooms.svg`` and ``rooms.md``, a table of what
each room says it is, for the page architecture.md.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import grimp
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve
from sklearn.isotonic import isotonic_regression

ROOT = Path(__file__).parents[2]
PACKAGE = "probgap"
_STARTS = range(8)
_WIDTH, _HEIGHT, _GAP, _ROW = 1.5, 0.44, 0.3, 1.3
_INKS = ("#1b6ca8", "#b3541e", "#2e7d4f", "#7b4397", "#9a6a00", "#4a5568")
_PAPER, _PLAIN, _PRIVATE = "#fbfaf7", "#ffffff", "#e8e6df"

Edge = tuple[str, str]


class Via(NamedTuple):
    """Where an arrow passes between the rooms of a row."""

    edge: Edge
    row: int


Item = str | Via
Rows = Sequence[Sequence[Item]]


def read_rows(file: Path = ROOT / "pyproject.toml") -> list[list[str]]:
    """Return the rooms of each layer of the import contract, from the top."""
    tables = tomllib.loads(file.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (table["layers"] for table in tables if table["type"] == "layers")
    return [
        [room.strip(" ()").removeprefix(f"{PACKAGE}.") for room in layer.split("|")]
        for layer in layers
    ]


def read_imports(rooms: Iterable[str]) -> set[Edge]:
    """Return who imports whom among rooms, as the code has it."""
    graph = grimp.build_graph(PACKAGE)
    known = set(rooms)
    found = {
        (module.split(".")[1], other.split(".")[1])
        for module in graph.modules - {PACKAGE}
        for other in graph.find_modules_directly_imported_by(module) - {PACKAGE}
    }
    return {(a, b) for a, b in found if a != b and {a, b} <= known}


def leave_out_implied(edges: set[Edge]) -> set[Edge]:
    """Drop an arrow where others lead the same way."""

    def reaches(start: str, end: str, arrows: set[Edge]) -> bool:
        return any(
            a == start and (b == end or reaches(b, end, arrows)) for a, b in arrows
        )

    return {(a, b) for a, b in edges if not reaches(a, b, edges - {(a, b)})}


def route(
    rows: Sequence[Sequence[str]], edges: set[Edge]
) -> tuple[Rows, list[list[Item]]]:
    """Return rows with a place for each arrow that passes, and each arrow's stations."""
    level = {room: row for row, rooms in enumerate(rows) for room in rooms}
    full: list[list[Item]] = [list(rooms) for rooms in rows]
    stations: list[list[Item]] = []
    for edge in sorted(edges):
        passed = [Via(edge, row) for row in range(level[edge[0]] + 1, level[edge[1]])]
        for via in passed:
            full[via.row].append(via)
        stations.append([edge[0], *passed, edge[1]])
    return full, stations


def order(rows: Rows, stations: Sequence[Sequence[Item]], bars: set[str]) -> Rows:
    """Order each row: few crossings, short arrows, rooms mostly as the contract has them."""
    links = [
        link
        for line in stations
        for link in pairwise(line)
        if not bars.intersection(link)
    ]
    level = np.array([[i for i, row in enumerate(rows) if a in row] for a, _ in links])

    def cost(trial: Rows) -> float:
        at = {x: (i + 0.5) / len(row) for row in trial for i, x in enumerate(row)}
        upper, lower = (
            np.array([at[x] for x in end]) for end in zip(*links, strict=True)
        )
        turned = np.subtract.outer(upper, upper) * np.subtract.outer(lower, lower) < 0
        crossings = np.count_nonzero(turned & (level == level.T)) / 2
        moved = sum(
            at[a] > at[b]
            for row in rows
            for a, b in combinations(row, 2)
            if _rooms(a, b)
        )
        return round(crossings + np.abs(upper - lower).sum() + 0.3 * moved, 9)

    rng = np.random.default_rng(0)
    starts = [
        [[row[i] for i in rng.permutation(len(row))] for row in rows] for _ in _STARTS
    ]
    return min((_swap(start, cost) for start in [rows, *starts]), key=cost)


def _rooms(a: Item, b: Item) -> bool:
    return isinstance(a, str) and isinstance(b, str)


def _swap(rows: Rows, cost: Callable[[Rows], float]) -> Rows:
    """Swap two of a row for as long as that gains anything."""
    rows = [list(row) for row in rows]
    least, before = cost(rows), None
    while least != before:
        before = least
        for row in rows:
            for i, j in combinations(range(len(row)), 2):
                row[i], row[j] = row[j], row[i]
                if (now := cost(rows)) < least:
                    least = now
                else:
                    row[i], row[j] = row[j], row[i]
    return rows


def place(
    rows: Rows, stations: Sequence[Sequence[Item]], bars: set[str]
) -> dict[Item, float]:
    """Return how far to the right each room and each passing arrow lies."""

    def size(item: Item) -> float:
        return _WIDTH + _GAP if isinstance(item, str) else 0.22

    steps = {
        i: np.cumsum([0, *((size(a) + size(b)) / 2 for a, b in pairwise(row))])
        for i, row in enumerate(rows)
    }
    widest = max(step[-1] for step in steps.values())
    at = {
        item: x - step[-1] / 2
        for row, step in zip(rows, steps.values(), strict=True)
        for item, x in zip(row, step, strict=True)
    }
    near: dict[Item, list[Item]] = {item: [] for item in at}
    for a, b in (link for line in stations for link in pairwise(line)):
        near[a] += [b] * (b not in bars)
        near[b] += [a] * (a not in bars)
    for _ in range(60):
        for i, row in enumerate(rows):
            wanted = [np.mean([at[n] for n in near[x]] or [at[x]]) for x in row]
            left = isotonic_regression(
                np.subtract(wanted, steps[i]),
                y_min=-widest / 2,
                y_max=widest / 2 - steps[i][-1],
            )
            at.update(zip(row, left + steps[i], strict=True))
    return at


def draw(path: Path) -> None:
    """Draw the rooms, into a file of any kind that matplotlib writes."""
    rooms = read_rows()
    imports = read_imports(room for row in rooms for room in row)
    # What nearly all import needs no arrows.
    users = {room: sum(b == room for _, b in imports) for row in rooms for room in row}
    floor = {room for room, n in users.items() if n > 0.7 * len(users)}
    edges = leave_out_implied({(a, b) for a, b in imports if b not in floor})
    bars = {row[0] for row in rooms if len(row) == 1}
    rows, stations = route(rooms, edges)
    rows = order(rows, stations, bars)
    at = place(rows, stations, bars)
    edge = max(abs(x) for x in at.values()) + _WIDTH / 2
    height = {item: -_ROW * i for i, row in enumerate(rows) for item in row}
    figure = Figure(figsize=(2 * edge * 0.72 + 0.6, _ROW * len(rows) * 0.72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-edge - 0.4, edge + 0.4), ylim=(-_ROW * len(rows) + 0.7, 0.6))
    axes.set_axis_off()
    for line in stations:
        _draw_arrow(axes, line, at, height, bars, _ink(rooms, line[0]))
    for row in rooms:
        for room in row:
            half = edge if room in bars else _WIDTH / 2
            middle = 0 if room in bars else at[room]
            _draw_room(axes, room, (middle, height[room], half), _ink(rooms, room))
            note = f"  (imported by {users[room]} rooms)" if room in floor else ""
            axes.text(
                middle, height[room], room + note, ha="center", va="center", fontsize=11
            )
    with mpl.rc_context({"svg.hashsalt": PACKAGE}):
        figure.savefig(path, facecolor=_PAPER, dpi=160, metadata=_no_date(path))


def _no_date(path: Path) -> dict[str, None]:
    return {"Date": None} if path.suffix == ".svg" else {}


def _ink(rows: Sequence[Sequence[str]], room: Item) -> str:
    """Return the colour of a room and of the arrows that leave it."""
    return _INKS[[x for row in rows for x in row].index(str(room)) % len(_INKS)]


def _draw_room(axes: Any, room: str, box: tuple[float, float, float], ink: str) -> None:
    middle, y, half = box
    axes.add_patch(
        FancyBboxPatch(
            (middle - half, y - _HEIGHT / 2),
            2 * half,
            _HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=_PRIVATE if room.startswith("_") else _PLAIN,
            edgecolor=ink,
            linewidth=1.4,
            zorder=3,
        )
    )


def _draw_arrow(
    axes: Any,
    line: Sequence[Item],
    at: dict[Item, float],
    height: dict[Item, float],
    bars: set[str],
    ink: str,
) -> None:
    """Draw a curve from a room down to another, upright where it passes a row."""
    first, last = line[0], line[-1]
    xs = [at[item] for item in line]
    if first in bars:
        xs[0] = xs[1]
    if last in bars:
        xs[-1] = xs[-2]
    half = _HEIGHT / 2
    points, codes = [(xs[0], height[first] - half)], [Curve.MOVETO]
    for (_, b), (x0, x1) in zip(pairwise(line), pairwise(xs), strict=True):
        y0, y1 = points[-1][1], height[b] + half + 0.02
        points += [(x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)]
        codes += [Curve.CURVE4] * 3
        if b is not last:
            points.append((x1, height[b] - half))
            codes.append(Curve.LINETO)
    axes.add_patch(
        FancyArrowPatch(
            path=Curve(points, codes),
            arrowstyle="-|>,head_length=5,head_width=2.4",
            color=ink,
            linewidth=1.2,
            zorder=2,
        )
    )


def describe() -> str:
    """Return a table of the rooms, each with the first sentence of its docstring."""
    lines = ["| room | what it is |", "|---|---|"]
    for room in (room for row in read_rows() for room in row):
        place = ROOT / "src" / PACKAGE / room
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        sentence = text.partition("\n")[0].replace("``", "`").rstrip(".")
        lines.append(f"| `{room}` | {sentence} |")
    return "\n".join(lines) + "\n"


def write_files(app: Any) -> None:
    """Write the picture and the table, beside the page."""
    draw(Path(app.srcdir) / "rooms.svg")
    Path(app.srcdir, "rooms.md").write_text(describe(), "utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Write both when a build starts."""
    app.connect("builder-inited", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
