"""The report's chapters: every table and sentence, from a lab that was worked out by hand.

Plots have tests of their own; here a picture is its name and what is drawn in it.
"""

import math
from dataclasses import replace

import pytest

from tests.records_by_hand import BUSY, BUSY_LINE, op_at_size, op_stats, op_total
from tests.report import test_pass_log as walk
from tests.shown import grid, layout
from tflab.exporters import plots
from tflab.follow import node_history
from tflab.records import (
    Compared,
    Comparison,
    Diagnosis,
    Epoch,
    Fate,
    Frontend,
    History,
    Node,
    Peaks,
    Placement,
    Spread,
    StepTimes,
    TrainingStep,
)
from tflab.records.blocks import Frame, Strip, Table
from tflab.report import chapters, drawing
from tflab.report.contents import DrawnGraph, Lab, Recipe, Walked
from tflab.runtime import trace

PEAKS = Peaks(gflops=214.6, gigabytes_per_s=38.72)


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
    fit=None,
)
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        4: cell(6, 720_000, 120_000, 0.375),
        16: cell(9, 8_640_000, 960_000, 0.75),
    },
    fit=None,
)
LATE = Compared("Softmax", ("Softmax",), (), {64: cell(4, 5_200_000, 1_300_000, 0.5)}, None)
STEPS = {
    4: StepTimes(
        steps=11,
        images=48,
        untraced_ns=Spread(1_200_000, 1_100_000, 1_900_000),
        traced_ns=Spread(1_500_000, 1_400_000, 2_000_000),
        images_per_second=2_957.4,
        ops_ns=700_000,
        untraced_steps=12,
        peak_bytes=6 * 2**10,
    ),
    16: StepTimes(
        steps=5,
        images=48,
        untraced_ns=Spread(3_000_000, 2_700_000, 4_100_000),
        traced_ns=Spread(3_400_000, 3_300_000, 4_500_000),
        images_per_second=5_012.6,
        ops_ns=1_600_000,
        untraced_steps=6,
        peak_bytes=9 * 2**20,
    ),
    64: StepTimes(
        steps=1_003,
        images=64_192,
        untraced_ns=Spread(8_000_000, 7_200_000, 9_900_000),
        traced_ns=Spread(8_600_000, 8_300_000, 9_800_000),
        images_per_second=7_654.3,
        ops_ns=5_600_000,
        untraced_steps=1_003,
        peak_bytes=3 * 2**30,
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
        intensity=2.5,
        roof_share=0.5,
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
    cold=(
        op_total("conv1/Relu", "_FusedConv2D", 1, 486_000, 484_000, 485_000, 0.5),
        op_total("only/cold", "Const", 1, 96_000, 94_000, 95_000, 0.25),
    ),
    cold_step_ns=21_700_000,
    uncovered=(),
    tables={4: ROWS[3:5], 16: ROWS[5:7], 64: ROWS},
    images=70_000,
    warm_ns={"conv1/Relu": 121_000},
    peaks=PEAKS,
)
HISTORY = History(
    "lenet",
    "points",
    50,
    9,
    tuple(TrainingStep(n, 2.0, 0.1, 0.01, traced=4 <= n <= 8) for n in range(1, 1_206)),
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
    toy=TOY,
    walked=LINEAR,
    history=HISTORY,
    logdir=None,
    compared=COMPARED,
)
WARM = (
    "3 untraced steps and as many traced ones in turn, after 2 warm-up steps of each; "
    "batch size 16."
)
WALKING = "python -m tflab.lifecycle --model lenet --steps 3"
SWEPT = Recipe(
    "64,192 images of points at each batch size, untraced and traced in turn; the first 6 steps "
    "of each are not counted.",
    "python -m tflab.compare --model lenet --batch-sizes 4 16 64",
)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """A picture is its name and what is drawn in it."""
    for name in ("batch_sizes", "curves", "memory", "roofline", "timeline", "top_ops"):
        monkeypatch.setattr(getattr(plots, name), "draw", lambda *drawn, name=name: (name, *drawn))
    monkeypatch.setattr(chapters, "picture", lambda name, draw, *drawn: (name, draw(*drawn)))


def shown(parts):
    return [grid(part) if isinstance(part, Table) else part for part in parts]


def test_the_report_opens_with_what_it_is_about():
    report = chapters.report(LAB, "python -m tflab.report --model lenet")
    assert report.title == "The life of lenet"
    assert report.about == (
        "What a framework does between a line of Python and the machine, followed through two "
        "graphs: x*y + z, small enough to follow by eye, and lenet. Every node of them can be "
        "clicked, and each chapter says how its numbers were obtained."
    )
    assert report.command == "python -m tflab.report --model lenet"


def test_a_report_of_the_small_graph_has_it_once():
    small = replace(LAB, model="toy")
    assert [chapter.title for chapter in chapters.lives(small)] == ["The life of x*y + z"]
    whole = chapters.report(small, "")
    assert whole.title == "The life of x*y + z"
    assert whole.about == (
        "What a framework does between a line of Python and the machine, followed through x*y + "
        "z, a graph that is small enough to follow by eye. Every node of it can be clicked, and "
        "each chapter says how its numbers were obtained."
    )


def test_the_small_graph_on_two_devices_follows_the_same_on_one():
    titles = [chapter.title for chapter in chapters.lives(replace(LAB, toy_on_two=LAB.toy))]
    assert titles == [
        "The life of x*y + z",
        "x*y + z on two devices",
        f"The life of {LAB.model}",
    ]


def test_a_report_with_a_diagnosis_begins_with_it():
    slow = Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement")
    lab = replace(LAB, compared=replace(COMPARED, diagnosis=(slow,)))
    first, second, *_ = chapters.report(lab, "").chapters
    assert (first.title, second.title) == ("Why a step is slow", "Environment")
    sentences = Frame("", "", ("Transposes cost most.",))
    assert first.parts == (
        Strip("Why a step is slow, what costs most first", (sentences,)),
        SWEPT,
    )


def test_a_report_of_a_busy_machine_begins_with_that_and_repeats_it_at_its_times():
    times = replace(walk.EXECUTION, quality=BUSY)
    stages = tuple(times if stage is walk.EXECUTION else stage for stage in STAGES)
    walked = replace(LINEAR, stages=stages)
    lab = replace(LAB, compared=replace(COMPARED, quality=BUSY))
    assert chapters.report(lab, "").chapters[0].parts == (BUSY_LINE, SWEPT)
    assert next(chapters.times(walked)) == BUSY_LINE
    assert next(chapters.times(LINEAR)) != BUSY_LINE


def test_on_a_busy_machine_batch_sizes_are_not_held_against_one_another():
    assert "take" in chapters.finding_at(COMPARED, 16).partition(";")[2]
    assert (
        chapters.finding_at(replace(COMPARED, quality=BUSY), 16)
        == (chapters.finding_at(COMPARED, 16).partition(";")[0])
    )


def test_each_chapter_holds_what_its_title_says():
    report = chapters.report(LAB, "")
    assert [(chapter.title, shown(chapter.parts)) for chapter in report.chapters] == [
        ("Environment", shown(chapters.environment(LAB))),
        ("The life of x*y + z", shown(chapters.graph(TOY, "x*y + z"))),
        ("The life of lenet", shown(chapters.graph(LINEAR, "lenet"))),
        ("Loss and accuracy", shown(chapters.training(LAB))),
        ("The ten ops that cost most", shown(chapters.top_ops(LAB))),
        ("Batch sizes", shown(chapters.batch_sizes(COMPARED))),
        ("Where a step's time goes", shown(chapters.times(LINEAR))),
        ("Memory", shown(chapters.memory(LINEAR))),
        ("Roofline", shown(chapters.roofline(LAB))),
        ("How each number was obtained", shown(chapters.methods(LAB))),
    ]


def test_the_environment_is_what_was_found_and_what_was_measured():
    assert shown(chapters.environment(LAB)) == [
        ["Environment, by inspection", ("", ""), ("CPUs", "2"), ("Python", "3.11.2"), 0],
        [
            "Configuration that was measured",
            ("", ""),
            ("Model", "lenet, as a graph that a session runs"),
            ("Data", "points"),
            ("Devices", "2 devices"),
            ("Batch sizes", "1, 16, 64; 16 in the drawings"),
            ("Graph passes", "all that the runtime has on by itself; XLA is off"),
            0,
        ],
    ]


def test_the_life_of_a_graph_is_its_sizes_its_drawing_and_its_account():
    assert shown(chapters.graph(LINEAR, "a linear model")) == [
        "a linear model was written as 7 nodes. With its gradients and updates it has 14. The "
        "runtime left 10 of them, beside 2 nodes of its own. They took 4.10 ms a step for a batch "
        "of 16. Forward flows down on the left; the gradients flow up beside it, each at the "
        "layer that it derives; the updates of the variables stand on the right.",
        DrawnGraph(
            name="a linear model",
            drawing=drawing.draw(STAGES, LINEAR.histories),
            histories=LINEAR.histories,
            ns={trace.EXECUTOR: 10, "read": 400, "relu": 7_100, "loss": 2_100},
            batch_size=16,
        ),
        [
            "What became of the 14 nodes of the graph",
            ("fate", "nodes", ""),
            ("executed", "10", "of them rewritten: 2 by remapper"),
            ("removed", "1", "1 by feeds_and_fetches"),
            ("fused", "1", "1 by remapper"),
            ("folded", "1", "1 by constant_folding"),
            ("unreached", "1", "1 by constant_folding"),
            0,
        ],
        "10 executed under their own name + 2 that the runtime made (constant_folding, feed) = 12 "
        "that run.",
        Recipe(
            f"Colours and times in the drawing: {WARM} Times at each batch size in the panel: "
            "traced steps, folded as they came.",
            f"{WALKING}\npython -m tflab.follow matmul --model lenet",
        ),
    ]


def test_the_life_of_a_graph_without_gradients_or_passes_says_nothing_of_them():
    parts = shown(chapters.graph(TOY, "x*y + z"))
    assert parts[0] == (
        "x*y + z was written as 2 nodes. The runtime left 1 of them, beside 2 nodes of its own. "
        "They took 62.0 us a step for a batch of 5. Data flow down."
    )
    assert parts[2:] == [
        Recipe(
            "Colours and times in the drawing: 7 untraced steps and as many traced ones in turn, "
            "after 4 warm-up steps of each; batch size 5. Times at each batch size in the panel: "
            "traced steps, folded as they came.",
            "python -m tflab.lifecycle --model toy --steps 7\npython -m tflab.follow x --model toy",
        )
    ]


def test_a_graph_with_gradients_that_nobody_applies_tells_of_those_alone():
    histories = {name: node for name, node in LINEAR.histories.items() if node.kind != "update"}
    derived = replace(LINEAR, histories=histories)
    assert chapters.sizes(derived) == "written as 7 nodes. With its gradients it has 14"
    assert chapters.layout(derived) == (
        "Forward flows down on the left; the gradients flow up beside it, each at the layer that "
        "it derives."
    )


def test_a_graph_from_a_file_was_read(tmp_path):
    path = tmp_path / "frozen.pb"
    path.touch()
    assert chapters.sizes(replace(TOY, model=str(path))) == "read from a file as 2 nodes"


def test_a_training_is_its_curves_and_all_of_its_epochs():
    assert shown(chapters.training(LAB)) == [
        ("curves", ("curves", HISTORY)),
        [
            "Epochs on points",
            (
                *("epoch", "steps", "train loss", "train accuracy", "test loss", "test accuracy"),
                *("seconds", "images a second"),
            ),
            ("1", "402", "0.3931", "87.49 %", "0.0742", "97.71 %", "2.3", "25,974"),
            ("2", "804", "0.0338", "99.93 %", "0.0305", "99.26 %", "2.8", "26,667"),
            ("3", "1,205", "0.0123", "99.96 %", "0.0234", "99.34 %", "3.3", "27,888"),
            0,
        ],
        Recipe(
            "Trained for this report. Losses and accuracies are means over images; the test reads "
            "all test images at the end of each epoch. Steps 4 to 8 were traced: they are in the "
            "seconds and not in the images a second.",
            "python -m tflab.train --model lenet --epochs 3 --batch-size 50 --seed 9",
        ),
    ]


def test_a_training_that_was_read_says_from_where_and_one_that_broke_off_that_it_did():
    lab = replace(LAB, logdir="runs/lenet", history=replace(HISTORY, interrupted=True))
    _, partial, _, recipe = chapters.training(lab)
    assert partial == "Partial: this training ended before its last epoch."
    assert recipe.how.startswith("Read from runs/lenet. Losses and accuracies are means over ")


def test_a_model_without_a_loss_says_that_there_is_nothing_to_train():
    assert list(chapters.training(replace(LAB, history=None))) == [
        "lenet has no loss, so there is nothing to train."
    ]


def test_a_training_without_right_answers_has_no_columns_for_them():
    silent = tuple(
        replace(epoch, train_accuracy=math.nan, test_accuracy=math.nan) for epoch in HISTORY.epochs
    )
    _, table, recipe = chapters.training(replace(LAB, history=replace(HISTORY, epochs=silent[:1])))
    assert grid(table)[1:] == [
        ("epoch", "steps", "train loss", "test loss", "seconds", "images a second"),
        ("1", "402", "0.3931", "0.0742", "2.3", "25,974"),
        0,
    ]
    assert recipe.how.startswith("Trained for this report. Losses are means over images; ")


def test_the_ten_nodes_and_the_ten_types_that_cost_most():
    assert shown(chapters.top_ops(LAB)) == [
        ("top_ops", ("top_ops", walk.TOTALS)),
        [
            "A training step's nodes (self time, 3 traced steps)",
            ("node", "type that ran", "calls", "self", "a call", "share"),
            ("n1", "Op1", "3", "5.90 us", "701 ns", "1.0 %"),
            ("n2", "Op2", "6", "5.80 us", "702 ns", "2.0 %"),
            ("n3", "Op3", "9", "5.70 us", "703 ns", "3.0 %"),
            ("n4", "Op4", "12", "5.60 us", "704 ns", "4.0 %"),
            ("n5", "Op5", "15", "5.50 us", "705 ns", "5.0 %"),
            ("n6", "Op6", "18", "5.40 us", "706 ns", "6.0 %"),
            ("n7", "Op7", "21", "5.30 us", "707 ns", "7.0 %"),
            ("n8", "Op8", "24", "5.20 us", "708 ns", "8.0 %"),
            ("n9", "Op9", "27", "5.10 us", "709 ns", "9.0 %"),
            ("n10", "Op10", "30", "5.00 us", "710 ns", "10.0 %"),
            2,
        ],
        Recipe(WARM, WALKING),
        [
            "Batch 64: the time it took, the most expensive first",
            (
                *("type that ran", "calls", "total", "self", "mean", "median", "p95"),
                *("share", "cumulative"),
            ),
            *(
                (
                    *(f"Op{n}", f"1,{n:03}", f"{50 - n}.0 ms", f"{30 - n}.0 ms"),
                    *(f"{20 + n / 10:.1f} us", f"{10 + n / 10:.1f} us", f"{70 + n / 10:.1f} us"),
                    *(f"{20 - n}.0 %", f"{10 + 5 * n}.0 %"),
                )
                for n in range(1, 11)
            ),
            2,
        ],
        SWEPT,
    ]


def test_the_nodes_of_a_model_that_does_not_train_are_those_of_a_step():
    _, table, *_ = chapters.top_ops(replace(LAB, walked=TOY))
    assert table.title == "A step's nodes (self time, 7 traced steps)"


def test_the_batch_sizes_are_handed_in_then_told_in_full():
    assert shown(chapters.batch_sizes(COMPARED)) == [
        [
            "lenet, inference: what was found at each batch size",
            ("batch", "a step, median", "an image", "images a second, mean", "found"),
            (
                *("4", "1.20 ms", "300 us", "2,957"),
                "_FusedConv2D takes 62.5 % of the op time, 100 us a call",
            ),
            (
                *("16", "3.00 ms", "188 us", "5,013"),
                "MaxPool takes 75.0 % of the op time, 960 us a call; 4 x the images of batch 4 "
                "take 2.5 x as long",
            ),
            (
                *("64", "8.00 ms", "125 us", "7,654"),
                "Softmax takes 50.0 % of the op time, 1.30 ms a call; 4 x the images of batch 16 "
                "take 2.7 x as long",
            ),
            0,
        ],
        ("batch_sizes", ("batch_sizes", COMPARED)),
        [
            "A call at each batch size (and its ratio to the one before); fixed cost + cost an "
            "image",
            ("type that ran", "batch 4", "batch 16", "batch 64", "fit", "error"),
            (
                *("_FusedConv2D", "100 us", "160 us (1.6 x)", "400 us (2.5 x)"),
                *("80.0 us + 5.00 us", "0.0 %"),
            ),
            ("MaxPool", "120 us", "960 us (8.0 x)", "", "", ""),
            ("Softmax", "", "", "1.30 ms", "", ""),
            0,
        ],
        Strip(
            "Findings, each computed from the tables",
            (Frame("", "", ("The first finding.", "The last finding.")),),
        ),
        [
            "Steps: median, and the middle eight tenths",
            (
                *("batch", "traced steps", "untraced", "p10", "p90", "images a second"),
                *("traced", "its ops", "memory peak"),
            ),
            (
                *("4", "11 of 12", "1.20 ms", "1.10 ms", "1.90 ms", "2,957"),
                *("1.50 ms", "700 us", "6.00 KB"),
            ),
            (
                *("16", "5 of 6", "3.00 ms", "2.70 ms", "4.10 ms", "5,013"),
                *("3.40 ms", "1.60 ms", "9.00 MB"),
            ),
            (
                *("64", "1,003", "8.00 ms", "7.20 ms", "9.90 ms", "7,654"),
                *("8.60 ms", "5.60 ms", "3.00 GB"),
            ),
            0,
        ],
        [
            "Cold: the first step of all, at batch 4, took 21.7 ms, a warm one 1.50 ms; kernels "
            "and memory were set up",
            ("node", "type that ran", "first run", "warm", "ratio"),
            ("conv1/Relu", "_FusedConv2D", "484 us", "121 us", "4 x"),
            ("only/cold", "Const", "94.0 us", "", ""),
            0,
        ],
        SWEPT,
    ]


def test_a_comparison_that_found_nothing_has_no_findings():
    parts = list(chapters.batch_sizes(replace(COMPARED, findings=())))
    assert not [part for part in parts if isinstance(part, Strip)]


def test_the_times_of_a_step_are_its_lengths_its_owners_and_its_middle_step():
    middle = walk.EXECUTION.step_times[0]
    runs = [run for run in walk.EXECUTION.runs if run.step == 5][1:]
    assert [run.name for run in runs] == ["read", "relu", "loss"]
    assert shown(chapters.times(LINEAR)) == [
        [
            "Time of a step",
            ("step", "median", "p10", "p90"),
            ("untraced", "4.10 ms", "3.20 ms", "9.30 ms"),
            ("traced", "5.40 ms", "4.50 ms", "9.60 ms"),
            0,
        ],
        [
            "Who owned the wall time of the traced steps",
            ("owner", "a step", "share"),
            ("before the first op (session, feeds)", "600 us", "10.0 %"),
            ("at least one op running", "3.00 ms", "50.0 %"),
            ("no op running between ops (scheduling, waiting)", "1.50 ms", "25.0 %"),
            ("after the last op (fetches and collecting the trace, as one)", "900 us", "15.0 %"),
            0,
        ],
        ("timeline", ("timeline", runs, middle, walk.EXECUTION.critical_path)),
        "In the step of median length at most 4 ops ran at once, 1.75 on average. No op ran of "
        "CPU:0 for 25.0 %, of CPU:1 for 40.0 % of it: the runtime itself may have worked "
        "meanwhile, so that is not idle time.",
        "The longest chain of dependent ops has 3 nodes and takes 9.60 us, by median traced "
        "times: a model in which every op has a processor. All ops together are 1.25 x as much "
        "work. While any of them ran, 1.12 ran at once on average.",
        Recipe(WARM, WALKING),
    ]


def test_the_memory_of_a_step_is_its_curve_and_who_held_it():
    assert list(chapters.memory(LINEAR)) == [
        ("memory", ("memory", walk.EXECUTION.memory.curve)),
        "The ops had at most 7.00 KB alive at once; relu asked for most, 3.00 KB a step. The step "
        "of median length had most alive after 6.00 us: 5.00 KB, allocated by 4 ops, the "
        "largest parts by relu (2.00 KB, still running), read (1.50 KB), loss (1.00 KB).",
        Recipe(
            f"From what each op asked its allocators for in traced steps. {WARM}",
            WALKING,
        ),
    ]


def test_a_step_without_a_memory_curve_has_no_picture_of_it():
    memory = replace(walk.EXECUTION.memory, curve=None)
    stages = (*STAGES[:-1], replace(walk.EXECUTION, memory=memory))
    text, _ = chapters.memory(replace(LINEAR, stages=stages))
    assert text == (
        "The ops had at most 7.00 KB alive at once; relu asked for most, 3.00 KB a step."
    )


def test_the_roofline_is_that_of_the_largest_batch_below_this_machines_roof():
    assert list(chapters.roofline(LAB)) == [
        ("roofline", ("roofline", ROWS, PEAKS)),
        Recipe(
            "Inference at batch 64. FLOPs are counted from shapes, bytes are those of all inputs "
            "and outputs. The roof is this machine's, by a benchmark of 3 seconds: 215 GFLOP/s and "
            "38.7 GB/s.",
            "python -m tflab.compare --model lenet --batch-sizes 64",
        ),
    ]


def test_without_peaks_of_this_machine_there_is_no_roofline():
    lab = replace(LAB, compared=replace(COMPARED, peaks=None))
    assert list(chapters.roofline(lab)) == [
        "There is no roof: this machine's peaks were not measured."
    ]


METHODS = [
    "Steps, warm-up, tracing",
    ("numbers", "steps", "warm-up, not counted", "traced or not"),
    ("Step times, ledger, path, memory", "3", "2", "in turn"),
    ("Batch sizes, 64,192 images at each", "11, 5, 1,003", "6", "in turn"),
    ("The cold step", "1", "0", "traced, in a process of its own"),
]


def test_it_closes_with_how_each_number_was_obtained():
    assert shown(chapters.methods(LAB)) == [
        [*METHODS, ("Loss and accuracy", "1,205", "0", "untraced but for 5"), 0],
        "In turn: an untraced step, then a traced one, so that both see the same machine. The "
        "untraced time is what a step takes; the traced one, which is longer, says of what. "
        "Passes, devices and the graph that ran are read from the runtime's own dumps; what "
        "became of a "
        "node is worked out from the graphs before and after each pass.",
    ]


def test_without_a_training_no_numbers_of_one_were_obtained():
    table, _ = chapters.methods(replace(LAB, history=None))
    assert grid(table) == [*METHODS, 0]


def test_a_picture_is_drawn_for_a_page_and_again_for_a_phone(monkeypatch):
    monkeypatch.undo()
    from tflab.exporters.plots import style

    def draw(title, sentence):
        return style.canvas(title, sentence, 2.0)[0]

    drawn = chapters.picture("roofline", draw, "What it shows", "It is here.")
    assert (drawn.name, drawn.caption) == ("roofline", "What it shows. It is here.")
    assert drawn.svg.startswith('<svg width="540pt"')
    assert drawn.narrow.startswith('<svg width="352.8pt"')
    assert drawn.png.startswith(b"\x89PNG")


def test_numbers_stand_right_and_what_is_long_gives_way():
    def layouts(parts):
        return [layout(part) for part in parts if isinstance(part, Table)]

    assert layouts(chapters.environment(LAB)) == 2 * [["", " gives way to 16"]]
    assert layouts(chapters.training(LAB)) == [
        [
            *("epoch right", "steps right", "train loss right", "train accuracy right"),
            *("test loss right", "test accuracy right", "seconds right"),
            "images a second right",
        ]
    ]
    assert layouts(chapters.top_ops(LAB))[0] == [
        *("node gives way to 16", "type that ran", "calls right", "self right"),
        *("a call right", "share right"),
    ]
    assert layout(chapters.table_of_batch_sizes(COMPARED)) == [
        *("batch right", "a step, median right", "an image right"),
        *("images a second, mean right", "found gives way to 16"),
    ]
    assert layouts(chapters.methods(LAB)) == [
        [
            *("numbers gives way to 16", "steps right", "warm-up, not counted right"),
            "traced or not",
        ]
    ]
