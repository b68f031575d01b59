"""Mixtures of learners and readings: what comes back, and what is refused."""

import copy
from dataclasses import fields, replace
from types import FunctionType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

from probgap._core.learners import Boosting, Forest, KernelLogistic, LinearLogistic
from probgap._core.mixture import MixedClassifier, Mixture, fit_usual
from probgap._core.views import Columns, Directions, Words
from probgap.baselines import NaiveClassifier
from probgap.exceptions import ModelFileError
from probgap.gap import MixedGapEstimator
from probgap.io import load, save
from probgap.io._parts import require_sound_parts
from probgap.io._stored import Nodes, StoredBoosting, StoredForest, restore_learners
from probgap.reading import read

KINDS = (KernelLogistic, LinearLogistic, Forest, Boosting)


def soft_task(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    labelled = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    target = np.where(labelled, 1.0, 0.3 * rng.random(n_rows))
    return X, labelled, target


@pytest.fixture(scope="session")
def learnt():
    """Give a mixture that uses all of its learners, a reading, and their rows."""
    X, labelled, target = soft_task(400, 3)
    fitted = fit_usual(X, target, np.ones(400), labelled, 0)
    mixture = replace(fitted.learner, weights=np.array([0.2, 0.3, 0.4, 0.1]))
    assert tuple(map(type, mixture.learners)) == KINDS
    return mixture, read(fitted.held_out, labelled), X


@pytest.fixture
def carrier(data, learnt):
    """Give a model that holds them, and does nothing with them."""
    holder = NaiveClassifier().fit(*data)
    holder.mixture_, holder.reading_ = learnt[:2]
    return holder


def round_trip(model, folder):
    save(model, folder / "m.skops")
    return load(folder / "m.skops")


def test_a_mixture_comes_back_to_the_last_bit(carrier, learnt, tmp_path):
    mixture, _, X = learnt
    fresh = np.random.default_rng(9).normal(size=(1000, 3)) * 2.0
    back = round_trip(carrier, tmp_path).mixture_
    assert tuple(map(type, back.learners)) == KINDS
    for rows in (X, fresh, np.zeros((1, 3))):
        assert_array_equal(back.log_odds(rows), mixture.log_odds(rows))
        for one, other in zip(back.learners, mixture.learners, strict=True):
            assert_array_equal(one.log_odds(rows), other.log_odds(rows))
    # What was read is as sound as what was fitted.
    require_sound_parts(back.learners[2:])
    require_sound_parts(mixture.learners[2:])


def test_saving_changes_nothing_and_twice_is_as_once(carrier, learnt, tmp_path):
    mixture = learnt[0]
    back = round_trip(carrier, tmp_path)
    once = (tmp_path / "m.skops").read_bytes()
    assert carrier.mixture_ is mixture
    assert tuple(map(type, mixture.learners)) == KINDS
    save(back, tmp_path / "m.skops")
    assert (tmp_path / "m.skops").read_bytes() == once


def test_a_reading_comes_back(carrier, learnt, tmp_path):
    reading = learnt[1]
    scores = np.linspace(-5.0, 5.0, 50)
    known = reading.update(class_prior=0.95)
    assert known.curves.shift.any()
    for before in (reading, known):
        carrier.reading_ = before
        after = round_trip(carrier, tmp_path).reading_
        assert type(after) is type(before)
        assert_array_equal(after.posterior(scores), before.posterior(scores))
        assert after.worlds() == before.worlds()
        for field in fields(before):
            if field.name not in ("curves", "scores"):
                assert getattr(after, field.name) == getattr(before, field.name)
        assert after.update(class_prior=0.7).n_hidden == pytest.approx(
            before.update(class_prior=0.7).n_hidden, abs=0.0
        )


@pytest.mark.parametrize("kind", [Columns, Directions, Words])
def test_views_come_back(kind, carrier, tmp_path):
    X, labelled, target = soft_task(80, 3 if kind is Columns else 600)
    if kind is Columns:
        X[:, 1] *= 1e200
    if kind is Words:
        X = csr_array(np.maximum(X - 1.5, 0.0))
    mixture = fit_usual(X, target, np.ones(80), labelled, 0).learner
    assert type(mixture.view) is kind
    carrier.mixture_ = replace(mixture, weights=np.ones(4))
    back = round_trip(carrier, tmp_path).mixture_
    assert_array_equal(back.log_odds(X), carrier.mixture_.log_odds(X))
    if kind is Words:
        return
    with pytest.raises(ModelFileError, match=r"its (Mixture|Columns|Directions)"):
        save_and_load_altered_view(carrier, tmp_path)


def save_and_load_altered_view(carrier, folder):
    put(carrier.mixture_.view, scale=changed(0.0))
    round_trip(carrier, folder)


@pytest.mark.parametrize("leaves", [None, 30])
def test_nodes_in_any_order_come_back(leaves, carrier, tmp_path):
    X, _, target = soft_task(300, 3)
    trees = ExtraTreesRegressor(5, max_leaf_nodes=leaves, random_state=0)
    learners = (Forest(trees.fit(X, target), 0.5),)
    carrier.mixture_ = Mixture(learners, np.ones(1), 0.0)
    back = round_trip(carrier, tmp_path).mixture_
    assert_array_equal(back.log_odds(X), carrier.mixture_.log_odds(X))


def test_samples_without_a_value_go_the_same_way(tmp_path, carrier, learnt):
    X, _, target = soft_task(300, 3)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    trees = ExtraTreesRegressor(5, bootstrap=True, random_state=0).fit(X, target)
    boosted = copy.copy(learnt[0].learners[3].models[0])
    boosted.fit(X, target)
    learners = Forest(trees, 0.5), Boosting((boosted,))
    carrier.mixture_ = Mixture(learners, np.ones(2), 0.0)
    back = round_trip(carrier, tmp_path).mixture_
    assert_array_equal(back.log_odds(X), carrier.mixture_.log_odds(X))


@pytest.mark.parametrize("n_rows", [2, 40])
def test_trees_of_one_leaf_come_back(n_rows, carrier, learnt, tmp_path):
    X = np.zeros((n_rows, 3))
    boosted = copy.copy(learnt[0].learners[3].models[0])
    boosted.fit(X, np.full(n_rows, 0.25))
    trees = ExtraTreesRegressor(2).fit(X, np.full(n_rows, 0.25))
    learners = Forest(trees, 0.25), Boosting((boosted, boosted))
    carrier.mixture_ = Mixture(learners, np.ones(2), 0.0)
    back = round_trip(carrier, tmp_path).mixture_
    assert_array_equal(back.log_odds(X), carrier.mixture_.log_odds(X))


def test_files_of_mixtures_are_small(carrier, tmp_path):
    # A hundred trees of ten thousand rows are 18 MB in memory.
    X, labelled, target = soft_task(3000, 20)
    save(carrier, tmp_path / "few.skops")
    carrier.mixture_ = fit_usual(X, target, np.ones(3000), labelled, 0).learner
    save(carrier, tmp_path / "m.skops")
    n_nodes = sum(t.tree_.node_count for t in carrier.mixture_.learners[2].trees)
    more = (tmp_path / "m.skops").stat().st_size
    assert more < 14 * n_nodes + 2_000_000


def test_skops_alone_reads_mixtures(carrier, learnt, tmp_path):
    skops = pytest.importorskip("skops.io")
    save(carrier, tmp_path / "m.skops")
    names = skops.get_untrusted_types(file=tmp_path / "m.skops")
    # Nothing of scikit-learn is in the mixture.
    assert not any("HistGradient" in name or "Regressor" in name for name in names)
    back = skops.load(tmp_path / "m.skops", trusted=names).mixture_
    X = learnt[2]
    assert_array_equal(back.log_odds(X), learnt[0].log_odds(X))


def test_other_trees_are_not_saved(carrier, learnt, tmp_path):
    X, _, target = soft_task(200, 3)
    categories = HistGradientBoostingRegressor(
        loss=learnt[0].learners[3].models[0].loss, categorical_features=[0]
    )
    rounded = np.abs(X).round()
    for learner, why in (
        (Boosting((HistGradientBoostingRegressor().fit(X, target),)), "log-loss"),
        (Boosting((categories.fit(rounded, rounded[:, 0] == 1),)), "categories"),
    ):
        carrier.mixture_ = Mixture((learner,), np.ones(1), 0.0)
        with pytest.raises(ModelFileError, match=rf"^model must .*{why}"):
            save(carrier, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


# Files made to harm: what is saved is in order, but for one thing.


def put(thing, **changes):
    """Change a frozen thing where it is, even to what its class would not take."""
    for name, value in changes.items():
        old = getattr(thing, name)
        object.__setattr__(
            thing, name, value(old) if isinstance(value, FunctionType | type) else value
        )


def changed(value, at=-1):
    def change(old):
        new = old.copy()
        new.flat[at] = value
        return new

    return change


def forged(carrier, learnt, change):
    """Give a model as a file has it, after a change to its mixture or reading."""
    mixture, reading, _ = learnt
    kernel, linear, forest, boosting = mixture.learners
    stored_forest, stored_boosting = (
        StoredForest.of(forest),
        StoredBoosting.of(boosting),
    )
    kernel = replace(kernel, features=replace(kernel.features))
    parts = {
        "view": Columns(np.zeros(3), np.ones(3)),
        "kernel": kernel,
        "features": kernel.features,
        "linear": replace(linear),
        "forest": stored_forest,
        "trees": stored_forest.nodes,
        "boosting": stored_boosting,
        "rounds": stored_boosting.nodes,
        "reading": replace(reading, curves=replace(reading.curves)),
    }
    parts["curves"] = parts["reading"].curves
    learners = tuple(parts[k] for k in ("kernel", "linear", "forest", "boosting"))
    parts["mixture"] = Mixture(
        learners, mixture.weights, mixture.intercept, view=parts["view"]
    )
    change(parts)
    carrier.mixture_, carrier.reading_ = parts["mixture"], parts["reading"]
    return carrier


def alter(part, **changes):
    return lambda parts: put(parts[part], **changes)


def planted_view(kind, **changes):
    """Put a view of 30 columns in the place of the plain one, and change it."""
    basis = np.ones((30, 3), dtype=np.float32)
    whole = {
        Directions: Directions(np.ones(30), np.zeros(3), basis),
        Words: Words(True, np.ones(30), basis),
    }

    def change(parts):
        view = replace(whole[kind])
        put(view, **changes)
        put(parts["mixture"], view=view)

    return change


def swap_flags(nodes):
    """Let the first tree end at once, and the others have its nodes."""
    put(nodes, is_leaf=np.roll(nodes.is_leaf, 1))


ATTACKS = {
    "Mixture": [
        alter("mixture", weights=np.ones(3)),
        alter("mixture", weights=np.ones(5)),
        alter("mixture", weights=np.ones((4, 1))),
        alter("mixture", weights=changed(np.nan)),
        alter("mixture", weights=changed(-0.1)),
        alter("mixture", weights=[0.1, 0.2, 0.3, 0.4]),
        alter("mixture", weights=np.ones(4, dtype=complex)),
        alter("mixture", weights=np.ones(4, dtype=object)),
        alter("mixture", intercept=float("nan")),
        alter("mixture", intercept="1"),
        alter("mixture", intercept=True),
        alter("mixture", learners=()),
        alter("mixture", learners=list),
        alter("mixture", learners=lambda old: (*old[:3], np.ones(3))),
        alter("mixture", learners=lambda old: (*old[:3], old[2].nodes)),
        # One learner needs other columns than the rest.
        alter("linear", coef=np.ones(4)),
        alter("forest", n_features=4),
        alter("boosting", n_features=2**31 - 1),
    ],
    "KernelLogistic": [
        alter("kernel", coef=changed(np.nan)),
        alter("kernel", coef=changed(np.inf)),
        alter("kernel", coef=lambda old: old[:-1]),
        alter("kernel", coef=lambda old: old[:, None]),
        alter("kernel", scale=changed(0.0)),
        alter("kernel", scale=changed(np.nan)),
        alter("kernel", intercept=float("inf")),
        alter("kernel", features=None),
        alter("features", gamma=-1.0),
        alter("features", gamma=float("nan")),
        alter("features", rotation=changed(np.nan)),
        alter("features", rotation=lambda old: old[:-1]),
        alter("features", rotation=lambda old: old[0]),
        alter("features", landmarks=changed(np.nan)),
        alter("features", landmarks=lambda old: old[:, :2]),
        alter("features", landmarks=csr_matrix),
        alter("features", landmarks=lambda old: old.astype(str)),
    ],
    "Columns": [
        alter("view", scale=changed(0.0)),
        alter("view", scale=changed(np.nan)),
        alter("view", scale=lambda old: old[:, None]),
        alter("view", scale=lambda old: old[:-1]),
        alter("view", centre=changed(np.inf)),
        alter("view", centre=lambda old: np.append(old, 0.0)),
        alter("mixture", view=Columns(np.zeros(2), np.ones(2))),
        alter("mixture", view=Columns(np.zeros(4), np.ones(4))),
        alter("mixture", view=lambda old: [old]),
        lambda parts: put(parts["mixture"], view=parts["linear"]),
    ],
    "Directions": [
        planted_view(Directions, basis=changed(np.nan)),
        planted_view(Directions, basis=lambda old: old[:, :2]),
        planted_view(Directions, basis=lambda old: old[0]),
        planted_view(Directions, basis=lambda old: old.astype(int)),
        planted_view(Directions, scale=changed(0.0)),
        planted_view(Directions, scale=lambda old: old[:-1]),
        planted_view(Directions, offset=changed(np.nan)),
        planted_view(Directions, offset=lambda old: old[:-1]),
    ],
    "Words": [
        planted_view(Words, basis=changed(np.nan)),
        planted_view(Words, basis=lambda old: old[:, :2]),
        planted_view(Words, factor=changed(np.nan)),
        planted_view(Words, factor=lambda old: old[:-1]),
        planted_view(Words, counts=1),
    ],
    "LinearLogistic": [
        alter("linear", coef=changed(np.nan)),
        alter("linear", coef=lambda old: old[:, None]),
        alter("linear", intercept=None),
    ],
    "StoredForest": [
        alter("trees", feature=changed(3)),
        alter("trees", feature=changed(10**9)),
        alter("trees", feature=changed(-1)),
        alter("trees", feature=lambda old: old[:-1]),
        alter("trees", feature=lambda old: old.astype(np.int64)),
        alter("trees", threshold=changed(np.nan)),
        alter("trees", threshold=lambda old: np.append(old, 0.0)),
        alter("trees", missing_left=lambda old: old[:0]),
        alter("trees", value=changed(np.nan)),
        alter("trees", value=changed(np.inf)),
        alter("trees", value=lambda old: old[1:]),
        alter("trees", value=lambda old: old.astype(np.float32)),
        # A child that is not there, or a node that hangs from none.
        alter("trees", is_leaf=changed(False)),
        alter("trees", is_leaf=changed(True, at=0)),
        alter("trees", is_leaf=lambda old: ~old),
        alter("trees", is_leaf=lambda old: np.append(old, False)),
        alter("trees", is_leaf=lambda old: old.astype(np.uint8)),
        alter("trees", is_leaf=lambda old: old[:0]),
        alter("trees", is_leaf=lambda old: old[None]),
        lambda parts: swap_flags(parts["trees"]),
        lambda parts: put(
            parts["trees"],
            **{f.name: getattr(parts["trees"], f.name)[:0] for f in fields(Nodes)},
        ),
        alter("forest", nodes=None),
        alter("forest", nodes=[1]),
        alter("forest", frequency=float("nan")),
        alter("forest", frequency=2.0),
        alter("forest", frequency=None),
        alter("forest", margin=0.0),
        alter("forest", margin=float("nan")),
        alter("forest", n_features=10.0**9),
        alter("forest", n_features=2**31),
        alter("forest", n_features=0),
        alter("forest", n_features=2),
        alter("forest", n_features=None),
    ],
    "StoredBoosting": [
        alter("rounds", feature=changed(3)),
        alter("rounds", feature=changed(-1)),
        alter("rounds", threshold=changed(np.nan)),
        alter("rounds", value=changed(-np.inf)),
        alter("rounds", is_leaf=changed(False)),
        alter("rounds", is_leaf=changed(True, at=0)),
        lambda parts: swap_flags(parts["rounds"]),
        alter("boosting", margin=0.5),
        alter("boosting", margin=None),
        alter("boosting", n_rounds=lambda old: (*old[:-1], old[-1] + 1)),
        alter("boosting", n_rounds=lambda old: (*old, 0)),
        alter("boosting", n_rounds=lambda old: (*old[:-2], old[-2] + 41, -1)),
        alter("boosting", n_rounds=lambda old: tuple(map(float, old))),
        alter("boosting", n_rounds=()),
        alter("boosting", n_rounds=list),
        alter("boosting", baseline=changed(np.nan)),
        alter("boosting", baseline=lambda old: old[:-1]),
        alter("boosting", baseline=lambda old: old[:, None]),
        alter("boosting", n_features=2),
    ],
    "Curves": [
        alter("curves", weights=changed(np.nan)),
        alter("curves", weights=changed(-0.1)),
        alter("curves", weights=lambda old: 2.0 * old),
        alter("curves", weights=lambda old: old[:0]),
        alter("curves", ceiling=changed(np.nan)),
        alter("curves", ceiling=changed(1.5)),
        alter("curves", share=changed(-0.5)),
        alter("curves", share=lambda old: old[:-1]),
        alter("curves", middle=changed(np.inf)),
        alter("curves", middle=lambda old: old.T),
        alter("curves", width=changed(0.0)),
        alter("curves", width=changed(np.nan)),
        alter("curves", spread=changed(0.0)),
        alter("curves", spread=lambda old: old[:-1]),
        alter("curves", shift=changed(np.nan)),
        alter("curves", shift=lambda old: old[:-1]),
        alter("curves", shift=None),
    ],
    "Reading": [
        alter("reading", boundary=float("nan")),
        alter("reading", slope=float("inf")),
        alter("reading", offset="0"),
        alter("reading", n_hidden=-1.0),
        alter("reading", n_labelled=None),
        alter("reading", class_prior_interval=(0.1, float("nan"))),
        alter("reading", n_hidden_interval=(1.0,)),
        alter("reading", n_hidden_interval=3.0),
        alter("reading", scores=changed(np.nan)),
        alter("reading", scores=lambda old: old[:0]),
        alter("reading", scores=lambda old: old[None]),
        alter("reading", curves=None),
    ],
}


@pytest.mark.parametrize(
    ("kind", "change"), [(kind, change) for kind in ATTACKS for change in ATTACKS[kind]]
)
def test_what_does_not_fit_together_is_refused(kind, change, carrier, learnt, tmp_path):
    save(forged(carrier, learnt, change), tmp_path / "m.skops")
    with pytest.raises(
        ModelFileError, match=r"its .* (was altered|is not sound)"
    ) as why:
        load(tmp_path / "m.skops")
    # Which of two that do not fit is named does not matter.
    assert kind in str(why.value) or "Mixture" in str(why.value)


def test_what_is_forged_by_nothing_loads(carrier, learnt, tmp_path):
    back = round_trip(forged(carrier, learnt, lambda _: None), tmp_path)
    X = learnt[2]
    assert_array_equal(back.mixture_.log_odds(X), learnt[0].log_odds(X))


def test_any_flags_that_are_taken_make_sound_trees(learnt):
    """What passes as trees never points outside, whichever nodes are leaves."""
    rng = np.random.default_rng(0)
    n_taken = 0
    for _ in range(3000):
        is_leaf = rng.random(rng.integers(1, 12)) < 0.6
        n_inner = int((~is_leaf).sum())
        stored = StoredForest(
            Nodes(
                is_leaf,
                rng.integers(0, 3, n_inner).astype(np.int32),
                rng.normal(size=n_inner),
                rng.random(n_inner) < 0.5,
                rng.random(is_leaf.size - n_inner),
            ),
            3,
            0.5,
            1e-4,
        )
        try:
            require_sound_parts(stored)
        except ModelFileError:
            continue
        n_taken += 1
        forest = restore_learners([stored])[0]
        require_sound_parts(forest)
        assert sum(t.tree_.node_count for t in forest.trees) == is_leaf.size
        assert np.isfinite(forest.log_odds(learnt[2][:3])).all()
    assert n_taken > 300


@pytest.mark.parametrize(
    "name",
    [
        "probgap._core.trees.Forest",
        "probgap._core.trees.Boosting",
        "probgap._core.tasks.Task",
        "sklearn.ensemble._forest.ExtraTreesRegressor",
    ],
)
def test_trees_of_scikit_learn_are_not_trusted_in_a_mixture(
    name, carrier, tmp_path, forge
):
    path = tmp_path / "m.skops"
    save(carrier, path)

    def rename(part):
        if isinstance(part, dict):
            if part.get("__class__") == "StoredForest":
                part["__module__"], _, part["__class__"] = name.rpartition(".")
            for inner in part.values():
                rename(inner)
        elif isinstance(part, list):
            for inner in part:
                rename(inner)

    with pytest.raises(ModelFileError, match=f"not trusted: {name}"):
        load(forge(path, change=rename))


def test_a_part_that_lacks_a_field_says_so(carrier, tmp_path, forge):
    path = tmp_path / "m.skops"

    def cut(part):
        if isinstance(part, dict):
            if part.get("__class__") in ("Mixture", "Nodes", "Reading"):
                part["content"]["content"].pop()
            for inner in part.values():
                cut(inner)
        elif isinstance(part, list):
            for inner in part:
                cut(inner)

    save(carrier, path)
    with pytest.raises(ModelFileError, match=r"lacks|is not sound|different parts"):
        load(forge(path, change=cut))


OWNERS = (MixedClassifier(random_state=0), MixedGapEstimator(random_state=0))


@pytest.mark.parametrize("owner", OWNERS, ids=["classifier", "gap estimator"])
def test_what_predicts_by_a_mixture_comes_back(owner, data, tmp_path):
    X, labels = data
    before = owner.fit(X, labels)
    after = round_trip(before, tmp_path)
    fresh = np.random.default_rng(9).uniform(-2, 2, size=(500, 2))
    for rows in (X, fresh):
        assert_array_equal(after.predict_proba(rows), before.predict_proba(rows))
        assert_array_equal(after.predict(rows), before.predict(rows))


@pytest.mark.parametrize(
    "change",
    [
        lambda owner, _: setattr(owner, "n_features_in_", 3),
        lambda owner, _: setattr(owner, "n_features_in_", 2.0),
        lambda owner, _: delattr(owner, "n_features_in_"),
        lambda owner, learnt: setattr(owner, "mixture_", learnt[0]),
        lambda owner, learnt: setattr(owner, "mixture_", learnt[1]),
        lambda owner, learnt: setattr(owner, "mixture_", learnt[0].learners[1]),
    ],
)
@pytest.mark.parametrize("owner", OWNERS, ids=["classifier", "gap estimator"])
def test_a_mixture_gets_the_columns_that_it_needs(
    owner, change, data, learnt, tmp_path
):
    # Trees do not count columns: they would read what lies beyond the sample.
    forged = copy.copy(owner).fit(*data)
    change(forged, learnt)
    save(forged, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=f"its {type(owner).__name__}"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize("part", ["estimator_", "gap_estimator_"])
def test_a_classifier_gives_its_mixtures_the_columns_they_need(
    part, model, data, tmp_path
):
    X, labels = data
    wide = np.hstack([X, X])
    kind = OWNERS[part == "gap_estimator_"]
    forged = copy.copy(model)
    setattr(forged, part, copy.copy(kind).fit(X, labels))
    round_trip(forged, tmp_path)
    setattr(forged, part, copy.copy(kind).fit(wide, labels))
    save(forged, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="its PGPUClassifier was altered"):
        load(tmp_path / "m.skops")
