"""Folding: sentences, commands and help are no wider than the terminal, and lose nothing."""

import shlex
from contextlib import suppress

import pytest

from tflab import __main__
from tflab.__main__ import COMMANDS
from tflab.cli import folding

PATH = "/srv/somebody/with/a/rather/long/name/of/a/folder/runs/lenet-20260101-120000"


def test_a_line_that_fits_stays_and_another_goes_on_further_to_the_right():
    text = "The measurement is here.\n\n  The model has a batch size of its own."
    assert folding.fold(text, 24) == (
        "The measurement is here.\n\n  The model has a batch\n    size of its own."
    )
    assert folding.fold(text, 0) == text


def test_a_name_that_is_longer_than_a_line_is_cut_and_whole():
    lines = folding.fold(f"tflab: There is no file '{PATH}'.", 30).split("\n")
    assert max(map(len, lines)) == 30
    assert PATH in "".join(line.strip() for line in lines)


def test_a_command_of_several_lines_is_one_for_a_shell(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    folding.say_command(
        "\nOpen it in TensorBoard:", "tensorboard --logdir runs/toy-20260101-120000"
    )
    about, first, second = capsys.readouterr().out.strip().split("\n")
    assert about == "Open it in TensorBoard:"
    assert shlex.split(f"{first}\n{second}".replace("\\\n", "")) == [
        *("tensorboard", "--logdir", "runs/toy-20260101-120000")
    ]
    line = f"tensorboard --logdir {PATH}"
    folding.say_command("Open it:", line)
    about, *lines = capsys.readouterr().out.strip().split("\n")
    assert max(map(len, lines)) <= 40
    assert "\n".join(lines).replace("\\\n", "") == line
    monkeypatch.setenv("COLUMNS", "100")
    folding.say_command("Open it:", "tensorboard --logdir runs/toy")
    assert capsys.readouterr().out == "Open it:  tensorboard --logdir runs/toy\n"


def test_in_a_file_nothing_is_folded(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    folding.say(f"The plots are in {PATH}{PATH}")
    assert capsys.readouterr().out == f"The plots are in {PATH}{PATH}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_no_wider_than_the_terminal_and_has_every_word(command, monkeypatch, capsys):
    def help_of(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        with suppress(SystemExit):
            __main__.main([*filter(None, [command]), "--help"])
        return capsys.readouterr().out

    wide = help_of(200)
    assert len(wide.splitlines()) > 5
    for columns in (40, 63):
        narrow = help_of(columns)
        assert max(map(len, narrow.splitlines())) <= columns
        assert "".join(wide.split()) == "".join(narrow.split())
