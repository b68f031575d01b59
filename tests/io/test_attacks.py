"""Files made to harm, by someone who knows the format: every digest is right."""

import io
import json
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from probgap.exceptions import ModelFileError
from probgap.io import load, save
from probgap.methods import NaiveClassifier

HEADER, SCHEMA = "probgap.json", "schema.json"
ABOUT = {"versions": {}, "metadata": {}}


def refused(path, why, **options):
    with pytest.raises(ModelFileError, match=why) as caught:
        load(path, **options)
    return str(caught.value)


def node(loader, module, name, **more):
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        **more,
    }


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value))


def planted(part):
    """Put a node among the attributes of the model."""

    def change(schema):
        content = schema["content"]
        content["content"]["planted"] = part
        content["key_types"]["content"].append(node("TypeNode", "builtins", "str"))

    return change


def call(module, name, *arguments):
    """Ask skops to call something with arguments when the file is read."""
    given = [text(value) for value in arguments]
    inner = node("TupleNode", "builtins", "tuple", content=given)
    return node("ConstructorFromReduceNode", module, name, content=inner)


def key_of(module, name, value):
    """Ask skops to call something with the key of a dictionary."""
    kinds = node(
        "ListNode", "builtins", "list", content=[node("TypeNode", module, name)]
    )
    inner = {value: text(1)}
    return node("DictNode", "builtins", "dict", key_types=kinds, content=inner)


def method(module, name, function):
    owner = node("ObjectNode", module, name)
    inner = {"func": function, "obj": owner}
    return node("MethodNode", module, name, content=inner)


# Code


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (call("os", "system", "touch pwned"), "os.system"),
        (call("builtins", "eval", "1"), "builtins.eval"),
        (call("numpy", "zeros", 10**12), "numpy.zeros"),
        # What is trusted as a part is not trusted to be called.
        (call("probgap", "Boundary", 1), "probgap.Boundary"),
        (call("sklearn.svm", "SVC"), "sklearn.svm.SVC"),
        (node("ObjectNode", "probgap.pgpu", "PGPUClassifier"), "probgap.pgpu"),
        (node("ObjectNode", "probgap", "Path"), "probgap.Path"),
        (node("ObjectNode", "probgap", "bend"), "probgap.bend"),
        (node("FunctionNode", "probgap", "Mixture"), "probgap.Mixture"),
        (key_of("builtins", "eval", "1"), "builtins.eval"),
        (key_of("probgap.tables", "read_table", "/x"), "probgap.tables.read_table"),
        (key_of("probgap.tables", "write_csv", "/x"), "probgap.tables.write_csv"),
        (node("FunctionNode", "os", "system"), "os.system"),
        (node("FunctionNode", "probgap.io._files", "_write"), "_write"),
        (node("FunctionNode", "numpy", "load"), "numpy.load"),
        (node("TypeNode", "subprocess", "Popen"), "subprocess.Popen"),
        (node("TypeNode", "numpy", "void"), "numpy.void"),
        (node("ObjectNode", "pathlib", "Path"), "pathlib.Path"),
        (
            node("ObjectNode", "sklearn.tree._tree", "Tree"),
            "sklearn.tree._tree.Tree",
        ),
        (method("sklearn.pipeline", "Pipeline", "fit"), r"Pipeline\.fit"),
        (
            node("OperatorFuncNode", "operator", "methodcaller", attrs=text(1)),
            "operator.methodcaller",
        ),
        (node("PartialNode", "functools", "partial"), "functools.partial"),
        (node("NoSuchNode", "a", "B"), "a.B"),
        (node("ObjectNode", ["a"], {"b": 1}), "not trusted"),
    ],
)
def test_nothing_but_the_list_is_made_or_called(part, name, saved, forge, monkeypatch):
    monkeypatch.chdir(saved.parent)
    why = refused(forge(saved, change=planted(part)), name)
    assert "not trusted" in why
    assert list(saved.parent.iterdir()) == [saved]


