"""The view of generated code: every sentence and every cell, of a cluster made by hand."""

from dataclasses import replace

from tests.records_by_hand import read, source
from tflab.records.blocks import Frame, Strip, Table
from tflab.records.graph import Node
from tflab.records.placed import Fate, Generated, Machined
from tflab.records.stages import Placement
from tflab.views import generated_code

BY_FORM = "by kind: no expression of the same form"
BY_WIDTH = "by width: no line table"
STAGE = Placement(
    program=None,
    nodes=(Node("mul", "_Mul"),),
    user_nodes=(
        Node("add", "AddV2", source=source(24, "out = t + z")),
        Node("mul", "Mul", source=source(23, "t = x * y")),
        Node("exp", "Exp"),
    ),
)
MUL = Machined(
    "mul",
    "multiply in fusion",
    ("fmul <8 x float> %a, %b", "fmul <8 x float> %c, %d", "fmul <8 x float> %e, %f"),
    ("0x47 vmulps ymm2, ymm0", "0x4c vmulps ymm3, ymm0", "0x51 vmulps", "0x56 vmulps", "0x5b"),
    8,
    False,
    (f"HLO -> LLVM {BY_FORM}", f"LLVM -> machine {BY_WIDTH}", "fusion -> function: of another"),
    ("multiply of mul", "divide of XLA itself"),
    ("multiply of mul", *(f"exponential of e{n}" for n in range(7))),
)
ADD = Machined(
    "add",
    "add in fusion",
    ("fadd a", "fadd b"),
    ("0x60 vfma",),
    4,
    True,
    (f"LLVM -> machine {BY_WIDTH}",),
    ("add of add",),
    ("add of add",),
)
GONE = Machined(
    *("exp", "subtract", (), (), 0, False),
    inferred=("HLO -> LLVM, nothing is left: it was folded",),
    llvm_owners=("subtract of exp",),
    machine_owners=("subtract of exp",),
)
RUNTIME = Machined("made", "copy", ("load",), (), 1, False, (), ("copy of made",), ())
CODE = Generated(
    cluster="cluster_0",
    fetches=("loss", "out"),
    batch_size=16,
    kernels=(
        ("small", ("add", "add", "exponential"), 200),
        ("large", ("multiply",), 1_034),
        ("library", ("dot",), 0),
    ),
    fusions_inside=0,
    path=(MUL, ADD, GONE, RUNTIME),
    listings={},
)

SENTENCE = (
    "XLA compiled cluster_0 to compute loss, out for a batch of 16: 3 kernels of 2 add, "
    "exponential, multiply, dot, 1,234 bytes of machine code."
)
FRAMES = (
    Frame(
        "mul model.py:23",
        "t = x * y",
        (
            "HLO      multiply in fusion",
            "         inferred: fusion -> function",
            "LLVM     fmul <8 x float> %a, %b",
            "         fmul <8 x float> %c, %d   (1 more like it)",
            "         inferred: HLO -> LLVM by kind",
            "         belong to one or more of multiply of mul, divide of XLA itself",
            "machine  0x47 vmulps ymm2, ymm0",
            "         0x4c vmulps ymm3, ymm0   (3 more like it)",
            "         inferred: LLVM -> machine by width",
            "         belong to one or more of multiply of mul, exponential of e0, exponential "
            "of e1, exponential of e2, exponential of e3, exponential of e4 and 2 more",
            "         up to 8 elements at once",
        ),
    ),
    Frame(
        "add model.py:24",
        "out = t + z",
        (
            "HLO      add in fusion",
            "LLVM     fadd a",
            "         fadd b",
            "machine  0x60 vfma",
            "         inferred: LLVM -> machine by width",
            "         up to 4 elements at once; inferred: fused multiply-adds, one instruction "
            "for two",
        ),
    ),
    Frame("exp", "", ("HLO      subtract", "         inferred: HLO -> LLVM, nothing is left")),
    Frame("made", "", ("HLO      copy", "LLVM     load", "         one element at a time")),
)
BESIDE = ", in code that XLA would generate (not run here)"
LISTINGS = (
    "The complete listings are in the logdir, under code/cluster_0, if the command runs all "
    "stages or has --logdir DIR."
)
COLUMNS = ("kernel", "fuses", "bytes of code")


def shown(generated: Generated = CODE, **changes) -> list:
    return list(map(read, generated_code.blocks(replace(generated, **changes), STAGE)))


