"""The tests themselves: they leave nothing with the user, and have MNIST only from where it is said
to be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# Together they draw plots, import Keras, and open a page.
REPRESENTATIVE = (
    "tests/exporters/plots/test_plots.py::test_an_svg_can_stand_in_a_page",
    "tests/saved_graphs/test_build.py::test_a_function_that_returns_a_keras_model_is_a_model",
    "tests/browser/test_chart.py::"
    "test_every_event_is_taken_in_and_every_arrow_fastened_to_its_runs",
)
KEEPING = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "KERAS_HOME")
ASKING = """
import os, pytest

def test_where_mnist_is():
    print("MNIST is in", os.environ.get("TFLAB_DATA_DIR"))

@pytest.mark.mnist
def test_of_mnist():
    pass
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


def test_a_run_of_tests_leaves_nothing_in_the_home_of_its_user(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    chosen = {name: str(home / name) for name in KEEPING}
    run_tests(ROOT, f"--basetemp={tmp_path / 'run'}", *REPRESENTATIVE, HOME=str(home), **chosen)
    assert [*home.rglob("*")] == []


@pytest.fixture
def repository(tmp_path):
    """A small repository with the settings of this one, and a folder for MNIST beside it."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests" / "test_asking.py").write_text(ASKING)
    (tmp_path / "shared" / "mnist").mkdir(parents=True)
    return folder


def test_what_wants_mnist_is_skipped_where_nobody_says_where_it_is(repository):
    printed = run_tests(repository, "-rs", "-s", "-v", CI="true")
    assert "MNIST is in None\n" in printed
    assert "1 passed, 1 skipped" in printed
    (reason,) = (line for line in printed.splitlines() if line.startswith("SKIPPED"))
    assert reason.endswith(
        ": This wants MNIST: set TFLAB_DATA_DIR to a folder with its four files."
    )


def test_what_wants_mnist_runs_where_it_is_said_to_be(repository):
    printed = run_tests(repository, "-rs", "-s", TFLAB_DATA_DIR="../shared/mnist")
    assert f"MNIST is in {repository.parent / 'shared' / 'mnist'}\n" in printed
    assert "SKIPPED" not in printed