def _first_tree(part):
    found = [part] if part.get("__loader__") == "TreeNode" else []
    inner = [v for v in part.values() if isinstance(v, dict)]
    inner += [d for v in part.values() if isinstance(v, list) for d in v]
    return next(iter(found + [t for t in map(_first_tree, inner) if t]), None)


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree: tree["__reduce__"]["args"]["content"].pop(),
        lambda tree: tree["__reduce__"].update(args=text([1, [2], 1])),
        lambda tree: tree["__reduce__"]["args"]["content"].__setitem__(1, text([2])),
        lambda tree: tree.update(content=text({})),
        lambda tree: tree["content"]["content"].pop("nodes"),
        lambda tree: tree["content"]["content"].update(
            nodes=node("ObjectNode", "sklearn.svm._classes", "SVC")
        ),
        lambda tree: tree["content"]["content"].update(values=1),
        lambda tree: tree.pop("__reduce__"),
    ],
)
def test_a_tree_is_built_from_numbers_and_arrays(edit, saved_trees, forge):
    def change(schema):
        edit(_first_tree(schema))

    refused(
        forge(saved_trees, change=change), "does not load|its Extra|different parts"
    )


@pytest.mark.parametrize("number", [10**9, -1, 0, 1.5, "2", None])
@pytest.mark.parametrize("place", [0, 2])
def test_a_tree_is_not_built_from_any_number(number, place, saved_trees, forge):
    def change(schema):
        arguments = _first_tree(schema)["__reduce__"]["args"]["content"]
        arguments[place] = text(number)

    refused(forge(saved_trees, change=change), "its Extra|does not load")


@pytest.mark.parametrize("count", [-1, 0, 1, 10**12])
def test_a_tree_has_the_nodes_it_counts(count, saved_trees, forge):
    def change(schema):
        _first_tree(schema)["content"]["content"]["node_count"] = text(count)

    path = forge(saved_trees, change=change)
    if count > 1:  # scikit-learn counts for itself where a file claims too many
        load(path)
    else:
        refused(path, "its Extra")


def test_no_module_is_imported_for_a_type_that_is_refused(saved, forge):
    forge(saved, change=planted(node("ObjectNode", "this", "Zen")))
    refused(saved, "this.Zen")
    assert "this" not in sys.modules


def test_trust_of_the_caller_opens_a_door(data, tmp_path):
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415

    path = tmp_path / "m.skops"
    model = NaiveClassifier(GaussianNB()).fit(*data)
    save(model, path)
    refused(path, r"1 type\(s\) .*: sklearn.naive_bayes.GaussianNB. If you know them")
    for trusted in ([GaussianNB], ["sklearn.naive_bayes.GaussianNB"]):
        back = load(path, trusted=trusted)
        assert (back.predict(data[0]) == model.predict(data[0])).all()


def test_an_attribute_cannot_take_the_place_of_a_method(saved, forge):
    def change(schema):
        planted(node("FunctionNode", "numpy", "exp"))(schema)
        content = schema["content"]["content"]
        content["predict"] = content.pop("planted")

    refused(forge(saved, change=change), "overrides predict")


def test_a_file_without_a_model_is_refused(saved, forge, write):
    def change(schema):
        for key in [k for k in schema if k not in ("protocol", "_skops_version")]:
            del schema[key]
        schema.update(text([1, 2]))

    forge(saved, change=change)
    refused(saved, "different parts")
    schema = {**text([1, 2]), "protocol": 2}
    write(saved, ABOUT, {SCHEMA: json.dumps(schema).encode()})
    refused(saved, "it holds a list, not a model")


# Size


def test_compressed_parts_are_refused(saved):
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.writestr("999.npy", bytes(10**7))
    refused(saved, "is compressed or encrypted")


