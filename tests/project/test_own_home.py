"""The tests themselves: they leave nothing with the user, and only those with the mark `mnist` have
MNIST, from where it is said to be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KEEPING = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "KERAS_HOME")
ASKING = """
import os, pathlib, pytest, matplotlib
from tflab.datasets import files

def test_of_other_data():
    print("without the mark", os.environ.get("TFLAB_DATA_DIR"))

def test_what_matplotlib_and_tflab_keep_is_in_the_home():
    for folder in (matplotlib.get_configdir(), files.cache_folder("kept")):
        assert pathlib.Path.home() in pathlib.Path(folder).parents
    (pathlib.Path.home() / "kept").touch()

@pytest.mark.mnist
def test_of_mnist():
    print("with the mark", os.environ.get("TFLAB_DATA_DIR"))
"""


def run_tests(folder: Path, *arguments: str, **environment: str) -> str:
    """What a run of tests prints that passes in this folder and environment."""
    inherited = {name: value for name, value in os.environ.items() if name != "TFLAB_DATA_DIR"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


@pytest.fixture
def repository(tmp_path):
    """A small repository with the settings of this one, and a folder for MNIST beside it."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/levels.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests" / "test_asking.py").write_text(ASKING)
    (tmp_path / "shared" / "mnist").mkdir(parents=True)
    return folder


def test_tests_leave_nothing_in_the_home_of_their_user_and_skip_mnist_that_nobody_gives(
    repository, tmp_path
):
    home = tmp_path / "home"
    home.mkdir()
    chosen = {name: str(home / name) for name in KEEPING}
    printed = run_tests(repository, "-rs", "-s", "-v", CI="true", HOME=str(home), **chosen)
    assert [*home.rglob("*")] == []
    assert "without the mark None\n" in printed
    assert "2 passed, 1 skipped" in printed
    (reason,) = (line for line in printed.splitlines() if line.startswith("SKIPPED"))
    assert reason.endswith(
        ": This wants MNIST: set TFLAB_DATA_DIR to a folder with its four files."
    )


@pytest.mark.thorough
def test_what_wants_mnist_runs_where_it_is_said_to_be(repository):
    printed = run_tests(repository, "-rs", "-s", TFLAB_DATA_DIR="../shared/mnist")
    assert f"with the mark {repository.parent / 'shared' / 'mnist'}\n" in printed
    assert "without the mark None\n" in printed
    assert "SKIPPED" not in printed
