"""The tasks of a cluster in the view of an execution, from a record made by hand."""

from dataclasses import replace
from math import inf
from types import SimpleNamespace

from tests.examples.printed import approve_view
from tflab.records.blocks import fact_table
from tflab.records.cluster import Network, Offset, TaskTime, WireTensor
from tflab.views import execution

NETWORK = Network(
    tasks=(
        TaskTime("client", 0, 100, 900, 0, 8, 131_072),
        TaskTime("task 0", 500, 250, 250, 125, 131_072, 8),
    ),
    tensors=(
        WireTensor("x", "client", "task 0", 2, 65_536, 2_500, 1.5e9),
        WireTensor("y", "task 0", "client", 2, 4, 1_250, 64_400.0),
        WireTensor("order", "task 0", "client", 2, 0, 800, 0.0),
    ),
    wires=(),
    offsets=(
        Offset("/job:worker/replica:0/task:0", 20_000, 30_000, 21_000),
        Offset("/job:worker/replica:0/task:1", -5e9, 40_000, -5_000_000_000),
    ),
    unrecorded=0,
    left_out=("A sentence.",),
)


def blocks(of, wall_ns=1_000):
    """The view of what it reads of an execution."""
    step = SimpleNamespace(network=of, steps=2, wall_ns=wall_ns, step_times=())
    return [fact_table(execution.lost_transfers(step)), *execution.tasks(step)]


# Title -> what is different
VARIANTS = {
    "clocks that may be right": {"offsets": (Offset("/job:worker/replica:0/task:0", -5, 10),)},
    "a clock that is unknown and one that drifted": {
        "offsets": (
            Offset("/job:worker/replica:0/task:3", 0, inf),
            Offset("/job:worker/replica:0/task:4", 90, 10, consistent=False),
        )
    },
    "a transfer that was not recorded": {"unrecorded": 1},
    "no tensors": {"tensors": ()},
    "many tensors": {"tensors": NETWORK.tensors[:1] * 14},
}


def test_the_network_is_its_tasks_its_tensors_and_its_clocks():
    variants = {title: blocks(replace(NETWORK, **to)) for title, to in VARIANTS.items()}
    variants["steps without a time"] = blocks(NETWORK, 0)
    variants["one process"] = blocks(None)
    approve_view("views-network.txt", blocks(NETWORK), variants)
