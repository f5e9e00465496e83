"""Records of every picture, in which no two times or sizes are alike."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from tests.examples import comparison, walk
from tests.examples.comparison import CONST_AT_4, CONV_AT_16
from tests.maps_by_hand import IMAGES, MAPS
from tests.records_by_hand import op_stats
from tflab.exporters import plots
from tflab.exporters.plots.graph import Box, Lane
from tflab.records.measured import Compared, Epoch, History, OpStats, Settings, TrainingStep
from tflab.records.timed import CriticalPath, Holder, LiveBytes, OpRun, StepTime
from tflab.records.values import LAYER, FeatureMap

NAN = float("nan")

# Curves: 2 epochs of 3 steps. The test is right more often than the training, its loss another one.

RIGHT = (0.125, 0.25, 0.375, 0.5, 0.625, 0.6875)
HISTORY = History(
    Settings("lenet", "MNIST", 48, 16, batch_size=16, epochs=2, seed=7),
    steps=tuple(
        TrainingStep(n, loss, RIGHT[n - 1], 0.05 / n, 1.0)
        for n, loss in enumerate((2.4, 1.5, 1.2, 0.9, 0.8, 0.6), 1)
    ),
    epochs=(
        Epoch(1, 3, 1.7, 0.3, 1.1, 0.4, seconds=2.0, images_per_second=24.0),
        Epoch(2, 6, 0.77, 0.6, 0.5537, 0.7375, seconds=1.5, images_per_second=32.0),
    ),
)
LOSS_ONLY = replace(
    HISTORY,
    steps=tuple(
        replace(step, accuracy=NAN, loss=NAN if step.step == 2 else step.loss)
        for step in HISTORY.steps
    ),
    epochs=tuple(replace(one, train_accuracy=NAN, test_accuracy=NAN) for one in HISTORY.epochs),
)
# 450 steps in blocks of 3, each of a low, a middle and a high one
BLOCKS = replace(
    HISTORY,
    steps=tuple(
        TrainingStep(n, (1.0, 2.0, 36.0)[n % 3], (0.6, 0.7, 0.95)[n % 3], 0.1, 1.0)
        for n in range(1, 451)
    ),
    epochs=(Epoch(1, 450, 3.0, 0.75, 0.5, 0.8, 2.0, 24.0),),
)

# Op bars: rows of two steps


def row(key: str, us: float, share: float) -> OpStats:
    return op_stats(key=key, share=share, total_ns=us * 2_000, step_ns=us * 1_000)


LAYERS = (
    row("(added by the runtime)", 20, 0.02),
    row("conv1", 300, 0.30),
    row("pool1", 80, 0.08),
    row("conv2", 550, 0.55),
    row("dense", 50, 0.05),
)
OPS = tuple(row(f"op{n}", n, n / 100) for n in range(1, 13))

# Batch sizes: eight rows, of which one took no time at one size, and one ran at one only


def compared(key: str, **cells: OpStats) -> Compared:
    return Compared(key, (f"Op{key}",), (), {int(name[1:]): cell for name, cell in cells.items()})


LATE = compared("late", b16=CONV_AT_16)
COMPARISON = replace(
    comparison.COMPARISON,
    rows=(
        *comparison.COMPARISON.rows,
        compared("slow", b4=replace(CONST_AT_4, total_ns=0), b16=replace(CONV_AT_16, share=0.05)),
        LATE,
        compared(
            "dense", b4=replace(CONST_AT_4, share=0.1), b64=replace(CONST_AT_4, total_ns=9_001)
        ),
        compared("loss", b64=replace(CONST_AT_4, share=0.002)),
    ),
    findings=(),
)
SINGLE = replace(
    COMPARISON,
    batch_sizes=(16,),
    rows=(LATE,),
    steps={16: COMPARISON.steps[16]},
    interrupted=True,
    unit="row",
)
ALIKE = {1: COMPARISON.steps[16], 16: COMPARISON.steps[16]}  # the same times

# The timeline of one step, and the memory of another

JOB = "/job:localhost/replica:0/task:0/device:"
START = 7_000_000  # of the step, on the clock
STEP = StepTime(step=5, start_ns=START, wall_ns=2_000_000)


def run(name: str, op: str, device: str, start_us: int, us: int, step: int = 5) -> OpRun:
    return OpRun(step, name, op, JOB + device, START + start_us * 1000, us * 1000)


RUNS = (
    run("net/other", "Mul", "CPU:0", 250, 900, step=4),
    run("net/dense", "MatMul", "CPU:0", 900, 700),
    run("net/conv", "Conv2D", "CPU:0", 100, 500),
    run("net/copy", "Copy", "CPU:1", 150, 300),
    run("net/side", "Mul", "CPU:0", 300, 400),
    run("net/late", "Send", "CPU:1", 1_700, 240),
)
PATH = CriticalPath(
    nodes=("net/conv", "net/dense"), ns=1_200_000.0, parallelism=1.4, durations_ns=()
)
# A letter needs 2 ms * 5.5 / 460, which is 24 us: 6 letters 144 us, 5 letters 120 us
SHORT = (
    run("net/conv", "Op", "CPU:0", 100, 144),
    run("net/conv", "Op", "CPU:0", 400, 143),
    run("ab", "Op", "CPU:0", 600, 60),  # 2 letters are too few, even of so short a name
    run("net/long", "Mul", "CPU:0", 1_700, 600),  # out of the step
)

CURVE = replace(walk.CURVE, points=((-20, 512), *walk.CURVE.points))
BAD = FeatureMap(
    "bad", LAYER, (1, 4, 20), np.array([[[np.nan], [2.0], [np.inf], [0.0]]]), gradient=None
)

# Name of an approved file -> the picture, and what `draw` takes
# Graph: an edge between neighbouring rows, one through a lane, one that goes up

A, LONG, C, END = (
    Box("a", "a", "Placeholder"),
    Box("b/", "b with a long name", "3 Const, MatMul"),
    Box("c", "c", "MatMul"),
    Box("e", "e", "Add"),
)
LAYERED = (A, LONG), (Lane("a", "e"), C), (END,)
SHAPES = {
    ("a", "c"): "?x28x28x6",
    ("b/", "c"): "?",
    ("c", "e"): "4x2",
    ("a", "e"): "",
    ("e", "c"): "7",
}

EXAMPLES = {
    "curves": ("curves", HISTORY),
    "graph": ("graph", "lenet", LAYERED, SHAPES),
    "curves-in-blocks": ("curves", BLOCKS),
    "curves-before-a-test": ("curves", replace(HISTORY, epochs=())),
    "curves-of-losses": ("curves", LOSS_ONLY),
    "op_bars": ("op_bars", LAYERS, "layer"),
    "op_bars-of-ops": ("op_bars", OPS, "op"),
    "op_bars-below-5-percent": ("op_bars", LAYERS[4:], "layer"),
    "batch_sizes": ("batch_sizes", COMPARISON),
    "batch_sizes-of-one": ("batch_sizes", SINGLE),
    "batch_sizes-without-a-difference": ("batch_sizes", replace(SINGLE, steps=ALIKE)),
    "timeline": ("timeline", RUNS, STEP, PATH),
    "timeline-of-short-ops": ("timeline", SHORT, STEP, replace(PATH, nodes=("net/long",))),
    "memory": ("memory", CURVE),
    "memory-of-nobody": ("memory", replace(CURVE, holders=())),
    "feature_maps": ("feature_maps", MAPS),
    "feature_maps-not-finite": (
        "feature_maps",
        replace(MAPS, maps=(BAD,), probabilities=None, left_out=1),
    ),
}
# The same where there is nothing to draw
EMPTY = {
    "curves": (replace(HISTORY, steps=(), epochs=()),),
    "op_bars": ((), "layer"),
    "batch_sizes": (replace(COMPARISON, rows=(), steps={}, batch_sizes=()),),
    "timeline": (RUNS, StepTime(9, START, 340_000), PATH),
    "graph": ("lenet", (), {}),
    "memory": (LiveBytes(8, (), 0, 0, ()),),
    "feature_maps": (replace(MAPS, maps=(), probabilities=None),),
}


def hostile(name: str) -> dict[str, tuple]:
    """Return for each picture what has this name in all places."""
    return {
        "curves": (replace(HISTORY, settings=replace(HISTORY.settings, model=name, data=name)),),
        "op_bars": ((row(name, 1, 1), row(name + "2", 2, 1)), "node"),
        "batch_sizes": (replace(SINGLE, model=name, rows=(compared(name, b16=CONV_AT_16),)),),
        "timeline": (
            [RUNS[1]._replace(name=name, device=name, start_ns=START, duration_ns=2_000_000)],
            STEP,
            replace(PATH, nodes=(name,)),
        ),
        "graph": (name, ((Box("a", name, name),), (Box("c", name, name),)), {("a", "c"): "2"}),
        "memory": (replace(CURVE, holders=(Holder(name, "X", 1, False),)),),
        "feature_maps": (replace(MAPS, maps=(replace(IMAGES, name=name),)),),
    }


def draw(name: str) -> Figure:
    picture, *records = EXAMPLES[name]
    return getattr(plots, picture).draw(*records)
