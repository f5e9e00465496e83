"""Progress: a bar on a terminal once something has taken a while, and elsewhere a line."""

import io
import sys

import pytest

from tflab.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def watch(monkeypatch):
    """`watch(stream)`: what is on stderr while the first item is worked on, and at the end."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    def drawn(stream: io.StringIO, patience: float = 0) -> list[str]:
        monkeypatch.setattr(progress, "PATIENCE_S", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        seen = []
        for item in progress.track("working", ["one", "two"], 2, lambda item: f"at {item}"):
            deadline = progress.time.monotonic() + 5
            while f"at {item}" not in stream.getvalue() and progress.time.monotonic() < deadline:
                progress.time.sleep(0.02)
                if patience or not stream.isatty():
                    break
            seen.append(stream.getvalue())
        return seen

    return drawn


@pytest.mark.slow
def test_a_terminal_shows_what_is_worked_on_from_the_first_item_on(watch):
    first, second = watch(Terminal())
    assert "working: at one" in first
    assert "at two" not in first
    assert "working: at two" in second


def test_what_is_over_soon_draws_no_bar(watch):
    assert "working" not in "".join(watch(Terminal(), patience=60))


def test_a_file_gets_nothing_of_what_is_over_soon(watch):
    assert watch(io.StringIO()) == ["", ""]


def waited(stream: io.StringIO, text: str) -> str:
    deadline = progress.time.monotonic() + 5
    while text not in stream.getvalue() and progress.time.monotonic() < deadline:
        progress.time.sleep(0.01)
    return stream.getvalue()


def test_a_file_gets_lines_of_the_innermost_phase(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "LINES_S", 0.01)
    with progress.phase("lenet"):
        waited(stream, "tflab: lenet: 0 s\n")
        for item in progress.track("steps", "ab", 2, lambda item: f"at {item}"):
            waited(stream, f"tflab: steps: at {item}: {'ab'.index(item)} of 2, 0 s\n")
        before = stream.getvalue()
        waited(stream, before + "tflab: lenet: 0 s\n")
    written = stream.getvalue()
    assert [*dict.fromkeys(written.splitlines())] == [
        "tflab: lenet: 0 s",
        "tflab: steps: at a: 0 of 2, 0 s",
        "tflab: steps: at b: 1 of 2, 0 s",
    ]
    assert progress.phases == []
    progress.time.sleep(0.05)
    assert stream.getvalue() == written  # the thread has ended


def test_between_two_lines_there_are_seconds(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "LINES_S", 0.04)
    start = progress.time.monotonic()
    with progress.phase("lenet"):
        for name in "abcdefghij":
            with progress.phase(name):
                progress.time.sleep(0.01)
    seconds = progress.time.monotonic() - start
    assert 1 <= len(stream.getvalue().splitlines()) <= seconds / 0.04


def test_all_items_are_passed_on():
    assert list(progress.track("working", iter("abc"), 3)) == ["a", "b", "c"]
