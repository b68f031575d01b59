"""Run jobs: draw the data, fit the methods, and return a row for each job."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from probgap import datasets, methods
from probgap._core.errors import InvalidInputError
from probgap._core.runtime import keep_freed_memory, one_thread
from probgap._core.svm import FastSVC
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap.boundary import MeanSmallest
from probgap.gap import MixedGapEstimator
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.reproduction._rows import Row

if TYPE_CHECKING:
    from probgap.reproduction._plan import Job

_REAL = "real"  # the labels that came with the data
_DRAWN = {"triangles": datasets.make_triangles, "square": datasets.make_square}
_PROTEINS: dict[str, Literal["doc2vec", "svd"]] = {"tcdb": "doc2vec", "tcdb-svd": "svd"}
DATA_SIZES = {
    "triangles": 2000,
    "square": 2000,
    "splice": 2991,
    "banana": 5300,
    "twonorm": 7400,
    "image": 2086,
    "heart": 270,
    "tcdb": 7359,
    "tcdb-svd": 7359,
}
CLEAN = "clean"  # the one column that is fitted on true labels
FIGURE = "figure"  # PGPU again, whose row holds the points of Figure 1
_PLATT_FOLDS = 5
_LIBRARIES = ("probgap", "numpy", "scipy", "scikit-learn", "joblib", "gensim")
_SCORES = ("accuracy", "balanced_accuracy", "f1", "auc", "seconds")
_DIGITS = 4


def run(jobs: Sequence[Job], *, n_jobs: int | None = None) -> Iterator[Row]:
    """Run jobs, several splits at once, and yield rows as they are ready.

    The jobs of a split run in one process, on one thread, and share fits that several
    methods need. joblib chooses the backend: within
    ``joblib.parallel_config(backend="dask")`` they run on a cluster. The numbers depend
    neither on that nor on the order.

    Parameters
    ----------
    jobs : sequence of Job
        What to run; see :func:`plan`.
    n_jobs : int, default=None
        Number of splits to run at once.

    Yields
    ------
    dict
        One row for each job, in the order in which they end.

    Examples
    --------
    >>> from probgap.reproduction import paper_specs, plan, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:1]
    >>> [row["status"] for row in run(jobs)]
    ['ok']
    """
    splits: dict[tuple[str, str, int], list[Job]] = defaultdict(list)
    for job in jobs:
        splits[job.table, f"{job.data} {job.labelling}", job.split].append(job)
    # The longest first, so that no long one runs alone at the end.
    ordered = sorted(splits.values(), key=lambda split: -sum(job.cost for job in split))
    if n_jobs is not None:
        n_jobs = min(n_jobs, max(1, len(ordered)))
    work = joblib.Parallel(
        n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
    )
    for rows in work(
        joblib.delayed(_run_split)(split, os.getpid()) for split in ordered
    ):
        yield from rows


def _run_split(jobs: Sequence[Job], parent: int) -> list[Row]:
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches every process; the parent stops the others, without tracebacks.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        keep_freed_memory()  # every fold needs as much again
    fits = Fits()
    with one_thread():
        return [_run_job(job, fits) for job in jobs]


def _run_job(job: Job, fits: Fits) -> Row:
    numbers, error = {}, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = _measure(job, fits)
        except Exception as problem:  # noqa: BLE001 (one job must not stop the others)
            error = f"{type(problem).__name__}: {problem}"
    alpha, beta = (*job.labelling.parameters, None, None)[:2]
    return {
        "key": job.key,
        "table": job.table,
        "data": job.data,
        "labelling": str(job.labelling),
        "rate": job.labelling.rate,
        "alpha": alpha,
        "beta": beta,
        "method": job.method,
        "parameters": job.settings,
        "seed": job.split,
        **{name: numbers.get(name) for name in _SCORES},
        "status": "ok" if error is None else "error",
        "error": error,
        "details": numbers.get("details", {}),
        "warnings": sorted({_first_sentence(w) for w in caught}),
        "versions": _versions(),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "cpus": os.cpu_count(),
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "profile": "full" if job.max_rows is None else "quick",
    }


def _measure(job: Job, fits: Fits) -> Row:
    train, test = _draw_split(job)
    model = _make_method(job, fits)
    observed = train.y if job.method == CLEAN else train.s
    truth = test.y.astype(np.int8)
    started = time.perf_counter()
    model.fit(train.X, observed.astype(np.int8))
    # predict uses its sign: one pass over the kernel serves both.
    decision = model.decision_function(test.X)
    predicted = (decision > 0.0).astype(np.int8)
    balanced = metrics.balanced_accuracy_score(truth, predicted)
    row: Row = {
        "accuracy": float(metrics.accuracy_score(truth, predicted)),
        "balanced_accuracy": float(balanced),
        "f1": float(metrics.f1_score(truth, predicted, zero_division=0.0)),
        "auc": float(metrics.roc_auc_score(truth, decision)),
    }
    row["seconds"] = round(time.perf_counter() - started, 4)
    details: Row = {
        "n_train": int(observed.size),
        "n_labelled": int(train.s.sum()),
        "n_positive": int(train.y.sum()),
    }
    if hasattr(model, "boundary_"):
        details["boundary"] = float(model.boundary_.value)
        details["true_boundary"] = job.labelling.true_boundary
    if job.method == FIGURE:
        details["panels"] = _panels(model.relabelling_, train)
    return row | {"details": details}


def _panels(relabelling: Any, train: Problem) -> Row:
    """Return the points of Figure 1 with true, observed and new labels."""
    labels = np.where(relabelling.decided, relabelling.labels, -1)
    x1, x2 = train.X.T.round(_DIGITS).tolist()
    panels = {"true": train.y, "observed": train.s, "relabelled": labels}
    found = {name: values.astype(int).tolist() for name, values in panels.items()}
    return {"x1": x1, "x2": x2} | found


def _first_sentence(caught: warnings.WarningMessage) -> str:
    text = str(caught.message).split(". ", maxsplit=1)[0]
    return f"{caught.category.__name__}: {text}"


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which positives are left unlabelled: a mislabelled rate, or real labels."""

    rate: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.rate == _REAL and not self.parameters:
            return
        try:
            self.function()
        except (KeyError, TypeError):
            msg = (
                f"a rate must be [{_REAL!r}], or one of {sorted(datasets.RATES)} with "
                f"its parameters. Got {[self.rate, *self.parameters]}."
            )
            raise InvalidInputError(msg) from None

    def __str__(self) -> str:
        """Return it as the tables write it: inverse(0.1, 0.5)."""
        numbers = ", ".join(f"{value:g}" for value in self.parameters)
        return f"{self.rate}({numbers})" if numbers else self.rate

    def function(self) -> datasets.Rate:
        """Return the mislabelled rate as a function of the gap."""
        return datasets.RATES[self.rate](*self.parameters)

    @property
    def true_boundary(self) -> float | None:
        """The observed gap where the true gap is 0; unknown for real labels."""
        if self.rate == _REAL:
            return None
        return -float(self.function()(np.zeros(1))[0])


