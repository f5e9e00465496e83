"""The view of the placement: every sentence and every cell, of records made by hand."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.records_by_hand import CPU_0, CPU_1, read
from tflab.records.blocks import Frame, Strip
from tflab.records.graph import Node
from tflab.records.placed import (
    Assignment,
    CompiledKernel,
    Fate,
    FateChange,
    Generated,
    Kernel,
    Origin,
    Partition,
    Pass,
    Rewrite,
    Takeover,
    Toggle,
    Transfer,
)
from tflab.records.stages import Placement
from tflab.views import pass_log, placement, stages

FATES = (  # fate, pass, nodes
    ("executed", None, 4),
    ("executed", "remapper", 1),
    ("unreached", "model_pruner", 6),
    ("executed", "MklLayoutRewritePass", 2),
    ("folded", "constant_folding", 1),
    ("compiled", "MarkForCompilationPass", 1),
    ("removed", "dependency_optimizer", 3),
    ("removed", None, 2),
    ("merged", "common_subgraph_elimination", 2),
    ("fused", "remapper", 4),
    ("folded", "shape_optimizer", 2),
)


def ledger() -> Iterable[Fate]:
    for fate, by, count in FATES:
        for n in range(count):
            yield Fate(f"{fate}/{by}/{n}", fate, by, None)


LEDGER = tuple(ledger())
USER_NODES = tuple(Node(fate.name, "Mul" if "remapper" in fate.name else "Exp") for fate in LEDGER)
NODES = (
    *(Node(f"executed/None/{n}", "Exp") for n in range(4)),
    Node("executed/remapper/0", "_FusedMatMul"),
    Node("executed/MklLayoutRewritePass/0", "_MklExp"),
    Node("executed/MklLayoutRewritePass/1", "_MklExp"),
    Node("_arg_x", "_Arg"),
    Node("folding/a", "Const"),
    Node("folding/b", "Const"),
    Node("_retval", "_Retval"),
)
RUNNING = tuple(node.name for node in NODES)
ORIGINS = (
    Origin("_arg_x", "feed"),
    Origin("folding/a", "constant_folding"),
    Origin("folding/b", "constant_folding"),
    Origin("_retval", "fetch"),
)
TRANSFERS = (
    Transfer("h:1", "h/_1", "h/_2", CPU_0, CPU_1, "float32", (16, 400), 25_600),
    Transfer("loss", "loss/_3", "loss/_4", CPU_1, CPU_0, "float64", (), 8),
    Transfer("labels", "labels/_5", "labels/_6", CPU_0, CPU_1, "int64", (None, 8), 1_024),
)
KERNELS = (
    Kernel("executed/None/0", "Exp", CPU_0, "float32", 1, "T: float", "T: half"),
    Kernel("executed/None/1", "Exp", CPU_0, "float32", 2, "T: float", "T: half"),
    Kernel("executed/None/2", "Exp", CPU_1, "float32", 3, "T: float", "T: half"),
    Kernel("executed/None/3", "Exp", CPU_1, "int32", 4, "T: int32", None),
    Kernel("executed/remapper/0", "_FusedMatMul", CPU_0, "float32", 5, "T: any", None),
    Kernel("executed/MklLayoutRewritePass/0", "_MklExp", CPU_0, "float32", 6, "Mkl", "T: double"),
    Kernel("executed/MklLayoutRewritePass/1", "_MklExp", CPU_0, "float32", 7, "Mkl", "T: double"),
    Kernel("_arg_x", "_Arg", CPU_0, "float32", 0, "any", "all"),
)
ASSIGNMENTS = (
    Assignment("a", CPU_0, "the only device"),
    Assignment("b", CPU_1, "colocated with a"),
    Assignment("c", CPU_1, "colocated with b"),
    Assignment("d", CPU_0, "where its resource y is"),
    Assignment("e", CPU_0, "where its resource z is"),
    Assignment("f", CPU_0, "colocated with d"),
    Assignment("g", CPU_1, "colocated with d"),
)
TOGGLE = Toggle(
    without=("remapper", "layout"),
    usual_node_count=1_011,
    node_count=1_014,
    changes=(
        FateChange("a", "fused", "executed"),
        FateChange("b", "removed", "merged"),
        FateChange("c", "fused", "executed"),
    ),
)
PASSES = (
    Pass("placer", None, 28, 28, moved=("a", "b", "c")),
    Pass("remapper", 0, 28, 24),
    Pass("made_up_pass", 1, 24, 11, removed=("gone",), added=("folding/a", "folding/b")),
    Pass("remapper", 1, 11, 11),
    Pass("layout", 1, 11, 11),
)
STAGE = Placement(
    program=None,
    nodes=NODES,
    user_nodes=USER_NODES,
    fetches=("loss:0", "train"),
    batch_size=16,
    data="MNIST",
    passes=PASSES,
    ledger=LEDGER,
    origins=ORIGINS,
    partitions=(Partition(CPU_0, RUNNING[:8]), Partition(CPU_1, RUNNING[8:])),
    transfers=TRANSFERS,
    assignments=ASSIGNMENTS,
    kernels=KERNELS,
    toggle=TOGGLE,
    notes=("No GPU was found.",),
)

OPENING = "To compute loss:0, train, 11 nodes run; the graph had 28. Batch size 16, data: MNIST."
LEDGER_TABLE = [
    "What became of the 28 nodes of the graph",
    ("fate", "nodes", "meaning", "by"),
    (
        "executed",
        "7",
        "runs under its own name",
        "rewritten: 2 by MklLayoutRewritePass, 1 by remapper",
    ),
    ("unreached", "6", "not needed by the fetches", "6 by model_pruner"),
    ("removed", "5", "bypassed, replaced or not used", "3 by dependency_optimizer"),
    ("fused", "4", "part of another node's kernel", "4 by remapper"),
    (
        "folded",
        "3",
        "computed in advance, now a constant",
        "2 by shape_optimizer, 1 by constant_folding",
    ),
    ("merged", "2", "equal to another node, which stays", "2 by common_subgraph_elimination"),
    ("compiled", "1", "compiled by XLA with other nodes", "1 by MarkForCompilationPass"),
    "",
]
PARTITION_TABLE = [
    "Partitions: one graph for each device",
    ("device", "nodes", "types"),
    ("CPU:0", "8", "4 Exp, 2 _MklExp, _FusedMatMul, _Arg"),
    ("CPU:1", "3", "2 Const, _Retval"),
    "",
]
KERNEL_TITLE = (
    "Kernels (inferred: the registration with the highest priority that matches device, types and "
    "label)"
)
KERNEL_COLUMNS = ("written", "runs as", "nodes", "registered for", "on a GPU (not run)")
KERNEL_TABLE = [
    KERNEL_TITLE,
    KERNEL_COLUMNS,
    ("Exp", "_MklExp", "2", "Mkl", "T: double"),
    ("Mul", "_FusedMatMul", "1", "T: any", "none"),
    ("Exp", "Exp", "3", "T: float", "T: half"),
    ("Exp", "Exp", "1", "T: int32", "none"),
    ("(the runtime's)", "_Arg", "1", "any", "all"),
    "",
]


def shown(stage: Placement = STAGE, **changes) -> list:
    return list(map(read, stages.blocks(replace(stage, **changes))))


def test_the_view_shows_what_runs_why_and_where():
    assert shown() == [
        OPENING,
        "No GPU was found.",
        Strip(
            "What each pass did to the graph (nodes before -> after)",
            (
                Frame("placer 28 -> 28", "gives every node a device", ("3 nodes given a device",)),
                Frame(
                    "made_up_pass (iteration 2) 24 -> 11",
                    "",
                    ("2 nodes added: folding/a, folding/b",),
                ),
                Frame("3 other runs of passes", "changed nothing", ("remapper, layout",)),
            ),
        ),
        LEDGER_TABLE,
        "7 executed under their own name + 4 made by the runtime (2 folded constants, 1 feed, 1 "
        "fetch) = 11 that run.",
        [
            "Why each node is on its device, by the placer's rules",
            ("device", "because", "nodes"),
            ("CPU:1", "colocated with another node", "3"),
            ("CPU:0", "on the device of its resource", "2"),
            ("CPU:0", "the only device", "1"),
            ("CPU:0", "colocated with another node", "1"),
            "",
        ],
        [
            "Without remapper, layout: 1,014 nodes remain instead of 1,011",
            ("usual fate", "fate now", "nodes", "which"),
            ("fused", "executed", "2", "a, c"),
            ("removed", "merged", "1", "b"),
            "",
        ],
        PARTITION_TABLE,
        [
            "Transfers in every step (a tensor of 0 bytes only enforces the order)",
            ("tensor", "from", "to", "shape", "bytes", "send and receive"),
            ("h:1", "CPU:0", "CPU:1", "float32 [16, 400]", "25,600", "h/_1, h/_2"),
            ("loss", "CPU:1", "CPU:0", "float64 []", "8", "loss/_3, loss/_4"),
            ("labels", "CPU:0", "CPU:1", "int64 [?, 8]", "1,024", "labels/_5, labels/_6"),
            "",
        ],
        "A step transfers 26.0 KiB from CPU:0 to CPU:1, 8 B from CPU:1 to CPU:0.",
        KERNEL_TABLE,
    ]


def test_without_passes_a_toggle_and_transfers_there_are_partitions_and_kernels():
    assert shown(passes=(), toggle=None, transfers=(), notes=()) == [
        OPENING,
        PARTITION_TABLE,
        KERNEL_TABLE,
    ]


def test_every_cluster_of_generated_code_comes_last():
    kernel = CompiledKernel("k", ("add",), (), 0, (), (), ())
    codes = tuple(
        Generated(name, (f"{name}_out",), 5, (kernel,), {}) for name in ("cluster_0", "cluster_1")
    )
    assert shown(generated=codes) == [
        *shown(),
        "XLA compiled cluster_0 to compute cluster_0_out for a batch of 5: 1 kernel of add, 0 "
        "bytes of machine code.",
        "The complete listings are in the logdir, under code/cluster_0, if the command runs all "
        "stages or has --logdir DIR.",
        "XLA compiled cluster_1 to compute cluster_1_out for a batch of 5: 1 kernel of add, 0 "
        "bytes of machine code.",
        "The complete listings are in the logdir, under code/cluster_1, if the command runs all "
        "stages or has --logdir DIR.",
    ]


def test_a_constant_that_took_the_name_of_what_was_folded_into_it_is_said():
    fates = (Fate("a", "executed", None, None), Fate("b", "folded", "constant_folding", None))
    origins = (Origin("b", "constant_folding"), Origin("_arg", "feed"))
    stage = replace(STAGE, nodes=STAGE.nodes[:3], ledger=fates, origins=origins)
    assert placement.balance(stage) == (
        "1 executed under their own name + 2 made by the runtime (1 folded constant, with the name "
        "of a folded node, 1 feed) = 3 that run."
    )


def test_several_constants_of_which_some_have_the_name_of_a_folded_node():
    fates = (Fate("a", "executed", None, None), Fate("b", "folded", "constant_folding", None))
    origins = tuple(Origin(name, "constant_folding") for name in "bc")
    origins += (Origin("m", "remapper"), Origin("m2", "remapper"), Origin("_s", "transfer"))
    assert list(placement.created(replace(STAGE, ledger=fates, origins=origins))) == [
        "2 folded constants, 1 of them with the name of a folded node",
        "2 by remapper",
        "1 end of a transfer",
    ]


def test_nodes_whose_branch_was_not_taken_are_not_said_to_run():
    """Among them may be nodes that the runtime made."""
    dead = ("executed/None/2", "folding/b", "executed/remapper/0")
    opening, _, _, table, closing, *_ = shown(not_run=dead)
    assert opening == (
        "To compute loss:0, train, 11 nodes remain where the graph had 28. Batch size 16, data: "
        "MNIST."
    )
    meaning = "in the graph that runs, under its own name"
    assert table[2] == (*LEDGER_TABLE[2][:2], meaning, LEDGER_TABLE[2][3])
    assert table[3:] == LEDGER_TABLE[3:]
    assert closing == (
        "7 executed under their own name + 4 made by the runtime (2 folded constants, 1 feed, 1 "
        "fetch) = 11 in the graph that runs; 3 of them did not run in this step, because their "
        "branch was not taken."
    )
    assert shown(not_run=dead[:1], passes=(), ledger=())[1] == (
        "1 of them did not run in this step, because its branch was not taken."
    )
    (table,) = placement.nodes_not_run(replace(STAGE, not_run=dead))
    assert read(table)[2:4] == [
        ("in a branch that was not taken", "", "executed/None/2"),
        ("in a branch that was not taken", "remapper", "executed/remapper/0"),
    ]


def test_thousands_are_set_apart_in_the_ledger():
    fates = tuple(Fate(f"n{n}", "executed", None, None) for n in range(1_002))
    nodes = tuple(Node(fate.name, "Exp") for fate in fates)
    stage = replace(STAGE, user_nodes=nodes, nodes=nodes, ledger=fates, origins=(), partitions=())
    opening, _, _, table, closing, *_ = shown(stage)
    assert opening.startswith("To compute loss:0, train, 1,002 nodes run; the graph had 1,002")
    assert table[0] == "What became of the 1,002 nodes of the graph"
    assert table[2:] == [("executed", "1,002", "runs under its own name", ""), ""]
    assert closing.startswith("1,002 executed under their own name + 0 made by the runtime =")
    assert closing.endswith("= 1,002 that run.")


def test_forty_reasons_are_listed_and_the_others_counted():
    assignments = [
        Assignment(f"{n}/{copy}", CPU_1, f"reason {n}") for n in range(42) for copy in range(50 - n)
    ]
    table = read(placement.reasons(replace(STAGE, assignments=tuple(assignments))))
    assert table[2:] == [
        *(("CPU:1", f"reason {n}", f"{50 - n}") for n in range(40)),
        "... and 2 more",
    ]


def test_forty_transfers_are_listed_and_all_are_added_up():
    transfers = tuple(
        Transfer(f"t{n}", f"s{n}", f"r{n}", CPU_1, CPU_0, "int8", (n,), n) for n in range(43)
    )
    table = read(placement.transfers(replace(STAGE, transfers=transfers)))
    assert table[2:] == [
        *((f"t{n}", "CPU:1", "CPU:0", f"int8 [{n}]", f"{n}", f"s{n}, r{n}") for n in range(40)),
        "... and 3 more",
    ]
    assert placement.cuts(replace(STAGE, transfers=transfers)) == (
        "A step transfers 903 B from CPU:1 to CPU:0."
    )


def test_a_transfer_of_unknown_size_is_a_question_mark_and_not_counted_as_nothing():
    unknown = Transfer("dead", "dead/_7", "dead/_8", CPU_1, CPU_0, "float32", None, None)
    stage = replace(STAGE, transfers=(TRANSFERS[0], unknown))
    assert read(placement.transfers(stage))[-2] == (
        "dead",
        "CPU:1",
        "CPU:0",
        "float32 [...]",
        "?",
        "dead/_7, dead/_8",
    )
    assert placement.cuts(stage) == (
        "A step transfers 25.0 KiB from CPU:0 to CPU:1, 0 B from CPU:1 to CPU:0, besides 1 "
        "tensor of unknown size."
    )


def test_ten_kinds_of_kernels_are_listed_and_the_others_counted():
    kernels = tuple(
        Kernel(f"{n}/{copy}", "Op", CPU_0, "", 1, f"T{n}", f"G{n}")
        for n in range(18)
        for copy in range(n + 1)
    )
    assert read(placement.kernels(replace(STAGE, kernels=kernels))) == [
        KERNEL_TITLE,
        KERNEL_COLUMNS,
        *(("(the runtime's)", "Op", f"{n + 1}", f"T{n}", f"G{n}") for n in range(17, 7, -1)),
        "... and 8 more",
    ]


def test_kernels_that_differ_on_a_gpu_only_are_one_row():
    kernels = tuple(
        Kernel(name, "Const", CPU_0, "", 1, "CPU", on_gpu)
        for name, on_gpu in (("p", "GPU"), ("q", "GPU, dtype in int32"), ("r", None), ("s", "GPU"))
    )
    assert list(placement.kernels(replace(STAGE, kernels=kernels)).cells()) == [
        ("(the runtime's)", "Const", "4", "CPU", "GPU or GPU, dtype in int32 or none")
    ]


def test_one_pass_that_changed_nothing_is_singular():
    assert pass_log.pass_log(replace(STAGE, passes=PASSES[1:2])).frames == (
        Frame("1 other pass", "changed nothing", ("remapper",)),
    )


def test_nodes_that_were_sent_to_tasks_are_counted_by_task():
    tasks = [f"/job:worker/replica:0/task:{number}" for number in (0, 1)]
    cut = Pass("partitioner", None, 5, 5, sent=((tasks[0], ("a",)), (tasks[1], ("b", "c"))))
    (frame,) = pass_log.pass_log(replace(STAGE, passes=(cut,))).frames
    assert frame.lines == ("1 node sent to task 0", "2 nodes sent to task 1")


def test_passes_that_never_changed_anything_stand_apart_from_those_that_did_in_another_run():
    busy = replace(PASSES[2], name="remapper")
    passes = (PASSES[0], PASSES[1], busy, PASSES[3], PASSES[4], replace(PASSES[4], name="pruner"))
    assert pass_log.pass_log(replace(STAGE, passes=passes)).frames[2:] == (
        Frame(
            "4 other runs of passes",
            "changed nothing",
            ("layout, pruner", "other runs of remapper"),
        ),
    )
    assert pass_log.pass_log(replace(STAGE, passes=passes[1:3])).frames[1:] == (
        Frame("1 other pass", "changed nothing", ("another run of remapper",)),
    )


# What one pass did


TYPES = {"a": "Exp", "b": "Exp", "c": "Log", "d": "Const", "x": "Placeholder", "_arg_x": "_Arg"}


@pytest.mark.parametrize(
    "step, lines",
    [
        (
            {"taken": [("a", "removed", None), ("lost", "removed", None), ("b", "folded", "d")]},
            [
                "1 not needed by the fetches: (runtime)",
                "folded into the constant d: b",
                "1 no longer needed: Exp",
            ],
        ),
        (
            {"taken": [("a", "fused", "c"), ("b", "fused", "c")], "rewritten": [("c", "Log", "F")]},
            ["a + b + c became one F, named c"],
        ),
        (
            {"taken": [("a", "fused", "b")], "rewritten": [("b", "B", "_FusedBatchNormEx")]},
            ["b + a became one _FusedBatchNormEx, named b"],
        ),
        ({"taken": [("a", "fused", "new")]}, ["a became one node, named new"]),
        ({"taken": [("a", "folded", "a")]}, ["became a constant: a"]),
        (
            {"taken": [("a", "folded", "d"), ("d", "folded", "d"), ("c", "folded", "d")]},
            ["folded into the constant d: a, c"],
        ),
        (
            {"taken": [("a", "merged", "b"), ("c", "merged", "d")]},
            ["merged with the equal b: a", "merged with the equal d: c"],
        ),
        (
            {"taken": [("c", "compiled", "cluster"), ("a", "compiled", "cluster")]},
            ["compiled into cluster: c, a"],
        ),
        (
            {"taken": [("x", "removed", "_arg_x"), ("a", "removed", "_arg_x")]},
            ["x is fed through _arg_x, a is fed through _arg_x"],
        ),
        (
            {"taken": [("c", "removed", "d"), ("a", "removed", "b"), ("b", "removed", "x")]},
            ["3 bypassed (2 Exp, Log): the consumers of c, for example, now take d"],
        ),
        (
            {"taken": [("a", "removed", "d", (), True, True), ("c", "removed", "b")]},
            [
                "1 replaced (Exp): d (Const) does the work of a",
                "1 bypassed (Log): the consumers of c, for example, now take b",
            ],
        ),
        (
            {"taken": [(name, "removed", "d", (), False, True) for name in ("a", "b", "c")]},
            ["3 replaced (2 Exp, Log): d (Const) does the work of a, for example"],
        ),
        (
            {"taken": [("c", "removed", None), ("a", "removed", None), ("d", "removed", None)]},
            ["3 no longer needed: Log, Exp, Const"],
        ),
        (
            {"rewritten": [("a", "Exp", "E"), ("c", "Log", "L"), ("b", "Exp", "E")]},
            ["3 nodes rewritten: 2 Exp -> E, Log -> L"],
        ),
        ({"added": ["new", "newer"]}, ["2 nodes added: new, newer"]),
        ({"moved": ["a"]}, ["1 node given a device"]),
        ({"rewired": ["a", "b"]}, ["2 nodes re-wired"]),
        ({"rewired": ["a"], "added": ["new"]}, ["1 node added: new"]),
        ({"rewired": ["a"], "rewritten": [("a", "Exp", "E")]}, ["1 node rewritten: Exp -> E"]),
        ({"rewired": ["a"], "taken": [("b", "merged", "c")]}, ["merged with the equal c: b"]),
        ({}, []),
    ],
)
def test_what_a_pass_did_is_a_line_for_each_kind_of_change(step, lines):
    changed = Pass(
        "pass",
        None,
        5,
        4,
        added=tuple(step.get("added", ())),
        rewritten=tuple(Rewrite(*change) for change in step.get("rewritten", ())),
        rewired=tuple(step.get("rewired", ())),
        moved=tuple(step.get("moved", ())),
        taken=tuple(Takeover(*taken) for taken in step.get("taken", ())),
    )
    assert list(pass_log.happened(changed, {"lost"}, TYPES)) == lines


def test_the_pass_log_knows_what_is_unreached_and_the_types_of_written_and_running_nodes():
    stage = replace(
        STAGE,
        nodes=(Node("ran", "Log"),),
        user_nodes=(Node("lost", "Exp"), Node("written", "Mul")),
        ledger=(Fate("lost", "unreached", "p", None), Fate("written", "removed", "p", None)),
        passes=(
            Pass(
                "model_pruner",
                0,
                1_012,
                1_009,
                taken=(
                    Takeover("lost", "removed", None),
                    Takeover("written", "removed", None),
                    Takeover("ran", "removed", None),
                ),
            ),
        ),
    )
    assert pass_log.pass_log(stage).frames == (
        Frame(
            "model_pruner 1,012 -> 1,009",
            "drops nodes that the fetches do not need, and nodes that only pass on a value",
            (
                "1 not needed by the fetches: Exp",
                "2 no longer needed: Mul, Log",
            ),
        ),
    )


def test_the_pass_log_knows_the_types_that_nodes_of_the_runtime_had_before_a_pass():
    def defined(**types):
        return tuple(Node(name, op) for name, op in types.items())

    def removing(*names):
        taken = tuple(Takeover(name, "removed", None) for name in names)
        return Pass("dependency_optimizer", None, 3, 2, taken=taken)

    inlined = Pass(
        "inline", None, 0, 3, ("a", "b", "c"), definitions=defined(a="Identity", b="Mul", c="Exp")
    )
    rewriting = Pass("remapper", None, 3, 3, definitions=defined(b="_FusedMul", c="_Exp"))
    passes = (inlined, removing("a"), rewriting, removing("b"))
    stage = replace(STAGE, nodes=(Node("a", "Late"), Node("c", "_Exp")), passes=passes, ledger=())
    lines = [frame.lines[-1] for frame in pass_log.pass_log(stage).frames]
    assert [line for line in lines if "needed" in line] == [
        "1 no longer needed: Identity",
        "1 no longer needed: _FusedMul",
    ]


def test_a_pass_that_did_nothing_has_no_table_of_fates():
    idle = Toggle(("loop_optimizer",), 83, 83, ())
    assert placement.toggled(idle) == (
        "Without loop_optimizer: 83 nodes remain instead of 83. The fate of every node is "
        "unchanged."
    )