def raw(path, edit):
    """Write the zip again with its entries edited."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        edit(archive, parts)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "C:\\x.npy",
        "a/1.npy",
        "0.npy",
        "1.py",
        "1.npy\n",
    ],
)
def test_odd_names_are_refused(name, saved):
    def edit(archive, parts):
        for part, content in {**parts, name: b""}.items():
            archive.writestr(zipfile.ZipInfo(part), content)

    raw(saved, edit)
    refused(saved, "an unknown part")


def test_two_parts_of_one_name_are_refused(saved):
    def edit(archive, parts):
        for part, content in parts.items():
            archive.writestr(part, content)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(SCHEMA, b"{}")

    raw(saved, edit)
    refused(saved, "two of its parts have the same name")


def test_overlapping_parts_are_refused(saved):
    # A thousand entries that all point at the same megabyte.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("1.npy", bytes(10**6))
        first = archive.infolist()[0]
        for number in range(2, 1000):
            entry = zipfile.ZipInfo(f"{number}.npy")
            for field in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(entry, field, getattr(first, field))
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
        archive._didModify = True
    saved.write_bytes(buffer.getvalue())
    refused(saved, "claim to be larger than the file")


def array_bytes(shape="(3,)", kind="<f8", content=bytes(24)):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    length = len(header) + 1
    return (
        b"\x93NUMPY\x01\x00"
        + length.to_bytes(2, "little")
        + header.encode()
        + b"\n"
        + content
    )


@pytest.mark.parametrize(
    "content",
    [
        array_bytes("(10000000000000,)"),
        array_bytes("(2, 1000000000000)"),
        array_bytes("(4,)"),
        array_bytes("(2,)"),
        array_bytes("(-3,)"),
        array_bytes("(3, -1, -1)"),
        array_bytes("(1000000000000,)", "|S0", b""),
        array_bytes("(1000000000000,)", "|V0", b""),
        array_bytes("(3,)", "|O"),
        array_bytes("'x'"),
        array_bytes("(3,)", "no type"),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"\x93NUMPY",
        b"",
        b"\x80\x04.",
    ],
    ids=lambda content: str(content[10:70]),
)
def test_an_array_has_the_size_it_claims(content, saved, forge):
    with zipfile.ZipFile(saved) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".npy"))
    refused(forge(saved, members={name: content}), f"its part {name}")


@pytest.mark.parametrize("number", [0, 1, None, "1", [1]])
def test_objects_are_not_numbered(number, saved, forge):
    # skops would take two nodes of one number for one object: a list of itself, or of
    # two lists of two lists of two lists, and so on.
    part = {**text(1), "__id__": number}
    refused(forge(saved, change=planted(part)), "has the number")


def test_a_plan_cannot_refer_to_itself(saved, forge):
    part = node("CachedNode", "builtins", "list")
    refused(forge(saved, change=planted(part)), "not trusted")


def test_only_arrays_are_shared(saved, forge):
    def change(schema):
        name = schema["content"]["content"]["observed_gap_"]["file"]
        inner = node("ListNode", "builtins", "list", content=[], file=name)
        outer = node("ListNode", "builtins", "list", content=[inner], file=name)
        planted(outer)(schema)

    refused(forge(saved, change=change), "is not an array")


def test_an_array_can_be_shared(saved, forge, model):
    def change(schema):
        planted(schema["content"]["content"]["observed_gap_"])(schema)

    back = load(forge(saved, change=change))
    assert back.planted is back.observed_gap_


def test_parts_that_nothing_uses_are_refused(saved, forge):
    refused(forge(saved, members={"987654.npy": array_bytes()}), "'987654.npy'")


def test_deep_plans_are_refused(saved, write):
    for depth in (500, 100_000):
        deep = "[" * depth + "]" * depth
        plan = f'{{"protocol": 2, "content": {deep}}}'.encode()
        write(saved, ABOUT, {SCHEMA: plan})
        with pytest.raises(ModelFileError):
            load(saved)


def test_a_sparse_part_cannot_hide_a_bomb(data, tmp_path, forge):
    path = tmp_path / "m.skops"
    X, labels = data
    save(NaiveClassifier().fit(csr_matrix(X), labels), path)
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".npz"))
    for content, why in (
        (_npz(np.zeros(10**6), compressed=True), "is compressed"),
        (b"PK", "is damaged"),
        (_zip_of("data.npy", array_bytes("(10000000000000,)")), "claims an array"),
    ):
        refused(forge(path, members={name: content}), why)


def _npz(array, *, compressed):
    buffer = io.BytesIO()
    save_npz(buffer, csr_matrix(array), compressed=compressed)
    return buffer.getvalue()


def _zip_of(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def test_a_header_cannot_be_missing_or_hold_wrong_digests(saved):
    def edit(archive, parts):
        header = json.loads(parts[HEADER])
        header["sha256"].pop(SCHEMA)
        for part, content in {**parts, HEADER: json.dumps(header)}.items():
            archive.writestr(part, content)

    raw(saved, edit)
    refused(saved, "lists other parts than it has")


def test_a_refusal_needs_no_memory(saved, forge):
    with zipfile.ZipFile(saved) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".npy"))
    forge(saved, members={name: array_bytes("(10000000000,)")})
    tracemalloc.start()
    refused(saved, "claims an array")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 * saved.stat().st_size
