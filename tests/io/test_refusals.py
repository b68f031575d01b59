"""What a disk, a version or an attacker can do to a file, and what load says to it."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from probgap import PGPUClassifier
from probgap.exceptions import (
    InvalidInputError,
    MissingLibraryError,
    ModelFileError,
    ModelVersionWarning,
)
from probgap.io import load, read_metadata, save
from probgap.methods import NaiveClassifier
from probgap.reweight import KernelMeanMatching

SCHEMA = "schema.json"


def refused(path, why, **options):
    with pytest.raises(ModelFileError, match=why) as caught:
        load(path, **options)
    assert str(caught.value).startswith(f"Cannot load {path}: ")
    assert str(caught.value).endswith(".")
    return str(caught.value)


# A disk


def test_other_files_are_refused(tmp_path, model):
    path = tmp_path / "m.skops"
    assert issubclass(ModelFileError, InvalidInputError)
    for content, why in (
        (b"", "it is empty"),
        (b"a,b\n1,2\n", "it is not a model file"),
        (pickle.dumps(model), "it is a pickle"),
        (pickle.dumps(model, protocol=0), "it is not a model file"),
        (b"PK\x05\x06" + bytes(18), "it is not a model file"),
        (b"PK\x03\x04" + bytes(100), "truncated"),
    ):
        path.write_bytes(content)
        refused(path, why)
        with pytest.raises(ModelFileError, match=why):
            read_metadata(path)


def test_files_that_are_not_there_are_refused(tmp_path):
    refused(tmp_path / "none.skops", "No such file")
    refused(tmp_path, "Is a directory")


def test_a_zip_of_something_else_is_refused(tmp_path, data):
    path = tmp_path / "m.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.npy", b"")
    refused(path, "a zip without a model of probgap")
    skops = pytest.importorskip("skops.io")
    skops.dump(NaiveClassifier().fit(*data), path)
    refused(path, "without a model of probgap|an unknown part")


def test_a_file_cut_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 30).astype(int):
        saved.write_bytes(whole[:length])
        refused(saved, "empty|truncated|not a model file")
    for extra in (b"\n", bytes(100), whole):
        saved.write_bytes(whole + extra)
        refused(saved, "something was added|data before")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_harmless(saved, data, model, share, bit):
    whole = saved.read_bytes()
    damaged = bytearray(whole)
    damaged[int(share * len(whole))] ^= 1 << bit
    path = saved.with_name("damaged.skops")
    path.write_bytes(damaged)
    try:
        back = load(path)
    except ModelFileError:
        return
    # Some bytes of a zip say nothing: times, permissions.
    assert_array_equal(back.predict_proba(data[0]), model.predict_proba(data[0]))
    assert read_metadata(path) == read_metadata(saved)


def test_an_altered_part_is_named(saved):
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.endswith(".npy"))
    parts[name] = parts[name][:-1] + bytes([parts[name][-1] ^ 1])
    with zipfile.ZipFile(saved, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    refused(saved, f"the SHA-256 of its part {name} differs")
    with pytest.raises(ModelFileError, match=r"SHA-256"):
        read_metadata(saved)


# A version


def test_a_newer_format_is_refused(saved, forge):
    forge(saved, header={"format": 3, "versions": {"probgap": "9.1"}})
    refused(saved, r"format 3, of probgap 9.1; this version reads formats up to 2. Upg")
    with pytest.raises(ModelFileError, match=r"Upgrade"):
        read_metadata(saved)


@pytest.mark.parametrize("number", [None, "1", True, 1.5, 0, -1])
def test_a_format_must_be_a_number(number, saved, forge):
    refused(forge(saved, header={"format": number}), "no format number")


@pytest.mark.parametrize("part", ["versions", "metadata"])
def test_a_header_must_be_complete(part, saved, forge):
    refused(forge(saved, header={part: None}), f"its header has no {part}")


def versions(path, **others):
    header = json.loads(zipfile.ZipFile(path).read("probgap.json"))
    return {"versions": {**header["versions"], **others}}


def test_another_scikit_learn_is_warned_about_once(saved, forge, data, model):
    forge(saved, header=versions(saved, **{"scikit-learn": "1.5.0"}))
    why = rf"saved with scikit-learn 1.5.0, and this is {sklearn.__version__}"
    with pytest.warns(ModelVersionWarning, match=why) as caught:
        back = load(saved)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert_array_equal(back.predict(data[0]), model.predict(data[0]))


def test_parts_from_another_scikit_learn_say_nothing_more(table_model, tmp_path, forge):
    path = tmp_path / "m.skops"
    save(table_model, path)

    def age(part):
        if isinstance(part, dict):
            content = part.get("_sklearn_version")
            if content is not None:
                content["content"] = '"1.5.0"'
            for inner in part.values():
                age(inner)
        elif isinstance(part, list):
            for inner in part:
                age(inner)

    forge(path, change=age, header=versions(path, **{"scikit-learn": "1.5.0"}))
    with pytest.warns(ModelVersionWarning) as caught:
        load(path)
    assert len(caught) == 1


def attributes_of(schema):
    return schema["content"]["content"]


def test_a_parameter_that_a_file_lacks_has_its_default(saved, forge, data, model):
    def age(schema):
        content = schema["content"]
        content["key_types"]["content"].pop()
        del content["content"]["keep_labelled"]

    back = load(forge(saved, change=age))
    assert back.keep_labelled is model.keep_labelled is PGPUClassifier().keep_labelled
    assert_array_equal(back.predict(data[0]), model.predict(data[0]))


@pytest.mark.parametrize(
    ("place", "name"), [("boundary_", "value"), ("reading_", "slope")]
)
def test_a_result_of_a_version_with_fewer_fields_says_so(place, name, saved, forge):
    def age(schema):
        del attributes_of(schema)[place]["fields"][name]

    forge(saved, change=age, header=versions(saved, probgap="0.0.9"))
    why = refused(saved, rf"its (Boundary|Reading) lacks {name}")
    assert "probgap==0.0.9 (here 0." in why
    assert ": install these, or fit again" in why


def test_fields_may_stand_in_any_order_and_be_more(saved, forge, model):
    def age(schema):
        boundary = attributes_of(schema)["boundary_"]
        boundary["fields"] = dict(reversed(boundary["fields"].items()))
        boundary["fields"]["more"] = boundary["fields"]["value"]

    assert load(forge(saved, change=age)).boundary_ == model.boundary_


def test_a_type_that_is_gone_says_so(saved, forge):
    def rename(schema):
        attributes_of(schema)["boundary_"]["__class__"] = "Border"

    forge(saved, change=rename, header=versions(saved, probgap="0.0.9"))
    refused(saved, r"not trusted: probgap.Border.*probgap==0.0.9")
    refused(
        saved,
        r"does not load \(.*Border.*probgap==0.0.9",
        trusted=["probgap.Border"],
    )


def test_another_protocol_of_skops_is_refused(saved, forge):
    for number in (0, 1, 3, "2", None):
        forge(saved, change=lambda schema, n=number: schema.update(protocol=n))
        refused(saved, rf"protocol {number!r} of skops")


# The caller


@pytest.mark.parametrize("size", [10**6, -4, None, [4]])
def test_a_seed_whose_pool_would_take_hours_to_mix_is_refused(
    size, data, tmp_path, forge
):
    path = tmp_path / "model.skops"
    save(NaiveClassifier(random_state=np.random.default_rng(0)).fit(*data), path)

    def change(schema):
        text = json.dumps(schema)
        small, large = ('"content": ' + json.dumps(json.dumps(n)) for n in (4, size))
        start = text.index('"pool_size"')
        schema |= json.loads(text[:start] + text[start:].replace(small, large, 1))

    refused(forge(path, change=change), "a pool of another size")


@pytest.mark.parametrize("trusted", [True, "a.b", int, [1], [None]])
def test_trust_is_a_list_of_names(trusted, saved):
    with pytest.raises(ModelFileError, match=r"trusted must be a list .* Got"):
        load(saved, trusted=trusted)


def test_without_skops_it_says_how_to_get_it(saved, model, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("probgap._core.errors.import_module", missing)
    for call in (lambda: load(saved), lambda: save(model, saved)):
        with pytest.raises(MissingLibraryError, match=r"skops .*probgap\[io\]"):
            call()
    assert read_metadata(saved) == {"columns": ["a", "b"]}


def test_a_header_that_is_no_json_is_refused(saved):
    for content in (b"{", b"[" * 100_000, b"\xff", b"[]"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("probgap.json", content)
            archive.writestr(SCHEMA, json.dumps({}))
        saved.write_bytes(buffer.getvalue())
        refused(saved, "its header|does not load")


FILES = Path(__file__).parent / "files"


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ModelVersionWarning")
@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_file_from_before_parameters_became_objects_still_loads(name, data):
    path = FILES / f"{name}_0_1.skops"
    noted = read_metadata(path)
    model = load(path)
    found = model.predict_proba(np.array(noted["rows"]))[:, 1]
    assert_allclose(found, noted["probability"], rtol=1e-9)
    now = {"default": PGPUClassifier, "paper": PGPUClassifier.paper}[name]()
    now.set_params(random_state=0, reweight=KernelMeanMatching())
    assert repr(model) == repr(now)
    assert_array_equal(
        clone(model).fit(*data).predict(data[0]), now.fit(*data).predict(data[0])
    )


def test_a_file_with_what_is_no_longer_there_says_so():
    why = refused(FILES / "labelling_model.skops", "LabellingModel")
    assert "this version of probgap does not have or trust" in why
    assert ": fit again" in why


def test_a_file_of_a_fit_without_a_reading_says_so(forge, tmp_path):
    def change(schema):
        content = attributes_of(schema)
        content["another"] = content.pop("reading_")

    path = forge(FILES / "paper_0_1.skops", change=change, to=tmp_path / "m.skops")
    refused(path, r"without a reading .* fit again")


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ModelVersionWarning")
def test_parameters_of_an_older_file_become_objects(forge, tmp_path):
    def change(schema):
        content = attributes_of(schema)
        for name, value in {
            "boundary": "quantile",
            "quantile": 0.1,
            "reweight": False,
            "gap_estimator": "platt",
            "gap_method": "out_of_fold",
        }.items():
            content[name]["content"] = json.dumps(value)

    path = forge(FILES / "default_0_1.skops", change=change, to=tmp_path / "m.skops")
    model = load(path)
    assert repr(model.boundary) == "Quantile(quantile=0.1)"
    assert model.reweight is None
    assert repr(model.gap_estimator) == "ObservedGapEstimator()"


@pytest.mark.parametrize("number", [0, None, "1", True, 1])
def test_objects_of_an_older_file_are_numbered(number, forge, tmp_path):
    def change(schema):
        schema["content"]["__id__"] = number

    path = forge(FILES / "paper_0_1.skops", change=change, to=tmp_path / "m.skops")
    refused(path, "has the number|occurs in two forms")


def test_a_class_of_an_older_file_is_one_of_the_list(forge, tmp_path):
    def change(schema):
        schema["content"]["content"]["boundary_"].update(
            __loader__="FunctionNode",
            __module__="probgap.tables",
            __class__="write_csv",
        )

    path = forge(FILES / "paper_0_1.skops", change=change, to=tmp_path / "m.skops")
    refused(path, r"does not have or trust probgap\.tables\.write_csv")


def test_no_module_of_ours_is_named_in_a_file(saved, table_model, tmp_path):
    save(table_model, tmp_path / "table.skops")
    for path in (saved, tmp_path / "table.skops"):
        plan = zipfile.ZipFile(path).read(SCHEMA).decode()
        assert '"__module__":"probgap"' in plan
        assert "probgap." not in plan
        assert "sklearn.preprocessing._" not in plan
