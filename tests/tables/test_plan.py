"""Columns are used as what they hold; what is left out has a reason."""

import json

import numpy as np
import pandas as pd
import pytest

from probgap.exceptions import InvalidInputError
from probgap.tables import plan_columns

N = 60
RNG = np.random.default_rng(5)
LABEL = ["yes"] * 12 + [""] * (N - 12)
SCORE = RNG.normal(size=N)
WORDS = np.array(["red", "green", "cat", "dog", "runs", "sleeps", "far"])


def use_of(values, name="x", **options):
    frame = pd.DataFrame({"score": SCORE, name: pd.Series(values), "y": LABEL})
    plan = plan_columns(frame, label="y", **options)
    column = plan.columns[1]
    assert column.name == name
    return column


def cycle(*values):
    return [values[i % len(values)] for i in range(N)]


@pytest.mark.parametrize(
    ("values", "use"),
    [
        (SCORE * 2, "number"),
        ([f"{v:.3f}" for v in SCORE], "number"),
        (cycle(0, 1), "number"),
        (cycle("0", "1", "2"), "number"),
        (cycle("1", "?", "2", "NA", ""), "number"),
        (cycle("$1,200", "$3", "40%"), "number"),
        (cycle(2019, 2020, 2021), "number"),
        (RNG.permutation(N), "number"),
        (np.sort(RNG.choice(10**6, N, replace=False)), "number"),
        (cycle(1e99, -1e99, 3.0), "number"),
        (cycle("1e90", "5", "6"), "number"),
        (pd.Series(cycle(1e90, None, 6, "7"), dtype=object), "number"),
        (cycle(None, 3.0), "number"),
        (cycle("a", "b", "c"), "category"),
        (cycle("a", "b", ""), "category"),
        (cycle("a", ""), "category"),
        (cycle(True, False), "category"),
        (cycle("TRUE", "False"), "category"),
        (cycle("01", "02", "1"), "category"),
        (cycle("1", "2", "A"), "category"),
        (pd.Series(cycle("\ud800", b"x", "x"), dtype=object), "category"),
        (cycle("unknown", "missing"), "category"),
        (cycle("=cmd()", "<script>", "x"), "category"),
        (pd.Categorical(cycle("u", "v")), "category"),
        ([" ".join(RNG.choice(WORDS, 8)) + f" {i}" for i in range(N)], "text"),
        (
            ["今日はとても良い天気です" + str(i) + "犬猫鳥"[i % 3] for i in range(N)],
            "text",
        ),
    ],
)
def test_what_is_used(values, use):
    assert use_of(values).use == use


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (cycle("a"), "constant"),
        (cycle(3.5), "constant"),
        (cycle(""), "empty"),
        (cycle(np.nan), "empty"),
        (cycle("?"), "empty"),
        ([f"P-{i}" for i in range(N)], "id-like"),
        ([f"{i:04d}" for i in range(N)], "id-like"),
        ([f"{10**18 + i * 7}" for i in range(N)], "id-like"),
        ([10**18 + i * 7 for i in range(N)], "id-like"),
        ([f"{2**53 + i}" for i in range(N)], "id-like"),
        ([2**53 + i for i in range(N)], "id-like"),
        (range(1, N + 1), "numbers the rows"),
        (range(N, 0, -1), "numbers the rows"),
        ([i for i in range(2 * N) if i % 5 > 1][:N], "numbers the rows, with gaps"),
        ([f"10:{i:02d}:00" for i in range(N)], "date"),
        ([[1, 2]] * N, "nested"),
        ([{"a": 1}] * N, "nested"),
        (SCORE, "tells the same as 'score'"),
        (["found"] * 12 + ["open"] * (N - 12), "mirrors"),
        ([1] * 12 + [0] * (N - 12), "mirrors"),
        (list(SCORE[:12]) + [None] * (N - 12), "filled in exactly"),
        (cycle("a", "b")[:12] + cycle("c", "d", "e")[12:], "mirrors"),
        ([f"{i} {j}" for i in range(12) for j in range(5)], "id-like"),
        (["!!! ??? ... " + "#" * i for i in range(N)], "id-like"),
    ],
)
def test_what_is_left_out_and_why(values, why):
    column = use_of(values)
    assert column.use == "left out"
    assert why in column.why


