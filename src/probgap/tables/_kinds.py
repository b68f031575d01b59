"""What a column holds: numbers, dates, a category, text, names of rows."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Array, Mask, Vector
from probgap.tables._cells import (
    TIME,
    Cells,
    Series,
    encode_levels,
    is_exact,
    is_number_typed,
    pc,
    pd,
    refuse_cell,
    to_cells,
    to_days,
    to_floats,
    to_levels,
)

# A column whose cells are numbers but for this share at most was meant as numbers ...
_STRAY_SHARE = 0.1
# ... if it has more values than this; with fewer, they are codes.
_CODES = 20
# Half of the first cells, and this share of all cells, must look like a date.
_FEW, _DATE_SHARE = 20, 0.9
_MOSTLY_MISSING = 0.98
_MOSTLY_DISTINCT = 0.9
_MANY_ROWS = 10
_WORDS, _LENGTH = 4.0, 40.0
# Codes have as many digits, or lie evenly: their median within this part of the range
# that holds 90% of them. So few labelled rows show no order in a column.
_DIGITS, _MIDDLE = 7, (0.25, 0.75)
_ENOUGH_LABELLED = 30
# Of the rank-sum in standard deviations, for numbers with so many digits, and of the
# statistic by Kolmogorov and Smirnov: each is exceeded by chance in 1 column of 100.
_RANKS, _SPREAD = 2.58, 1.63
_SAMPLE = 1_000
TOO_RARE = "every value is too rare to learn from"
# Words of two letters or more; in scripts without spaces, single characters.
TOKEN = r"(?u)[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\b\w\w+\b"
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]{4}"
OR_DROP = ", or leave the column out (--drop)"
_ID_NAME = re.compile(
    r"(?:^|[\W_])(?:id|ids|uid|uuid|guid|index|idx|key|rowid|rownum)$"
    r"|^id(?:[\W_]|$)|[a-z](?:Id|ID|UUID|Key)$"
    r"|^row(?:[\W_]*(?:number|nr|no|num|id))?$|^(?:unnamed|column 1$)",
)


def judge(
    column: Series, cells: Cells, labelled: Mask
) -> tuple[str, str, bool, NDArray[np.int64], NDArray[Any]]:
    """Return the use of a column, why, whether days come first, its codes and values.

    Codes number the distinct values, -1 where missing. Values are floating point numbers
    if the column is numeric, and else the codes.
    """
    values, bad = to_floats(cells)
    numeric = not bad.any() and is_exact(cells)
    if numeric and not is_number_typed(cells) and np.isnan(values).all():
        # Different words for a missing value are levels of a category.
        numeric = len(encode_levels(cells)[0]) < 2
    # 0.0 and -0.0 are one number.
    codes = pd.factorize(values + 0.0)[0] if numeric else encode_levels(cells)[1]
    n_rows, n_missing = len(codes), int((codes < 0).sum())
    n_distinct = int(codes.max(initial=-1)) + 1
    present = values[codes >= 0]
    texts, dates = None, None
    if n_distinct and (not numeric or _may_be_dates(column.name, present)):
        texts = pc.drop_null(to_levels(cells))
        dates = _judge_dates(texts)
    day_first = False
    if not n_distinct:
        use, why = "left out", "all cells are empty"
    elif n_missing > _MOSTLY_MISSING * n_rows:
        use, why = "left out", f"{n_missing:,} of {n_rows:,} cells are empty"
    elif n_distinct == 1 and not n_missing:
        use, why = "left out", "constant"
    elif dates:
        use, why, day_first = dates
    elif numeric:
        use, why = _judge_numbers(column.name, present, n_distinct)
        if use == "number" and _is_code(values, n_distinct, labelled):
            use = "left out"
            why = "id-like: nearly all values differ, without order in the label"
    else:
        _refuse_strays(column, values, bad, n_distinct)
        commonest = int(np.bincount(codes[codes >= 0]).max())
        rare = commonest < min_frequency(n_rows)
        use, why = _judge_text(column.name, texts, n_distinct, rare=rare)
    return use, why, day_first, codes, values if numeric else codes


def plain_values(column: Series, *, text: bool = False) -> Array:
    """Return a column as numbers, as dates or as text, with empty cells as NaN, NaT, None."""
    cells = to_cells(column)
    if text:
        return np.array(to_levels(cells).to_pylist(), dtype=object)
    use, _, day_first, _, values = judge(column, cells, np.zeros(len(column), bool))
    if use == "date":
        days = to_days(cells, day_first=day_first)[0]
        whole = np.nan_to_num(days).astype("int64").astype("datetime64[D]")
        return np.where(np.isnan(days), np.datetime64("NaT"), whole)
    if values.dtype == np.float64:
        return values
    return np.array(to_levels(cells).to_pylist(), dtype=object)


def min_frequency(n_rows: int) -> int:
    """Return the fewest rows with which a level of a category gets its own column."""
    return max(2, min(10, n_rows // 100))


def is_id_name(name: object) -> bool:
    """Return whether a column is called an id, index or key."""
    return _ID_NAME.search(str(name)) is not None


def _may_be_dates(name: object, values: Vector) -> bool:
    """Return whether numbers look like 20200131, in many rows or by the column's name."""
    named = re.search(r"(?i)date|day|datum", str(name)) is not None
    if not named and len(values) < _MANY_ROWS:
        return False
    if not np.all((values >= 19000101) & (values <= 20991231)):
        return False
    month, day = values // 100 % 100, values % 100
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (day % 1 == 0)
    return bool(valid.all())


