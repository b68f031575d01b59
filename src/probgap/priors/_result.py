"""The result of an estimate of the class prior."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from probgap._core.output import fact_table, number
from probgap._core.types import Mask


@dataclass(frozen=True, slots=True)
class FoundPrior:
    """Share of positives among the unlabelled rows, as a method computed it."""

    share: float
    interval: tuple[float, float] | None = None
    converged: bool = True
    evidence: Mapping[str, float] = field(default_factory=dict)


def share_of_hidden(frequency: float, labelled: Mask) -> float:
    """Return the share of unlabelled rows that are positive, from the label frequency."""
    n_labelled = int(labelled.sum())
    return (n_labelled / frequency - n_labelled) / (labelled.size - n_labelled)


@dataclass(frozen=True, slots=True)
class ClassPrior:
    """Estimated shares of positives, among all rows and among the unlabelled ones.

    Papers call either of them the class prior: where rows of a single sample were labelled,
    the share among all rows; where labelled positives are a separate sample, the share
    among the unlabelled. With a share s of labelled rows, ``value = s + (1 - s) *
    unlabelled_share``.

    Attributes
    ----------
    value : float
        Share of all rows, labelled or not, that are positive.
    unlabelled_share : float
        Share of the unlabelled rows that are positive.
    interval, unlabelled_interval : tuple of float or None
        90% intervals of the two, where the method gives one.
    method : str
        The method.
    n_labelled, n_unlabelled : int
        Numbers of rows.
    converged : bool
        Whether the numerical solution meets the tolerance of the method.
    evidence : dict of str to float
        Intermediate results of the method.
    """

    value: float
    unlabelled_share: float
    interval: tuple[float, float] | None
    unlabelled_interval: tuple[float, float] | None
    method: str
    n_labelled: int
    n_unlabelled: int
    converged: bool
    evidence: Mapping[str, float]

    @classmethod
    def of(cls, found: FoundPrior, method: str, labelled: Mask) -> Self:
        """Clip the share among the unlabelled to [0, 1], and convert it to all rows.

        Parameters
        ----------
        found : FoundPrior
            The share, and its interval if there is one, as a method gives them.
        method : str
            The method.
        labelled : ndarray of shape (n_rows,)
            Mask of the labelled rows.

        Returns
        -------
        ClassPrior
            The share of all rows.
        """
        n_labelled = int(labelled.sum())
        n_unlabelled = labelled.size - n_labelled

        def of_all(share: float) -> float:
            return (n_labelled + n_unlabelled * share) / labelled.size

        share = min(max(found.share, 0.0), 1.0)
        ends: Any = None
        if found.interval is not None:
            ends = tuple(np.clip(found.interval, 0.0, 1.0).tolist())
        return cls(
            value=of_all(share),
            unlabelled_share=share,
            interval=ends and tuple(map(of_all, ends)),
            unlabelled_interval=ends,
            method=method,
            n_labelled=n_labelled,
            n_unlabelled=n_unlabelled,
            converged=found.converged,
            evidence=dict(found.evidence),
        )

    @property
    def label_frequency(self) -> float:
        """Share of the positives that are labelled, often called c."""
        return self.n_labelled / (self.n_labelled + self.n_unlabelled) / self.value

    def _repr_html_(self) -> str:
        facts = {
            "positive, of all rows": number(self.value),
            "positive, of unlabelled rows": number(self.unlabelled_share),
            "labelled, of positives": number(self.label_frequency),
            "method": self.method + ("" if self.converged else ", not converged"),
        }
        if self.interval is not None:
            low, high = map(number, self.interval)
            facts["90% interval, of all rows"] = f"{low} to {high}"
        return fact_table("Class prior", facts)
