"""Check a wheel and an sdist: what is in them, and that they work once installed.

    python tools/check_dist.py dist

Each is installed in an environment of its own outside the checkout: the wheel with the
extra ``tool``, for the commands; the sdist without extras, for the library alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
FIT = """
import csv, sys, probgap
from probgap.datasets import hide_labels, make_square
assert probgap.__file__.startswith(sys.prefix), probgap.__file__
X, y, posterior = make_square(300, random_state=0)
labelled = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.4), random_state=1)
model = probgap.PGPUClassifier(random_state=0).fit(X, labelled)
share = (model.predict(X) == y).mean()
assert share > 0.85, share
print(f"{share:.0%} of 300 samples right, {model.estimate_.n_hidden:.0f} hidden")
with open("table.csv", "w", newline="") as file:
    csv.writer(file).writerows([("a", "b", "labelled"), *zip(*X.T, labelled)])
"""


def check_contents(wheel: Path, sdist: Path) -> None:
    """Compare the files of both with those that git tracks."""
    tracked = set(run("git", "ls-files", "src", cwd=ROOT).split())
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packed = {f"src/{name}" for name in names if ".dist-info/" not in name}
    assert packed == tracked, f"wheel and src differ in {sorted(packed ^ tracked)}"
    with tarfile.open(sdist) as archive:
        paths = [PurePosixPath(member.name) for member in archive if member.isfile()]
    inside = {str(path.relative_to(path.parts[0])) for path in paths}
    unknown = inside - set(run("git", "ls-files", cwd=ROOT).split()) - {"PKG-INFO"}
    assert not unknown, f"sdist has what is not tracked: {sorted(unknown)}"
    assert tracked | {"LICENSE", "CHANGELOG.md", "pyproject.toml"} <= inside


def try_installed(requirement: str, *, commands: bool) -> None:
    """Install into a fresh environment, and use it from a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "env"), with_pip=True)
        programs = Path(folder, "env", "Scripts" if os.name == "nt" else "bin")
        python, probgap = str(programs / "python"), str(programs / "probgap")
        run(python, "-m", "pip", "install", "--quiet", requirement, cwd=folder)
        print(run(probgap, "--version", cwd=folder).strip(), flush=True)
        print(run(python, "-c", FIT, cwd=folder).strip(), flush=True)
        if commands:
            fit = f"{probgap} fit table.csv --label labelled --out out --quiet"
            predict = f"{probgap} predict out/model.probgap table.csv --out scores.csv"
            run(*fit.split(), cwd=folder)
            run(*predict.split(), cwd=folder)
            n_rows = len(Path(folder, "scores.csv").read_text("utf-8").splitlines()) - 1
            page = Path(folder, "out", "report.html").read_text("utf-8")
            assert n_rows == 300, n_rows
            assert "<title>" in page
            print(f"a page; {n_rows} rows predicted")


def run(*command: str, cwd: Path | str) -> str:
    """Run a command with nothing of the checkout on its path; return what it printed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    (sdist,) = Path(sys.argv[1]).resolve().glob("*.tar.gz")
    check_contents(wheel, sdist)
    for file in (wheel, sdist):
        print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB", flush=True)
    try_installed(f"{wheel}[tool]", commands=True)
    try_installed(str(sdist), commands=False)
