"""The view of generated code: every sentence and every cell, of a cluster made by hand."""

from dataclasses import replace

from tests.records_by_hand import read
from tflab.records.blocks import Frame, Strip, Table
from tflab.records.graph import Node
from tflab.records.placed import CompiledKernel, Fate, Generated
from tflab.records.stages import Placement
from tflab.views import generated_code

STAGE = Placement(program=None, nodes=(Node("mul", "_Mul"),), user_nodes=(Node("mul", "Mul"),))


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
SENTENCE = (
    "XLA compiled cluster_0 to compute loss, out for a batch of 16: 3 kernels of 2 add, "
    "exponential, multiply, dot, 1,234 bytes of machine code."
)
LISTINGS = (
    "The complete listings are in the logdir, under code/cluster_0, if the command runs all "
    "stages or has --logdir DIR."
)
COLUMNS = ("kernel", "fuses", "bytes of code")
BESIDE = ", in code that XLA would generate (not run here)"


def shown(**changes) -> list:
    return list(map(read, generated_code.blocks(replace(CODE, **changes), STAGE)))


def test_the_largest_kernels_are_listed_in_three_languages():
    assert shown() == [
        SENTENCE,
        Strip(
            f"large: large/node{BESIDE}",
            (
                Frame(
                    "HLO",
                    "6 operations",
                    (*(f"%m.{n} = multiply(%a, %b)" for n in range(4)), "... and 2 more"),
                ),
                Frame(
                    "LLVM IR",
                    "4 lines, 1 of floating-point arithmetic",
                    ("%1 = fmul <8 x float> %a, %b",),
                ),
                Frame(
                    "machine code",
                    "3 lines, 2 of floating-point arithmetic",
                    (
                        "47 c5f459c2 vmulps ymm0, ymm1, ymm2",
                        "4c c4e275aac2 vfmsub213ps ymm0, ymm1, ymm2",
                    ),
                ),
            ),
        ),
        Strip(
            f"small: small/node{BESIDE}",
            (
                Frame("HLO", "1 operation", ("%m = multiply(%a, %b)",)),
                Frame("machine code", "1 line", ("0 c3 ret",)),
            ),
        ),
        LISTINGS,
        [
            "Kernels of the cluster; one without code shares the code of another kernel, or is "
            "done by the runtime",
            COLUMNS,
            ("large", "multiply", "1,034"),
            ("small", "2 add, exponential", "200"),
            ("library", "dot", "0"),
            "",
        ],
    ]


def test_code_of_a_cluster_that_was_part_of_the_graph_did_run():
    stage = replace(STAGE, ledger=(Fate("mul", "compiled", "BuildXlaOpsPass", "cluster_0"),))
    _, strip, *_ = generated_code.blocks(CODE, stage)
    assert strip.title == "large: large/node"


def test_a_cluster_of_one_kernel_has_no_table():
    blocks = generated_code.blocks(replace(CODE, kernels=(LARGE,)), STAGE)
    assert not any(isinstance(block, Table) for block in blocks)


def test_four_kernels_are_listed_and_twelve_are_in_the_table():
    kernels = tuple(kernel(f"k{n}", 100 + n, *["add"] * (n + 2)) for n in range(15))
    blocks = shown(kernels=kernels)
    strips = [block.title.partition(":")[0] for block in blocks if isinstance(block, Strip)]
    assert strips == ["k14", "k13", "k12", "k11"]
    assert blocks[-1][1:] == [
        COLUMNS,
        *((f"k{n}", f"{n + 2} add", f"{100 + n}") for n in range(14, 2, -1)),
        "... and 3 more",
    ]


def test_a_kernel_as_lines_of_text():
    assert list(generated_code.lines_of(SMALL)) == [
        "small: 2 add, exponential; 200 bytes of machine code",
        "HLO          %m = multiply(%a, %b)",
        "machine code 0 c3 ret",
    ]
