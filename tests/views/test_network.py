"""View of the network: all cells and sentences, from a record by hand."""

from dataclasses import replace
from math import inf
from typing import Any, cast

import pytest

from tests.records_by_hand import read
from tflab.records.cluster import Network, Offset, TaskTime, WireTensor
from tflab.records.stages import Execution
from tflab.records.timed import StepTime
from tflab.views import network

NETWORK = Network(
    tasks=(
        TaskTime("client", 0, 100, 900, 0, 8, 131_072, 0, 150),
        TaskTime("task 0", 500, 250, 250, 125, 131_072, 8, 250, 125),
    ),
    tensors=(
        WireTensor("x", "client", "task 0", 2, 65_536, 2_500, 1.5e9),
        WireTensor("y", "task 0", "client", 2, 4, 1_250, 64_400.0),
        WireTensor("order", "task 0", "client", 2, 0, 800, 0.0),
    ),
    offsets=(
        Offset("/job:worker/replica:0/task:0", 20_000, 30_000, 20_000),
        Offset("/job:worker/replica:0/task:1", -5e9, 40_000, -5_000_000_000),
    ),
    unrecorded=0,
    left_out=("A sentence.",),
)


class Stage:
    """What the view reads of an execution."""

    steps = 2
    wall_ns = 1_000
    step_times = (StepTime(0, 0, 100), StepTime(1, 500, 900), StepTime(2, 2_000, 110))

    def __init__(self, network: Network | None) -> None:
        self.network = network


def blocks(of: Network | None) -> list[Any]:
    return [read(block) for block in network.blocks(cast(Execution, Stage(of)))]


def test_one_process_has_no_network():
    assert blocks(None) == []


def test_every_cell_and_sentence():
    assert blocks(NETWORK) == [
        [
            "Computation and communication: each task's wall time per step",
            (
                *("task", "computing", "of it receiving", "only receiving", "neither"),
                *("received a step", "sent a step"),
            ),
            ("client", "0.0 %", "0.0 %", "10.0 %", "90.0 %", "4 B", "64.0 KiB"),
            ("task 0", "50.0 %", "12.5 %", "25.0 %", "25.0 %", "64.0 KiB", "4 B"),
            "",
        ],
        [
            "Tensors sent between tasks, recorded by the receiving task (2 steps)",
            ("tensor", "from", "to", "bytes", "median", "rate"),
            ("x", "client", "task 0", "65,536", "2.50 us", "1.5 Gbit/s"),
            ("y", "task 0", "client", "4", "1.25 us", "0.0644 Mbit/s"),
            ("order", "task 0", "client", "0", "800 ns", ""),
            "",
        ],
        "Clocks, compared with the client's through the messages of the steps: task 0 20.0 us "
        "ahead (+/- 30.0 us), task 1 5.00 s behind (+/- 40.0 us). The times of each task were "
        "shifted by its offset.",
        "A sentence.",
    ]


def waited_for(*tasks):
    """The sentence, of tasks with so much time alone and awaited."""
    rows = tuple(TaskTime(name, 0, 0, 1_000, 0, 0, 0, *times) for name, *times in tasks)
    return blocks(replace(NETWORK, tasks=rows, tensors=(), left_out=()))[1:-1]


def test_a_slow_task_is_named():
    assert waited_for(("client", 0, 50), ("task 0", 20, 100), ("task 1", 30, 700)) == [
        "The steps waited for task 1 most: only its ops ran for 3.0 % of their time, and for 70.0 "
        "% no op ran until its next one began. The longest step took 900 ns, the median one 110 "
        "ns."
    ]


def test_no_task_is_called_slow_that_is_not_clearly_so():
    assert waited_for(("client", 0, 50), ("task 0", 300, 0), ("task 1", 0, 599)) == []
    assert waited_for(("client", 0, 50), ("task 0", 100, 0), ("task 1", 0, 499)) == []


def test_the_client_is_no_slow_task():
    assert waited_for(("client", 0, 900), ("task 0", 50, 0)) == []


def test_clocks_that_may_be_right_are_said_to_be_left_alone():
    said = blocks(replace(NETWORK, offsets=(Offset("/job:worker/replica:0/task:0", -5, 10),)))[2]
    assert said == (
        "Clocks, compared with the client's through the messages of the steps: task 0 5 ns behind "
        "(+/- 10 ns). All clocks may be correct, so no times were shifted."
    )


def test_receives_that_the_runtime_left_out_are_said():
    said = blocks(replace(NETWORK, unrecorded=1))[2]
    assert said == (
        "The runtime did not record 1 transfer, so that time has another owner and is not part of "
        "the critical path."
    )


@pytest.mark.parametrize(
    "offset, said",
    [
        (Offset("/job:worker/replica:0/task:3", 0, inf), "task 3 unknown"),
        (
            Offset("/job:worker/replica:0/task:3", 90, 10, consistent=False),
            (
                "task 3 90 ns ahead, approximately, because it was set or drifted during the "
                "measurement"
            ),
        ),
    ],
)
def test_a_clock_that_nobody_can_tell_is_said(offset, said):
    assert network.clock(offset) == said
