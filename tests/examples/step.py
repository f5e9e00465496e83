"""Four measured steps by hand."""

from tests.records_by_hand import op_total
from tflab.records.stages import Execution
from tflab.records.timed import (
    CriticalPath,
    Holder,
    LiveBytes,
    Memory,
    OpMemory,
    Owner,
    Spread,
    StepTime,
)

TYPES = (
    op_total("Conv2D", "_FusedConv2D", 8, 6_400_000, 5_600_000, 800_000.0, 0.7),
    op_total("MatMul", "_MklMatMul", 12, 2_400_000, 1_920_000, 200_000.0, 0.24),
    op_total("Const", "Const", 1_004, 602_400, 480_000, 600.0, 0.06),
)
OPS = (
    op_total("conv1/Relu", "_FusedConv2D", 4, 4_000_000, 3_600_000, 1_000_000.0, 0.45),
    op_total("dense/add", "_MklMatMul", 16, 2_080_000, 2_000_000, 130_000.0, 0.25),
)
PATH = CriticalPath(
    nodes=("x", "conv1/Relu", "loss"),
    ns=1_250_000.0,
    parallelism=2.507,
)
STEP_TIMES = (
    StepTime(0, 100, 2_900_000),
    StepTime(1, 200, 2_200_000),
    StepTime(2, 300, 2_500_000),
    StepTime(3, 400, 2_800_000),
)
CURVE = LiveBytes(
    step=2,
    points=((0, 4_096), (700_000, 2_048)),
    peak_bytes=3 * 2**20,
    peak_ns=812_000,
    holders=(
        Holder("conv1/Relu", "_FusedConv2D", 2 * 2**20, running=True),
        Holder("dense/add", "_MklMatMul", 512 * 2**10, running=False),
        Holder("loss", "Mean", 384 * 2**10, running=False),
        Holder("x", "_Arg", 128 * 2**10, running=True),
    ),
)
MEMORY = Memory(
    per_op=(OpMemory("dense/add", 5 * 2**20), OpMemory("conv1/Relu", 2**20)),
    peak_bytes=7 * 2**19,
    curve=CURVE,
)
STAGE = Execution(
    program=None,
    nodes=(),
    batch_size=16,
    data="MNIST",
    warmup_steps=3,
    steps=4,
    untraced_step_ns=Spread(2_400_000, 2_100_000, 3_300_000),
    traced_step_ns=Spread(2_700_000, 2_250_000, 3_600_000),
    runs=(),
    step_times=STEP_TIMES,
    top_ops=OPS,
    top_types=TYPES,
    time_ledger=(
        Owner("before the first op", 416_000),
        Owner("at least one op running", 8_112_000),
        Owner("no op running between ops", 1_352_000),
        Owner("after the last op", 520_000),
    ),
    wall_ns=10_400_000,
    critical_path=PATH,
    memory=MEMORY,
)
