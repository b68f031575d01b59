"""What a disk, a version or a forger can do to a file, and what load says to it."""

import copy
import json
import pickle
import re
import sys
import tracemalloc

import numpy as np
import pytest
import sklearn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from probgap.exceptions import InvalidInputError, ModelFileError, ModelVersionWarning
from probgap.io import load, read_metadata, save
from probgap.methods import NaiveClassifier

# A disk


def test_other_files_are_refused(tmp_path, refused):
    assert issubclass(ModelFileError, InvalidInputError)
    path = tmp_path / "m.probgap"
    for content in (b"", b"a,b\n1,2\n", pickle.dumps({}), b"probgap model", b"PK\3\4"):
        path.write_bytes(content)
        refused(path, "it is not a model file of probgap")
        with pytest.raises(ModelFileError, match="it is not a model file"):
            read_metadata(path)


def test_files_that_are_not_there_are_refused(tmp_path, refused):
    refused(tmp_path / "none.probgap", "No such file")
    refused(tmp_path, "Is a directory")


def test_a_file_cut_or_continued_is_refused(saved, refused):
    whole = saved.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 30).astype(int):
        saved.write_bytes(whole[:length])
        refused(saved, "not a model file|cut off")
    for extra in (b"\n", bytes(100), whole):
        saved.write_bytes(whole + extra)
        refused(saved, "cut off, damaged or changed")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused(saved, refused, share, bit):
    damaged = bytearray(saved.read_bytes())
    damaged[int(share * len(damaged))] ^= 1 << bit
    saved.with_name("damaged").write_bytes(damaged)
    refused(saved.with_name("damaged"), "damaged|not a model file|has format")


# A version


@pytest.mark.parametrize(("number", "advice"), [(2, "fit again"), (4, "upgrade prob")])
def test_another_format_is_refused(number, advice, saved, forge, refused):
    forge(saved, number=number)
    refused(saved, rf"it has format {number}, and this version reads 3: {advice}")
    with pytest.raises(ModelFileError, match=advice):
        read_metadata(saved)


def versions(path, **others):
    header = json.loads(path.read_bytes().split(b"\n", 2)[1])
    return {"versions": {**header["versions"], **others}}


@pytest.mark.parametrize("library", ["scikit-learn", "probgap"])
def test_another_version_is_warned_about_once(library, saved, forge):
    def age(plan):
        plan.update(json.loads(json.dumps(plan).replace(sklearn.__version__, "1.5.0")))

    forge(saved, age, header=versions(saved, **{library: "0.0.1"}))
    with pytest.warns(
        ModelVersionWarning, match=f"saved with {library}==0.0.1"
    ) as found:
        load(saved)
    assert len(found) == 1
    assert found[0].filename == __file__


def nodes_of(part):
    """Return all nodes of a plan that stand for something else than themselves."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from nodes_of(inner)


@pytest.mark.parametrize("change", [dict.popitem, lambda own: own.update(more=1)])
def test_a_result_with_other_fields_says_so(change, saved, forge, refused):
    def age(plan):
        for node in list(nodes_of(plan["model"])):
            change(node["fields"]) if "fields" in node else None

    forge(saved, age, header=versions(saved, probgap="0.0.9"))
    why = refused(saved, "has other fields in this version")
    assert why.endswith("saved with probgap==0.0.9: install these, or fit again.")


def test_a_class_that_is_gone_says_so(saved, forge, refused):
    def rename(plan):
        place = next(p for p in plan["names"]["new"] if p[1] == "PGPUClassifier")
        place[1] = "OldClassifier"

    forge(saved, rename, header=versions(saved, probgap="0.0.9"))
    refused(saved, r"not trusted: probgap\..*OldClassifier.*probgap==0.0.9")


# Names


def made(role, module, name, **more):
    """Put an object into the place of a parameter, as a forger would."""

    def change(plan):
        places = plan["names"][role]
        places.append([module, name])
        parameter = plan["model"]["state"]["dict"][0]
        parameter[1] = {role: len(places) - 1, **more}

    return change


@pytest.mark.parametrize(
    ("role", "module", "name"),
    [
        ("call", "os", "system"),
        ("call", "builtins", "eval"),
        ("call", "numpy", "load"),
        ("call", "numpy", "dtype"),
        ("call", "probgap.io", "save"),
        ("call", "sklearn.pipeline", "Pipeline"),
        ("new", "os", "system"),
        ("new", "subprocess", "Popen"),
        ("new", "probgap.io", "load"),
        ("new", "probgap.tables", "os.system"),
        ("new", "probgap.cli.demo", "Request"),
        ("new", "sklearn.conftest", "SkipTest"),
        ("value", "builtins", "exec"),
        ("value", "numpy", "save"),
        ("value", "probgap.tables", "write_csv"),
        ("value", "probgap.__main__", "main"),
        ("value", "no_such_module", "thing"),
    ],
)
def test_nothing_but_what_is_trusted_is_named(
    role, module, name, saved, forge, refused
):
    forge(saved, made(role, module, name, args=["echo"]))
    refused(saved, f"not trusted: {module}.{name}")


def test_no_module_is_imported_for_a_name_that_is_refused(saved, forge, refused):
    forge(saved, made("new", "antigravity", "fly"))
    refused(saved, "not trusted: antigravity.fly")
    assert "antigravity" not in sys.modules


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of somebody's own."""

    def fit(self, X, *_):
        self.factor_ = np.full(X.shape[1], 2.0)
        self.noted_ = {3: (1, "a"), "raw": b"\x00\xff", "some": {"x"}}
        return self

    def transform(self, X):
        return X * self.factor_


