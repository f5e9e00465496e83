"""First runs: each nanosecond of the runtime's log has one owner."""

import re

import pytest

from tflab.analysis.passes import broken_down
from tflab.records.placed import FirstPart

BASE = 1_795_731_491  # s since the epoch
# Microseconds after that, thread, file, text; as TensorFlow 2.21 writes them
LOG = """
100 1 optimization_registry.cc Running optimization phase 0
110 1 optimization_registry.cc Running optimization pass: FirstPass
111 1 optimization_registry.cc Graph #nodes 199 #edges 361
130 1 optimization_registry.cc Running optimization pass: SecondPass
160 1 optimization_registry.cc Finished optimization of a group 0
300 1 optimization_registry.cc Running optimization pass: NcclReplacePass
310 1 optimization_registry.cc Finished optimization of a group 1
350 1 graph_execution_state.cc BuildGraph
400 1 meta_optimizer.cc Starting optimization for grappler item: tf_graph
500 1 meta_optimizer.cc model_pruner: Graph size after: 9 nodes (-3), 5 edges (-4), time = 0.05ms.
520 2 optimization_registry.cc Running optimization pass: OfAnotherThread
700 1 meta_optimizer.cc tfg_optimizer{any(tfg{v=0},b)}: Graph size after: 9 nodes (0), 5 edges (0), time = 0.15ms.
710 1 op_kernel.cc Instantiating kernel for node: {{node _SOURCE}} = NoOp[]()
720 1 meta_optimizer.cc model_pruner: Graph size after: 9 nodes (0), 5 edges (0), time = 0.02ms.
800 1 meta_optimizer.cc Optimized main graph.
830 1 meta_optimizer.cc tfg_optimizer{any(c)}: Graph size after: 9 nodes (0), 5 edges (0), time = 0.03ms.
840 1 meta_optimizer.cc Optimized 0 functions:
850 1 optimization_registry.cc Running optimization pass: BuildXlaOpsPass
860 1 optimization_registry.cc Finished optimization of a group 2
900 1 optimization_registry.cc Running optimization pass: MklLayoutRewritePass
905 1 optimization_registry.cc Finished optimization of a group 3
910 1 constant_folding.cc Constant foldable 12 : 85
920 1 op_kernel.cc Instantiating kernel for node: {{node _SOURCE}} = NoOp[]()
921 1 op_kernel.cc No device-specific kernels found for NodeDef 'x'Will fall back.

950 1 op_kernel.cc Instantiating kernel for node: {{node _SOURCE}} = NoOp[]()
955 1 op_kernel.cc Instantiating kernel for node: {{node y}} = VarHandleOp[shape=[]]()
2100 3 device_compiler.h Instantly compiling for signature: cluster_0[_Xla=true,_N=1]; Tensor<type: int32 shape: [1] values: 16>,float [16,2],float []
2110 4 device_compiler.h Instantly compiling for signature: f_1[]; float [3]
2600 3 device_compilation_profiler.cc Compiled cluster_0 1 times, compile time: 400 us, cumulative: 400 us (0 us / 400 us)
2700 4 device_compilation_profiler.cc Compiled f_1 2 times, compile time: 300 us, cumulative: 400 us (0 us / 400 us)
"""  # noqa: E501
# In us, worked out by hand: the run from 2,000 to 3,000, in which compilations overlap
PARTS = [
    ("not broken down", None, 60 + 40 + 50 + 10 + 10),
    ("FirstPass", None, 20),
    ("SecondPass", None, 30),
    ("placer", None, 140),
    ("NcclReplacePass", None, 10),
    ("grappler", None, 50 + 50 + 80),
    ("model_pruner", 0, 50),
    ("tfg_optimizer", 0, 150),
    ("model_pruner", 1, 20),
    ("tfg_optimizer on functions", None, 30),
    ("BuildXlaOpsPass", None, 10),
    ("partitioner", None, 40),
    ("MklLayoutRewritePass", None, 5),
    ("graph_optimizer", None, 45),
    ("kernels", None, 50),
    ("first run of the ops", None, 200 + 300),
    ("XLA for float [16,2], float []", None, 400),
    ("XLA: f_1 for float [3]", None, 100),
]


def logged(lines):
    """Lines with the prefix of Abseil's log."""
    for line in lines.splitlines():
        if match := re.match(r"(\d+) (\d) (\S+) (.*)", line):
            at, thread, file, text = match.groups()
            yield f"I0000 00:00:{BASE}.{int(at):06}    {thread} {file}:72] {text}\n"
        else:
            yield f"{line}\n"


def ns(us):
    return BASE * 10**9 + 1_000 * us


def test_each_part_has_the_time_between_its_lines_and_grapplers_passes_that_in_theirs():
    first = broken_down("".join(logged(LOG)), (ns(50), ns(1_000)), (ns(2_000), ns(3_000)))
    assert [(part.owner, part.iteration, part.ns / 1_000) for part in first.parts] == PARTS
    assert first.wall_ns == 1_950_000
    assert sum(part.ns for part in first.parts) == first.wall_ns
    assert (first.of_pass("tfg_optimizer"), first.of_pass("remapper")) == (180_000, None)


@pytest.mark.parametrize("log", ["", "no log\n", "W0000 00:00:9.000001 1 a.cc:1] Cut off"])
def test_of_what_the_log_does_not_tell_only_the_run_is_told_from_the_rest(log):
    first = broken_down(log, (ns(0), ns(7)), (ns(9), ns(12)))
    assert first.parts == (
        FirstPart("not broken down", None, 7_000),
        FirstPart("first run of the ops", None, 3_000),
    )
