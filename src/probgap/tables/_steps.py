"""The steps between a table and a matrix that scikit-learn does not have.

Each is a function of its argument alone, for
:class:`~sklearn.preprocessing.FunctionTransformer`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError
from probgap.tables._cells import to_cells, to_floats, to_levels, to_text
from probgap.tables._kinds import row_number
from probgap.tables._optional import Frame, load

MISSING_LEVEL = "(missing)"
# Sums and squares of numbers up to this stay finite.
_LARGEST = 1e100
_BEND_LIMIT = 12.0
_SCALED_LIMIT = 5.0


def to_numbers(frame: Frame) -> NDArray[np.float64]:
    """Turn columns into numbers, NaN where a cell is missing.

    Numbers may be written as text. A number beyond 1e100 is taken as 1e100.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        Columns of numbers.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The numbers.

    Raises
    ------
    InvalidInputError
        If a cell is no number, or an infinite one: the message names column and row.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import to_numbers
    >>> to_numbers(pd.DataFrame({"price": ["$1,200", "", "35"]}))
    array([[1200.],
           [  nan],
           [  35.]])
    """
    if (frame.dtypes == np.float64).all():
        numbers = np.asfortranarray(frame.to_numpy(dtype=np.float64))
        if not np.isinf(numbers).any():
            return np.clip(numbers, -_LARGEST, _LARGEST)
    out = np.empty(frame.shape, dtype=np.float64, order="F")
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        values, bad = to_floats(to_cells(column))
        wrong = bad | np.isinf(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            rule = "numbers" if bad[row] else "finite numbers"
            msg = (
                f"Column {str(column.name)!r} must hold {rule}. Got "
                f"{str(column.iloc[row])[:60]!r} in row {row_number(column, row)}; "
                "mend the cell, or empty it if the value is not known."
            )
            raise InvalidInputError(msg)
        out[:, at] = np.clip(values, -_LARGEST, _LARGEST)
    return out


def to_categories(frame: Frame) -> NDArray[np.object_]:
    """Turn columns into names of levels, with a level of its own for missing cells.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        Columns of categories, as text, numbers or booleans.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        Text: "1" for 1, 1.0 and "1", "true" for True and "TRUE", "(missing)" for a
        missing cell.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import to_categories
    >>> to_categories(pd.DataFrame({"size": ["XL", None], "dose": [1.0, 2.5]}))
    array([['XL', '1'],
           ['(missing)', '2.5']], dtype=object)
    """
    pc = load("pyarrow.compute")
    out = np.empty(frame.shape, dtype=object, order="F")
    for at in range(frame.shape[1]):
        levels = to_levels(to_cells(frame.iloc[:, at]))
        out[:, at] = pc.fill_null(levels, MISSING_LEVEL).to_numpy(zero_copy_only=False)
    return out


def to_documents(column: Frame) -> list[str]:
    """Turn a column into documents, empty where a cell is missing.

    Parameters
    ----------
    column : Series or DataFrame of one column, of n_rows rows
        The text.

    Returns
    -------
    list of str
        One document for each row.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import to_documents
    >>> to_documents(pd.Series(["the cat sat", None]))
    ['the cat sat', '']
    """
    pc = load("pyarrow.compute")
    series = column.iloc[:, 0] if hasattr(column, "columns") else column
    documents: list[str] = pc.fill_null(to_text(to_cells(series)), "").to_pylist()
    return documents


def bend(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keep the middle of a scale as it is and make its ends logarithmic.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Numbers, such that most lie between -1 and 1.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        asinh(2 x), held between -12 and 12.

    Examples
    --------
    >>> from probgap.tables import bend
    >>> import numpy as np
    >>> bend(np.array([[0.0, 0.1, 1.0, 1000.0, 1e100]])).round(2)
    array([[ 0.  ,  0.2 ,  1.44,  8.29, 12.  ]])
    """
    return np.clip(np.arcsinh(2.0 * X), -_BEND_LIMIT, _BEND_LIMIT)


def hold(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hold standardised numbers between -5 and 5.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Numbers in standard deviations from the mean.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The same, none farther out than five.

    Examples
    --------
    >>> from probgap.tables import hold
    >>> import numpy as np
    >>> hold(np.array([[0.5, -9.0]]))
    array([[ 0.5, -5. ]])
    """
    return np.clip(X, -_SCALED_LIMIT, _SCALED_LIMIT)
