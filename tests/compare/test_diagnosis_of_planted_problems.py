"""Diagnosis of models that run: of what was planted into each, the first sentence is about that."""

import inspect

import pytest

from tests import planted
from tests.commands import in_one_process
from tflab.compare import SweepOptions, compare_batch_sizes
from tflab.records.verdicts import Diagnosis

pytestmark = pytest.mark.tensorflow

BATCH_SIZE = 4  # 6 steps untraced, and 6 traced


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    """It counts as quiet, whatever else it does; no other process runs."""
    """Its peaks are given; no other process runs."""
    in_one_process(monkeypatch)


def diagnosed(build) -> tuple[Diagnosis, ...]:
    model = f"tests.planted:{build.__name__}"
    return compare_batch_sizes(model, (BATCH_SIZE,), SweepOptions(images=planted.IMAGES)).diagnosis


def line_of(build, text: str) -> str:
    """The line of a model function that has this text, as tables write it."""
    lines, first = inspect.getsourcelines(build)
    (number,) = (number for number, line in enumerate(lines, first) if text in line)
    return f"planted.py:{number}"


def test_useless_transposes_come_first_with_their_line():
    first, *_ = diagnosed(planted.useless_transposes)
    line = line_of(planted.useless_transposes, "# planted")
    assert first.kind == "movement"
    assert (
        f"is {line}, 10 ops of type _MklTranspose that only move or convert data" in first.sentence
    )
    assert "a call for 128 KiB read and written" in first.sentence


def test_small_ops_in_a_loop_come_first_with_its_turns():
    first, *_ = diagnosed(planted.small_ops_in_a_loop)
    assert first.kind == "small ops"
    assert "in a loop, where a node runs up to 101 times" in first.sentence
    assert ", mostly planted.py:" in first.sentence


def test_small_ops_one_by_one_come_first_with_their_line():
    first, *_ = diagnosed(planted.small_ops_one_by_one)
    line = line_of(planted.small_ops_one_by_one, "# planted")
    assert first.kind == "small ops"
    assert f"calls of small ops, mostly {line}: " in first.sentence


def test_a_feed_that_is_too_large_comes_first_with_its_bytes():
    first, *_ = diagnosed(planted.feed_too_large)
    assert first.kind == "feeds"
    assert "Each step is fed 16.0 MiB" in first.sentence


def test_a_wrong_data_format_comes_first_with_all_of_its_transposes():
    first, *_ = diagnosed(planted.wrong_data_format)
    assert first.kind == "format"
    forth = line_of(planted.wrong_data_format, "[0, 2, 3, 1]")
    back = line_of(planted.wrong_data_format, "[0, 3, 1, 2]")
    assert f"is 6 ops of type _MklTranspose at {forth}, {back} that only move the channels" in (
        first.sentence
    )


def test_one_op_on_the_chain_comes_first_with_its_name():
    first, *_ = diagnosed(planted.one_op_on_the_chain)
    assert first.kind == "one op"
    assert "is one op, planted" in first.sentence
    assert f"at {line_of(planted.one_op_on_the_chain, 'planted')}" in first.sentence


def test_of_a_model_without_a_problem_it_says_that_there_is_none():
    (only,) = diagnosed(planted.without_a_problem)
    assert (only.kind, only.cost_ns) == ("none", 0)
    assert only.sentence.startswith("No single cause stands out: of a median step at batch 4")
