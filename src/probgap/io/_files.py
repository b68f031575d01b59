"""Save a model, read it back, or read only what was noted beside it."""

import contextlib
import hashlib
import itertools
import json
import os
import re
import warnings
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import probgap
from probgap._core.errors import ModelFileError, ModelVersionWarning
from probgap._core.output import whole_file
from probgap.io._codec import ROLES, Decoder, Encoder
from probgap.io._trust import find, is_trusted

FORMAT = 3
_MAGIC = "probgap model"
_LIBRARIES = {"probgap": probgap, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
_VERSIONS = {name: str(each.__version__) for name, each in _LIBRARIES.items()}
# What a model may unpack to, whatever the size of its file, and as a multiple of it.
_MOST_BYTES, _MOST_TIMES = 2**26, 50


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, without pickle.

    The file is JSON and the bytes of arrays. It appears whole or not at all, and the same
    model makes the same bytes.

    Parameters
    ----------
    model : estimator
        A fitted classifier of probgap, a pipeline that ends in one, or one corrected by
        :func:`probgap.audit.correct`.
    path : str or path
        Where to write. A file that is there is replaced.
    metadata : mapping, default=None
        Anything that JSON can hold, to be read by :func:`read_metadata`.

    Raises
    ------
    ModelFileError
        If the model is not fitted or cannot be saved, or the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from probgap import PGPUClassifier, io
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(200, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> path = Path(mkdtemp()) / "model.probgap"
    >>> io.save(model, path)
    >>> bool((io.load(path).predict(X) == model.predict(X)).all())
    True
    """
    kind = type(model).__name__
    if not hasattr(type(model), "predict"):
        _refuse(f"model must be an estimator that predicts. Got {kind}.")
    try:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        noted = json.loads(json.dumps(dict(metadata or {})))
    except NotFittedError as error:
        _refuse(f"model must be fitted. Got an unfitted {kind}.", error)
    except (TypeError, ValueError, RecursionError) as error:
        _refuse(f"metadata must be a mapping that JSON can hold. Got: {error}.", error)
    content = _pack(_take_apart(model), noted)
    place = Path(path).resolve()
    try:
        with whole_file(place, binary=True) as file:
            file.write(content)
    except OSError as error:
        _refuse(f"Cannot write {place}: {error.strerror}.", error)


def load(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """Read a model that :func:`save` wrote.

    A file runs no code of its own. It is refused if it is damaged or of another format, or
    names a class or function that is neither probgap's, nor an estimator of scikit-learn,
    nor in ``trusted``. It can still be a wrong model, or one that was made to crash Python:
    get models from people you know.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : collection of str, default=()
        Further classes and functions, such as ``"package.module.Class"``. The file may
        call them.

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
        If another version of scikit-learn or of probgap wrote it.

    Examples
    --------
    >>> from probgap import io
    >>> io.load("model.probgap")  # doctest: +SKIP
    PGPUClassifier(random_state=0)
    """
    if isinstance(trusted, str):
        _refuse(f"trusted must be a list of names. Got {trusted!r}.")
    with _model_file_errors(path) as written:
        header, data = _unpack(Path(path).read_bytes())
        written |= {name: str(header["versions"].get(name)) for name in written}
        model = _put_together(data, set(trusted))
    for name in ("probgap", "scikit-learn"):
        if written[name] != _VERSIONS[name]:
            warnings.warn(
                f"{path} was saved with {name}=={written[name]}, and this is "
                f"{_VERSIONS[name]}: predictions may differ. Fit again, or install that.",
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
        If the file is not such a file, was damaged, or has another format.

    Examples
    --------
    >>> from probgap import io
    >>> io.read_metadata("model.probgap")  # doctest: +SKIP
    {'columns': ['age', 'income']}
    """
    with _model_file_errors(path):
        header, _ = _unpack(Path(path).read_bytes())
    return dict(header["metadata"])


def _refuse(reason: str, cause: BaseException | None = None) -> NoReturn:
    raise ModelFileError(reason) from cause


@contextlib.contextmanager
def _model_file_errors(path: str | os.PathLike[str]) -> Iterator[dict[str, str]]:
    """Turn any error into a ModelFileError, with the versions that the file tells."""
    written = dict(_VERSIONS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            yield written
    except Exception as error:  # noqa: BLE001 (whatever a strange file leads to)
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"it cannot be read ({error.strerror})"
        elif not isinstance(error, ModelFileError):
            reason = f"it does not load ({type(error).__name__}: {error})"
        others = ", ".join(f"{n}=={v}" for n, v in written.items() if v != _VERSIONS[n])
        if others:
            reason += f". It was saved with {others}: install these, or fit again"
        _refuse(f"Cannot load {path}: {reason}.", error)


def _pack(model: bytes, metadata: Any) -> bytes:
    """Return a file: its format and digest, a header, and the model, compressed."""
    header = {"versions": _VERSIONS, "metadata": metadata, "size": len(model)}
    rest = json.dumps(header).encode() + b"\n" + zlib.compress(model, 1)
    return f"{_MAGIC} {FORMAT} {hashlib.sha256(rest).hexdigest()}\n".encode() + rest


def _unpack(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a file and the model, after checking the digest."""
    start, _, rest = content.partition(b"\n")
    found = re.fullmatch(rf"{_MAGIC} (\d{{1,9}}) (\S+)", start[:200].decode("latin-1"))
    if found is None:
        _refuse("it is not a model file of probgap")
    if int(found[1]) != FORMAT:
        advice = "fit again" if int(found[1]) < FORMAT else "upgrade probgap"
        _refuse(f"it has format {found[1]}, and this version reads {FORMAT}: {advice}")
    if hashlib.sha256(rest).hexdigest() != found[2]:
        _refuse("it was cut off, damaged or changed: its SHA-256 is another")
    start, _, packed = rest.partition(b"\n")
    header = json.loads(start)
    if not 0 < header["size"] <= max(_MOST_BYTES, _MOST_TIMES * len(packed)):
        _refuse(f"it would unpack to {header['size']} bytes")
    return header, zlib.decompressobj().decompress(packed, header["size"])


def _take_apart(model: Any) -> bytes:
    encoder = Encoder()
    try:
        tree = encoder.encode(model)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        _refuse(f"model has a part that cannot be saved: {error}", error)
    for module, name in itertools.chain(*encoder.names.values()):
        if "<" in name or module == "__main__":
            _refuse(f"model has {module}.{name}, which no other process can import.")
    names = {role: list(places) for role, places in encoder.names.items()}
    plan = {"names": names, "dtypes": list(encoder.dtypes), "model": tree}
    return json.dumps(plan, separators=(",", ":")).encode() + b"\n" + encoder.block


def _put_together(data: bytes, by_caller: Collection[str]) -> Any:
    """Build the model, after judging all that its file names."""
    start, _, block = data.partition(b"\n")
    plan = json.loads(start)
    names = {role: plan["names"][role] for role in ROLES}
    untrusted = {
        f"{module}.{name}"
        for role in ROLES
        for module, name in names[role]
        if f"{module}.{name}" not in by_caller and not is_trusted(role, module, name)
    }
    if untrusted:
        refused = ", ".join(sorted(untrusted))[:999]
        _refuse(f"it names what is not trusted: {refused}. See trusted in io.load")
    found = {role: [find(*place) for place in names[role]] for role in ROLES}
    model = Decoder(found, plan["dtypes"], block).decode(plan["model"])
    if not hasattr(type(model), "predict"):
        _refuse(f"it holds a {type(model).__name__}, not a model")
    return model
