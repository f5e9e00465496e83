"""Memory: a step that cannot fit is refused before it runs, with what it needs."""

import pytest

from tflab.errors import TflabError
from tflab.lifecycle import least_memory
from tflab.records.graph import Node, Tensor

pytestmark = pytest.mark.tensorflow

MB = 2**20


def node(name, op, shape, *inputs, dtype="float32"):
    return Node(name, op, inputs, outputs=(Tensor(dtype, shape),))


GRAPH = (
    node("x", "Placeholder", (None, 256, 1024)),  # 1 MiB a row
    node("w", "VarHandleOp", (), dtype="resource"),
    node("read", "ReadVariableOp", (1024, 1024), "w"),  # 4 MiB
    node("again", "ReadVariableOp", (1024, 1024), "w"),
    node("c", "Const", (2, 1024, 1024), dtype="bool"),  # 2 MiB
    node("y", "MatMul", (None, 512, 1024), "x", "read", "again", "c"),  # 2 MiB a row
    node("z", "Relu", (None, 256, 1024), "y"),
    node("huge", "Fill", (1 << 40,)),
)


@pytest.mark.parametrize("free, refused", [(31, True), (30 + 24, False)])
def test_constants_variables_feeds_and_the_largest_of_the_others_have_to_fit(
    free, refused, monkeypatch
):
    monkeypatch.setattr(least_memory, "free_memory", lambda: free * MB)
    assert (least_memory.refusal(GRAPH, ["z:0"], 16) is not None) == refused


def test_the_sentence_says_what_is_needed_and_what_there_is(monkeypatch):
    monkeypatch.setattr(least_memory, "free_memory", lambda: 53 * MB)
    with pytest.raises(TflabError) as error:
        least_memory.check(GRAPH, ["z:0"], 16)
    assert str(error.value) == (
        "A step with a batch of 16 needs at least 54.0 MiB (22.0 MiB for its constants, "
        "variables and feeds and 32.0 MiB for the output of 'y'), but only 53.0 MiB of memory is "
        "free. Give a --batch-size of at most 8."
    )
    least_memory.check(GRAPH, ["z:0"], 15)


def test_what_is_not_fetched_needs_nothing(monkeypatch):
    monkeypatch.setattr(least_memory, "free_memory", lambda: MB)
    least_memory.check(GRAPH, ["c:0"][:0], 16)
    with pytest.raises(TflabError, match="4096 GiB for the output of 'huge'"):
        least_memory.check(GRAPH, ["huge:0"], 1)


def test_where_nobody_says_what_is_free_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(least_memory, "free_memory", lambda: None)
    least_memory.check(GRAPH, ["huge:0"], 1)
