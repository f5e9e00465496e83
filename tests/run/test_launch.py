"""Bad input is refused with what would be right."""

from pathlib import Path

import pytest

from tflab.run import __main__ as run
from tflab.run import launch


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("package").mkdir()
    for name in ("train.py", "notes.ipynb", "package/__main__.py"):
        Path(name).touch()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x/y.py"], "There is no script 'x/y.py'; give the name of a Python file, as seen from"),
        (["empty"], "'empty' is a folder without a __main__.py; give a Python file."),
        (["notes.ipynb"], "is a notebook; convert it to a Python file: jupyter nbconvert --to"),
        ([], "There is no program to run; give the name of a Python file."),
        (["-m"], "There is no program to run; give the name of a Python file."),
        (["--overhead", "101", "train.py"], "has to be a percentage from 0 to 100."),
        (["--steps", "0", "train.py"], "it has to be a whole number of at least 1."),
    ],
)
def test_bad_input_is_a_sentence(words, sentence, capsys):
    assert run.main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err


@pytest.mark.parametrize("program", ["train.py", "package", "-m", "-"])
def test_what_python_can_run_is_not_refused(program):
    launch.check(program)
