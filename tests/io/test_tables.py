"""The pipeline of a table, saved and read in another process."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline

from probgap import PGPUClassifier
from probgap.exceptions import ModelFileError
from probgap.io import load, save

tables = pytest.importorskip("probgap.tables")


@pytest.fixture(scope="module")
def fitted(frame, data):
    table = frame.assign(label=np.where(data[1] == 1, "yes", ""))
    step = tables.make_preprocessor(tables.plan_columns(table, label="label"))
    return make_pipeline(step, PGPUClassifier(random_state=0)).fit(frame, data[1])


def test_a_tables_pipeline_is_trusted_and_comes_back(fitted, frame, tmp_path):
    save(fitted, tmp_path / "m.skops")
    back = load(tmp_path / "m.skops")
    strange = frame.assign(colour="new", words="never read", b=np.nan)
    for table in (frame, frame[frame.columns[::-1]], strange):
        assert_array_equal(back.predict_proba(table), fitted.predict_proba(table))


def test_another_process_predicts_the_same(fitted, frame, tmp_path):
    save(fitted, tmp_path / "m.skops")
    frame.to_pickle(tmp_path / "frame.pkl")
    script = (
        "import sys, numpy, pandas\n"
        "from probgap.io import load\n"
        "frame = pandas.read_pickle(sys.argv[2])\n"
        "numpy.save(sys.argv[3], load(sys.argv[1]).predict_proba(frame))\n"
    )
    places = [str(tmp_path / name) for name in ("m.skops", "frame.pkl", "out.npy")]
    subprocess.run([sys.executable, "-c", script, *places], check=True, timeout=120)
    assert_array_equal(np.load(places[2]), fitted.predict_proba(frame))


def test_a_table_classifier_comes_back_and_serves_the_command(
    frame, data, probgap, tmp_path
):
    model = tables.TableClassifier(drop=["b"], random_state=0).fit(frame, data[1])
    path, table = tmp_path / "m.skops", tmp_path / "table.csv"
    save(model, path)
    back = load(path)
    assert back.plan_ == model.plan_
    assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))
    frame.to_csv(table, index=False)
    said = probgap("predict", path, table)
    assert said.exit_code == 0, said.stderr
    assert len(said.stdout.splitlines()) == len(frame) + 1


def test_a_function_that_writes_cannot_be_a_step(fitted, frame, data, tmp_path):
    from sklearn.preprocessing import FunctionTransformer  # noqa: PLC0415

    step = FunctionTransformer(tables.write_csv)
    harmful = make_pipeline(fitted[0], step, fitted[1])
    save(harmful, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"not trusted: probgap.tables.*write_csv"):
        load(tmp_path / "m.skops")
