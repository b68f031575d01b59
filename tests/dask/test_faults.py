"""A worker that dies, and files that are not what they should be."""

import os
import signal
import subprocess
import sys
from threading import Timer

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

from probgap.dask import PGPUClassifier, _classifier, read_parquet
from probgap.exceptions import InvalidInputError
from probgap.tables import _parquet as pieces

NAMES = list("abcd")


@pytest.fixture
def folder(table, tmp_path):
    """Three files, each of two blocks."""
    X, _, s = table
    frame = pd.DataFrame(X, columns=NAMES).assign(flagged=s)
    for k in range(3):
        part = frame.iloc[500 * k : 500 * (k + 1)]
        part.to_parquet(tmp_path / f"part-{k}.parquet", row_group_size=250)
    return tmp_path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setitem(pieces.list_row_groups.__kwdefaults__, "max_rows", 300)


def fit(folder):
    frame = read_parquet(str(folder / "*.parquet"))
    model = PGPUClassifier(random_state=0, max_memory=8 * 4 * 1200)
    return model.fit(frame[NAMES], frame["flagged"]), frame[NAMES]


def test_a_worker_that_is_killed_changes_nothing(folder, monkeypatch):
    undisturbed, frame = fit(folder)
    expected = undisturbed.predict_proba(frame).compute()
    killed = []
    draw = _classifier.draw_sample
    with (
        dask.config.set({"scheduler": None}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):

        def kill_one(*arguments):
            killed.append(min(client.run(os.getpid).values()))
            Timer(0.05, os.kill, (killed[0], signal.SIGKILL)).start()
            return draw(*arguments)

        monkeypatch.setattr(_classifier, "draw_sample", kill_one)
        model, frame = fit(folder)
        assert_array_equal(model.sample_rows_, undisturbed.sample_rows_)
        assert_array_equal(model.model_.posterior_, undisturbed.model_.posterior_)
        assert model.boundary_ == undisturbed.boundary_
        lazy = model.predict_proba(frame)
        killed.append(min(client.run(os.getpid).values()))
        Timer(0.05, os.kill, (killed[1], signal.SIGKILL)).start()
        assert_array_equal(lazy.compute(), expected)
        assert not set(killed) & set(client.run(os.getpid).values())


def test_files_become_blocks_in_the_order_of_their_names(folder, table, monkeypatch):
    frame = read_parquet(str(folder))
    assert frame.npartitions == 6
    assert_array_equal(frame[NAMES].compute().to_numpy(), table[0])
    some = read_parquet([str(folder / "part-1.parquet")], columns=["b"])
    assert_array_equal(some.compute()["b"], table[0][500:1000, 1])
    monkeypatch.setitem(pieces.list_row_groups.__kwdefaults__, "max_rows", 1000)
    assert read_parquet(str(folder)).npartitions == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"nan in column 'c', row 301 of .*part-1.parquet \(rows 251 to 500\)"),
        (
            "many",
            r"'many' in column 'c', row 301 of .*part-1.parquet \(rows 251 to 500\)",
        ),
    ],
)
def test_a_bad_value_is_named_by_file_and_row(folder, value, message):
    path = folder / "part-1.parquet"
    frame = pd.read_parquet(path)
    if isinstance(value, str):
        frame["c"] = frame["c"].astype(str)
    frame.loc[frame.index[300], "c"] = value
    frame.to_parquet(path, row_group_size=250)
    with pytest.raises(InvalidInputError, match=message):
        fit(folder)


def test_files_that_are_none_are_refused(folder):
    with pytest.raises(InvalidInputError, match=r"which names none"):
        read_parquet(str(folder / "*.csv"))
    pd.DataFrame({"a": [1.0]}).to_parquet(folder / "part-2.parquet")
    with pytest.raises(InvalidInputError, match=r"none named 'b' in .*part-2.parquet"):
        read_parquet(str(folder))
    with pytest.raises(InvalidInputError, match="none named 'z'"):
        read_parquet(str(folder), columns=["z"])
    (folder / "part-2.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidInputError, match="must be a whole Parquet file"):
        read_parquet(str(folder))


def test_without_dask_one_sentence_says_what_to_install():
    script = "import sys; sys.modules['dask'] = None; import probgap.dask"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert "dask must be installed" in last
    assert "pip install 'probgap[dask]'" in last
