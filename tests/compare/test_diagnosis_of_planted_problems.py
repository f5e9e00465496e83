"""Diagnosis of models that run: of what was planted into each, the first sentence is about that."""

import inspect
import re

import pytest

from tests import planted
from tests.commands import in_one_process
from tflab.compare import SweepOptions, compare_batch_sizes

pytestmark = pytest.mark.tensorflow

BATCH_SIZE = 4  # 6 steps untraced, and 6 traced


@pytest.mark.parametrize(
    ("build", "kind", "said"),
    [
        (
            planted.useless_transposes,
            "movement",
            r"is moving or converting data at <# planted>: 10 ops \(_MklTranspose\), ",
        ),
        (planted.small_ops_in_a_loop, "small ops", "calls of small ops"),
        (planted.small_ops_one_by_one, "small ops", "calls of small ops, mostly <# planted>: "),
        (planted.feed_too_large, "feeds", "with 16.0 MiB fed to each step"),
        (planted.one_op_on_the_chain, "one op", r"is one op, planted \(\w+\) at <planted>"),
    ],
)
def test_the_first_sentence_is_about_what_was_planted(build, kind, said, monkeypatch):
    in_one_process(monkeypatch)
    model, chosen = f"tests.planted:{build.__name__}", SweepOptions(images=planted.IMAGES)
    first, *_ = compare_batch_sizes(model, (BATCH_SIZE,), chosen).diagnosis
    assert first.kind == kind
    expected = re.sub("<(.+?)>", lambda text: line_of(build, text[1]), said)
    assert re.search(expected, first.sentence), first.sentence


def line_of(build, text: str) -> str:
    """The line of a model function that has this text, as tables write it."""
    lines, first = inspect.getsourcelines(build)
    (number,) = (number for number, line in enumerate(lines, first) if text in line)
    return f"planted.py:{number}"
