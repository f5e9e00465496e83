"""Progress: a bar on a terminal once something has taken a while, and elsewhere not a byte."""

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


def test_where_nobody_watches_nothing_is_written(watch):
    assert watch(io.StringIO()) == ["", ""]


def test_all_items_are_passed_on():
    assert list(progress.track("working", iter("abc"), 3)) == ["a", "b", "c"]
