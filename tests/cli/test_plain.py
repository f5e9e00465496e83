"""Streams: what an encoding does not have is printed as `?`, and a closed stream is no failure."""

import io
import sys

import pytest

from tflab.cli import command


@pytest.mark.parametrize(
    "encoding, printed", [("utf-8", "├─● é日?"), ("ascii", "??? ???"), ("gbk", "├─● é日?")]
)
def test_what_the_encoding_lacks_is_a_question_mark(monkeypatch, encoding, printed):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    command.prepare_streams()
    print("├─● é日\udc80", end="")
    assert stream.buffer.getvalue().decode(encoding) == printed


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_walk_with_a_closed_stream_is_no_failure(monkeypatch, name):
    from tflab.lifecycle import __main__ as lifecycle

    monkeypatch.setattr(sys, name, None)  # as `>&-` leaves it
    assert lifecycle.main(["--model", "toy", "--stage", "frontend"]) == 0