class Problem(NamedTuple):
    """Samples with true and observed labels."""

    X: Array
    y: Mask
    s: Mask


def check_data(names: Iterable[str]) -> None:
    """Check before the first job that all data sets can be loaded.

    Parameters
    ----------
    names : iterable of str
        Names of data sets.

    Raises
    ------
    DataFileError
        If a file is missing, or its content is not the expected one.

    Examples
    --------
    >>> from probgap.reproduction import check_data
    >>> check_data({"triangles", "square"})
    """
    for name in sorted(names):
        if name in _PROTEINS:
            datasets.load_tcdb_vectors(_PROTEINS[name])
        elif name not in _DRAWN:
            datasets.load_benchmark(name)


def _seed_for(*parts: object) -> int:
    """Return a seed by purpose, so that a job does not depend on order or process."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) // 2


def _draw_split(job: Job) -> list[Problem]:
    """Draw a training and a test part, standardised by the training part."""
    X, y, s = _draw_problem(job.data, job.labelling, job.max_rows)
    seed = _seed_for("split", job.data, job.labelling, job.split)
    parts = train_test_split(
        np.arange(y.size), test_size=job.test_share, random_state=seed
    )
    scaler = StandardScaler().fit(X[parts[0]])
    return [Problem(scaler.transform(X[rows]), y[rows], s[rows]) for rows in parts]


@cache
def _draw_problem(data: str, labelling: Labelling, max_rows: int | None) -> Problem:
    """Draw or load the samples, and hide labels: once for all splits."""
    if (data in _PROTEINS) != (labelling.rate == _REAL):
        rule = repr(_REAL) if data in _PROTEINS else "a function: no observed labels"
        msg = f"the rate of {data} must be {rule}. Got {labelling}."
        raise InvalidInputError(msg)
    if data in _PROTEINS:
        X, proteins = datasets.load_tcdb_vectors(_PROTEINS[data]), datasets.load_tcdb()
        y, s = proteins.y > 0, proteins.s > 0
    else:
        if data in _DRAWN:
            seed, n = _seed_for("data", data, labelling), DATA_SIZES[data]
            drawn = _DRAWN[data](min(n, max_rows or n), random_state=seed)
            X, y, gap = drawn.X, drawn.y > 0, _gap(data, drawn.X, drawn.y)
        else:
            X, y, gap = _load(data)
        seed = _seed_for("labels", data, labelling)
        s = datasets.hide_labels(X, y, gap, labelling.function(), seed).astype(np.bool_)
    if max_rows is None or y.size <= max_rows:
        return Problem(X, y, s)
    rng = np.random.default_rng(_seed_for("rows", data))
    rows = np.sort(rng.choice(y.size, max_rows, replace=False))
    return Problem(X[rows], y[rows], s[rows])


@cache
def _load(data: str) -> tuple[Array, Mask, Vector]:
    X, y = datasets.load_benchmark(data)
    return X, y > 0, _gap(data, X, y)


def _gap(data: str, X: Array, y: NDArray[np.generic]) -> Vector:
    with one_thread():
        scaled = StandardScaler().fit_transform(X)
        return datasets.platt_gap(scaled, y, random_state=_seed_for("gap", data))


def _pgpu(n_smallest: int = 3, **options: Any) -> PGPUClassifier:
    return PGPUClassifier.paper(boundary=MeanSmallest(n_smallest), **options)


# Each method, and its parameters for the SVM and the estimate of P(s=1 | x) that the
# methods of the paper share.
METHODS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "SVM": (methods.NaiveClassifier, ("estimator",)),
    "Elkan": (methods.ElkanNotoClassifier, ("estimator", "gap_estimator")),
    "Natarajan": (methods.NatarajanClassifier, ("estimator", "gap_estimator")),
    "Liu": (methods.LiuTaoClassifier, ("estimator", "gap_estimator")),
    "PGPU": (_pgpu, ("estimator", "gap_estimator__estimator")),
    "PGPUcv": (PGPUClassifierCV.paper, ("estimator", "gap_estimator__estimator")),
    CLEAN: (methods.NaiveClassifier, ("estimator",)),
    # As a user gets it: the SVM and the estimate are the paper's, not ours.
    "probgap": (PGPUClassifier, ()),
    # The same with their SVM at the end, to see what the final classifier contributes.
    "probgap C=1": (PGPUClassifier, ("estimator",)),
    FIGURE: (_pgpu, ("estimator", "gap_estimator__estimator")),
}


def _make_method(job: Job, fits: Fits) -> Any:
    """Return the method, unfitted; fits are shared with other methods of the split."""
    seed = _seed_for("method", job.data, job.labelling, job.split)
    svm = FastSVC(**job.svm, random_state=seed)
    folds = StratifiedKFold(_PLATT_FOLDS, shuffle=True, random_state=seed)
    platt = SharedPlatt(svm, cv=folds, fits=fits)
    make, places = METHODS[job.method]
    parts = dict(zip(places, (svm, platt), strict=False))
    if make is PGPUClassifier:
        parts["gap_estimator"] = SharedGap(fits)
    return make(**parts, random_state=seed, **job.parameters)


class Fits(dict[str, Any]):
    """Results by the content of their inputs; clones of an estimator share them."""

    def recall(self, inputs: Any, compute: Callable[[], Any]) -> Any:
        """Return the result for these inputs, computed once."""
        key = joblib.hash(inputs)
        if key not in self:
            self[key] = compute()
        return self[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class SharedPlatt(CalibratedClassifierCV):
    """An SVM with Platt scaling, fitted once for each set of samples and labels.

    Every ``random_state`` in it is set, so that sharing changes no number.
    """

    _only_calibrates = True  # a search may fit it by a kernel matrix

    def __init__(self, estimator: Any, *, cv: Any, fits: Fits) -> None:
        super().__init__(estimator, method="sigmoid", ensemble=False, cv=cv)
        self.fits = fits

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or reuse the fit on the same data."""
        self.content_ = joblib.hash((X, y, self.estimator.get_params(), self.cv))
        fit = super().fit
        fitted = self.fits.recall(self.content_, lambda: vars(fit(X, y)))
        self.__dict__.update({k: v for k, v in fitted.items() if k.endswith("_")})
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of the classes."""
        predict = super().predict_proba
        proba: Array = self.fits.recall((self.content_, X), lambda: predict(X))
        return proba


class SharedGap(MixedGapEstimator):
    """The gap of the default, fitted once for each set of samples, labels and seed."""

    def __init__(self, fits: Fits, *, random_state: Any = None) -> None:
        super().__init__(random_state=random_state)
        self.fits = fits

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or reuse the fit on the same data."""
        seed = self.random_state
        fit = lambda: MixedGapEstimator(random_state=seed).fit(X, y)
        fitted = vars(self.fits.recall(("gap", X, y, seed), fit))
        self.__dict__.update({k: v for k, v in fitted.items() if k.endswith("_")})
        return self
