"""Op table: a few nodes, put together by hand and by tflab."""

from dataclasses import asdict

import pytest

from tests.approval import approve
from tflab.analysis import op_table, row_labels
from tflab.analysis.row_labels import Graph
from tflab.errors import UsageError
from tflab.records.graph import Source
from tflab.records.measured import NodeStats
from tflab.records.placed import Fate

STEPS = 2
IMAGES = 8  # that the steps worked on
CPU = "/device:CPU:0"


def node(name, op, total, calls=STEPS, start=0.0, median=0.0, requested=0):
    mean = total / calls
    return NodeStats(name, op, CPU, calls, total, mean, median, start, requested)


STATS = (
    node("pool/MaxPool", "MaxPool", 100, start=30, median=45, requested=64),
    node("conv/Relu", "_FusedConv2D", 600, start=20, median=290, requested=128),
    node("_arg_images_0_0", "_Arg", 20, start=0, median=10),
    node("gradients/conv/Relu_grad/ReluGrad", "ReluGrad", 80, start=40, median=40),
    node("conv2/Relu", "_FusedConv2D", 200, calls=4, start=35, median=50, requested=8),
)
FLOPS = {
    "conv/Relu": 3000,
    "pool/MaxPool": 400,
    "_arg_images_0_0": 0,
    "gradients/conv/Relu_grad/ReluGrad": None,
    "conv2/Relu": 500,
}


def line(number, file="/models/net.py"):
    return Source(file, number, "build", f"line {number}")


GRAPH = Graph(
    ledger=(
        Fate("conv/Conv2D", "fused", "remapper", "conv/Relu"),
        Fate("conv/BiasAdd", "fused", "remapper", "conv/Relu"),
        Fate("conv/Relu", "executed", "remapper", None),
        Fate("pool/MaxPool", "executed", None, None),
        Fate("conv2/Conv2D", "compiled", "XLA", "conv2/Relu"),
        Fate("conv2/Relu", "executed", None, None),
        Fate("conv2/twin", "merged", "CSE", "conv2/Relu"),
        Fate("conv2/old", "removed", "pruner", None),
    ),
    sources={
        "conv/Conv2D": line(10),
        "conv/BiasAdd": line(11),
        "conv/Relu": line(11),
        "pool/MaxPool": line(12),
        "gradients/conv/Relu_grad/ReluGrad": line(11),
        "conv2/Conv2D": line(10),
        "conv2/Relu": line(11),
    },
    phases={
        "gradients/conv/Relu_grad/ReluGrad": "backward",
        "conv2/Relu": "update",
        "of_another_graph": "update",
    },
)


@pytest.mark.parametrize("by", row_labels.KEYS)
def test_every_field_of_every_row(by):
    """By hand, of _FusedConv2D, which has two nodes: a call takes 800 / 6 ns, its median is
    (2 * 290 + 4 * 50) / 6; a step requests (2 * 128 + 4 * 8) / 2 bytes and does
    (2 * 3000 + 4 * 500) / 2 flops."""
    rows = op_table.with_flops(op_table.rows(STATS, by, STEPS, IMAGES, GRAPH), FLOPS)
    lines = []
    for row in op_table.with_shares(rows):
        fields = {name: value for name, value in asdict(row).items() if name != "key"}
        lines += [row.key, *(f"  {name:<17}{value}" for name, value in fields.items()), ""]
    approve(f"op-table-by-{by}.txt", "\n".join(lines))


CALL = "StatefulPartitionedCall/StatefulPartitionedCall/net"
BLOCK = [
    Fate("block/conv/Conv2D", "fused", "remapper", "block/relu/Relu"),
    Fate("block/bn/Norm", "fused", "remapper", "block/relu/Relu"),
    Fate("block/relu/Relu", "executed", "remapper", None),
    Fate("block/add/Add", "executed", None, None),
    Fate("out/MatMul", "compiled", "xla", "cluster_0/xla_run"),
]
FUSED = [Fate("a/x", "fused", "remapper", "a/y"), Fate("a/y", "executed", None, None)]
NAMESAKES = {"a": line(1, "/one/net.py"), "b": line(1, "/two/net.py"), "c": line(1, "/main.py")}