def test_few_cells_and_rare_values_are_left_out():
    n = 3000
    frame = pd.DataFrame(
        {
            "score": np.arange(n) % 17 / 3,
            "rare": [1.0] * 5 + [np.nan] * (n - 5),
            "pairs": [f"v{i // 5}" for i in range(n)],
            "y": ["yes"] * 40 + [""] * (n - 40),
        }
    )
    plan = plan_columns(frame, label="y")
    assert plan.inputs == ("score",)
    assert "2,995 of 3,000" in plan.columns[1].why
    assert "too rare" in plan.columns[2].why


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("id", True),
        ("customer_id", True),
        ("CustomerID", True),
        ("id number", True),
        ("column 1", True),
        ("row", True),
        ("grid", False),
        ("paid", False),
        ("bid", False),
        ("Width", False),
        ("amount", False),
    ],
)
def test_numbers_that_all_differ_are_left_out_by_name_alone(name, out):
    column = use_of(RNG.permutation(10 * N)[:N], name=name)
    assert (column.use == "left out") is out


def use_among_many(make, n=600, seed=0, **options):
    """Plan a column made for n rows, of which a fifth are labelled, at random."""
    rng = np.random.default_rng(seed)
    labelled = rng.random(n) < 0.2
    values = make(rng, n, labelled)
    frame = pd.DataFrame(
        {"score": rng.normal(size=n), "x": values, "y": np.where(labelled, "yes", "")}
    )
    return plan_columns(frame, label="y", **options).columns[1]


CODES = {
    "account": lambda rng, n, _: rng.choice(9 * 10**9, n, replace=False) + 10**9,
    "phone": lambda rng, n, _: (
        rng.choice([212, 646], n, p=[0.9, 0.1]) * 10**7 + rng.integers(10**7, size=n)
    ),
    "zip": lambda rng, n, _: rng.integers(501, 99950, n),
    "epoch": lambda rng, n, _: 1_600_000_000 + rng.integers(5 * 10**7, size=n),
    "shuffled": lambda rng, n, _: rng.permutation(n),
    "with gaps": lambda rng, n, _: np.where(
        rng.random(n) < 0.1, np.nan, rng.permutation(n) + 10.0**9
    ),
}


@pytest.mark.parametrize("name", CODES)
def test_codes_without_order_in_the_label_are_left_out(name):
    column = use_among_many(CODES[name])
    assert (column.use, column.why.partition(":")[0]) == ("left out", "id-like")
    kept = use_among_many(CODES[name], keep=["x"])
    assert (kept.use, "kept on request (id-like" in kept.why) == ("number", True)


MEASUREMENTS = {
    "amount, unrelated": lambda rng, n, _: np.exp(rng.normal(10, 1, n)).round(),
    "salary": lambda rng, _, s: rng.normal(60_000 + 8_000 * s, 15_000).round(),
    "loss": lambda rng, n, _: rng.normal(0, 10_000, n).round(),
    "count": lambda rng, n, _: rng.poisson(80, n),
    "fraction": lambda rng, n, _: rng.random(n) * 1e9,
    "time with a trend": lambda rng, n, s: (
        1_600_000_000 + (5e7 * rng.beta(1 + s, 1, n)).round()
    ),
    "labelled in the middle": lambda rng, n, s: (
        10**9 + (1e8 * np.where(s, rng.beta(8, 8, n), rng.random(n))).round()
    ),
    "missing where labelled": lambda rng, n, s: np.where(
        s & (rng.random(n) < 0.5), np.nan, rng.permutation(n) + 10.0**9
    ),
}


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_whole_numbers_that_measure_something_stay(name):
    assert use_among_many(MEASUREMENTS[name]).use == "number"


def test_few_labelled_rows_do_not_make_a_code_of_a_measurement():
    def make(rng, n, _):
        return rng.permutation(10 * n)[:n]

    assert use_among_many(make, n=100).use == "number"
    assert use_among_many(make, n=1000).use == "left out"


@pytest.mark.parametrize(
    ("values", "use"),
    [
        (range(N), "number"),
        ([f"P-{i}" for i in range(N)], "category"),
        (cycle("a"), "category"),
        (cycle(""), "number"),
        (SCORE, "number"),
        (["found"] * 12 + ["open"] * (N - 12), "category"),
        (cycle("a", "b"), "category"),
    ],
)
def test_what_is_kept_on_request(values, use):
    column = use_of(values, keep=["x"])
    assert column.use == use
    assert ("kept on request" in column.why) == (list(values) != cycle("a", "b"))


