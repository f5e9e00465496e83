"""The view of the placement, from records made by hand."""

from dataclasses import replace

from tests.approval import approve
from tests.examples.printed import approve_view, printed
from tests.graph_notation import graph, one_pass
from tests.records_by_hand import CPU_0, CPU_1, a_pass, a_placement
from tflab.records.blocks import fact_table, in_full
from tflab.records.graph import Node
from tflab.records.placed import (
    CompiledKernel,
    Fate,
    FirstPart,
    FirstRun,
    Generated,
    Kernel,
    Origin,
    Partition,
    Transfer,
)
from tflab.views import placement, stages

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
LEDGER = tuple(Fate(f"{f}/{by}/{n}", f, by, None) for f, by, count in FATES for n in range(count))
USER_NODES = tuple(Node(fate.name, "Mul" if "remapper" in fate.name else "Exp") for fate in LEDGER)
NODES = (
    *(Node(f"executed/None/{n}", "Exp") for n in range(4)),
    Node("executed/remapper/0", "_FusedMatMul"),
    Node("executed/MklLayoutRewritePass/0", "_MklExp"),
    Node("executed/MklLayoutRewritePass/1", "_MklExp"),
    *graph("_arg_x=_Arg; folding/a=Const; folding/b=Const; _retval=_Retval"),
)
RUNNING = tuple(node.name for node in NODES)
TRANSFERS = (
    Transfer("h:1", "h/_1", "h/_2", CPU_0, CPU_1, "float32", (16, 400), 25_600, ""),
    Transfer("loss", "loss/_3", "loss/_4", CPU_1, CPU_0, "float64", (), 8, ""),
    Transfer("labels", "labels/_5", "labels/_6", CPU_0, CPU_1, "int64", (None, 8), 1_024, ""),
)
PASSES = (
    a_pass("placer", None, 28, 28, moved=("a", "b", "c")),
    a_pass("remapper", 0, 28, 24),
    a_pass("made_up_pass", 1, 24, 11, removed=("gone",), added=("folding/a", "folding/b")),
    a_pass("remapper", 1, 11, 11),
    a_pass("layout", 1, 1_011, 1_011),
)
STAGE = a_placement(
    nodes=NODES,
    user_nodes=USER_NODES,
    fetches=("loss:0", "train"),
    batch_size=16,
    data="MNIST",
    passes=PASSES,
    ledger=LEDGER,
    origins=(
        Origin("_arg_x", "feed"),
        Origin("folding/a", "constant_folding"),
        Origin("folding/b", "constant_folding"),
        Origin("_retval", "fetch"),
    ),
    partitions=(Partition(CPU_0, RUNNING[:8]), Partition(CPU_1, RUNNING[8:])),
    transfers=TRANSFERS,
    kernels=(
        Kernel(RUNNING[0], "Exp", CPU_0, "T: float"),
        Kernel(RUNNING[1], "Exp", CPU_0, "T: float"),
        Kernel(RUNNING[2], "Exp", CPU_1, "T: float"),
        Kernel(RUNNING[3], "Exp", CPU_1, "T: int32"),
        Kernel(RUNNING[4], "_FusedMatMul", CPU_0, "T: any"),
        Kernel(RUNNING[5], "_MklExp", CPU_0, "Mkl"),
        Kernel(RUNNING[6], "_MklExp", CPU_0, "Mkl"),
        Kernel("_arg_x", "_Arg", CPU_0, "any"),
    ),
    notes=("No GPU was found.",),
)
DEAD = ("executed/None/2", "folding/b", "executed/remapper/0")
TASKS = [f"/job:worker/replica:0/task:{number}/device:CPU:0" for number in (0, 1)]

# Title -> what is different
VARIANTS = {
    "generated code": {
        "generated": tuple(
            Generated(name, ("out",), 5, (CompiledKernel("k", ("add",), (), 0, (), (), ()),), {})
            for name in ("cluster_0", "cluster_1")
        )
    },
    "branches that were not taken": {"not_run": DEAD},
    "a transfer of unknown size": {
        "transfers": (TRANSFERS[0], replace(TRANSFERS[1], shape=None, bytes=None))
    },
    "transfers between tasks and within one": {
        "partitions": tuple(Partition(task, RUNNING[:1]) for task in TASKS),
        "transfers": (
            replace(TRANSFERS[0], from_device=TASKS[0], to_device=TASKS[1]),
            replace(TRANSFERS[2], from_device=TASKS[0], to_device=TASKS[0]),
        ),
    },
    "many kinds of kernels": {
        "kernels": tuple(
            Kernel(f"{n}/{copy}", "Op", CPU_0, f"T{n}") for n in range(18) for copy in range(n + 1)
        )
    },
    "one device": {"partitions": (Partition(CPU_0, RUNNING),)},
    "nodes that are fused and nodes that are compiled": {
        "ledger": (*LEDGER, Fate("a", "compiled", "p", "cluster"), Fate("l", "unreached", "p", "")),
        "passes": (
            one_pass("remapper: b fused c, c Log>F, a fused d, l fused d"),
            one_pass("remapper: e fused f"),
        ),
    },
    "passes that are idle in another run": {
        "passes": (
            *PASSES[:2],
            replace(PASSES[2], name="remapper"),
            *PASSES[3:],
            replace(PASSES[4], name="pruner"),
        )
    },
    "nodes sent to tasks": {
        "passes": (
            a_pass(
                *("partitioner", None, 1_012, 1_009),
                sent=((TASKS[0][:-13], ("a",)), (TASKS[1][:-13], ("b", "c"))),
            ),
        )
    },
}


def test_the_view_says_what_runs_and_where():
    variants = {title: stages.blocks(replace(STAGE, **to)) for title, to in VARIANTS.items()}
    approve_view("views-placement.txt", stages.blocks(STAGE), variants)


