"""Evidence: which transposes change a data format, and what becomes of rows and a sweep."""

from dataclasses import replace

import pytest

from tests.records_by_hand import op_stats, source
from tflab.compare import sweep
from tflab.compare.findings import Evidence, Work
from tflab.records.graph import Node, Tensor
from tflab.records.measured import Costs
from tflab.records.placed import Fate
from tflab.records.stages import Placement

pytestmark = pytest.mark.tensorflow


def node(name: str, op: str, shape: tuple[int, ...], *inputs: str) -> Node:
    return Node(name, op, inputs, outputs=(Tensor("float32", shape),))


FIRST, LAST = (4, 3, 8, 16), (4, 8, 16, 3)  # where the channels are


@pytest.mark.parametrize(
    "before, after, changes",
    [
        (FIRST, LAST, True),
        (LAST, FIRST, True),
        (FIRST, FIRST, False),
        (FIRST, (4, 3, 16, 8), False),  # height and width
        ((4, 8, 3, 3), (4, 3, 3, 8), True),
        ((4, 3, 8, 3), (4, 3, 3, 8), False),  # may be either
        ((4, 8, 8, 3), (4, 8, 3, 8), False),  # may be the width
        ((4, 3, 8), (4, 8, 3), False),
        (None, LAST, False),
        (FIRST, None, False),
    ],
)
def test_a_transpose_beside_a_convolution_changes_the_format_where_the_shapes_leave_no_choice(
    before, after, changes
):
    nodes = (
        node("x", "_Arg", before),
        node("t", "_MklTranspose", after, "x", "perm"),
        node("c", "Conv2D", LAST, "t", "w"),
    )
    assert sweep.format_changes(nodes) == ({"t"} if changes else set())


def test_a_transpose_after_a_pooling_counts_as_well_and_one_beside_others_does_not():
    pooled = (node("x", "_Arg", LAST), node("p", "MaxPool", LAST, "x"))
    after = (*pooled, node("t", "Transpose", FIRST, "p:0", "perm"))
    assert sweep.format_changes(after) == {"t"}
    far = (*pooled, node("r", "Tanh", LAST, "p"), node("t", "Transpose", FIRST, "r", "perm"))
    assert sweep.format_changes(far) == set()
    reshaped = (*pooled, node("t", "Reshape", FIRST, "p", "shape"))
    assert sweep.format_changes(reshaped) == set()


def test_every_field_of_the_evidence():
    user = (
        node("x", "Placeholder", FIRST),
        Node("t", "Transpose", ("x", "perm")),
        Node("c", "Conv2D", ("t", "w")),
    )
    ran = (
        node("_arg_x_0_0", "_Arg", FIRST),
        replace(node("t", "_MklTranspose", LAST, "_arg_x_0_0", "perm"), source=source(19)),
        replace(node("c", "_MklConv2D", LAST, "t", "w"), source=source(20)),
    )
    fates = tuple(Fate(name, "executed", None, name) for name in ("t", "c"))
    placed = Placement(None, ran, user_nodes=user, ledger=fates)
    batch = sweep.MeasuredBatch(4, 24, untraced_ns=[900, 700, 800], traced_ns=[950, 1_100, 900])
    batch.ops_span_ns += [600, 500, 650]
    batch.accumulator.steps = 3
    rows = (
        op_stats("c", ops=("Conv2D",), calls=3, median_ns=400.0),
        op_stats("t", ops=("_MklTranspose",), calls=6, median_ns=100.5),
        op_stats("_arg_x_0_0", ops=("_Arg",), calls=3, median_ns=20.0),
    )
    cost_of = {"t": Costs("t", None, 12_288), "c": Costs("c", 99, None)}
    assert sweep.evidence(batch, placed, rows, cost_of) == Evidence(
        batch_size=4,
        steps=3,
        step_ns=800,
        ops_span_ns=600,
        traced_outside_ns=350,
        fed_bytes=4 * 3 * 8 * 16 * 4,
        nodes=(
            Work("c", "Conv2D", "model.py:20", 1, 400.0, None, False, False, False),
            Work("t", "_MklTranspose", "model.py:19", 2, 100.5, 12_288, True, True, False),
            Work("_arg_x_0_0", "_Arg", "", 1, 20.0, None, False, False, True),
        ),
    )


def test_the_span_of_a_step_is_from_its_first_op_to_the_end_of_its_last():
    names = ["_SOURCE", "a", "b", "c"]
    assert sweep.span_of(names, [0, 30, 10, 40], [1, 50, 5, 10]) == 70
    assert sweep.span_of(["_SOURCE"], [3], [1]) == 0
