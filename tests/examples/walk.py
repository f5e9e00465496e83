"""A walk by hand: a small model written, differentiated, rewritten by seven passes, and run."""

from dataclasses import replace

from tests.graph_notation import fates, graph, one_pass
from tests.records_by_hand import CPU_0, CPU_1, blank, op_total
from tflab.records.placed import Fate, Origin, Partition
from tflab.records.stages import Backward, Execution, Frontend, Gradient, GradientCheck, Placement
from tflab.records.timed import (
    CriticalPath,
    Holder,
    LiveBytes,
    Memory,
    OpRun,
    Owner,
    Spread,
    StepTime,
)

FORWARD = graph(
    """x=Placeholder; w=VarHandleOp; read=ReadVariableOp(w); matmul=MatMul(x,read,^w);
    relu=Relu(matmul); dim=Range; loss=Mean(relu,dim,^read)"""
)
X, W, READ, MATMUL, RELU, DIM, LOSS = FORWARD
ADDED = graph(
    """seed=Fill(loss); relu_grad=ReluGrad(loss,relu); w_grad=MatMul(x,relu_grad);
    sum=AddN(w_grad); decay=Mul(w); update=Apply(w,sum); train=NoOp(^update,^decay)"""
)
SEED, RELU_GRAD, W_GRAD, SUM, DECAY, UPDATE, TRAIN = ADDED
WHOLE = (*FORWARD, *ADDED)

X_PLACED, W_PLACED = replace(X, device=CPU_0), replace(W, device=CPU_0)
FUSED, FAST_UPDATE = graph("relu=_FusedMatMul(x,read,^w); update=FastApply(w,sum)")
FOLDED, SHORT_LOSS = graph("dim_folded=Const; loss=Mean(relu,dim_folded,^read)")
ARG, FED, FED_GRAD = graph(
    f"_arg_x=_Arg@{CPU_0}; relu=_FusedMatMul(_arg_x,read,^w); w_grad=MatMul(_arg_x,relu_grad)"
)
RAN = (
    *(W_PLACED, READ, FED, SHORT_LOSS, RELU_GRAD, FED_GRAD, SUM, DECAY, FAST_UPDATE, TRAIN),
    *(FOLDED, ARG),
)

FRONTEND = blank(Frontend, None, FORWARD)
CHECKS = tuple(
    GradientCheck(name, error, 10, 20, "float64", False, 1e-4)
    for name, error in (("w", 2.5e-7), ("b", 4.1e-6), ("v", 3e-8))
)
BACKWARD = blank(
    Backward,
    None,
    WHOLE,
    added_nodes=tuple(node.name for node in ADDED),
    gradients=(
        Gradient("relu", "Relu", "_ReluGrad", ("relu_grad",), None),
        Gradient("matmul", "MatMul", "_MatMulGrad", ("w_grad",), None),
        Gradient("x", "Placeholder", None, (), "it does not depend on a trainable variable"),
    ),
    gradient_checks=CHECKS,
    variable_count=5,
    update_nodes=("decay", "update", "train"),
)
PASSES = (
    one_pass("placer: @x, @w", 14, 14, None, (X_PLACED, W_PLACED)),
    one_pass("layout: ", 14, 14, 0),
    one_pass(
        "remapper: -matmul, relu Relu>_FusedMatMul, update Apply>FastApply, ~relu, "
        "matmul fused relu",
        *(14, 13, 0, (FUSED, FAST_UPDATE)),
    ),
    one_pass("layout: ", 13, 13, 1),
    one_pass(
        "constant_folding: +dim_folded, -dim, -seed, ~loss, dim folded dim_folded, seed removed",
        *(13, 12, 1, (FOLDED, SHORT_LOSS)),
    ),
    one_pass(
        "feeds_and_fetches: +_arg_x, -x, ~relu, ~w_grad, x removed _arg_x",
        *(12, 12, None, (ARG, FED, FED_GRAD)),
    ),
    one_pass("memory_optimizer: ", 12, 12),
)
GONE = {
    fate.name: fate
    for fate in fates(
        "feeds_and_fetches: x removed _arg_x; remapper: matmul fused relu; "
        "constant_folding: dim folded dim_folded, seed unreached"
    )
}
REWRITTEN = {"relu": "remapper", "update": "remapper"}
PLACEMENT = blank(
    Placement,
    None,
    RAN,
    user_nodes=WHOLE,
    fetches=("train",),
    batch_size=16,
    data="points",
    passes=PASSES,
    ledger=tuple(
        GONE.get(node.name, Fate(node.name, "executed", REWRITTEN.get(node.name), None))
        for node in WHOLE
    ),
    origins=(Origin("dim_folded", "constant_folding"), Origin("_arg_x", "feed")),
    partitions=(
        Partition(CPU_0, tuple(node.name for node in RAN[:9])),
        Partition(CPU_1, tuple(node.name for node in RAN[9:])),
    ),
)

TOTALS = tuple(
    op_total(f"n{n}", f"Op{n}", 3 * n, 6_000 - 100 * n, 700.0 + n, n / 100) for n in range(1, 13)
)
CURVE = LiveBytes(
    step=5,
    points=((1_000, 2_048), (6_000, 5_120), (9_000, 0)),
    peak_bytes=5_120,
    peak_ns=6_000,
    holders=(
        Holder("relu", "_FusedMatMul", 2_048, running=True),
        Holder("read", "ReadVariableOp", 1_536, running=False),
        Holder("loss", "Mean", 1_024, running=False),
        Holder("decay", "Mul", 512, running=False),
    ),
)
MEMORY = Memory(CURVE.peak_bytes, CURVE)
EXECUTION = blank(
    Execution,
    None,
    RAN,
    batch_size=16,
    data="points",
    warmup_steps=2,
    steps=3,
    untraced_step_ns=Spread(4_100_000, 3_200_000, 9_300_000),
    traced_step_ns=Spread(5_400_000, 4_500_000, 9_600_000),
    runs=tuple(
        OpRun(step, name, op, CPU_0, 10_000_000 * step + start, lasted)
        for step, longer in ((5, 0), (6, 100), (7, 1_000))
        for name, op, start, lasted in (
            ("_SOURCE", "NoOp", 0, 10),
            ("read", "ReadVariableOp", 100, 300 + longer),
            ("relu", "_FusedMatMul", 2_000, 7_000 + longer),
            ("loss", "Mean", 12_000, 2_000 + longer),
        )
    ),
    step_times=(
        StepTime(5, 50_000_000, 5_500_000),
        StepTime(6, 60_000_000, 5_300_000),
        StepTime(7, 70_000_000, 7_200_000),
    ),
    top_ops=TOTALS,
    time_ledger=(
        Owner("before the first op (session and feeds)", 1_800_000),
        Owner("at least one op running", 9_000_000),
        Owner("no op running between ops (scheduling and waiting)", 4_500_000),
        Owner("after the last op (fetching, and collecting the trace)", 2_700_000),
    ),
    wall_ns=18_000_000,
    critical_path=CriticalPath(
        nodes=("read", "relu", "loss"), ns=9_600, parallelism=1.25, durations_ns=()
    ),
    memory=MEMORY,
)
STAGES = (FRONTEND, BACKWARD, PLACEMENT, EXECUTION)
