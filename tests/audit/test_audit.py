"""Audits: rows drawn, answers counted, intervals that hold."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import hypergeom

from probgap import PGPUClassifier
from probgap.audit import Design, design, estimate
from probgap.audit._interval import StratumSample, interval, tails
from probgap.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def rows():
    """Scores that tell positives well, but not the ones in a corner."""
    rng = np.random.default_rng(0)
    chance = rng.beta(0.3, 1.5, 1200)
    positive = rng.random(1200) < chance
    return chance, positive


def answer(asked, positive):
    return {row: bool(positive[row]) for row in asked.rows.tolist()}


# Intervals


@pytest.mark.parametrize("found", [0, 1, 7, 20])
def test_one_stratum_gives_the_exact_hypergeometric_interval(found):
    sample = StratumSample(*(np.array([float(v)]) for v in (200, 20, found, 1)))
    low, high = interval(sample)
    ends = [
        t
        for t in range(found, 181 + found)
        if hypergeom.cdf(found, 200, t, 20) >= 0.05
        and hypergeom.sf(found - 1, 200, t, 20) >= 0.05
    ]
    assert ends[0] - 1.0 <= low <= ends[0]
    assert ends[-1] <= high <= ends[-1] + 1.0


def test_tails_are_those_of_the_sum_of_hypergeometric_numbers():
    size, drawn = np.array([50.0, 80.0]), np.array([5.0, 4.0])
    sample = StratumSample(size, drawn, np.array([2.0, 1.0]), np.ones(2))
    # Both strata have weights of whole multiples of 10: 10 and 20.
    lower, upper = tails(sample, 40.0)
    assert lower + upper > 1.0  # both hold what was seen
    rng = np.random.default_rng(0)
    # At 40 of 130 the most likely rates are near those observed, 0.4 and 0.25.
    good = np.array([20, 20])
    drawn_sums = sum(
        w * rng.hypergeometric(g, int(n - g), int(d), 20_000)
        for w, g, n, d in zip((10, 20), good, size, drawn, strict=True)
    )
    assert_allclose(lower, np.mean(drawn_sums <= 40), atol=0.05)
    assert_allclose(upper, np.mean(drawn_sums >= 40), atol=0.05)


def test_a_stratum_without_answers_may_hold_anything():
    sample = StratumSample(
        *map(np.array, ([30.0, 40.0], [30.0, 0.0], [10.0, 0.0], [1.0, 1.0]))
    )
    assert interval(sample) == (10.0, 50.0)


@pytest.mark.parametrize("budget", [30, 100])
def test_intervals_hold_whatever_the_scores_are(budget, rows):
    """Good scores, and scores that say the opposite: 90% of intervals hold."""
    chance, positive = rows
    held = [
        low - 0.5 <= positive.sum() <= high + 0.5
        for scores in (chance, 1.0 - chance)
        for seed in range(25)
        for asked in [design(scores, budget=budget, random_state=seed)]
        for low, high in [estimate(asked, answer(asked, positive)).count_interval]
    ]
    assert np.mean(held) >= 0.8  # 50 draws: 0.8 is 2.4 standard errors below 0.9


def test_extended_designs_hold_and_narrow(rows):
    chance, positive = rows
    held, widths = [], []
    for seed in range(20):
        asked = design(chance, budget=40, random_state=seed)
        first = estimate(asked, answer(asked, positive)).count_interval
        more = asked.extend(answer(asked, positive), 60)
        low, high = estimate(more, answer(more, positive)).count_interval
        held.append(low - 0.5 <= positive.sum() <= high + 0.5)
        widths.append((high - low) / (first[1] - first[0]))
    assert np.mean(held) >= 0.7
    assert np.mean(widths) < 0.8


def test_strata_of_the_score_are_narrower_than_plain_sampling(rows):
    chance, positive = rows
    widths = {"strata": 0.0, "plain": 0.0}
    for seed in range(5):
        for name, scores in (("strata", chance), ("plain", np.full(1200, 0.5))):
            asked = design(scores, budget=100, random_state=seed)
            low, high = estimate(asked, answer(asked, positive)).count_interval
            widths[name] += high - low
    assert widths["strata"] < 0.85 * widths["plain"]


def test_as_narrow_as_prediction_powered_inference(rows):
    """The strata make use of the scores as a difference estimator does."""
    ppi = pytest.importorskip("ppi_py")
    chance, positive = rows
    ours, theirs = 0.0, 0.0
    for seed in range(10):
        asked = design(chance, budget=100, random_state=seed)
        low, high = estimate(asked, answer(asked, positive)).count_interval
        ours += high - low
        drawn = np.random.default_rng(seed).choice(1200, 100, replace=False)
        rest = np.setdiff1d(np.arange(1200), drawn)
        y = positive[drawn].astype(float)
        low, high = ppi.ppi_mean_ci(y, chance[drawn], chance[rest], alpha=0.1)
        theirs += 1200 * float(np.ravel(high)[0] - np.ravel(low)[0])
    assert ours < 1.1 * theirs


# Designs


def test_a_design_is_repeatable_random_and_leaves_out_what_is_known(rows):
    chance, _ = rows
    known = chance > 0.8
    first, same, other = (
        design(chance, labelled=known, budget=60, random_state=seed)
        for seed in (0, 0, 1)
    )
    assert_array_equal(first.rows, same.rows)
    assert set(first.rows) != set(other.rows)
    assert np.unique(first.rows).size == 60
    assert not known[first.rows].any()
    assert_allclose((1.0 / first.probability).sum(), (~known).sum())
    # In random order: the first half is not of greater score than the second.
    halves = np.split(chance[first.rows], 2)
    assert abs(halves[0].mean() - halves[1].mean()) < 0.15


def test_a_design_survives_json(rows):
    chance, positive = rows
    asked = design(chance, budget=40)
    again = Design.from_dict(json.loads(json.dumps(asked.to_dict())))
    answers = answer(asked, positive)
    assert estimate(again, answers).count == estimate(asked, answers).count
    assert_array_equal(again.extend(answers, 9).rows, asked.extend(answers, 9).rows)


def test_more_rows_than_there_are(rows):
    chance, positive = rows
    asked = design(chance[:50], budget=500)
    assert_array_equal(np.sort(asked.rows), np.arange(50))
    found = estimate(asked, answer(asked, positive))
    total = positive[:50].sum()
    assert found.count_interval == (total, total)
    assert asked.extend(answer(asked, positive), 5).rows.size == 50


@pytest.mark.parametrize("scores", [[3.0, -1.0] * 20, [0.5] * 40])
def test_any_scores_will_do(scores):
    asked = design(scores, budget=10)
    assert asked.rows.size == 10
    assert estimate(asked, {}).count_interval == (0.0, 40.0)


def test_finding_counts_only_what_was_found(rows):
    chance, positive = rows
    asked = design(chance, budget=30, kind="find")
    assert_array_equal(asked.rows, np.argsort(-chance)[:30])
    found = estimate(asked, answer(asked, positive))
    n_yes = positive[asked.rows].sum()
    assert not found.valid
    assert found.count_interval == (n_yes, 1200 - (30 - n_yes))
    assert "not drawn at random" in found.headline
    assert found.precision_at(30) == (n_yes / 30,) * 3
    assert asked.extend({}, 10).rows.size == 40


# Groups


CLINICS = {"A": 0.8, "B": 0.4, "C": 0.1, "D": 0.02}  # how often positives were labelled


def make_clinics(seed, n=800):
    """Chances if unlabelled, truth, labels, and the clinic that decides on labels."""
    rng = np.random.default_rng(seed)
    clinic = rng.choice(list(CLINICS), n)
    rate = np.array([CLINICS[each] for each in clinic])
    chance = rng.beta(0.4, 1.2, n)
    positive = rng.random(n) < chance
    labelled = positive & (rng.random(n) < rate)
    return chance * (1 - rate) / (1 - chance * rate), positive, labelled, clinic


@pytest.mark.parametrize("good", [True, False])
def test_every_group_is_counted_and_the_total_stays_valid(good):
    held, of_groups, rates, agree = [], [], [], []
    for seed in range(25):
        chance, positive, labelled, clinic = make_clinics(seed)
        scores = chance if good else 1.0 - chance
        how = {"groups": clinic, "budget": 80, "random_state": seed}
        asked = design(scores, labelled=labelled, **how)
        assert_allclose((1.0 / asked.probability).sum(), (~labelled).sum())
        for n_more in (0, 40):  # at first, and with more
            if n_more:
                asked = asked.extend(answer(asked, positive), n_more)
            found = estimate(asked, answer(asked, positive))
            low, high = found.count_interval
            held.append(low - 0.5 <= (positive & ~labelled).sum() <= high + 0.5)
        assert [each.group for each in found.groups] == list(CLINICS)
        assert sum(each.answered for each in found.groups) == 120
        for each in found.groups:
            mine = (clinic == each.group) & ~labelled
            n_hidden = positive[mine].sum()
            assert (each.rows, each.labelled) == (
                mine.sum(),
                (labelled & (clinic == each.group)).sum(),
            )
            assert each.answered >= 20
            of_groups.append(each.hidden_low - 1 <= n_hidden <= each.hidden_high + 1)
            rate = CLINICS[each.group] / 0.8
            rates.append(each.rate_low - 1e-9 <= rate <= each.rate_high + 1e-9)
            agree.append(each.agrees)
    assert np.mean(held) >= 0.82  # 50 counts, two for each draw
    assert np.mean(of_groups) >= 0.85
    assert np.mean(rates) >= 0.85
    assert np.mean(agree) > 0.85 if good else np.mean(agree) < 0.15


def test_rates_of_a_model_are_compared_with_those_of_the_answers():
    _, positive, labelled, clinic = make_clinics(0, n=400)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2)) + 2.0 * positive[:, None]
    X = np.column_stack([X, np.searchsorted(list(CLINICS), clinic)])
    model = PGPUClassifier(labelled_by=[2], random_state=0).fit(X, labelled)
    asked = design(model, labelled=labelled, groups=clinic, budget=80)
    found = estimate(asked, answer(asked, positive)).groups
    said = [each.rate for each in model.labelling_.groups]
    assert_allclose([each.model_rate for each in found], said, atol=0.15)
    assert all(each.rate_holds for each in found)
    assert f"as {found[2].model_rate:.2f} by the model" in found[2].sentence
    # Of a model that takes all clinics for alike, the best one's rate holds alone.
    model.labelling_ = replace(model.labelling_, rate=np.ones(400))
    asked = design(model, labelled=labelled, groups=clinic, budget=80)
    wrong = estimate(asked, answer(asked, positive)).groups
    assert [each.rate_holds for each in wrong] == [True, False, False, False]
    assert wrong[3].sentence.endswith("not 1.00 by the model")


def test_groups_without_a_word_of_the_budget_are_merged():
    rng = np.random.default_rng(0)
    scores = rng.random(1000)
    site = np.array([f"s{n}" for n in (rng.pareto(1.0, 1000) * 2).astype(int)], object)
    site[rng.random(1000) < 0.05] = None
    made = design(scores, groups=site, budget=60)
    assert len(made.groups) == 7
    assert made.groups[-1].name.startswith("(other: ")
    assert "(missing)" in [each.name for each in made.groups]
    assert sum(each.rows for each in made.groups) == 1000
    again = Design.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.groups == made.groups
    assert_array_equal(again.extend({}, 9).rows, made.extend({}, 9).rows)


@pytest.mark.parametrize("days", [False, True])
def test_numbers_and_dates_are_cut_at_quartiles(days):
    values = np.linspace(10.0, 49.0, 400)
    values[:20] = np.nan
    if days:
        values = np.datetime64("2024-01-01") + values.astype("timedelta64[D]")
    made = design(np.full(400, 0.5), groups=values, budget=60)
    first, last = ("up to 2024-01-22", "above") if days else ("up to 21.24", "above")
    names = [each.name for each in made.groups]
    assert names[0] == first
    assert names[3].startswith(last)
    assert names[4:] == ["(missing)"]
    assert [each.rows for each in made.groups] == pytest.approx([95] * 4 + [20], abs=9)
    years = design(np.full(400, 0.5), groups=np.arange(400) // 100 + 2021, budget=60)
    assert [each.name for each in years.groups] == ["2021", "2022", "2023", "2024"]


def test_the_top_rows_are_those_of_all_groups(rows):
    chance, positive = rows
    asked = design(chance, groups=np.arange(1200) % 3, budget=1200)
    found = estimate(asked, answer(asked, positive))
    ranked = positive[np.argsort(-chance)]
    for k in (7, 100, 650):
        assert_allclose(found.precision_at(k), [ranked[:k].mean()] * 3, atol=1e-9)


def test_a_group_has_its_sentence(rows):
    chance, _ = rows
    asked = design(chance, groups=np.arange(1200) < 300, budget=60)
    first, _ = estimate(asked, dict.fromkeys(asked.rows.tolist(), True)).groups
    assert first.sentence.startswith(
        f"{first.answered} of {first.answered} checked are"
    )
    assert first.sentence.endswith("more than chance explains")
    assert first.hidden == first.hidden_high == 900.0
    empty, _ = estimate(asked, {}).groups
    assert empty.sentence == "nothing is checked yet"
    assert (empty.hidden_low, empty.hidden_high) == (0.0, 900.0)


# Estimates


def test_unknown_rows_count_both_ways(rows):
    chance, positive = rows
    asked = design(chance, budget=80)
    answers = answer(asked, positive)
    unsure = dict(answers) | dict.fromkeys(asked.rows[:8].tolist())
    both = [
        estimate(asked, dict(answers) | dict.fromkeys(asked.rows[:8].tolist(), said))
        for said in (False, True)
    ]
    found = estimate(asked, unsure)
    assert found.n_unknown == 8
    assert found.count_interval[0] == both[0].count_interval[0]
    assert found.count_interval[1] == both[1].count_interval[1]


def test_precision_and_rows_to_find_hold(rows):
    chance, positive = rows
    ranked = positive[np.argsort(-chance)]
    needed = np.searchsorted(ranked.cumsum(), 0.8 * ranked.sum()) + 1
    held, found_all = [], []
    for seed in range(5):
        asked = design(chance, budget=100, random_state=seed)
        found = estimate(asked, answer(asked, positive))
        for k in (60, 200, 600):
            share = found.precision_at(k)
            held.append(share.low - 0.01 <= ranked[:k].mean() <= share.high + 0.01)
        need = found.rows_to_find(0.8)
        found_all.append(need.low <= needed <= need.high)
        assert need.low <= need.estimate <= need.high
    assert np.mean(held) >= 0.8
    assert np.mean(found_all) >= 0.75
    assert sum(each.rows for each in found.strata) == 1200
    assert np.mean([each.agrees for each in found.strata]) > 0.7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: design(s, budget=0), "budget must be"),
        (lambda s: design(s, kind="guess"), "kind must be one of"),
        (lambda _: design([[1.0]]), "scores must be"),
        (lambda _: design([np.nan, 1.0]), "scores must be"),
        (lambda s: design(s, labelled=np.ones(1200, bool)), "leave rows"),
        (lambda s: design(s, kind="teach"), "needs a model"),
        (lambda s: design(s, groups=s > 0.1, kind="find"), "groups must be None"),
        (lambda s: design(s, groups=s[:9]), "a value for each of 1200 rows. Got 9"),
        (lambda s: design(s, groups=s > 2), "groups must be two or more"),
        (lambda s: design(s, groups=s.astype(str)), "the largest of 1"),
        (lambda s: estimate(design(s), {-1: True}), "asked about. Got row -1"),
        (lambda s: estimate(design(s), {design(s).rows[0]: "yes"}), "True, False"),
        (lambda s: estimate(design(s), {}).precision_at(0), "k must be"),
        (lambda s: estimate(design(s), {}).rows_to_find(1.0), "share must be"),
    ],
)
def test_bad_requests_are_refused(call, message, rows):
    with pytest.raises(InvalidInputError, match=message):
        call(rows[0])
