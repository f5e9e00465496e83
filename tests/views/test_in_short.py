"""In short: each stage of a walk for one screen, from records made by hand."""

from dataclasses import replace

from tests.examples.printed import approve_view
from tests.examples.step import RACE, STAGE
from tests.records_by_hand import CPU_0, CPU_1, LOAD, op_stats, source
from tflab.records.gradients import Derivative, GradientNode, Link
from tflab.records.graph import Function, Node
from tflab.records.placed import Fate, Origin, Partition, Pass, Takeover, Toggle, Transfer
from tflab.records.stages import Backward, Frontend, Gradient, GradientCheck, Placement
from tflab.records.timed import CriticalPath, KernelTime, Spread
from tflab.records.values import PathPoint, ValuesStep
from tflab.records.verdicts import Experiment
from tflab.views import in_short


def approve(stage, variants):
    """Approve a stage in short; a variant is a stage or what is different."""
    stages = {
        title: replace(stage, **to) if isinstance(to, dict) else to
        for title, to in variants.items()
    }
    blocks = {title: in_short.blocks(variant) for title, variant in stages.items()}
    name = type(stage).__name__.lower()
    approve_view(f"views-in-short-{name}.txt", in_short.blocks(stage), blocks)


# Frontend

NODES = (
    Node("x", "Placeholder", source=source(3, "x = placeholder()")),
    Node("exp", "Exp", ("x",), source=source(4, "y = x * exp(x)")),
    Node("mul", "Mul", ("x", "exp"), ("x",), source=source(4, "y = x * exp(x)")),
)
BUILT = Frontend(None, NODES)
MADE = {9: 2, 8: 1, 7: 3, 6: 2, 5: 2, 4: 1, 3: 2, 2: 1}  # line -> nodes
LONG = tuple(
    Node(f"n{line}.{place}", "Exp", source=source(line))
    for line, count in MADE.items()
    for place in range(count)
)
BARE = tuple(replace(node, source=None) for node in (*NODES, NODES[1]))
FUNCTIONS = (Function("body", nodes=NODES), Function("cond", nodes=NODES[:1]))


def test_a_program_is_its_lines_with_the_nodes_that_each_made():
    approve(
        BUILT,
        {
            "a node without a line": {"nodes": (*NODES, Node("made", "Const"))},
            "seven lines": {"nodes": LONG[:-1]},
            "a long program": {"nodes": LONG},
            "a file": {"nodes": BARE, "notes": ("A note.",), "functions": FUNCTIONS},
        },
    )


# Backward

DERIVED = Backward(
    None,
    NODES,
    added_nodes=("g",) * 1_055,
    update_nodes=("u",),
    gradients=(
        Gradient("mul", "Mul", "_MulGrad", ("a", "b")),
        Gradient("exp", "Exp", "_ExpGrad", ("c",)),
        Gradient("x", "Placeholder", None, (), "it does not depend on a trainable variable"),
    ),
    gradient_nodes=(
        GradientNode("a", "", None, False, True, "shape", None),
        GradientNode("b", "", None, False, True, "count", None),
        GradientNode("c", "x * 2", "dL/dw", True, True, None, None),
    ),
    gradient_checks=(
        GradientCheck("y", 1.25e-8, 1, 1, "float64"),
        GradientCheck("w", 3.5e-7, 2, 2, "float64"),
    ),
    derivatives=(
        Derivative("y", "mean(x)", -0.633878, 1e-8, 0.0),
        Derivative("w", "x * 2", [0.5, 1.0], 1e-8, 0.0),
    ),
)
UNDECIDED = (*DERIVED.gradient_nodes[:2], replace(DERIVED.gradient_nodes[2], decided=False))
ZERO = GradientCheck("z", 0.0, 1, 1, "float64", zero=True)
NAN = GradientCheck("z", float("nan"), 1, 1, "float64")
FAR = {"gradient_checks": (GradientCheck("y", 1e-4, 1, 1, "float64"),)}
STOPPED, CUSTOM = {"stopped": ("s",)}, {"custom_gradients": ("c",)}


def equation_of(name):
    link = Link("loss", "", name, name, f"dL/d({name})", "", True)
    return {"chain_rule": (link,)}


