"""A lab by hand: what the tests of the chapters share, from measurements that were worked out."""

from dataclasses import replace

from tests.examples import walk
from tests.records_by_hand import config_times, op_at_size, op_stats, step_times, verdict
from tests.shown import grid
from tflab.follow import node_history
from tflab.records.blocks import Table
from tflab.records.graph import Node
from tflab.records.measured import Compared, Comparison
from tflab.records.placed import Fate
from tflab.records.stages import Frontend, Placement
from tflab.records.timed import Spread
from tflab.records.trained import Epoch, History, Settings, TrainingStep
from tflab.report.contents import Lab, Walked


def cell(calls, total_ns, mean_ns, share):
    return op_at_size(calls, total_ns, mean_ns, 7_777, share, 2**20, 6.24)


CONV = Compared(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    fused_from=("conv1/Conv2D", "conv1/Relu"),
    cells={
        4: cell(12, 1_200_000, 100_000, 0.625),
        16: cell(18, 2_880_000, 160_000, 0.25),
        64: cell(3, 1_200_000, 400_000, 0.125),
    },
)
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        4: cell(6, 720_000, 120_000, 0.375),
        16: cell(9, 8_640_000, 960_000, 0.75),
    },
)
LATE = Compared("Softmax", ("Softmax",), (), {64: cell(4, 5_200_000, 1_300_000, 0.5)})
STEPS = {
    4: step_times(
        (11, 48, 12, 6 * 2**10), (1_200, 1_100, 1_900), (1_500, 1_400, 2_000), 2_957.4, ops_us=700
    ),
    16: step_times(
        (5, 48, 6, 9 * 2**20), (3_000, 2_700, 4_100), (3_400, 3_300, 4_500), 5_012.6, ops_us=1_600
    ),
    64: step_times(
        (1_003, 64_192, 1_003, 3 * 2**30),
        *((8_000, 7_200, 9_900), (8_600, 8_300, 9_800), 7_654.3, 5_600),
    ),
}


def row(rank):
    return op_stats(
        key=f"Op{rank}",
        ops=(f"Op{rank}",),
        nodes=(f"n{rank}",),
        fused_from=(),
        calls=1_000 + rank,
        total_ns=50_000_000 - 1_000_000 * rank,
        self_ns=30_000_000 - 1_000_000 * rank,
        mean_ns=20_000 + 100 * rank,
        median_ns=10_000 + 100 * rank,
        p95_ns=70_000 + 100 * rank,
        share=0.2 - rank / 100,
        cumulative_share=0.1 + rank / 20,
        requested_bytes=512 * rank,
        flops=1_000 * rank,
        gflops=1.5,
    )


ROWS = tuple(map(row, range(1, 13)))
COMPARED = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="points",
    warmup=6,
    batch_sizes=(4, 16, 64),
    rows=(CONV, POOL, LATE),
    steps=STEPS,
    configs=(),
    findings=("The first finding.", "The last finding."),
    tables={4: ROWS[3:5], 16: ROWS[5:7], 64: ROWS},
    images=70_000,
)
RACED = replace(
    COMPARED,
    batch_sizes=(4, 64),
    configs=(
        config_times("default", 4, 1_100_000),
        config_times("xla", 4, 2_200_000, 1_050_000, verdict(2.0, True)),
        config_times("default", 64, 7_900_000),
        config_times("xla", 64, 7_900_000, 7_950_000, verdict(1, False)),
    ),
)
HISTORY = History(
    Settings("lenet", "points", 20_058, 1_000, batch_size=50, epochs=3, seed=9),
    tuple(TrainingStep(n, 2.0, 0.1, 0.01, 0.01) for n in range(1, 1_206)),
    (
        Epoch(1, 402, 0.39312, 0.87491, 0.07424, 0.97713, 2.31, 25_974.4),
        Epoch(2, 804, 0.03384, 0.99932, 0.03051, 0.99264, 2.75, 26_667.3),
        Epoch(3, 1_205, 0.01234, 0.99961, 0.02345, 0.99337, 3.26, 27_888.2),
    ),
)
STAGES = walk.STAGES
LINEAR = Walked("lenet", STAGES, node_history.histories(STAGES))

ADD = (Node("x", "Placeholder"), Node("mul", "Mul", ("x", "x")))
TOY_PLACED = Placement(
    None,
    (ADD[0], ADD[1], Node("made", "Const")),
    user_nodes=ADD,
    ledger=(Fate("x", "removed", None, None), Fate("mul", "executed", None, None)),
    partitions=walk.PLACEMENT.partitions[:1],
)
TOY_RAN = replace(
    walk.EXECUTION,
    batch_size=5,
    steps=7,
    warmup_steps=4,
    untraced_step_ns=Spread(62_000, 51_000, 93_000),
)
TOY_STAGES = (Frontend(None, ADD), TOY_PLACED, TOY_RAN)
TOY = Walked("toy", TOY_STAGES, node_history.histories(TOY_STAGES))
LAB = Lab(
    model="lenet",
    environment=(("CPUs", "2"), ("Python", "3.11.2")),
    walked=LINEAR,
    history=HISTORY,
    compared=COMPARED,
)


def shown(parts):
    return [grid(part) if isinstance(part, Table) else part for part in parts]
