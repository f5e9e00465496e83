"""In short: each stage of a walk for one screen, whole, against numbers worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.step import STAGE
from tests.records_by_hand import CPU_0, CPU_1, LOAD, LOAD_LINE, op_stats, read, source
from tflab.records.gradients import Derivative, GradientNode, Link
from tflab.records.graph import Function, Node
from tflab.records.placed import Fate, Origin, Partition, Pass, Takeover, Toggle, Transfer
from tflab.records.stages import Backward, Frontend, Gradient, GradientCheck, Placement
from tflab.records.timed import CriticalPath, KernelTime, Spread
from tflab.records.values import PathPoint, ValuesStep
from tflab.views import in_short, placement

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


def shown(stage) -> list:
    return list(map(read, in_short.blocks(stage)))


def fact(stage, about: str) -> str:
    """What one line of the facts of a stage says."""
    (table,) = (block for block in in_short.blocks(stage) if getattr(block, "title", "t") == "")
    return dict(table.cells())[about]


def test_a_program_is_its_lines_with_the_nodes_that_each_made():
    assert shown(BUILT) == [
        [
            "2 lines of the program made 3 nodes and 4 edges",
            ("line", "code", "nodes", "ops"),
            ("model.py:3", source(3).code, "1", "Placeholder"),
            ("model.py:4", source(4).code, "2", "Exp, Mul"),
            "",
        ]
    ]


def test_of_a_long_program_the_lines_that_made_the_most_nodes_keep_their_order():
    made = {9: 2, 8: 1, 7: 3, 6: 2, 5: 2, 4: 1, 3: 2, 2: 1}
    nodes = tuple(
        Node(f"n{line}.{place}", "Exp", source=source(line))
        for line, count in made.items()
        for place in range(count)
    )
    (table,) = shown(Frontend(None, nodes))
    assert table[0] == (
        "8 lines of the program made 14 nodes and 0 edges; the 5 that made the most nodes"
    )
    assert [row[0] for row in table[2:-1]] == [f"model.py:{line}" for line in (9, 7, 6, 5, 3)]


def test_a_graph_from_a_file_is_its_notes_its_functions_and_its_most_frequent_ops():
    bare = tuple(replace(node, source=None) for node in (*NODES, NODES[1]))
    functions = (Function("body", nodes=NODES), Function("cond", nodes=NODES[:1]))
    assert shown(Frontend(None, bare, notes=("A note.",), functions=functions)) == [
        "A note.",
        "2 functions with 4 nodes of their own.",
        [
            "The file contains 4 nodes and 5 edges; the most frequent ops",
            ("op", "nodes"),
            ("Exp", "2"),
            ("Placeholder", "1"),
            ("Mul", "1"),
            "",
        ],
    ]


def test_nodes_without_a_line_are_not_counted_as_those_of_the_program():
    (table,) = in_short.blocks(Frontend(None, (*NODES, Node("made", "Const"))))
    assert table.title == "2 lines of the program made 3 of 4 nodes and 4 edges"


def test_gradients_are_counted_written_and_checked():
    assert shown(DERIVED) == [
        [
            "",
            ("", ""),
            ("added", "1,055 nodes: gradients of 2 forward ops, and what the optimiser needs"),
            ("of these", "2 of 3 gradient nodes only handle shapes, counts and order"),
            ("dL/dy", "mean(x), for the first batch -0.634"),
            ("dL/dw", "x * 2"),
            ("checked", "2 gradients by finite differences: largest relative error 3.5e-07"),
            "",
        ]
    ]


def test_bookkeeping_is_not_counted_where_some_of_it_is_unknown():
    (table,) = shown(DERIVED)
    assert "of these" in [row[0] for row in table[2:-1]]
    nodes = (*DERIVED.gradient_nodes[:2], replace(DERIVED.gradient_nodes[2], decided=False))
    (table,) = shown(replace(DERIVED, gradient_nodes=nodes))
    assert "of these" not in [row[0] for row in table[2:-1]]


def test_without_updates_no_optimiser_needs_anything():
    added = fact(replace(DERIVED, update_nodes=()), "added")
    assert added == "1,055 nodes: gradients of 2 forward ops"


def test_differences_in_less_than_float64_say_so():
    coarse = (GradientCheck("y", 0.04, 1, 1, "float32"),)
    assert fact(replace(DERIVED, gradient_checks=coarse), "checked") == (
        "1 gradient by finite differences in float32: largest relative error 4.0e-02"
    )


def test_gradients_that_are_0_are_counted_and_have_no_error():
    zero = GradientCheck("z", 0.0, 1, 1, "float64", zero=True)
    checks = (*DERIVED.gradient_checks, zero)
    assert fact(replace(DERIVED, gradient_checks=checks), "checked") == (
        "3 gradients by finite differences: largest relative error 3.5e-07, 1 gradient 0 within "
        "rounding"
    )
    for checks, what in (
        ((zero,), "1 gradient by finite differences: it is 0 within rounding"),
        ((zero, zero), "2 gradients by finite differences: all are 0 within rounding"),
    ):
        assert fact(replace(DERIVED, gradient_checks=checks), "checked") == what


def test_a_gradient_that_is_not_finite_is_said():
    checks = (*DERIVED.gradient_checks, GradientCheck("z", float("nan"), 1, 1, "float64"))
    assert fact(replace(DERIVED, gradient_checks=checks), "checked") == (
        "3 gradients by finite differences: the gradient or the difference of z is NaN or infinite"
    )


def test_an_equation_of_more_than_four_lines_is_left_to_the_stage():
    def of(name):
        return replace(
            DERIVED, chain_rule=(Link("loss", "", name, name, f"dL/d({name})", "", True),)
        )

    assert fact(of("y" * 100), "chain rule") == f"dL/d({'y' * 100}) = dL/d({'y' * 100})"
    (table,) = shown(of("y" * 200))
    assert "chain rule" not in [row[0] for row in table[2:-1]]


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"stopped": ("s",)}, "stop_gradient"),
        ({"custom_gradients": ("c",)}, "a custom gradient"),
        ({"stopped": ("s",), "custom_gradients": ("c",)}, "stop_gradient and a custom gradient"),
    ],
)
def test_differences_that_ignore_gradients_of_the_program_say_so(own, why):
    agreeing = replace(DERIVED, **own)
    assert "which they ignore" not in fact(agreeing, "checked")
    far = (GradientCheck("y", 1e-4, 1, 1, "float64"), *DERIVED.gradient_checks[1:])
    assert fact(replace(agreeing, gradient_checks=far), "checked") == (
        "2 gradients by finite differences: largest relative error 1.0e-04 (the graph has "
        f"{why}, which they ignore)"
    )


def test_of_many_derivatives_none_is_written_and_gradients_may_be_unchecked():
    three = DERIVED.derivatives + DERIVED.derivatives[:1]
    many = replace(DERIVED, derivatives=three, gradient_checks=(), unchecked="too large")
    (table,) = shown(many)
    assert [row[0] for row in table[2:-1]] == ["added", "of these", "checked"]
    assert fact(many, "checked") == "no: too large"


def test_gradients_that_came_with_a_graph_were_not_added():
    came = "The graph came with gradients; nothing was added."
    assert shown(Backward(None, NODES, inferred=True)) == [came]
    assert shown(Backward(None, NODES)) == [
        "There is nothing to differentiate, so nothing was added."
    ]


def test_a_placement_is_what_runs_where_and_the_fate_of_each_node():
    assert shown(PLACED) == [
        [
            "",
            ("", ""),
            ("fetches", "loss:0, train"),
            ("run", "3 nodes on CPU:0, CPU:1: 2 of the 5 built, 1 made by the runtime"),
            ("fused", "exp became one _FusedMul, named mul"),
            "",
        ],
        read(placement.fate_counts(PLACED)),
    ]


def test_nodes_whose_branch_was_not_taken_remain_but_do_not_run():
    assert fact(replace(PLACED, not_run=("mul",)), "remain") == (
        "3 nodes on CPU:0, CPU:1: 2 of the 5 built, 1 made by the runtime; 1 of them did not run "
        "in this step, because its branch was not taken"
    )


def test_of_fusions_that_were_compiled_none_is_told():
    ledger = tuple(
        replace(fate, fate="compiled") if fate.name == "exp" else fate for fate in PLACED.ledger
    )
    facts = dict(shown(replace(PLACED, ledger=ledger))[0][2:-1])
    assert list(facts) == ["fetches", "run", "compiled"]
    assert facts["compiled"] == "1 node by XLA, as 1 cluster"


def test_a_placement_has_its_notes_its_transfers_and_what_another_choice_of_passes_changed():
    toggle = Toggle(("remapper",), 83, 83, ())
    carried = Transfer("h:1", "s", "r", CPU_0, CPU_1, "float32", (512,), 2_048)
    stage = replace(PLACED, notes=("No GPU.",), transfers=(carried,), toggle=toggle)
    assert fact(stage, "transfers") == "A step transfers 2.00 KiB from CPU:0 to CPU:1."
    assert shown(stage)[1] == "No GPU."
    assert shown(stage)[-1] == placement.toggled(toggle)


def test_many_devices_and_many_fusions_are_counted():
    four = tuple(Partition(f"/device:CPU:{number}", ("x",)) for number in range(4))
    twice = replace(PLACED, partitions=four, passes=PLACED.passes * 2)
    assert fact(twice, "run").startswith("3 nodes on 4 devices: ")
    assert fact(twice, "fused") == "exp became one _FusedMul, named mul; 1 other fusion"


def test_of_many_fetches_the_first_four_are_named():
    many = replace(PLACED, fetches=("a", "bias", "loss", "train", "w", "x"))
    assert fact(many, "fetches") == "a, bias, loss, train and 2 more"


def test_without_passes_there_are_no_fates():
    bare = replace(PLACED, passes=(), ledger=(), origins=())
    assert shown(bare) == [
        ["", ("", ""), ("fetches", "loss:0, train"), ("run", "3 nodes on CPU:0, CPU:1"), ""]
    ]


def test_an_execution_is_its_times_its_memory_and_its_most_expensive_nodes():
    assert shown(MEASURED) == [
        [
            "",
            ("", ""),
            ("step", "2.40 ms at batch size 16 (p10 2.10 ms, p90 3.30 ms; 1,000 untraced steps)"),
            (
                "time",
                "4.0 % before the first op, 78.0 % at least one op running, 13.0 % no op running "
                "between ops, 5.0 % after the last op",
            ),
            ("order", "critical path: 3 op runs, 1.25 ms in a traced step"),
            ("memory", "at most 3.50 MiB alive at once"),
            ("training", "10 steps moved y from 2 to 2.98 and z from 1 to 1.25"),
            "",
        ],
        [
            "The most expensive of 1,006 nodes, by self time in 1,000 traced steps",
            ("node", "type that ran", "self", "share"),
            ("n0", "Mul", "0 ns", "0.0 %"),
            ("n1", "Mul", "1.00 us", "0.1 %"),
            ("n2", "Mul", "2.00 us", "0.1 %"),
            ("n3", "Mul", "3.00 us", "0.1 %"),
            ("n4", "Mul", "4.00 us", "0.2 %"),
            "",
        ],
    ]


def test_kernels_are_told_where_the_executor_takes_much_of_the_time_of_ops():
    assert fact(replace(MEASURED, kernel_time=KernelTime(470, 1_000)), "kernels") == (
        "47.0 % of the time of all ops; in the rest the executor prepares inputs and hands "
        "outputs on"
    )
    mostly = replace(MEASURED, kernel_time=KernelTime(900, 1_000))
    assert shown(mostly) == shown(MEASURED)


def test_the_load_a_failure_and_an_interruption_stand_above_the_facts():
    stage = replace(MEASURED, load=LOAD, failure="No.", interrupted=True)
    assert shown(stage)[:3] == [
        LOAD_LINE,
        "Partial: these are the measurements before the interruption.",
        "Partial: these are the measurements before this error: No.",
    ]


@pytest.mark.parametrize(
    "absent, about",
    [
        ({"wall_ns": 0}, "time"),
        ({"critical_path": CriticalPath((), 0, 0)}, "order"),
        ({"values_step": None}, "training"),
        ({"nodes": (Node("cluster_0_1/xla_run", "_XlaRun"),)}, "memory"),
    ],
)
def test_a_fact_that_was_not_measured_is_left_out(absent, about):
    (facts,) = (table for table in shown(replace(MEASURED, **absent)) if table[0] == "")
    assert about in dict(shown(MEASURED)[0][2:-1])
    assert about not in dict(facts[2:-1])