TYPES = {"a": "Exp", "b": "Exp", "c": "Log", "d": "Const", "x": "Placeholder", "_arg_x": "_Arg"}


STEPS = (
    *("a removed, lost removed, b folded d", "a fused c, b fused c, c Log>F", "a fused new"),
    *("a folded a", "a folded d, d folded d, c folded d"),
    *("a merged b, c merged d", "c compiled cluster, a compiled cluster"),
    *("x removed _arg_x, a removed _arg_x", "c removed d, a removed b, b removed x"),
    *("a replaced d, c removed b", "a replaced in d, b replaced in d, c replaced in d"),
    *("c removed, a removed, d removed", "a Exp>E, c Log>L, b Exp>E", "+new, +newer", "@a"),
    *("~a, ~b", "~a, +new", "~a, a Exp>E", "~a, b merged c", ""),
)


def test_what_a_pass_did_is_a_line_for_each_kind_of_change():
    did = ([step, *placement.happened(one_pass(step, 5, 4), {"lost"}, TYPES, 12)] for step in STEPS)
    approve("views-passes.txt", "\n".join("\n    ".join(lines) for lines in did))


def test_the_pass_log_knows_what_is_unreached_and_the_types_that_nodes_had_before_a_pass():
    """Of two nodes that a pass made, one was rewritten, and the other is a new one in the end."""
    pruned = replace(
        STAGE,
        nodes=graph("ran=Log"),
        user_nodes=graph("lost=Exp; written=Mul"),
        ledger=(Fate("lost", "unreached", "p", None), Fate("written", "removed", "p", None)),
        passes=(one_pass("prune: lost removed, written removed, ran removed"),),
    )
    made = graph("a=Identity; b=Mul; c=Exp")
    passes = (
        a_pass("inline", None, 0, 3, ("a", "b", "c"), definitions=made),
        one_pass("prune: a removed"),
        a_pass("remapper", None, 3, 3, definitions=graph("b=_FusedMul; c=_Exp")),
        one_pass("prune: b removed"),
    )
    inlined = replace(STAGE, nodes=graph("a=Late; c=_Exp"), passes=passes, ledger=())
    approve("views-pass-log.txt", printed(map(placement.pass_log, (pruned, inlined))))


def test_the_first_run_says_of_each_pass_what_it_changed_and_how_long_passes_took_in_vain():
    step = replace(PASSES[1], definitions=(Node("b", "_FusedMatMul"),), removed=("a",))
    parts = (
        FirstPart("not broken down", None, 1_000),
        FirstPart("placer", None, 6_000),
        FirstPart("remapper", 0, 5_000),
        FirstPart("remapper", 1, 40_000),
        FirstPart("layout", 1, 30_000),
        FirstPart("remapper on functions", None, 2_000),
        FirstPart("first run of the ops", None, 16_000),
    )
    few = FirstRun(100_000, parts)
    cheap = (FirstPart(f"part {n}", None, 600 + n) for n in range(6))
    parts += (FirstPart("layout", 0, 700), FirstPart("idle", None, 5), *cheap)
    first = FirstRun(sum(part.ns for part in parts), parts)
    passes = (PASSES[0], step, *PASSES[2:], a_pass("idle", None, 11, 11))
    stage = replace(STAGE, passes=passes, first_run=first)
    facts, whole = placement.facts(stage), placement.first_run_parts(stage, first)
    assert len(in_full(whole).rows) == len(parts)
    assert sum(ns for _, ns, _ in whole.rows) == first.wall_ns
    approve_view(
        "views-first-run.txt",
        [fact_table(fact for fact in facts if fact.label == "first run"), whole],
        {"ten parts or fewer": [placement.first_run_parts(stage, few)]},
    )
    assert all(fact.label != "first run" for fact in placement.facts(STAGE))


# Generated code

COMPILED = a_placement(nodes=(Node("mul", "_Mul"),), user_nodes=(Node("mul", "Mul"),))
RAN = replace(COMPILED, ledger=(Fate("mul", "compiled", "BuildXlaOpsPass", "cluster_0"),))


def kernel(name, size, *opcodes, **listings):
    listings = {"hlo": ("%m = multiply(%a, %b)",), "llvm": (), "machine": ()} | listings
    return CompiledKernel(name, opcodes, (f"{name}/node",), size, **listings)


LARGE = kernel(
    "large",
    1_034,
    "multiply",
    hlo=tuple(f"%m.{n} = multiply(%a, %b)" for n in range(6)),
    llvm=("define ptr @large() {", "  %1 = fmul   <8 x float> %a, %b", "  ret ptr null", "}"),
    machine=(
        "    47  c5f459c2  vmulps ymm0, ymm1, ymm2",
        "    4b  c3  ret",
        "    4c  c4e275aac2  vfmsub213ps ymm0, ymm1, ymm2",
    ),
)
SMALL = kernel("small", 200, "add", "add", "exponential", machine=("     0  c3  ret",))
CODE = Generated(
    cluster="cluster_0",
    fetches=("loss", "out"),
    batch_size=16,
    kernels=(SMALL, LARGE, kernel("library", 0, "dot")),
    listings={},
)
MANY = tuple(kernel(f"k{n}", 100 + n, *["add"] * (n + 2)) for n in range(15))


def test_the_largest_kernels_are_listed_in_three_languages():
    variants = {
        "code that ran": placement.code_of_cluster(CODE, RAN),
        "one kernel": placement.code_of_cluster(replace(CODE, kernels=(LARGE,)), COMPILED),
        "many kernels": placement.code_of_cluster(replace(CODE, kernels=MANY), COMPILED),
    }
    approve_view("views-generated-code.txt", placement.code_of_cluster(CODE, COMPILED), variants)
