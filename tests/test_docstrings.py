"""Every public thing says what it gives, what it takes, and shows an example."""

import importlib.util
import inspect

import pytest

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")

MODULES = (
    "gap",
    "boundary",
    "relabel",
    "reweight",
    "pgpu",
    "methods",
    "priors",
    "datasets",
    "metrics",
    "model_selection",
    "audit",
    "diagnostics",
    "inspection",
    "tables",
    "reporting",
    "io",
    "plotting",
    "dask",
)
# Of a function, a class, or a method: its parts are there, complete and in order.
EXPECTED = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR04", "PR07"}
EXPECTED |= {"RT01", "RT03", "SS01", "SS03", "SS05", "SS06"}


def public_things():
    for name in MODULES:
        if name == "dask" and importlib.util.find_spec("dask") is None:
            continue
        module = importlib.import_module(f"probgap.{name}")
        for public in module.__all__:
            yield getattr(module, public)


def documented_things():
    public = list(public_things())
    for thing in public:
        if inspect.isfunction(thing) or hasattr(thing, "fit"):
            yield thing
        if inspect.isclass(thing):
            # What a method overrides is documented where it is public.
            said = {
                name
                for base in thing.__mro__[1:]
                if base in public
                for name in vars(base)
            }
            for name, method in inspect.getmembers(thing, inspect.isroutine):
                ours = str(getattr(method, "__module__", "")).startswith("probgap")
                if ours and not name.startswith("_") and name not in said:
                    yield method


def full_name(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


@pytest.mark.parametrize("thing", list(documented_things()), ids=full_name)
def test_docstrings_are_complete(thing):
    found = validate.validate(full_name(thing))["errors"]
    assert [error for error in found if error[0] in EXPECTED] == []


@pytest.mark.parametrize("thing", list(public_things()), ids=full_name)
def test_functions_and_estimators_show_an_example(thing):
    doc = inspect.getdoc(thing)
    assert doc
    if inspect.isfunction(thing) or hasattr(thing, "fit"):
        assert ">>> " in doc
