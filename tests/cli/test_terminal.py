"""Terminal: sentences, commands and help are no wider than it, and lose nothing; progress."""

import io
import sys
from contextlib import suppress

import pytest

from tests.commands import Terminal
from tflab import __main__
from tflab.__main__ import COMMANDS
from tflab.cli import terminal
from tflab.cli.command import prepare_streams

PATH = "/srv/somebody/with/a/rather/long/name/of/a/folder/runs/lenet-20260101-120000"


def test_a_line_that_fits_stays_and_another_goes_on_further_to_the_right():
    text = "The measurement is here.\n\n  The model has a batch size of its own."
    assert terminal.fold(text, 24) == (
        "The measurement is here.\n\n  The model has a batch\n    size of its own."
    )
    assert terminal.fold(text, 0) == text
    lines = terminal.fold(f"tflab: There is no file '{PATH}'.", 30).split("\n")
    assert max(map(len, lines)) == 30
    assert PATH in "".join(line.strip() for line in lines)  # a name is cut, and whole


def test_a_command_that_does_not_fit_is_whole_on_a_line_of_its_own(monkeypatch, capsys):
    line = f"tensorboard --logdir {PATH}"
    for columns, joined in (("32", "\n"), ("200", "  ")):
        monkeypatch.setenv("COLUMNS", columns)
        terminal.say_command("Open it:", line)
        assert capsys.readouterr().out == f"Open it:{joined}{line}\n"


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


# Streams


@pytest.mark.parametrize(
    "encoding, printed", [("utf-8", "├─● é日?"), ("ascii", "??? ???"), ("gbk", "├─● é日?")]
)
def test_what_the_encoding_lacks_is_a_question_mark(monkeypatch, encoding, printed):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_streams()
    print("├─● é日\udc80", end="")
    assert stream.buffer.getvalue().decode(encoding) == printed


# Progress


def waited(stream: io.StringIO, text: str, seconds: float = 5) -> str:
    """What is in the stream as soon as this text is, or when the time is over."""
    deadline = terminal.time.monotonic() + seconds
    while text not in stream.getvalue() and terminal.time.monotonic() < deadline:
        terminal.time.sleep(0.01)
    return stream.getvalue()


def watch(monkeypatch, stream: io.StringIO, patience: float) -> list[str]:
    """What is on stderr while each of two items is worked on."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(terminal, "PATIENCE_S", patience)
    monkeypatch.setattr(sys, "stderr", stream)
    seconds = 0.02 if patience or not stream.isatty() else 5
    return [
        waited(stream, f"at {item}", seconds)
        for item in terminal.track("working", ["one", "two"], 2, lambda item: f"at {item}")
    ]


@pytest.mark.parametrize(
    ("done", "total", "past", "budget", "said"),
    [
        (1, 4, 2.0, 0, ", about 6 s left"),
        (3, 4, 30.0, 0, ", about 10 s left"),
        (0, 4, 30.0, 0, ""),  # unknown
        (3, 0, 30.0, 0, ""),
        (1, 4, 1.0, 0, ""),  # short
        (4, 4, 30.0, 0, ""),
        (0, 4, 20.0, 300, ", about 280 s left"),
        (1, 4, 10.0, 300, ", about 30 s left"),
        (2, 8, 90.0, 300, ", about 210 s left"),
        (2, 4, 400.0, 300, ""),  # the budget is over
    ],
)
def test_the_time_left_of_a_phase_is_in_proportion_to_what_is_left_of_it_up_to_its_budget(
    done, total, past, budget, said
):
    start = terminal.time.monotonic() - past
    phase = terminal.Phase("steps", total, budget_s=budget, done=done, start=start)
    assert phase.left() == said


@pytest.mark.slow
def test_a_terminal_shows_what_is_worked_on_from_the_first_item_on(monkeypatch):
    first, second = watch(monkeypatch, Terminal(), 0)
    assert "working: at one" in first and "at two" not in first
    assert "working: at two" in second


@pytest.mark.parametrize(("stream", "patience"), [(Terminal, 60), (io.StringIO, 0)])
def test_what_is_over_soon_draws_no_bar_and_a_file_gets_nothing_of_it(
    monkeypatch, stream, patience
):
    assert "working" not in "".join(watch(monkeypatch, stream(), patience))


def test_a_command_that_counts_its_phases_is_done_by_parts(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with terminal.phase("lenet"):
        assert terminal.share_done() is None
    shares = []
    with terminal.phase("lenet", 4, whole=True):
        with terminal.phase("frontend"):
            shares.append(terminal.share_done())
        shares.append(terminal.share_done())
        with terminal.phase("execution"):
            shares += [terminal.share_done() for _ in terminal.track("steps", "ab", 2)]
        shares.append(terminal.share_done())
    assert shares == [0, 0.25, 0.25, 0.375, 0.5]


@pytest.mark.slow
def test_one_bar_shows_all_phases_of_a_command_which_prints_between_them(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "PATIENCE_S", 0)
    with terminal.phase("lenet", 2, whole=True):
        assert stream.getvalue() == ""
        with terminal.phase("frontend"):
            assert "frontend" in waited(stream, "frontend")
            with terminal.phase("inner"):
                assert stream.getvalue().count("\x1b[?25l") == 1  # the cursor is hidden once
                assert "inner" in waited(stream, "inner")
        assert stream.getvalue().count("\x1b[?25h") == 1  # and shown for what is printed
