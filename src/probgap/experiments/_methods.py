"""The columns of the tables: the paper's methods to the letter, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from probgap._core.errors import InvalidInputError
from probgap._core.svm import FastSVC
from probgap.baselines import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
)
from probgap.boundary import MeanSmallest
from probgap.experiments._shared import Memory, SharedClassifier
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

CLEAN = "clean"  # the one column that is fitted on true labels
_FOLDS_OF_PLATT = 5

# Each takes the machine and the estimate of P(s=1 | x) that the methods share.
_METHODS: Mapping[str, Callable[..., Any]] = {
    "SVM": lambda svm, _, **own: NaiveClassifier(estimator=svm, **own),
    "Elkan": lambda svm, platt, **own: ElkanNotoClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "Natarajan": lambda svm, platt, **own: NatarajanClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "Liu": lambda svm, platt, **own: LiuTaoClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "PGPU": lambda svm, platt, n_smallest=3, **own: PGPUClassifier.paper(
        boundary=MeanSmallest(n_smallest),
        estimator=svm,
        gap_estimator__estimator=platt,
        **own,
    ),
    "PGPUcv": lambda svm, platt, **own: PGPUClassifierCV.paper(
        estimator=svm, gap_estimator__estimator=platt, **own
    ),
    CLEAN: lambda svm, _, **own: NaiveClassifier(estimator=svm, **own),
    # Ours, as a user gets it: the settings above are the paper's, not ours.
    "probgap": lambda _svm, _platt, **own: PGPUClassifier(**own),
    # Ours with their machine at the end: how much of a gain is the choice of C.
    "probgap C=1": lambda svm, _, **own: PGPUClassifier(estimator=svm, **own),
}
METHODS = tuple(_METHODS)


def check_method(name: str) -> None:
    """Refuse a method that is not known."""
    if name not in _METHODS:
        msg = f"a method must be one of {METHODS}. Got {name!r}."
        raise InvalidInputError(msg)


def make_method(
    name: str,
    parameters: Mapping[str, Any],
    svm: Mapping[str, Any],
    seed: int,
    memory: Memory | None,
) -> Any:
    """Make one method, unfitted.

    With a memory, methods of one split that need P(s=1 | x) of the same samples fit it
    once.
    """
    check_method(name)
    machine = SVC(**svm, random_state=seed)
    platt: Any = CalibratedClassifierCV(
        FastSVC(**svm, random_state=seed),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(_FOLDS_OF_PLATT, shuffle=True, random_state=seed),
    )
    if memory is not None:
        platt = SharedClassifier(platt, memory)
    return _METHODS[name](machine, platt, random_state=seed, **parameters)
