"""Plain: what an encoding does not have is printed in signs as wide."""

import io
import sys

import pytest

from tflab.cli import command


def output(monkeypatch, encoding: str) -> io.TextIOWrapper:
    """Make standard output one of this encoding."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    command.prepare_streams()
    return stream


@pytest.mark.parametrize(
    "encoding, printed",
    [
        ("utf-8", "├─● conv…é日?"),
        ("ascii", "+-* conv~e??"),
        ("latin-1", "+-* conv~é??"),
        ("gbk", "├─● conv…é日?"),
    ],
)
def test_what_the_encoding_has_stays_and_the_rest_is_plain(monkeypatch, encoding, printed):
    stream = output(monkeypatch, encoding)
    print("├─● conv…é日\udc80", end="")
    assert stream.buffer.getvalue().decode(encoding) == printed
    assert all(len(sign) == 1 and sign.isascii() for sign in command.SIGNS.values())


def test_a_stream_that_cannot_be_set_stays_as_it_is(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    command.prepare_streams()
    print("…", end="")
    assert stream.getvalue() == "…"


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_walk_with_a_closed_stream_is_no_failure(monkeypatch, name):
    from tflab.lifecycle import __main__ as lifecycle

    monkeypatch.setattr(sys, name, None)  # as `>&-` leaves it
    assert lifecycle.main(["--model", "toy", "--stage", "frontend"]) == 0


@pytest.mark.tensorflow
def test_a_walk_prints_in_ascii(monkeypatch):
    from tflab.lifecycle import __main__ as lifecycle

    stream = output(monkeypatch, "ascii")
    assert lifecycle.main(["--model", "toy", "--stage", "frontend"]) == 0
    text = stream.buffer.getvalue().decode("ascii")
    assert "Frontend: Python calls become nodes" in text
    assert "Placeholder" in text
