"""Why a model predicts what it does: columns, values of a row, and similar rows."""

import math
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Bunch, gen_batches

from probgap._core._sklearn import num_samples
from probgap._core.checks import (
    group_folds,
    groups_of,
    is_missing,
    require_groups,
)
from probgap._core.errors import refuse
from probgap._core.estimators import (
    as_matrix,
    chance_positive,
    check_rows,
    classifier_of,
    input_columns,
    log_odds,
    refit,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Rows, Vector

__all__ = [
    "column_importance",
    "nearest_labelled",
    "row_contributions",
    "word_contributions",
]

_SCORED_BY = "ROC AUC of held-out labelled rows against unlabelled ones"
_HELD_OUT, _N_FOLDS = 0.4, 5
_FEWEST_TO_HOLD_OUT = 5
_N_GROUPS = 8
# The most cells to score at once, and the most rows to score in all.
_BLOCK_CELLS = 4_000_000
_MOST_SCORED = 20_000
# Words to score, in all orders together; and the most orders.
_MOST_WORDS, _MOST_ORDERS = 200_000, 25


def column_importance(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_repeats: int = 5,
    max_columns: int = 100,
    max_rows: int = 5000,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Measure permutation importance of input columns, on held-out rows.

    A copy of the model's gap estimator is fitted on 60% of the rows. On the others each
    column of X, before the steps of a pipeline, is shuffled
    as by :func:`sklearn.inspection.permutation_importance`. The score is the chance that a
    labelled row is ranked above an unlabelled one; it stays below 1, as hidden
    positives are rightly ranked high. Correlated columns stand in for each other, so
    that each seems less important than it is.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_columns : int, default=100
        Of more columns, only those most associated with the model's score are tried.
    max_rows : int, default=5000
        Larger data are sampled down to so many rows, stratified by label.
    groups : array-like of shape (n_samples,), default=None
        Which rows belong together: they are held out together.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the split, the fit and the shuffles.

    Returns
    -------
    Bunch
        ``columns`` has their names, or their numbers where they have none, the most
        important first; ``importance`` the mean fall of the score when each is shuffled,
        ``spread`` its standard deviation over shuffles. ``score`` is that with all columns in
        place, ``scored_by`` what it is, ``n_rows`` how many held-out rows were ranked, and
        ``n_left_out`` how many columns were not tried: those least associated with the score.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.inspection import column_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> s = (X[:, 2] > 0) & (rng.random(300) < 0.7)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> column_importance(model, X, s, random_state=0).columns[0]
    2
    """
    mask = check_rows(X, labelled)
    require_groups(mask, _FEWEST_TO_HOLD_OUT, "hold some out")
    rng = as_generator(random_state)
    rows = sample_rows(mask, max_rows, rng)
    group, together = groups_of(groups, rows, mask.size), None
    if group is None:
        how = {"test_size": _HELD_OUT, "stratify": mask[rows]}
        train, test = train_test_split(rows, **how, random_state=draw_seed(rng))
    else:
        fold = group_folds(mask[rows], group, _N_FOLDS, rng)
        held_out = fold < max(1, int(_HELD_OUT * (fold.max() + 1)))
        train, test, together = rows[~held_out], rows[held_out], group[~held_out]
    seen, gap = (
        samples_of(model, take_rows(X, train)),
        classifier_of(model).gap_estimator_,
    )
    copy = refit(gap, seen, mask[train], draw_seed(rng), together)
    unseen, known = _as_table(take_rows(X, test)), mask[test]
    chance = chance_positive(copy, samples_of(model, unseen))
    columns = input_columns(model, unseen)
    tried = _most_associated(unseen, columns, chance, max_columns)
    with_all = float(roc_auc_score(known, chance))
    orders = [rng.permutation(test.size) for _ in range(n_repeats)]
    shuffles = [(column, order) for column in tried for order in orders]
    falls: list[float] = []
    n_cells = math.prod(unseen.shape)
    # Many copies of the table at once: a pipeline takes long over each, however short.
    for batch in gen_batches(len(shuffles), max(1, _BLOCK_CELLS // n_cells)):
        table = _shuffle_columns(unseen, shuffles[batch])
        ranked = chance_positive(copy, samples_of(model, table))
        falls += [roc_auc_score(known, one) for one in ranked.reshape(-1, test.size)]
    fall = with_all - np.reshape(falls, (len(tried), n_repeats))
    mean, spread = fall.mean(axis=1), fall.std(axis=1)
    order = np.argsort(-mean, kind="stable")
    return Bunch(
        columns=[tried[i] for i in order],
        importance=mean[order],
        spread=spread[order],
        score=with_all,
        scored_by=_SCORED_BY,
        n_left_out=len(columns) - len(tried),
        n_rows=int(test.size),
    )


def row_contributions(
    model: Any,
    row: Any,
    background: Any,
    *,
    n_background: int = 100,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Attribute a row's log-odds of P(Y=1 | x) to its columns, by Shapley values.

    In each background row the columns are replaced by those of the row one at a time,
    in a random order and then in reverse; a column's contribution is the mean change of
    the score when it is replaced [1]_. How correlated columns share the credit is a
    matter of convention, and the combinations of columns need not occur in reality.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        As in :func:`column_importance`.
    row : {array-like, frame} of shape (1, n_features)
        The row, as the model takes it.
    background : {array-like, frame} of shape (n_samples, n_features)
        Rows to compare with.
    n_background : int, default=100
        Number of background rows to draw; fewer if there are many columns.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw and the orders.

    Returns
    -------
    Bunch
        ``columns`` (their names, or their numbers where they have none) and ``contributions``
        (what each adds), which sum to ``prediction - baseline``: the log-odds of the row, less the
        mean of the ``n_background`` rows that were drawn.

    References
    ----------
    .. [1] Strumbelj, Kononenko, "Explaining prediction models and individual
       predictions with feature contributions", Knowledge and Information Systems, 2014.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.inspection import row_contributions
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> parts = row_contributions(model, [[-0.8, 0.8]], X, random_state=0)
    >>> bool(abs(parts.contributions.sum() - (parts.prediction - parts.baseline)) < 1e-9)
    True
    >>> bool((parts.contributions > 0).all())
    True
    """
    classifier, rng = classifier_of(model), as_generator(random_state)
    row, background = _as_table(row), _as_table(background)
    _check_single(row)
    columns = input_columns(model, background)
    most = max(1, min(n_background, _MOST_SCORED // (2 * len(columns))))
    drawn = np.sort(rng.permutation(num_samples(background))[:most])
    table = take_rows(background, drawn)
    if hasattr(table, "columns"):
        pandas = import_module("pandas")  # there is a frame, so there is pandas
        table = pandas.concat([table, row[table.columns]], ignore_index=True)
    else:
        table = np.vstack([table, row])

    def score(rows: Any) -> Vector:
        return log_odds(chance_positive(classifier, samples_of(model, rows)))

    ends = score(table)
    orders = np.array([rng.permutation(len(columns)) for _ in drawn])
    orders = np.concatenate([orders, orders[:, ::-1]])
    base = np.tile(np.arange(drawn.size), 2)
    total = np.zeros(len(columns))
    for batch in gen_batches(base.size, max(1, _BLOCK_CELLS // len(columns) ** 2)):
        order, start = orders[batch], base[batch]
        # After step k the first k columns of an order are the row's.
        steps = np.arange(len(columns) + 1)[None, :, None]
        taken = np.argsort(order, axis=1)[:, None, :] < steps
        source = np.where(taken, drawn.size, start[:, None, None])
        cells = dict(zip(columns, source.reshape(-1, len(columns)).T, strict=True))
        first = np.zeros(source[..., 0].size, dtype=np.intp)
        path = score(_take_cells(table, first, cells))
        np.add.at(total, order, np.diff(path.reshape(start.size, -1), axis=1))
    return Bunch(
        columns=columns,
        contributions=total / base.size,
        baseline=float(ends[:-1].mean()),
        prediction=float(ends[-1]),
        n_background=int(drawn.size),
    )


def word_contributions(
    model: Any, row: Any, column: str, *, random_state: RandomStateLike = None
) -> Bunch:
    """Attribute a row's score to the words of one of its columns, by Shapley values.

    As :func:`row_contributions`, with words in place of columns: they are written into an
    empty cell one at a time, while the other columns stay as they are.

    Parameters
    ----------
    model : Pipeline
        A fitted pipeline that begins with a ``ColumnTransformer``, as that of ``probgap
        fit`` does, and ends in a classifier.
    row : DataFrame of shape (1, n_features)
        The row, as the model takes it.
    column : str
        A column of text.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the orders.

    Returns
    -------
    Bunch
        As above; ``columns`` holds the words, as the model reads them, and ``baseline`` the
        log-odds of the row with an empty cell.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from probgap.inspection import word_contributions
    >>> from probgap.tables import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> words = rng.choice(["cash", "again", "home", "paid", "late", "card"], (300, 5))
    >>> X = pd.DataFrame({"note": [" ".join(row) for row in words]})
    >>> known = (words == "late").any(axis=1) & (rng.random(300) < 0.6)
    >>> model = TableClassifier(random_state=0).fit(X, known).pipeline_
    >>> one = pd.DataFrame({"note": ["Paid late again."]})
    >>> parts = word_contributions(model, one, "note", random_state=0)
    >>> parts.columns[np.argmax(parts.contributions)]
    'late'
    """
    _check_single(row)
    cell = np.array([row[column].iloc[0]], dtype=object)
    text = "" if is_missing(cell)[0] else str(cell[0])
    counts = Counter(_reader_of(model, column)(text))

    def write(cells: NDArray[Any]) -> Any:
        rows = row.take(np.zeros(len(cells), dtype=np.intp)).reset_index(drop=True)
        return rows.assign(**{column: [" ".join(words) for words in cells]})

    steps = [("write", FunctionTransformer(write)), *model.steps]
    cells = [" ".join([word] * n) for word, n in counts.items()] or [""]
    n_orders = max(1, min(_MOST_ORDERS, _MOST_WORDS // len(cells) ** 2))
    written = np.array([cells], dtype=object)
    empty = np.full((n_orders, len(cells)), "", dtype=object)
    parts = row_contributions(
        Pipeline(steps), written, empty, random_state=random_state
    )
    kept = parts.contributions[: len(counts)]
    parts.update(columns=list(counts), contributions=kept, n_background=1)
    return parts


def _reader_of(model: Any, column: str) -> Callable[[str], list[str]]:
    """Return the function by which a model reads the words of a column."""
    for _, step, columns in getattr(model[0], "transformers_", ()):
        if isinstance(columns, str | list) and columns in (column, [column]):
            for part in step[:] if isinstance(step, Pipeline) else [step]:
                if hasattr(part, "build_tokenizer"):
                    prepare, split = part.build_preprocessor(), part.build_tokenizer()
                    return lambda text: split(prepare(text))
    return refuse(f"column must be a column of text. Got {column!r}.")


def nearest_labelled(
    model: Any, X: Any, labelled: ArrayLike, row: Any, n: int = 5
) -> tuple[Rows, Vector]:
    """Find the labelled positives that are nearest to a row.

    Distances are Euclidean, after the other steps of a pipeline. A row that is itself a
    labelled one of X is found at distance 0.

    Parameters
    ----------
    model, X, labelled : object
        As in :func:`column_importance`.
    row : {array-like, sparse matrix, frame} of shape (1, n_features)
        The row, as the model takes it.
    n : int, default=5
        How many to find; fewer if fewer are labelled.

    Returns
    -------
    index : ndarray of shape (n,)
        Which rows of X they are, the nearest first.
    distance : ndarray of shape (n,)
        How far they are, in the space that the classifier sees.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.inspection import nearest_labelled
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> s = np.arange(60) >= 40
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> nearest_labelled(model, X, s, [[39.0]], n=2)[0]
    array([40, 41])
    """
    mask = check_rows(X, labelled)
    if n < 1:
        refuse(f"n must be at least 1. Got {n!r}.")
    asked = as_matrix(samples_of(model, row))
    _check_single(asked)
    rows = np.flatnonzero(mask)
    known = as_matrix(samples_of(model, take_rows(X, rows)))
    search = NearestNeighbors(n_neighbors=min(n, rows.size)).fit(known)
    distance, found = search.kneighbors(asked)
    return rows[found[0]], distance[0]


def _check_single(row: Any) -> None:
    if num_samples(row) != 1:
        refuse(f"Expected a single row, got {num_samples(row)}.")


def _take_cells(table: Any, rows: Rows, sources: dict[Any, Rows]) -> Any:
    """Return rows of a table; the cells of some columns come from other rows."""
    taken, named = take_rows(table, rows), hasattr(table, "columns")
    if named:
        taken = taken.reset_index(drop=True)
    for column, source in sources.items():
        if named:
            taken[column] = table[column].take(source).array
        else:
            taken[:, column] = table[source, column]
    return taken


def _shuffle_columns(table: Any, shuffles: list[tuple[Any, Rows]]) -> Any:
    """Return a copy of a table for each column to shuffle, one below the other."""
    n_rows = num_samples(table)
    places = np.tile(np.arange(n_rows), len(shuffles))
    sources: dict[Any, Rows] = {}
    for k, (column, order) in enumerate(shuffles):
        source = sources.setdefault(column, places.copy())
        source[k * n_rows : (k + 1) * n_rows] = order
    return _take_cells(table, places, sources)


def _as_table(rows: Any) -> Any:
    """Return rows whose columns can be exchanged: a frame, or a dense array."""
    if hasattr(rows, "toarray"):
        return rows.toarray()
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def _most_associated(X: Any, columns: list[Any], score: Vector, most: int) -> list[Any]:
    """Return the columns most associated with the score."""
    if len(columns) <= most:
        return columns
    values = (X[c].to_numpy() if hasattr(X, "columns") else X[:, c] for c in columns)
    variance = np.array([_explained_variance(column, score) for column in values])
    kept = np.sort(np.argsort(-variance, kind="stable")[:most])
    return [columns[i] for i in kept]


def _explained_variance(values: NDArray[Any], score: Vector) -> float:
    """Return the variance of the score between groups of similar values."""
    sortable = values if values.dtype.kind in "fiub" else values.astype(str)
    _, codes = np.unique(sortable, return_inverse=True)
    group = codes * _N_GROUPS // (int(codes.max()) + 1)
    size = np.maximum(np.bincount(group, minlength=_N_GROUPS), 1)
    mean = np.bincount(group, weights=score, minlength=_N_GROUPS) / size
    return float(np.sum(size * (mean - score.mean()) ** 2))
