"""``probgap demo``: hide labels of a real table, and find them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli._output import check_folder, check_libraries, write_folder
from probgap.cli._terminal import plain_errors

if TYPE_CHECKING:
    import pandas as pd

    from probgap._core.types import Mask

TABLE = "tumours.csv"
RESULTS = "results"
_LABEL, _ID = "malignant", "tumour"
_SEED = 0
_OUT = "Folder for the table and the results."


def demo(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help=_OUT)] = Path("probgap-demo"),
    force: given.Force = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Try it on a real table: 569 tumours, with only the clearest cancers labelled.

    Hides most labels of the breast cancer data that scikit-learn ships, the unclear cases
    first, writes the table as a CSV file, runs probgap fit on it, and compares with the
    truth, which fit has not seen. Offline, in less than half a minute.
    """
    with plain_errors(debug=debug):
        check_folder(out, (TABLE, RESULTS), force=force)
        check_libraries()
        from probgap.cli._table import Options
        from probgap.cli.fit import fit_into
        from probgap.tables import write_csv

        table, truth = make_table()
        write_folder(out, {TABLE: lambda path: write_csv(table, path)})
        path, results = out / TABLE, out / RESULTS
        command = f"probgap fit {path} --label {_LABEL} --id {_ID} --out {results}"
        n_labelled, n_true = int((table[_LABEL] == "yes").sum()), int(truth.sum())
        if not quiet:
            typer.echo(
                f"{path}: 30 measurements of {len(table)} tumours. {n_true} are "
                f"malignant, but only {n_labelled},\nmostly the clearest, are labelled; "
                f"{n_true - n_labelled} are hidden among the unlabelled.\n"
            )
            typer.echo(f"$ {command}\n")
        options = Options(str(path), _LABEL, id=_ID, seed=_SEED, command=command)
        found = fit_into(results, options, force=True, shown=not quiet)
        if not quiet:
            typer.echo("\n" + _verdict(found.ranked, table, truth))


def make_table() -> tuple[pd.DataFrame, Mask]:
    """Return the table with hidden labels, and the truth."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    from probgap.datasets import hide_labels, platt_gap

    data = load_breast_cancer(as_frame=True)
    malignant = (data.target == 0).to_numpy()
    samples = StandardScaler().fit_transform(data.data.to_numpy())
    gap = platt_gap(samples, malignant.astype(int), random_state=_SEED)
    labelled = hide_labels(
        samples,
        malignant.astype(int),
        gap,
        # A clear case is labelled with probability 0.6, an unclear one hardly ever.
        lambda gap: 1.0 - 0.6 * np.clip(gap, 0.0, 1.0) ** 2,
        random_state=_SEED + 1,
    )
    table = data.data.copy()
    table.insert(0, _ID, [f"T-{i:03}" for i in range(1, len(table) + 1)])
    table[_LABEL] = np.where(labelled == 1, "yes", "")
    return table, malignant


def _verdict(scores: pd.DataFrame, table: pd.DataFrame, truth: Any) -> str:
    """Compare with the truth, and with a classifier that reads unlabelled as negative."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    labelled = (table[_LABEL] == "yes").to_numpy()
    samples = table.drop(columns=[_ID, _LABEL]).to_numpy()
    naive = make_pipeline(StandardScaler(), SVC(random_state=_SEED))
    called = {
        "unlabelled taken for negative": naive.fit(samples, labelled).predict(samples),
        "probgap": (scores.sort_values("row")["predicted_label"] == "yes").to_numpy(),
    }
    hidden = truth & ~labelled
    lines = [f"Against the truth{'':14}{'hidden found':>16}{'false alarms':>16}"]
    for name, positive in called.items():
        found = f"{int((positive & hidden).sum())} of {int(hidden.sum())}"
        alarms = int((positive & ~truth).sum())
        lines.append(f"{name:31}{found:>16}{alarms:>16}")
    return "\n".join(lines)
