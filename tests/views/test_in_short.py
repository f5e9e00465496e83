"""In short: each stage in a few sentences, whole, against numbers worked out by hand."""

from dataclasses import replace

from tests.records_by_hand import BUSY, CPU_0, CPU_1, op_stats, source
from tests.views.test_execution import STAGE
from tflab.records import (
    Backward,
    Derivative,
    Fate,
    Frontend,
    Gradient,
    Node,
    Origin,
    Partition,
    PathPoint,
    Placement,
    RecordedStep,
    Spread,
)
from tflab.records.blocks import Frame, Strip
from tflab.views import in_short

NODES = (
    Node("x", "Placeholder", source=source(3)),
    Node("exp", "Exp", ("x",), source=source(4)),
    Node("mul", "Mul", ("x", "exp"), ("x",), source=source(4)),
)
BUILT = Frontend(None, NODES)
DERIVED = Backward(
    None,
    NODES,
    added_nodes=("g",) * 1_055,
    gradients=(
        Gradient("mul", "Mul", "_MulGrad", ("a", "b")),
        Gradient("exp", "Exp", "_ExpGrad", ("c",)),
        Gradient("x", "Placeholder", None, (), "no trainable variable is behind it"),
    ),
    derivatives=(
        Derivative("y", "mean(x)", -0.633878, 1e-8, 0.0, "t", 2.0),
        Derivative("w", "x * 2", [0.5, 1.0], 1e-8, 0.0, "u", [1.0, 1.0]),
    ),
)
PLACED = Placement(
    None,
    NODES[:2],
    user_nodes=(*NODES, Node("a", "Exp"), Node("b", "Exp")),
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
MEASURED = replace(
    STAGE,
    batch_size=16,
    steps=1_000,
    untraced_step_ns=Spread(2_400_000, 2_100_000, 3_300_000),
    top_types=(op_stats("Mul", share=0.25), op_stats("Exp", share=0.2)),
    recorded_step=RecordedStep(
        "the first step",
        1,
        (),
        (PathPoint(0, None, {"y": 2.0, "z": 1.0}), PathPoint(10, 0.1, {"y": 2.98, "z": 1.25})),
        {"y": 3.0, "z": 2.0},
    ),
)


def test_each_stage_has_its_numbers():
    assert in_short.strip((BUILT, DERIVED, PLACED, MEASURED)) == Strip(
        "In short",
        (
            Frame("1  Frontend", "", ("2 lines of the program made 3 nodes, 4 edges.",)),
            Frame(
                "2  Backward",
                "",
                (
                    "The gradient functions of 2 forward ops and the optimiser added 1,055 nodes.",
                    "dL/dy = mean(x), for the first batch -0.634",
                    "dL/dw = x * 2",
                ),
            ),
            Frame(
                "3  Placement",
                "",
                (
                    "Of 5 nodes 2 run under their own name; 2 unreached, 1 fused.",
                    "With 1 that the runtime made, 2 nodes run on CPU:0, CPU:1.",
                ),
            ),
            Frame(
                "4  Execution",
                "",
                (
                    "A step of batch size 16 took 2.40 ms untraced, the median of 1,000 (p10 "
                    "2.10 ms, p90 3.30 ms).",
                    "Of the time of all ops 25.0 % went to Mul, the most of all.",
                    "10 steps moved y from 2 to 2.98 and z from 1 to 1.25.",
                ),
            ),
        ),
    )


def lines(stage: object) -> tuple[str, ...]:
    return in_short.strip((stage,)).frames[0].lines


def test_a_graph_from_a_file_has_no_lines():
    bare = tuple(replace(node, source=None) for node in NODES)
    assert lines(replace(BUILT, nodes=bare)) == ("The file holds 3 nodes, 4 edges.",)


def test_gradients_that_came_with_a_graph_were_not_added():
    assert lines(Backward(None, NODES, inferred=True)) == ("The graph came with its gradients.",)
    assert lines(Backward(None, NODES)) == ("Nothing to differentiate, and nothing added.",)


def test_of_many_derivatives_and_many_devices_only_the_number_is_told():
    three = DERIVED.derivatives + DERIVED.derivatives[:1]
    assert len(lines(replace(DERIVED, derivatives=three))) == 1
    four = tuple(Partition(f"/device:CPU:{number}", ("x",)) for number in range(4))
    assert lines(replace(PLACED, partitions=four))[-1].endswith("2 nodes run on 4 devices.")


def test_the_time_of_a_busy_machine_is_told_as_that():
    assert lines(replace(MEASURED, quality=BUSY))[0].startswith(
        "A step of batch size 16 took 2.40 ms untraced on a machine that was busy, the median"
    )
