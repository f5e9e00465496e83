"""The chapter of a graph on two devices, from records worked out by hand."""

from dataclasses import replace

from tests.examples.walk import BACKWARD, CPU_0, CPU_1, EXECUTION, FRONTEND, PLACEMENT
from tests.shown import grid
from tflab.follow import node_history
from tflab.records.placed import Partition, Transfer
from tflab.report import graph_chapter
from tflab.report.contents import Beside, Method, Walked

SENT = (
    Transfer("relu:0", "relu/_0", "relu/_1", CPU_0, CPU_1, "float32", (16, 3), 192),
    Transfer("loss:0", "loss/_2", "loss/_3", CPU_1, CPU_0, "float32", None, None),
)
TWO = replace(
    PLACEMENT,
    partitions=(Partition(CPU_1, ("a",) * 5), Partition(CPU_0, ("b",))),
    transfers=SENT,
)
ONE = replace(PLACEMENT, partitions=(Partition(CPU_0, ("a",) * 12),))


def walked(placement, *later):
    stages = (FRONTEND, BACKWARD, placement, *later)
    return Walked("toy", stages, node_history.histories(stages[:3]))


PARTS = list(graph_chapter.placed(walked(ONE, EXECUTION), walked(TWO), "x*y + z"))


def test_the_chapter_says_what_is_where_and_what_is_sent():
    sentence, _, table, recipe = PARTS
    assert sentence == (
        "The same program on two devices: 1 node on CPU:0 and 5 nodes on CPU:1. If an edge leads "
        "from one device to the other, the runtime cuts it: a _Send on one device passes the "
        "tensor to a _Recv on the other. A step transfers 192 B from CPU:0 to CPU:1, 0 B from "
        "CPU:1 to CPU:0, besides 1 tensor of unknown size."
    )
    assert [row[-2:] for row in grid(table)[2:-1]] == [
        ("192", "relu/_0, relu/_1"),
        ("?", "loss/_2, loss/_3"),
    ]
    assert recipe == Method(
        "Devices, _Send and _Recv are read from the runtime's own dumps; the bytes follow from "
        "the shapes at batch size 16.",
        "python -m tflab.lifecycle --model toy --devices 2 --stage placement",
    )


def test_both_graphs_are_drawn_as_they_are_before_anything_runs():
    beside = PARTS[1]
    assert isinstance(beside, Beside)
    assert beside.colour == "device"
    assert [graph.name for graph in beside.graphs] == [
        "x*y + z on 1 device: 12 nodes",
        "x*y + z on 2 devices: 12 nodes, 2 transfers",
    ]
    assert {graph.drawing.states[-1].title for graph in beside.graphs} == {"feeds_and_fetches"}
    assert [graph.drawing.transfers for graph in beside.graphs] == [(), SENT]
