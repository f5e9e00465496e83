"""A lab by hand: what the tests of the chapters share, from measurements that were worked out."""

from collections import Counter
from dataclasses import replace

from tests.examples import walk
from tests.examples.comparison import COMPARISON, CONV, POOL, SOFTMAX, STEPS
from tests.records_by_hand import a_frontend, a_placement, op_row
from tflab.follow import node_history
from tflab.records.graph import Node
from tflab.records.measured import Epoch, History, Settings, TrainingStep
from tflab.records.placed import Fate
from tflab.records.timed import Spread
from tflab.report.contents import Lab, Walked


def row(rank):
    millions = 1_000_000 * rank
    return op_row(
        *(f"Op{rank}", f"Op{rank}", f"n{rank}", "", 1_000 + rank, 50_000_000 - millions),
        *(20_000 + 100 * rank, 10_000 + 100 * rank),
        *(0.2 - rank / 100, 512 * rank, 1_000 * rank, 1.5),
    )


ROWS = tuple(map(row, range(1, 13)))
MANY = replace(STEPS[64], steps=1_003, images=64_192, untraced_steps=1_003)
LATE = replace(SOFTMAX, cells={64: SOFTMAX.cells[64]})
COMPARED = replace(
    COMPARISON,
    data="points",
    rows=(POOL, CONV, LATE),
    steps={**STEPS, 64: MANY},
    configs=(),
    findings=("The first finding.", "The last finding."),
    tables={4: ROWS[3:5], 16: ROWS[5:7], 64: ROWS},
    load=None,
)
RACED = replace(COMPARED, batch_sizes=(4, 64), configs=COMPARISON.configs)
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
LINEAR = Walked("lenet", STAGES, node_history.histories(STAGES), Counter(w=6_000))

ADD = (Node("x", "Placeholder"), Node("mul", "Mul", ("x", "x")))
TOY_PLACED = a_placement(
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
TOY_STAGES = (a_frontend(None, ADD), TOY_PLACED, TOY_RAN)
TOY = Walked("toy", TOY_STAGES, node_history.histories(TOY_STAGES))
LAB = Lab(
    model="lenet",
    environment=(("CPUs", "2"), ("Python", "3.11.2")),
    walked=LINEAR,
    history=HISTORY,
    optimizer="MomentumOptimizer",
    recipe_epochs=8,
    compared=COMPARED,
)
