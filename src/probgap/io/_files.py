"""Save a model, read it back, or read only what was noted beside it."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import platform
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import probgap
from probgap._core import learners
from probgap._core.errors import (
    MissingLibraryError,
    ModelFileError,
    ModelVersionWarning,
    load_library,
)
from probgap._core.output import whole_file
from probgap.audit import CorrectedClassifier
from probgap.io import _archive, _plan, _trees
from probgap.io._archive import SCHEMA, refuse
from probgap.io._checks import require_sound_parts, walk
from probgap.io._older import bring_up_to_date, translate_format_1

# Trees of the default, and how files have them.
_STORED: dict[type, Any] = {
    learners.Forest: _trees.Forest,
    learners.Boosting: _trees.Boosting,
}


def save(
    model: BaseEstimator | CorrectedClassifier,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, without pickle.

    The file is a zip of arrays, a plan that skops builds the model by, and a header: the
    format, the versions of the libraries, a SHA-256 of each part, and ``metadata``. It
    appears whole or not at all, and the same model makes the same bytes.

    Parameters
    ----------
    model : estimator
        A fitted classifier of probgap, a pipeline that ends in one, or one corrected by
        :func:`probgap.audit.correct`.
    path : str or path
        Where to write, usually ``*.skops``. A file that is there is replaced.
    metadata : mapping, default=None
        Anything that JSON can hold, to be read by :func:`read_metadata`.

    Raises
    ------
    ModelFileError
        If the model is not fitted, holds something that cannot be saved (a lambda, a
        class from a notebook), or the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from probgap import PGPUClassifier, io
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(200, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> path = Path(mkdtemp()) / "model.skops"
    >>> io.save(model, path)
    >>> bool((io.load(path).predict(X) == model.predict(X)).all())
    True
    """
    kind = type(model).__name__
    estimator = model.model if isinstance(model, CorrectedClassifier) else model
    if not (isinstance(estimator, BaseEstimator) and hasattr(model, "predict")):
        refuse(f"model must be an estimator that predicts. Got {kind}.")
    try:
        check_is_fitted(estimator)
        noted = json.loads(json.dumps(dict(metadata or {})))
    except NotFittedError as error:
        refuse(f"model must be fitted. Got an unfitted {kind}.", error)
    except (TypeError, ValueError, RecursionError) as error:
        refuse(f"metadata must be a mapping that JSON can hold. Got: {error}.", error)
    about = {"versions": _versions(), "metadata": noted}
    content = _archive.pack(_take_apart(model), about)
    place = Path(path).resolve()
    try:
        with whole_file(place, binary=True) as file:
            file.write(content)
    except OSError as error:
        refuse(f"Cannot write {place}: {error.strerror}.", error)


def load(
    path: str | os.PathLike[str], *, trusted: Collection[str | type] | None = None
) -> Any:
    """Read a model that :func:`save` wrote.

    Refused are a pickle; a file that is truncated, damaged or altered; a newer format; any
    type or function that is neither on probgap's list (its own, and those of scikit-learn
    that a table's pipeline needs) nor in ``trusted``; and arrays of the wrong shape or
    type, with NaN where none is allowed, or with indices out of range. So a file can run
    no code of its own. It can still be a wrong model: digests guard against accidents,
    not against someone who forges a whole file. Get models from people you know.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : collection of str or type, default=None
        Further types and functions to accept, by full name, such as
        ``"package.module.Class"``. What is trusted may be called by the file.

    Returns
    -------
    estimator
        It predicts as the one that was saved, to the last bit, with the same versions
        of the libraries on the same kind of machine.

    Raises
    ------
    ModelFileError
        If the file is refused: the message says why.

    Warns
    -----
    ModelVersionWarning
        If another version of scikit-learn wrote it.

    Examples
    --------
    >>> from probgap import io
    >>> io.load("model.skops")  # doctest: +SKIP
    PGPUClassifier(random_state=0)
    """
    items: Any = () if trusted is None else trusted
    wrong = isinstance(items, str | type | bool)
    if wrong or not all(isinstance(item, str | type) for item in items):
        refuse(f"trusted must be a list of names or types. Got {trusted!r}.")
    by_caller = [
        item if isinstance(item, str) else f"{item.__module__}.{item.__qualname__}"
        for item in items
    ]
    with _model_file_errors(path) as versions:
        header, members = _archive.unpack(Path(path).read_bytes())
        versions.update(header["versions"])
        model = _put_together(header["format"], members, by_caller)
    written = str(versions.get("scikit-learn"))[:40]
    if written != sklearn.__version__:
        warnings.warn(
            f"{path} was saved with scikit-learn {written}, and this is "
            f"{sklearn.__version__}: predictions may differ. Fit again, or install "
            f"scikit-learn=={written}.",
            ModelVersionWarning,
            stacklevel=2,
        )
    return model


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what was noted beside a model, without building the model.

    Parameters
    ----------
    path : str or path
        A file that :func:`save` wrote.

    Returns
    -------
    dict
        The ``metadata`` given to :func:`save`.

    Raises
    ------
    ModelFileError
        If the file is not such a file, was damaged, or has a newer format.

    Examples
    --------
    >>> from probgap import io
    >>> io.read_metadata("model.skops")  # doctest: +SKIP
    {'columns': ['age', 'income']}
    """
    with _model_file_errors(path):
        header, _ = _archive.unpack(Path(path).read_bytes())
    return dict(header["metadata"])


@contextlib.contextmanager
def _model_file_errors(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Turn any error into a ModelFileError, with the versions that differ."""
    written: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            # scikit-learn warns once for each part, load once for the file.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            yield written
    except MissingLibraryError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever a strange file leads to)
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"it cannot be read ({error.strerror})"
        elif isinstance(error, zipfile.BadZipFile):
            reason = f"it is damaged ({error})"
        elif not isinstance(error, ModelFileError):
            reason = f"it does not load ({type(error).__name__}: {error})"
        differ = [
            f"{name}=={str(written[name])[:40]} (here {version})"
            for name, version in (_versions() if written else {}).items()
            if name != "python" and written.get(name, version) != version
        ]
        if differ:
            others = ", ".join(differ)
            reason += f". It was saved with {others}: install these, or fit again"
        refuse(f"Cannot load {path}: {reason}.", error)