def _judge_dates(levels: Cells) -> tuple[str, str, bool] | None:
    """Return the use of a column, why, and whether days come first; None if no dates.

    ``levels`` are its cells that are not missing.
    """
    # The first cells are enough to rule out most columns.
    for cells, share in ((levels.slice(0, _FEW), 0.5), (levels, _DATE_SHARE)):
        month_first, day_first = (
            to_days(cells, day_first=order)[0] for order in (False, True)
        )
        n_times = pc.sum(pc.match_substring_regex(cells, f"(?i)^{TIME}$")).as_py()
        n_month, n_day = (np.isfinite(d).sum() for d in (month_first, day_first))
        if max(n_month, n_day) + n_times < share * len(cells):
            return None
    if n_times >= _DATE_SHARE * len(levels):
        return "left out", "times of day, without a date", False
    # Dates with points usually begin with the day.
    dotted = pc.all(pc.match_substring_regex(levels, r"^[^:]*\.")).as_py()
    same = np.array_equal(day_first, month_first, equal_nan=True)
    is_day_first = not same and bool(n_day > n_month or (n_day == n_month and dotted))
    bad = np.isnan(day_first if is_day_first else month_first)
    if bad.any():
        example = levels[int(np.argmax(bad))].as_py()[:40]
        why = f"dates, but not in {bad.sum():,} of {bad.size:,} cells, such as {example!r}"
        return "left out", why, False
    order = "" if same else ", day first" if is_day_first else ", month first"
    return "date", f"dates{order}", is_day_first


def _judge_numbers(name: object, values: Vector, n_distinct: int) -> tuple[str, str]:
    whole = bool(np.all(np.isfinite(values) & (values == np.floor(values))))
    if whole and n_distinct > 1:
        with np.errstate(over="ignore"):
            steps = np.diff(values)
        many = len(values) >= _MANY_ROWS
        if many and (np.all(steps == 1.0) or np.all(steps == -1.0)):
            return "left out", "numbers the rows"
        # Too dense for a sorted measurement: of n whole numbers drawn at random from n
        # times the mean step, n / (2 * step) pairs would be equal; where five are
        # expected, none is no accident.
        one_way = bool(np.all(steps > 0.0) or np.all(steps < 0.0))
        if one_way and 10.0 * float(np.mean(np.abs(steps))) <= len(steps):
            return "left out", "numbers the rows, with gaps"
        if is_id_name(name) and n_distinct > 0.5 * len(values):
            return "left out", "id-like: by its name, and nearly all values differ"
    return "number", "numbers"


