"""The account of a fit: what was found, what the checks say, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from probgap._core.output import count_range, is_open, plural

if TYPE_CHECKING:
    from probgap.boundary import Boundary
    from probgap.diagnostics import HeldOutCalibration, LabellingCurve, ScarTest
    from probgap.inspection import ColumnImportance
    from probgap.reweight import LeftOutBound


@dataclass(frozen=True, slots=True)
class Found:
    """How many positives there are, by the reading of the fit."""

    rows: int
    labelled: int
    unlabelled: int
    hidden: float
    hidden_interval: tuple[float, float]
    level: float
    share_positive: float
    share_interval: tuple[float, float]
    called_positive: int

    @property
    def is_open(self) -> bool:
        """Whether the data set no upper end to the count."""
        return is_open(self.hidden_interval[1], self.unlabelled)

    @property
    def headline(self) -> str:
        """How many positives are hidden, as firmly as the interval allows."""
        among = f"among {plural(self.unlabelled, 'unlabelled row')}"
        words = count_range(*self.hidden_interval, self.unlabelled)
        if words == "none":
            return f"No sign of hidden positives {among}"
        if words == "any number":
            return f"Any number of hidden positives {among}"
        noun = "positive" if words.endswith(" 1") else "positives"
        return f"{words[0].upper()}{words[1:]} more {noun} {among}"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of rows by observed gap."""

    edges: tuple[float, ...]
    unlabelled: tuple[int, ...]
    labelled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """How unequal the weights of the decided rows are, and how exact their solution.

    ``bound`` says what rows left out can cost; its deviation is for held-out rows only.
    """

    reweighted: bool
    effective_sample_size: float
    n_weighted: int
    largest: float
    kkt_residual: float | None = None
    converged: bool | None = None
    bound: LeftOutBound | None = None


@dataclass(frozen=True, slots=True)
class Worlds:
    """Two numbers of hidden positives that both fit the data."""

    low: float
    high: float
    familiarity: float


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Rows of similar predicted chance; the share labelled, with a 90% interval."""

    predicted: float
    observed: float
    n: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CurveBin:
    """Rows of similar gaps; the share labelled, a 90% interval, an isotonic fit."""

    gap_low: float
    gap_high: float
    gap: float
    n: int
    labelled: int
    frequency: float
    low: float
    high: float
    fit: float


@dataclass(frozen=True, slots=True)
class OtherMethod:
    """Predictions of another method for the rows of the comparison."""

    method: str
    hidden: int | None = None
    agreement: float | None = None
    both: int | None = None
    only_here: int | None = None
    only_there: int | None = None
    lee_liu: float | None = None
    recall: float | None = None
    share_positive: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class NextRow:
    """A row worth labelling next; rows are counted from 1."""

    row: int
    id: str | None
    gap: float
    probability: float
    why: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning about the numbers.

    ``sign`` names the warning of ``fit`` it repeats, or "fast" if checks were left out.
    """

    level: Literal["strong", "mild"]
    what: str
    do: str
    sign: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Results of a fit and its checks: the content of the page and of ``run.json``.

    Checks that failed are None or empty; ``warnings`` say why. The classes of the parts
    are those of ``probgap.diagnostics.account``.

    Attributes
    ----------
    found, boundary, histogram, weights, worlds : object
        What the fit found: counts, where rows are as likely positive as not, rows by
        observed gap, weights, and two counts that both fit the data.
    held_out, labelling, scar, drivers : object or None
        What ``held_out_calibration``, ``labelling_curve``, ``scar_test`` and
        ``column_importance`` return.
    others : tuple of OtherMethod
        What other methods say, on ``n_compared`` rows.
    next : tuple of NextRow
        Rows to ask a person about, the most informative first.
    warnings : tuple of Caution
        Warnings about the numbers, the gravest first.
    """

    found: Found
    boundary: Boundary
    histogram: Histogram
    weights: Weights
    worlds: Worlds
    held_out: HeldOutCalibration | None = None
    labelling: LabellingCurve | None = None
    scar: ScarTest | None = None
    others: tuple[OtherMethod, ...] = ()
    n_compared: int = 0
    drivers: ColumnImportance | None = None
    next: tuple[NextRow, ...] = ()
    warnings: tuple[Caution, ...] = ()

    @property
    def undecided_share(self) -> float:
        """Share of the rows that the gap alone leaves undecided."""
        found = self.boundary
        n_rows = found.n_negative + found.n_undecided + found.n_positive
        return found.n_undecided / max(1, n_rows)

    def to_dict(self) -> dict[str, Any]:
        """Return dicts, lists, strings, finite numbers and None, ready for JSON."""
        plain = as_plain(self)
        plain["found"]["headline"] = self.found.headline

        def take(part: dict[str, Any], *names: str) -> dict[str, Any]:
            return {name: part.pop(name) for name in names}

        boundary = plain.pop("boundary")
        decision = take(boundary, "n_negative", "n_undecided", "n_positive")
        decision["undecided_share"] = self.undecided_share
        decision |= take(plain, "histogram", "weights") | {"reliability": []}
        belief = take(plain, "scar", "labelling", "held_out", "worlds")
        belief |= take(plain, "others", "n_compared")
        if self.scar is not None:
            belief["scar"]["verdict"] = self.scar.verdict
        if (held_out := belief["held_out"]) is not None:
            decision["reliability"] = held_out.pop("bins")
            held_out["calibration_error"] = held_out.pop("error")
        if (drivers := plain["drivers"]) is not None:
            lists = (drivers.pop(key) for key in ("columns", "importance", "spread"))
            drivers["columns"] = [
                {"column": str(name), "importance": mean, "spread": spread}
                for name, mean, spread in zip(*lists, strict=True)
            ]
        boundary = take(boundary, "value", "rule", "spread", "fallback")
        parts = {"boundary": boundary, "decision": decision, "belief": belief}
        return take(plain, "found") | parts | plain


def as_plain(value: Any) -> Any:
    """Turn numpy into Python, dataclasses into dicts, NaN and infinity into None."""
    if is_dataclass(value):
        return {
            item.name: as_plain(getattr(value, item.name)) for item in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, np.generic):
        return as_plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