def test_an_id_that_comes_back_stays_a_number():
    assert use_of(cycle(4, 7, 9, 11), name="store_id").use == "number"


def test_text_called_an_id_is_left_out_if_most_values_differ():
    values = [f"k{i % 40}" for i in range(N)]
    assert use_of(values, name="account_id").use == "left out"
    assert use_of(values, name="account").use == "category"


def test_label_id_and_dropped_columns():
    frame = pd.DataFrame(
        {"a": SCORE, "who": range(N), "b": [[1]] * N, "c": SCORE**2, "y": LABEL}
    )
    plan = plan_columns(frame, label="y", id="who", drop=["b", "c"])
    assert plan.names("id", "label") == ("who", "y")
    assert plan.inputs == ("a",)
    assert plan.columns[3].why == "dropped on request"
    json.dumps(plan.as_dicts())


def test_columns_are_described():
    column = use_of(cycle("a" * 100, "", "b"))
    assert column.n_missing == 20
    assert column.n_distinct == 2
    assert len(column.example) == 40


def test_the_same_columns_from_text_and_from_types():
    typed = pd.DataFrame(
        {"n": SCORE, "i": cycle(1, 2), "b": cycle(True, False, None), "y": LABEL}
    )
    typed["b"] = typed["b"].astype(object)
    text = typed.map(lambda value: "" if value is None else str(value))
    one, two = (plan_columns(f, label="y").columns for f in (typed, text))
    assert [(c.use, c.n_missing, c.n_distinct) for c in one] == [
        (c.use, c.n_missing, c.n_distinct) for c in two
    ]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([*map(str, SCORE[:-1]), "n.d."], "'n.d.' in row 60.*1 is not"),
        ([*SCORE[:-2], "x", "y"], "'x' in row 59.*2 are not"),
        ([*SCORE[:-1], np.inf], "'inf' in row 60.*finite"),
        (["1e999", *map(str, SCORE[1:])], "'1e999' in row 1,.*finite"),
        ([*SCORE[:-1], -1e308], "'-1e\\+308' in row 60.*from -1e100 to 1e100"),
        ([*map(str, SCORE[:-1]), "1e308"], "'1e308' in row 60.*from -1e100"),
    ],
)
def test_bad_columns_give_one_sentence(values, says):
    with pytest.raises(InvalidInputError, match=f"'x'.*{says}.*--drop"):
        use_of(values)
    assert use_of(values, drop=["x"]).use == "left out"


def test_bad_wishes_give_one_sentence():
    frame = pd.DataFrame({"Label": LABEL, "x": SCORE, "c": 1})
    with pytest.raises(InvalidInputError, match=r"'label'.*did you mean 'Label'"):
        plan_columns(frame, label="label")
    with pytest.raises(InvalidInputError, match=r"'zzz', 'qqq'.*it has 'Label'"):
        plan_columns(frame, label="Label", drop=["zzz", "qqq"])
    for wish in ({"drop": ["x"]}, {"id": "x"}):
        with pytest.raises(InvalidInputError, match=r"neither label, id.*'x'"):
            plan_columns(frame, label="Label", keep=["x"], **wish)
    nested = frame.assign(x=[[1]] * N)
    with pytest.raises(InvalidInputError, match="'x' cannot be kept"):
        plan_columns(nested, label="Label", keep=["x"])
    with pytest.raises(InvalidInputError, match="'ID'"):
        plan_columns(frame, label="Label", id="ID")
    with pytest.raises(InvalidInputError, match="neither id nor dropped"):
        plan_columns(frame, label="Label", id="Label")
    with pytest.raises(InvalidInputError, match=r"besides 'Label'.*'c' \(constant\)"):
        plan_columns(frame, label="Label", drop=["x"])
    with pytest.raises(InvalidInputError, match="no other column"):
        plan_columns(frame[["Label"]], label="Label")
    with pytest.raises(InvalidInputError, match="distinct strings"):
        plan_columns(pd.DataFrame([[1, 2]]), label="0")
    with pytest.raises(InvalidInputError, match="distinct strings"):
        plan_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]), label="a")


def test_labels_that_cannot_be_read_do_not_stop_a_plan():
    frame = pd.DataFrame({"y": cycle("a", "b", "c"), "x": SCORE})
    assert plan_columns(frame, label="y").inputs == ("x",)