def test_trust_of_the_caller_lets_an_own_class_in(data, tmp_path, refused):
    path, name = tmp_path / "m.probgap", f"{Doubled.__module__}.Doubled"
    before = make_pipeline(Doubled(), NaiveClassifier(random_state=0)).fit(*data)
    save(before, path)
    refused(path, rf"not trusted: {re.escape(name)}\. See trusted in io.load")
    after = load(path, trusted=[name])
    assert_array_equal(after.predict(data[0]), before.predict(data[0]))
    assert after[0].noted_ == before[0].noted_


def test_trust_is_a_list_of_names(saved):
    with pytest.raises(ModelFileError, match=r"trusted must be a list .* Got 'a.b'"):
        load(saved, trusted="a.b")


# A plan


def nested(depth):
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda plan: plan.clear(), "KeyError"),
        (lambda plan: plan.update(model=[]), "it holds a list, not a model"),
        (lambda plan: plan.update(model={"call": 99, "args": []}), "IndexError"),
        (lambda plan: plan.update(model={"strange": 1}), "does not load"),
        (lambda plan: plan.update(dtypes=["'|O'"] * 99), "OBJECT"),
        (lambda plan: plan.update(dtypes=["print(1)"]), "ValueError"),
        (lambda plan: plan.update(model=nested(900)), "does not load|not a model"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change, why, saved, forge, refused):
    refused(forge(saved, change), why)
    refused(forge(saved, block=b"few"), "does not load|KeyError|not a model")


def test_a_small_file_cannot_unpack_to_much(saved, forge, refused):
    for size in (0, -1, 2**60, "1", None):
        refused(forge(saved, header={"size": size}), "it would unpack|does not load")
    forge(saved, block=bytes(2**28))
    tracemalloc.start()
    refused(saved, "it would unpack to")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


# Indices

TREES = {
    "forest": RandomForestClassifier(4, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, max_features=0.5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=3),
}


@pytest.fixture(params=TREES)
def trees(request, data):
    """Trees of scikit-learn's, fitted, in a model."""
    X = np.column_stack([data[0], data[0]])
    model = NaiveClassifier(random_state=0).fit(X, data[1])
    model.estimator_ = TREES[request.param].fit(X, data[1])
    return model, X


def test_trees_come_back(trees, tmp_path):
    model, X = trees
    save(model, tmp_path / "m.probgap")
    after = load(tmp_path / "m.probgap")
    assert_array_equal(after.predict(X), model.predict(X))


FIELDS = {
    "left": ("left_child", "left"),
    "right": ("right_child", "right"),
    "feature": ("feature", "feature_idx"),
}


def alter_tree(model, field, value):
    """Change the last node that has children, of the first tree."""
    if hasattr(model, "_predictors"):
        nodes = model._predictors[0][0].nodes
        nodes[FIELDS[field][1]][np.flatnonzero(nodes["is_leaf"] == 0)[-1]] = value
        return
    tree = np.ravel(np.array(getattr(model, "estimators_", [model]), dtype=object))[
        0
    ].tree_
    state = tree.__getstate__()
    inner = state["nodes"]["left_child"] >= 0
    state["nodes"][FIELDS[field][0]][np.flatnonzero(inner)[-1]] = value
    tree.__setstate__(state)


@pytest.mark.parametrize(
    ("field", "value"),
    [("left", 0), ("left", 2**31 - 1), ("right", 0), ("feature", -3), ("feature", 4)],
)
def test_a_tree_cannot_lead_out_of_its_arrays(field, value, trees, tmp_path, refused):
    altered = copy.deepcopy(trees[0])
    alter_tree(altered.estimator_, field, value)
    save(altered, tmp_path / "m.probgap")
    refused(tmp_path / "m.probgap", "was altered: an index is out of range")


def test_trees_of_one_model_have_its_columns(trees, tmp_path, refused):
    altered = copy.deepcopy(trees[0])
    boosted = hasattr(altered.estimator_, "_predictors")
    setattr(altered.estimator_, "_n_features" if boosted else "n_features_in_", 1)
    save(altered, tmp_path / "m.probgap")
    refused(tmp_path / "m.probgap", "was altered: an index is out of range")


def test_a_tree_has_as_many_numbers_of_classes_as_it_says(saved, forge, refused):
    def change(plan):
        tree = [name for _, name in plan["names"]["call"]].index("Tree")
        for node in nodes_of(plan["model"]):
            if node.get("call") == tree:
                node["args"][2] = 10**6

    refused(forge(saved, change), "its Tree was altered")


@pytest.mark.parametrize("indices", [[0, 9], [-1, 0]])
def test_a_sparse_matrix_has_indices_within_its_shape(indices, data, tmp_path, refused):
    model = NaiveClassifier(random_state=0).fit(*data)
    model.rows_ = csr_matrix(np.eye(2))
    model.rows_.indices[:] = indices
    save(model, tmp_path / "m.probgap")
    refused(tmp_path / "m.probgap", "does not load")