def test_the_view_tells_the_way_from_the_line_to_the_instruction():
    assert shown() == [
        SENTENCE,
        Strip(f"From source line to machine instruction{BESIDE}", FRAMES),
        LISTINGS,
        "Inferred, not read: HLO -> LLVM by kind: no expression of the same form; HLO -> LLVM, "
        "nothing is left: it was folded; LLVM -> machine by width: no line table; fusion -> "
        "function: of another.",
        [
            "Kernels of the cluster; a kernel without code uses the code of an equal kernel, or "
            "is done by the runtime",
            COLUMNS,
            ("large", "multiply", "1,034"),
            ("small", "2 add, exponential", "200"),
            ("library", "dot", "0"),
            "",
        ],
    ]


def test_fusions_that_have_no_function_of_their_own_are_said_to_be_in_that_of_the_cluster():
    *_, sentence, _, table = shown(fusions_inside=2)
    assert sentence == (
        "XLA wrote the code of 2 fusions into one function for the whole cluster, as it does in "
        "TensorFlow 2.18, so it cannot be separated. 2.21 writes a function for each fusion."
    )
    assert table[0] == (
        "Kernels of the cluster; a kernel without code uses the code of an equal kernel, is in "
        "the function of the whole cluster, or is done by the runtime"
    )


def test_where_fusions_without_a_function_leave_nothing_to_follow_that_is_said():
    assert shown(fusions_inside=1, path=())[2] == (
        "XLA wrote the code of 1 fusion into one function for the whole cluster, as it does in "
        "TensorFlow 2.18, so it cannot be separated. 2.21 writes a function for each fusion. No "
        "line can be followed to its instructions here."
    )


def test_code_of_a_cluster_that_was_part_of_the_graph_did_run():
    stage = replace(STAGE, ledger=(Fate("mul", "compiled", "BuildXlaOpsPass", "cluster_0"),))
    _, strip, *_ = generated_code.blocks(CODE, stage)
    assert strip.title == "From source line to machine instruction"


def test_operations_that_own_llvm_and_machine_code_alike_are_named_once():
    both = ("add of a", "exponential of b")
    code = replace(MUL, llvm_owners=both, machine_owners=both)
    assert [line.strip() for line in generated_code.steps(code) if " of " in line] == [
        "belong to one or more of add of a, exponential of b",
        "belong to one or more of the same",
    ]


def test_a_multiply_add_among_the_instructions_of_several_may_be_anothers():
    fused = replace(MUL, fused=True)
    assert list(generated_code.steps(fused))[-1].strip() == (
        "up to 8 elements at once; some may be fused multiply-adds, one instruction for two"
    )


def test_four_operations_are_followed_and_the_others_counted():
    sentence, strip, *_ = shown(path=(*CODE.path, ADD, MUL))
    assert sentence == SENTENCE
    assert strip.frames == FRAMES
    assert strip.title == (
        f"From source line to machine instruction{BESIDE} (2 more operations in the listings)"
    )
    strip = shown(path=(*CODE.path, ADD))[1]
    assert strip.title == (
        f"From source line to machine instruction{BESIDE} (1 more operation in the listings)"
    )


def test_a_cluster_of_one_kernel_and_without_a_path_is_two_sentences():
    assert shown(kernels=(("k", ("add", "dot"), 5_678),), path=()) == [
        "XLA compiled cluster_0 to compute loss, out for a batch of 16: 1 kernel of add, dot, "
        "5,678 bytes of machine code.",
        LISTINGS,
    ]


def test_twelve_kernels_are_listed_and_the_others_counted():
    kernels = tuple((f"k{n}", ("add",) * (n + 2), 100 + n) for n in range(15))
    assert shown(kernels=kernels, path=())[-1][1:] == [
        COLUMNS,
        *((f"k{n}", f"{n + 2} add", f"{100 + n}") for n in range(14, 2, -1)),
        "... and 3 more",
    ]


def test_two_kernels_have_a_table_and_two_lanes_are_several():
    two = replace(CODE, kernels=CODE.kernels[:2], path=(replace(RUNTIME, lanes=2),))
    *_, strip, _, table = map(read, generated_code.blocks(two, STAGE))
    assert strip.frames[0].lines[-1] == "         up to 2 elements at once"
    assert [row[0] for row in table[2:-1]] == ["large", "small"]
    single = replace(two, kernels=CODE.kernels[:1])
    assert not any(isinstance(block, Table) for block in generated_code.blocks(single, STAGE))