def _versions() -> dict[str, str]:
    names = {"probgap": probgap, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
    versions = {n: m.__version__ for n, m in {**names, "skops": _skops()}.items()}
    return {"python": platform.python_version(), **versions}


def _skops() -> Any:
    # Imported when needed, as it is slow.
    load_library("skops.io", extra="io", purpose="models in files")
    return load_library("skops", extra="io", purpose="models in files")


def _take_apart(model: Any) -> dict[str, bytes]:
    """Turn a model into the members of its file."""
    makers = {kind: stored.of for kind, stored in _STORED.items()}
    try:
        dumped = _skops().io.dumps(_swap(model, makers))
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        refuse(f"model has a part that skops cannot save: {error}", error)
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members[SCHEMA])
    names = {name for _, name in _plan.names_in(schema)}
    nameless = [n for n in sorted(names) if "<" in n or n.startswith("__main__.")]
    if nameless:
        refuse(
            "model has classes or functions that cannot be imported: "
            f"{', '.join(nameless)}. Put them into a module."
        )
    _plan.translate(schema)
    files = _plan.rename_arrays(schema)
    arrays = {
        new: _archive.normalise_array(new, members[old]) for old, new in files.items()
    }
    return {SCHEMA: json.dumps(schema, separators=(",", ":")).encode(), **arrays}


def _swap(model: Any, makers: Mapping[type, Callable[[Any], Any]]) -> Any:
    """Return a model whose parts of some types are replaced by what is made of them."""
    made = {id(t): makers[type(t)](t) for t in walk(model) if type(t) in makers}
    return copy.deepcopy(model, made) if made else model


def _put_together(
    number: int, members: Mapping[str, bytes], by_caller: Collection[str]
) -> Any:
    """Build the model, after checking everything that its file names."""
    schema = json.loads(members[SCHEMA])
    if number == 1:
        translate_format_1(schema)
    _plan.require_sound(schema, members.keys() - {SCHEMA})
    untrusted = _plan.find_untrusted(schema, by_caller)
    names = ", ".join(name[:200] for name in untrusted[:20])
    if number == 1 and any(name.startswith("probgap.") for name in untrusted):
        refuse(f"this version of probgap does not have or trust {names}: fit again")
    if untrusted:
        refuse(
            f"it holds {len(untrusted)} type(s) or function(s) that are not trusted: "
            f"{names}. If you know them and who made the file, name them in trusted"
        )
    _plan.resolve(schema)
    for name, content in members.items():
        _archive.check_array_size(name, content)
    plan = {SCHEMA: json.dumps(schema).encode()}
    # skops has a list of its own.
    known = sorted({name for _, name in _plan.names_in(schema)})
    model = _skops().io.loads(_archive.write_zip({**members, **plan}), trusted=known)
    if not hasattr(type(model), "predict"):
        refuse(f"it holds a {type(model).__name__}, not a model")
    if number == 1:
        for thing in list(walk(model)):
            bring_up_to_date(thing)
    require_sound_parts(model)
    return _swap(model, {kind: kind.restore for kind in _STORED.values()})
