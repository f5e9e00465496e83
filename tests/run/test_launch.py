"""Bad input is refused with what would be right."""

from pathlib import Path

import pytest

from tests.approval import approve
from tflab.run import __main__ as run
from tflab.run import launch


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("package").mkdir()
    for name in ("train.py", "notes.ipynb", "package/__main__.py"):
        Path(name).touch()


WRONG = (
    "x/y.py",
    "empty",
    "notes.ipynb",
    "",
    "-m",
    "--overhead 101 train.py",
    "--steps 0 train.py",
    "--lines --html one.py",
)


def test_bad_input_is_a_sentence(capsys):
    said = []
    for line in WRONG:
        assert run.main(line.split()) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        said.append(f"run {line}\n  {err}")
    approve("run-refused.txt", "".join(said).replace(str(Path.cwd()), "FOLDER"))


@pytest.mark.parametrize("program", ["train.py", "package", "-m", "-"])
def test_what_python_can_run_is_not_refused(program):
    launch.check(program)