OF_CALLS = f"Func/StatefulPartitionedCall/input/_0 1 1, {CALL}/conv1/Mul 2 2, {CALL}/dense/Mul 3 3"
OF_BLOCK = (
    "block/conv/Conv2D/ReadVariableOp 1 0, block/bn/ReadVariableOp 2 1, block/add/Add 5 7, "
    "block/relu/Relu 90 3, cluster_0/xla_run 3 9"
)


@pytest.mark.parametrize(
    ("by", "nodes", "graph", "rows"),  # nodes: name, ns, start and type; rows: key, ns and fused
    [
        ("op", "b 5 0 B, a 5 0 A, c 6 0 C", Graph(), "C 6, A 5, B 5"),  # equal: by their keys
        ("node", "x 4 0 _FusedConv2D, x 5 0 Conv2D", Graph(), "x 5, x 4"),  # ran as two types
        # A layer stands where its last node runs, since variables are read early
        ("layer", "b/x 1 2, a/y 1 9, a/x 2 0", Graph(), "b 1, a 3"),
        ("layer", "b/x 1 2, a/x 1 2", Graph(), "a 1, b 1"),
        ("layer", OF_CALLS, Graph(), "StatefulPartitionedCall 1, net/conv1 2, net/dense 3"),
        # Layers that run as one op are one row where that runs
        (
            "layer",
            OF_BLOCK,
            Graph(BLOCK, dict.fromkeys(fate.name for fate in BLOCK)),
            "block/conv + bn + relu 93 block/conv/Conv2D block/bn/Norm, block/add 5, "
            "cluster_0 3 out/MatMul",
        ),
        ("layer", "_retval_loss/mean_0_0 1 0 _Retval", Graph(), "(added by the runtime) 1"),
        ("line", "_SOURCE 1 0 NoOp", Graph(), "(added by the runtime) 1"),
        ("layer", "conv1/Relu/_12 1 0 _Send", Graph(), "(added by the runtime) 1"),
        ("line", "conv1/Relu/_13 1 0 _Recv", Graph(), "(added by the runtime) 1"),
        ("line", "Fold/mul 1 0, w 1 0", Graph(sources={"w": None}), "(no line) 2"),
        ("line", "a/y 1 0", Graph(FUSED, {"a/y": line(1)}), "net.py:1 1 (no line)"),
        (
            "line",
            "a 3 0, b 2 0, c 1 0",
            Graph(sources=NAMESAKES),
            "/one/net.py:1 3, /two/net.py:1 2, main.py:1 1",
        ),
        (
            "line",
            "w 1 0, b 2 0",
            Graph(phases={"w": "update"}),
            "(no line) 2, (the optimiser's step) 1",
        ),
    ],
)
def test_which_row_a_node_is_in(by, nodes, graph, rows):
    stats = []
    for text in nodes.split(", "):
        name, total, start, *op = text.split()
        stats.append(node(name, *op or "X", int(total), start=int(start)))
    found = op_table.with_shares(op_table.rows(stats, by, 1, None, graph))
    assert (
        ", ".join(" ".join((row.key, str(row.total_ns), *row.fused_from)) for row in found) == rows
    )


def test_an_unknown_key_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="by 'colour'; choose from op, node, layer, line"):
        op_table.rows(STATS, "colour", STEPS, IMAGES)


# What the runs and the costs add


def test_nodes_that_took_no_time_have_no_speed_and_no_share():
    rows = op_table.rows([node("a", "X", 0)], "node", 1, None)
    (row,) = op_table.with_shares(op_table.with_flops(rows, {"a": 5}))
    assert (row.gflops, row.share, row.image_ns) == (None, 0, None)
