"""Save a model, read it back, or read only what was noted beside it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import probgap
from probgap._core.errors import (
    MissingLibraryError,
    ModelFileError,
    ModelVersionWarning,
    load_library,
)
from probgap._core.output import whole_file
from probgap.io._archive import SCHEMA, pack, unpack
from probgap.io._arrays import clear_padding, require_honest_arrays, store_plainly
from probgap.io._older import GONE, bring_up_to_date
from probgap.io._parts import require_sound_parts
from probgap.io._schema import find_names, find_untrusted, renumber, require_sound
from probgap.io._stored import restore_learners, store_learners


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, without pickle.

    The file is a skops file, which :func:`load` reads, with a header: the format, the
    versions of probgap and scikit-learn, a SHA-256 of each part, and ``metadata``. It
    appears whole or not at all, and the same model makes the same bytes.

    Parameters
    ----------
    model : estimator
        A fitted classifier of probgap, or a pipeline that ends in one.
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
    _require_fitted(model)
    about = {"versions": _versions(), "metadata": _plain(metadata)}
    _write(Path(path), pack(_take_apart(model), about))


def load(
    path: str | os.PathLike[str], *, trusted: Collection[str | type] | None = None
) -> Any:
    """Read a model that :func:`save` wrote.

    What is refused, before anything of it is built: a pickle; a file that was cut off,
    damaged or altered without care; a newer format; any type or function that is not on
    probgap's list (its own, and those of scikit-learn that a table's pipeline needs),
    nor in ``trusted``. Afterwards, indices that compiled code would follow are checked.

    So a file can run no code of its own. It can still be a wrong model: digests guard
    against accidents, not against someone who makes a whole file. Get models from
    people you know.

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
        The model. It predicts as the one that was saved, to the last bit, with the
        same versions of the libraries on the same kind of machine.

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
    path = Path(path)
    names = _names(trusted)
    with _refusing(path):
        header, members = unpack(_read(path))
        versions = header["versions"]
        with _blaming_versions(versions):
            model = _put_together(members, names)
            bring_up_to_date(model)
            require_sound_parts(model)
            model = restore_learners(model)
    written = versions.get("scikit-learn")
    if written != sklearn.__version__:
        warnings.warn(
            f"{path} was saved with scikit-learn {str(written)[:40]}, and this is "
            f"{sklearn.__version__}: predictions may differ. Fit again, or install "
            f"scikit-learn=={str(written)[:40]}.",
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
    with _refusing(Path(path)):
        header, _ = unpack(_read(Path(path)))
    metadata: dict[str, Any] = header["metadata"]
    return metadata


def _require_fitted(model: object) -> None:
    if not (isinstance(model, BaseEstimator) and hasattr(model, "predict")):
        msg = f"model must be an estimator that predicts. Got {type(model).__name__}."
        raise ModelFileError(msg)
    try:
        check_is_fitted(model)
    except NotFittedError:
        msg = f"model must be fitted. Got an unfitted {type(model).__name__}."
        raise ModelFileError(msg) from None


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "probgap": probgap.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "skops": _skops().__version__,
    }


def _plain(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata or {})))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"metadata must be a mapping that JSON can hold. Got: {error}."
        raise ModelFileError(msg) from error
    return plain


def _take_apart(model: BaseEstimator) -> dict[str, bytes]:
    """Turn a model into the members of its file."""
    stored = store_learners(model)
    try:
        dumped = _skops().io.dumps(stored)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        msg = f"model must be made of parts that skops can save. Got: {error}"
        raise ModelFileError(msg) from error
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        members = {name: archive.read(name) for name in archive.namelist()}
    nameless = [n for n in find_names(schema) if "<" in n or n.startswith("__main__.")]
    if nameless:
        msg = (
            "model must be made of classes and functions that can be imported. Got "
            f"{', '.join(nameless)}; put them into a module."
        )
        raise ModelFileError(msg)
    files = renumber(schema)
    parts = {SCHEMA: json.dumps(schema, separators=(",", ":")).encode()}
    tidy = {"npz": store_plainly, "npy": clear_padding}
    for old, new in files.items():
        content = members[old]
        suffix = new.rpartition(".")[2]
        parts[new] = tidy[suffix](content) if suffix in tidy else content
    return parts


def _put_together(members: Mapping[str, bytes], trusted: Collection[str]) -> Any:
    """Build the model, once all that its file says was looked through."""
    try:
        schema = json.loads(members[SCHEMA])
        require_sound(schema, members.keys() - {SCHEMA})
        untrusted = find_untrusted(schema, trusted)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        msg = f"its plan cannot be read ({type(error).__name__}: {error})"
        raise ModelFileError(msg) from error
    gone = sorted(GONE.intersection(untrusted))
    if gone:
        kinds = ", ".join(name.rpartition(".")[2] for name in gone)
        msg = (
            f"it holds what this version of probgap does not have ({kinds}): fit again"
        )
        raise ModelFileError(msg)
    if untrusted:
        msg = (
            f"it holds {len(untrusted)} type(s) or function(s) that are not trusted: "
            f"{', '.join(name[:200] for name in untrusted[:20])}. If you know them and "
            "who made the file, name them in trusted"
        )
        raise ModelFileError(msg)
    for name, content in members.items():
        require_honest_arrays(name, content)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    model = _skops().io.loads(buffer.getvalue(), trusted=find_names(schema))
    if not (isinstance(model, BaseEstimator) and hasattr(model, "predict")):
        msg = f"it holds no model but a {type(model).__name__}"
        raise ModelFileError(msg)
    return model


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Say of which file a refusal speaks."""
    try:
        yield
    except ModelFileError as error:
        msg = f"{path} must be a model that probgap can read. Got: {error}."
        raise ModelFileError(msg) from error


@contextlib.contextmanager
def _blaming_versions(written: Mapping[str, Any]) -> Iterator[None]:
    """Turn what goes wrong while building into a reason, with versions if they differ."""
    try:
        with warnings.catch_warnings():
            # One warning of ours stands for one of each part.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            yield
    except MissingLibraryError:
        raise
    except Exception as error:
        here = _versions()
        differ = [
            f"{name}=={str(version)[:40]} (here {here[name]})"
            for name, version in written.items()
            if name in here and name != "python" and version != here[name]
        ]
        reason = str(error)
        if not isinstance(error, ModelFileError):
            reason = f"it does not load ({type(error).__name__}: {error})"
        if differ:
            reason += (
                f". It was saved with {', '.join(differ)}: install these, or fit again"
            )
        raise ModelFileError(reason) from error


def _names(trusted: Collection[str | type] | None) -> frozenset[str]:
    if trusted is None:
        return frozenset()
    if isinstance(trusted, str | type | bool) or not all(
        isinstance(item, str | type) for item in trusted
    ):
        msg = f"trusted must be a list of names or types. Got {trusted!r}."
        raise ModelFileError(msg)
    return frozenset(
        item if isinstance(item, str) else f"{item.__module__}.{item.__qualname__}"
        for item in trusted
    )


def _skops() -> ModuleType:
    # Slow to load, and not all need it.
    load_library("skops.io", extra="io", purpose="models in files")
    return load_library("skops", extra="io", purpose="models in files")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"it cannot be read ({error.strerror})"
        raise ModelFileError(msg) from error


def _write(path: Path, content: bytes) -> None:
    path = path.resolve()
    try:
        with whole_file(path, binary=True) as file:
            file.write(content)
    except OSError as error:
        msg = f"path must be a place to write to. Got {path}: {error.strerror}."
        raise ModelFileError(msg) from error
