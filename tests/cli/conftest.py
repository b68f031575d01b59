"""Tables as people have them, and the command line as they type it."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from probgap.cli import fit


def make_frame(n=240, seed=0):
    """Numbers, a category, text, a date, a constant; labels on the clearest positives."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    strength = rng.normal(size=n) + 2.0 * truth
    chance = np.clip(0.9 * (strength - 0.5) / 3.0, 0.05, 0.9) * truth
    words = np.where(truth, "late payment again", "all paid in time")
    return pd.DataFrame(
        {
            "case": [f"C-{i:04}" for i in range(1, n + 1)],
            "strength": strength.round(4),
            "noise": rng.normal(size=n).round(4),
            "colour": rng.choice(["red", "green", "blue"], n),
            "remark": [f"{w} {rng.integers(100)}" for w in words],
            "opened": pd.date_range("2024-01-01", periods=n).astype(str),
            "country": "NL",
            "found": np.where(rng.random(n) < chance, "yes", ""),
            "audited": np.where(truth, "yes", "no"),
        }
    )


@pytest.fixture(scope="session")
def cases():
    return make_frame()


@pytest.fixture(scope="session")
def table(cases, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "cases.csv"
    cases.drop(columns="audited").to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def fitted(table, probgap, tmp_path_factory):
    """A run of fit, with what it printed."""
    pytest.importorskip("jinja2")
    out = tmp_path_factory.mktemp("fitted") / "results"
    result = probgap("fit", table, "--label", "found", "--id", "case", "--out", out)
    assert result.exit_code == 0, result.stderr
    return SimpleNamespace(
        out=out, table=table, printed=result.stdout, said=result.stderr
    )


@pytest.fixture(scope="session")
def start():
    """Start the command as a process of its own, in a session of its own."""

    def run(*words, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "probgap", *map(str, words)],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
            text=True,
            start_new_session=True,
        )

    return run


def make_small(*without, rows=32, **columns):
    """An id, a number, a category and the label; other columns or cells on request."""
    rng = np.random.default_rng(0)
    positive = np.arange(rows) % 3 == 0
    frame = pd.DataFrame(
        {
            "case": [f"c{i}" for i in range(rows)],
            "size": (rng.normal(size=rows) + 2.0 * positive).round(3).astype(object),
            "colour": np.where(rng.random(rows) < 0.5 + 0.3 * positive, "red", "blue"),
            "found": np.where(np.arange(rows) % 6 == 0, "yes", ""),
        }
    ).drop(columns=list(without))
    for name, cells in columns.items():
        if isinstance(cells, dict):
            frame.loc[list(cells), name] = list(cells.values())
        else:
            frame[name] = cells
    return frame


@pytest.fixture(scope="session")
def good():
    """A small table that works, as a frame, as CSV and as Parquet."""

    def csv(*without, **columns):
        return make_small(*without, **columns).to_csv(index=False)

    def parquet(*without, **columns):
        buffer = io.BytesIO()
        make_small(*without, **columns).to_parquet(buffer, index=False)
        return buffer.getvalue()

    return SimpleNamespace(frame=make_small, csv=csv, parquet=parquet)


@pytest.fixture(scope="session")
def small(good, probgap, tmp_path_factory):
    """A fit to the small table, and what there was before its files were written."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "t.csv").write_text(good.csv())
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "analyse", keeping(found, fit.analyse))
        words = ("--label", "found", "--id", "case", "--out", folder / "out")
        result = probgap("fit", folder / "t.csv", *words)
    assert result.exit_code == 0, result.stderr
    return SimpleNamespace(analysis=found[0], out=folder / "out")


def keeping(found, function):
    def run(*arguments, **options):
        found.append(function(*arguments, **options))
        return found[-1]

    return run


@pytest.fixture
def place(small, good, tmp_path, monkeypatch):
    """The working folder of a command: a table t.csv, and run, a fit to it."""
    place = tmp_path / "place"
    (place / "tmp").mkdir(parents=True)
    (place / "t.csv").write_text(good.csv())
    shutil.copytree(small.out, place / "run")
    described = json.loads((place / "run" / "run.json").read_text())
    described["table"]["path"] = str(place / "t.csv")
    (place / "run" / "run.json").write_text(json.dumps(described))
    monkeypatch.chdir(place)
    monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
    return place


@pytest.fixture(scope="session")
def listing():
    """Tell all that is in a folder: names and contents."""

    def tell(folder):
        return {
            str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
            for path in folder.rglob("*")
        }

    return tell


@pytest.fixture(scope="session")
def is_one_sentence():
    """Check that one sentence was said, and that a person can act on it."""

    def check(said, part):
        assert "Traceback" not in said
        assert re.fullmatch(r"Error: .+[.?]\n", said), said
        assert part in said
        assert len(said) < 500

    return check


@pytest.fixture
def refuses(place, probgap, listing, is_one_sentence):
    """Check that a command gives exit code 1, one sentence, and leaves nothing."""

    def check(words, part):
        before = listing(place)
        result = probgap(*shlex.split(words), "--quiet", input=b"")
        is_one_sentence(result.stderr, part)
        assert (result.exit_code, result.stdout) == (1, "")
        assert listing(place) == before

    return check