def _is_code(values: Vector, n_distinct: int, labelled: Mask) -> bool:
    """Return whether numbers look like codes, and labelled rows lie anywhere in them."""
    present = values[~np.isnan(values)]
    whole = np.all(np.isfinite(present) & (present == np.floor(present)))
    many = n_distinct >= max(_MANY_ROWS, _MOSTLY_DISTINCT * len(present))
    n_labelled, n_missing = int(labelled.sum()), len(values) - len(present)
    if not (whole and many and present.min() >= 0.0 and 0 < n_labelled < len(values)):
        return False
    # As in BIC: the more rows could show an order, the clearer it has to be.
    limit = float(np.sqrt(np.log(n_labelled)))
    shortest, longest = (len(f"{end:.0f}") for end in (present.min(), present.max()))
    if _DIGITS <= shortest == longest:
        limit = max(limit, _RANKS)
    else:
        low, median, high = np.quantile(present, [0.05, 0.5, 0.95])
        place = (median - low) / (high - low)
        even = _MIDDLE[0] <= place <= _MIDDLE[1]
        if not even or n_labelled < _ENOUGH_LABELLED:
            return False
    # Labelled rows less others, each as a share, up to each value; missing cells last,
    # with one rank for all. Its mean is the difference of the mean ranks.
    n_others = len(values) - n_labelled
    steps = np.where(labelled, 1.0 / n_labelled, -1.0 / n_others)
    ahead = np.cumsum(steps[np.argsort(values, kind="stable")])
    ahead[len(present) :] = np.linspace(ahead[len(present) - 1], 0.0, n_missing + 1)[1:]
    scale = np.sqrt(n_labelled * n_others / len(values))
    by_rank = np.sqrt(12.0) * scale * abs(float(ahead.mean()))
    spread = scale * float(np.abs(ahead).max())
    return by_rank <= limit and spread <= _SPREAD


def _refuse_strays(column: Series, values: Vector, bad: Mask, n_distinct: int) -> None:
    n_bad, n_good = int(bad.sum()), int((~np.isnan(values)).sum())
    if not n_bad or n_bad > _STRAY_SHARE * (n_bad + n_good) or n_distinct <= _CODES:
        return
    verb = "are" if n_bad > 1 else "is"
    expected = f"a number ({n_good:,} cells of the column are, {n_bad:,} {verb} not)"
    refuse_cell(column, int(np.argmax(bad)), expected, OR_DROP)


def _judge_text(
    name: object, levels: Cells, n_distinct: int, *, rare: bool
) -> tuple[str, str]:
    n_present = len(levels)
    words = pc.mean(pc.count_substring_regex(levels, r"\S+")).as_py()
    length = pc.mean(pc.utf8_length(levels)).as_py()
    wordy = words >= _WORDS or (length >= _LENGTH and words > 2.0)
    if not wordy and not pc.all(pc.string_is_ascii(levels)).as_py():
        share = pc.mean(pc.match_substring_regex(levels, _UNSPACED)).as_py()
        wordy = share > 0.5 and length >= _LENGTH / 4
    if wordy and n_distinct > min(30, 0.5 * n_present) and _has_words(levels):
        return "text", f"about {words:.0f} words per cell"
    if n_distinct > 2 and n_distinct >= _MOSTLY_DISTINCT * n_present:
        return "left out", "id-like: nearly all values differ"
    if rare:
        return "left out", TOO_RARE
    if is_id_name(name) and n_distinct > 0.5 * n_present:
        return "left out", "id-like: by its name, and most values differ"
    return "category", f"{n_distinct:,} value{'s' if n_distinct > 1 else ''}"


def _has_words(levels: Cells) -> bool:
    """Return whether cells differ in their words, not only in punctuation or order."""
    documents = levels.slice(0, _SAMPLE).to_pylist()
    bags = {frozenset(re.findall(TOKEN, text.lower())) for text in documents}
    return len(bags - {frozenset()}) > 2
