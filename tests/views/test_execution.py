"""The view of the execution, from four steps made by hand."""

from dataclasses import replace
from math import inf

from tests.examples.printed import approve_view
from tests.examples.walk import CURVE, EXECUTION, MEMORY, TOTALS
from tests.records_by_hand import LOAD, op_total
from tflab.records.blocks import fact_table
from tflab.records.graph import Node
from tflab.records.measured import Experiment, Experiments, Untried
from tflab.records.timed import CriticalPath, Memory, Network, Offset
from tflab.views import execution, stages

MANY = tuple(
    op_total(f"n{n}", f"Op{n}", n + 2, 9_000 + n, 100.0 + n, n / 1000) for n in range(1_013)
)
EXPERIMENTS = Experiments(
    control=Experiment("control", "", -1_500.0, -4_000.0, 2_500.0, 6),
    ops=(
        Experiment("conv1/Relu", "_FusedConv2D", 812e3, 790e3, 845e3, 6, 608e3),
        Experiment("loss", "Mean", 3_000.0, -2_000.0, 9_000.0, 6, 8_500.0),
        Experiment("dense/add", "_MklMatMul", 400e3, 390e3, 410e3, 6, 499e3),
        Experiment("fed", "Cast", 5_000.0, 4_000.0, 6_000.0, 6),
    ),
    untried=(Untried("train/w", "ResourceApplyAdam", "it changes something"),),
)

# Title -> what is different
VARIANTS = {
    "many nodes": {"top_ops": MANY},
    "ten nodes": {"top_ops": TOTALS[:10]},
    "an interruption of a busy machine": {"load": LOAD, "interrupted": True},
    "a failure": {"failure": "No."},
    "one step": {"steps": 1, "warmup_steps": 1},
    "no steps": {"step_times": ()},
    "no critical path": {"critical_path": CriticalPath((), 0, 0, ())},
    "no traced steps": {"wall_ns": 0, "time_ledger": ()},
    "nobody held memory": {"memory": replace(MEMORY, curve=replace(CURVE, holders=()))},
    "one op held all": {
        "memory": replace(MEMORY, curve=replace(CURVE, holders=CURVE.holders[1:2]))
    },
    "no memory": {"memory": Memory(0, replace(CURVE, holders=()))},
    "compiled code": {"nodes": (Node("cluster_0_1/xla_run", "_XlaRun"),)},
    "experiments": {"experiments": EXPERIMENTS},
    "experiments whose intervals overlap": {
        "experiments": replace(
            EXPERIMENTS,
            ops=(*EXPERIMENTS.ops, Experiment("next", "Op", 780e3, 700e3, 790e3, 6)),
            untried=(),
        )
    },
    "experiments that could not be made": {
        "experiments": Experiments((), None, (Untried("a", "Op", "it is part of a loop"),))
    },
}


def test_the_view_says_where_the_time_of_a_step_went():
    variants = {title: stages.blocks(replace(EXECUTION, **to)) for title, to in VARIANTS.items()}
    approve_view("views-execution.txt", stages.blocks(EXECUTION), variants)


# The tasks of a cluster

NETWORK = Network(
    wires=(),
    offsets=(
        Offset("/job:worker/replica:0/task:0", 20_000, 30_000, 21_000),
        Offset("/job:worker/replica:0/task:1", -5e9, 40_000, -5_000_000_000),
    ),
    unrecorded=0,
    left_out=("A sentence.",),
)


def of_tasks(of):
    """The view of what it reads of an execution."""
    step = replace(EXECUTION, network=of)
    lost = (fact for fact in execution.facts(step) if fact.label == "not recorded")
    return [fact_table(lost), *execution.clocks(step)]


# Title -> what is different
OF_TASKS = {
    "clocks that may be right": {"offsets": (Offset("/job:worker/replica:0/task:0", -5, 10, 0),)},
    "a clock that is unknown": {"offsets": (Offset("/job:worker/replica:0/task:3", 0, inf, 0),)},
    "a transfer that was not recorded": {"unrecorded": 1},
}


def test_the_network_is_its_clocks():
    variants = {title: of_tasks(replace(NETWORK, **to)) for title, to in OF_TASKS.items()}
    variants["one process"] = of_tasks(None)
    approve_view("views-network.txt", of_tasks(NETWORK), variants)
