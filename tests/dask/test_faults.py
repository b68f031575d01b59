"""A worker that dies, and files that are not what they should be."""

import os
import signal
import subprocess
import sys

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from probgap.dask import PGPUClassifier, read_parquet
from probgap.exceptions import InvalidInputError

NAMES = list("abcd")


@pytest.fixture
def folder(table, tmp_path):
    """Write six files, a block each."""
    X, _, s = table
    frame = pd.DataFrame(X, columns=NAMES).assign(flagged=s)
    for k in range(6):
        part = frame.iloc[250 * k : 250 * (k + 1)]
        part.to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    return tmp_path


def fit(frame):
    model = PGPUClassifier(
        gap_estimator=LogisticRegression(),
        estimator=LogisticRegression(),
        max_memory=8 * 4 * 1200,
        random_state=0,
    )
    return model.fit(frame[NAMES], frame["flagged"])


def dying(frame, marker):
    """Let the worker that is the first to read a block be killed."""
    here = os.getpid()

    def read(part):
        if os.getpid() != here and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    return frame.map_partitions(read, meta=frame._meta)


@pytest.fixture
def forked():
    """Load libraries once for all workers: four are started, two of them anew."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(method):
        get_mp_context().set_forkserver_preload(["distributed", "probgap.dask"])
        yield


@pytest.mark.usefixtures("forked")
def test_a_worker_that_is_killed_changes_nothing(folder):
    undisturbed = fit(read_parquet(str(folder / "*.parquet")))
    expected = undisturbed.predict_proba(read_parquet(str(folder))[NAMES]).compute()
    markers = [folder / "in fit", folder / "in predict"]
    with (
        dask.config.set({"scheduler": None}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        frame = read_parquet(str(folder / "*.parquet"))
        model = fit(dying(frame, markers[0]))
        assert_array_equal(model.sample_rows_, undisturbed.sample_rows_)
        assert_array_equal(model.model_.posterior_, undisturbed.model_.posterior_)
        assert model.boundary_ == undisturbed.boundary_
        lazy = model.predict_proba(dying(frame[NAMES], markers[1]))
        assert_array_equal(lazy.compute(), expected)
        killed = {int(marker.read_text()) for marker in markers}
        assert len(killed) == 2
        assert not killed & set(client.run(os.getpid).values())


def test_files_become_blocks_in_the_order_of_their_names(folder, table):
    frame = read_parquet(str(folder))
    assert frame.npartitions == 6
    assert_array_equal(frame[NAMES].compute().to_numpy(), table[0])
    some = read_parquet([str(folder / "part-1.parquet")], columns=["b"])
    assert_array_equal(some.compute()["b"], table[0][250:500, 1])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"nan in column 'c', row 201 of .*part-1.parquet \(rows 1 to 250\)"),
        ("many", r"'many' in column 'c', row 201 of .*part-1.parquet \(rows 1 to 250"),
    ],
)
def test_a_bad_value_is_named_by_file_and_row(folder, value, message):
    path = folder / "part-1.parquet"
    frame = pd.read_parquet(path)
    if isinstance(value, str):
        frame["c"] = frame["c"].astype(str)
    frame.loc[200, "c"] = value
    frame.to_parquet(path, index=False)
    with pytest.raises(InvalidInputError, match=message):
        fit(read_parquet(str(folder)))


def test_files_that_are_none_are_refused(folder):
    with pytest.raises(InvalidInputError, match=r"has no Parquet files"):
        read_parquet(str(folder / "*.csv"))
    pd.DataFrame({"a": [1.0]}).to_parquet(folder / "part-2.parquet")
    with pytest.raises(InvalidInputError, match=r"part-2.parquet has no column 'b'"):
        read_parquet(str(folder))
    with pytest.raises(InvalidInputError, match="no column 'z'"):
        read_parquet(str(folder), columns=["z"])
    (folder / "part-2.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidInputError, match="truncated or damaged Parquet file"):
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
