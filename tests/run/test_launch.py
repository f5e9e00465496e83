"""What is no script is refused with what would be right."""

from pathlib import Path

import pytest

from tflab.errors import UsageError
from tflab.run import launch


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("package").mkdir()
    for name in ("train.py", "notes.ipynb", "package/__main__.py"):
        Path(name).touch()


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("x/y.py", "There is no script 'x/y.py'; give the name of a Python file, as seen from"),
        ("empty", "'empty' is a folder without a __main__.py; give a Python file."),
        (
            "notes.ipynb",
            "'notes.ipynb' is a notebook; convert it to a Python file: jupyter nbconvert",
        ),
    ],
)
def test_what_is_no_script_is_refused(program, sentence):
    with pytest.raises(UsageError) as refused:
        launch.check(program)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("program", ["train.py", "package", "-m", "-"])
def test_what_python_can_run_is_not_refused(program):
    launch.check(program)