def test_gradients_are_counted_written_and_checked():
    approve(
        DERIVED,
        {
            "some may be bookkeeping": {"gradient_nodes": UNDECIDED},
            "no updates": {"update_nodes": ()},
            "differences in float32": {
                "gradient_checks": (GradientCheck("y", 0.04, 1, 1, "float32"),)
            },
            "a gradient that is 0": {"gradient_checks": (*DERIVED.gradient_checks, ZERO)},
            "one gradient, which is 0": {"gradient_checks": (ZERO,)},
            "all gradients are 0": {"gradient_checks": (ZERO, ZERO)},
            "a gradient that is not finite": {"gradient_checks": (*DERIVED.gradient_checks, NAN)},
            "an equation": equation_of("y" * 100),
            "an equation of five lines": equation_of("y" * 200),
            "stop_gradient and agreement": STOPPED,
            "stop_gradient": FAR | STOPPED,
            "a custom gradient": FAR | CUSTOM,
            "both": FAR | STOPPED | CUSTOM,
            "three derivatives, not checked": {
                "derivatives": DERIVED.derivatives + DERIVED.derivatives[:1],
                "gradient_checks": (),
                "unchecked": "too large",
            },
            "gradients that came with the graph": Backward(None, NODES, inferred=True),
            "nothing to differentiate": Backward(None, NODES),
        },
    )


# Placement

PLACED = Placement(
    None,
    (*NODES[:2], Node("s", "_Send")),
    user_nodes=(*NODES, Node("a", "Exp"), Node("b", "Exp")),
    fetches=("loss:0", "train"),
    passes=(
        Pass(
            "remapper",
            0,
            5,
            4,
            added=("mul",),
            taken=(Takeover("exp", "fused", "mul"), Takeover("a", "fused", "b")),
            definitions=(Node("mul", "_FusedMul"),),
        ),
    ),
    ledger=(
        Fate("x", "executed", None, None),
        Fate("exp", "fused", "remapper", "mul"),
        Fate("mul", "executed", None, None),
        Fate("a", "unreached", "model_pruner", None),
        Fate("b", "unreached", "model_pruner", None),
    ),
    origins=(Origin("s", "send"),),
    partitions=(Partition(CPU_1, ("x",)), Partition(CPU_0, ("mul",))),
)
COMPILED = tuple(
    replace(fate, fate="compiled") if fate.name == "exp" else fate for fate in PLACED.ledger
)
DEVICES = tuple(Partition(f"/device:CPU:{number}", ("x",)) for number in range(4))


def test_a_placement_is_what_runs_where_and_the_fate_of_each_node():
    carried = Transfer("h:1", "s", "r", CPU_0, CPU_1, "float32", (512,), 2_048)
    approve(
        PLACED,
        {
            "a branch that was not taken": {"not_run": ("mul",)},
            "a cluster that was compiled": {"ledger": COMPILED},
            "notes, transfers and other passes": {
                "notes": ("No GPU.",),
                "transfers": (carried,),
                "toggle": Toggle(("remapper",), 83, 83, ()),
            },
            "three devices": {"partitions": DEVICES[:3]},
            "four devices and two fusions": {"partitions": DEVICES, "passes": PLACED.passes * 2},
            "many fetches": {"fetches": ("a", "bias", "loss", "train", "w", "x")},
            "no passes": {"passes": (), "ledger": (), "origins": ()},
        },
    )


# Execution

MEASURED = replace(
    STAGE,
    batch_size=16,
    steps=1_000,
    untraced_step_ns=Spread(2_400_000, 2_100_000, 3_300_000),
    top_ops=tuple(
        op_stats(f"n{number}", ops=("Mul",), self_ns=1_000 * number, share=number / 2_000)
        for number in range(1_006)
    ),
    values_step=ValuesStep(
        "the first step",
        1,
        (),
        (PathPoint(0, None, {"y": 2.0, "z": 1.0}), PathPoint(10, 0.1, {"y": 2.98, "z": 1.25})),
        {"y": 3.0, "z": 2.0},
        (),
    ),
)


def test_an_execution_is_its_times_its_memory_and_its_most_expensive_nodes():
    approve(
        MEASURED,
        {
            "much of the time is not the kernels'": {"kernel_time": KernelTime(470, 1_000)},
            "nearly all of the time is the kernels'": {"kernel_time": KernelTime(900, 1_000)},
            "partial on a busy machine": {"load": LOAD, "failure": "No.", "interrupted": True},
            "no traced steps": {"wall_ns": 0},
            "no critical path": {"critical_path": CriticalPath((), 0, 0)},
            "no training": {"values_step": None},
            "compiled code": {"nodes": (Node("cluster_0_1/xla_run", "_XlaRun"),)},
            "no ops": {"top_ops": ()},
            "a race": {"race": RACE},
            "experiments": {"control": Experiment("control", "", -1.0, -2.0, 3.0, 6)},
        },
    )
