"""The view of the execution, from four steps made by hand."""

from dataclasses import replace

from tests.examples.printed import approve_view
from tests.examples.walk import CURVE, EXECUTION, MEMORY, TOTALS
from tests.records_by_hand import LOAD, op_total
from tflab.records.graph import Node
from tflab.records.timed import CriticalPath, Memory
from tflab.records.verdicts import Experiment, Experiments, Untried
from tflab.views import stages

MANY = tuple(
    op_total(f"n{n}", f"Op{n}", n + 2, 9_000 + n, 800 + n, 100.0 + n, n / 1000)
    for n in range(1_013)
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
    "many types and nodes": {"top_types": MANY, "top_ops": MANY[:13]},
    "ten types and nodes": {"top_types": TOTALS[:10], "top_ops": TOTALS[:10]},
    "an interruption of a busy machine": {"load": LOAD, "interrupted": True},
    "a failure": {"failure": "No."},
    "one step": {"steps": 1, "warmup_steps": 1},
    "no steps": {"step_times": ()},
    "no critical path": {"critical_path": CriticalPath((), 0, 0)},
    "no traced steps": {"wall_ns": 0, "time_ledger": ()},
    "nobody held memory": {"memory": replace(MEMORY, curve=replace(CURVE, holders=()))},
    "one op held all": {
        "memory": replace(MEMORY, curve=replace(CURVE, holders=CURVE.holders[1:2]))
    },
    "no memory": {"memory": Memory((), 0, replace(CURVE, holders=()))},
    "compiled code": {"nodes": (Node("cluster_0_1/xla_run", "_XlaRun"),)},
    "experiments": {"experiments": EXPERIMENTS},
    "experiments that could not be made": {
        "experiments": Experiments((), None, (Untried("a", "Op", "it is part of a loop"),))
    },
}


def test_the_view_says_where_the_time_of_a_step_went():
    variants = {title: stages.blocks(replace(EXECUTION, **to)) for title, to in VARIANTS.items()}
    approve_view("views-execution.txt", stages.blocks(EXECUTION), variants)
