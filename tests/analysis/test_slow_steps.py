"""Tables of which a step uses few rows and updates all: from graphs made by hand."""

import pytest

from tflab.analysis import slow_steps
from tflab.analysis.slow_steps import WholeTable
from tflab.records.graph import Node, Tensor

WHOLE, FEW, PRODUCT = (60_000, 8), (128, 8), (128, 60_000)


def node(name, op, shape=None, *inputs):
    return Node(name, op, inputs, outputs=(Tensor("float32", shape),) if shape else ())


EMB = node("emb", "VarHandleOp")
READ = node("read", "ReadVariableOp", WHOLE, "emb")
ROWS = node("rows", "ResourceGather", FEW, "emb", "ids")
DECAY = node("decay", "Mul", WHOLE, "read", "rate")
WRITTEN = node("written", "AssignVariableOp", None, "emb", "decay")
GRAPH = (EMB, READ, ROWS, DECAY, WRITTEN)
REF = (
    node("emb", "VariableV2", WHOLE),
    node("copy", "Identity", WHOLE, "emb"),
    node("rows", "GatherV2", FEW, "copy", "ids"),
    node("decay", "Mul", WHOLE, "copy", "rate"),
    node("written", "Assign", WHOLE, "emb", "decay"),
)


@pytest.mark.parametrize("graph", [GRAPH, REF])
def test_a_table_of_which_all_rows_are_updated_for_few(graph):
    assert slow_steps.whole_tables_of(graph, {"emb": "a.py:3"}) == (
        WholeTable("emb", "a.py:3", 60_000, 128, frozenset(("decay", "written"))),
    )


@pytest.mark.parametrize(
    "graph",
    [
        # The step uses all rows: for a product, or for the sum of their squares
        (*GRAPH, node("logits", "MatMul", PRODUCT, "hidden", "read")),
        (*GRAPH, node("penalty", "L2Loss", (1,), "read")),
        (EMB, node("rows", "ResourceGather", (6_001, 8), "emb", "ids"), READ, DECAY, WRITTEN),
        (EMB, ROWS, node("some", "ResourceScatterAdd", None, "emb", "ids", "rows")),
        (EMB, READ, DECAY, WRITTEN),  # nothing is looked up
        # None of the rows of a constant, which nothing reads or writes
        (node("none", "GatherV2", (0, 8), "constant", "ids"), node("train", "NoOp")),
        (),
    ],
)
def test_other_tables_are_not_told(graph):
    assert slow_steps.whole_tables_of(graph, {}) == ()


def test_two_lookups_use_the_rows_of_both():
    graph = (*GRAPH, node("more", "ResourceGather", (72, 8), "emb", "others"))
    ((table),) = slow_steps.whole_tables_of(graph, {})
    assert (table.used, table.line) == (200, "")
