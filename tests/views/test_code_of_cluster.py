"""The view of generated code, from a cluster made by hand."""

from dataclasses import replace

from tests.examples.printed import approve_view
from tflab.records.graph import Node
from tflab.records.placed import CompiledKernel, Fate, Generated
from tflab.records.stages import Placement
from tflab.views import placement

STAGE = Placement(program=None, nodes=(Node("mul", "_Mul"),), user_nodes=(Node("mul", "Mul"),))
RAN = replace(STAGE, ledger=(Fate("mul", "compiled", "BuildXlaOpsPass", "cluster_0"),))


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
        "one kernel": placement.code_of_cluster(replace(CODE, kernels=(LARGE,)), STAGE),
        "many kernels": placement.code_of_cluster(replace(CODE, kernels=MANY), STAGE),
        "a kernel as lines of text": placement.lines_of(SMALL),
    }
    approve_view("views-generated-code.txt", placement.code_of_cluster(CODE, STAGE), variants)
