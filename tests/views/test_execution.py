"""The view of the execution: every sentence and every cell, of four steps made by hand."""

from dataclasses import replace

from tests.records_by_hand import CPU_0, CPU_1, LOAD, LOAD_LINE, op_total, read
from tflab.records.graph import Node
from tflab.records.stages import Execution
from tflab.records.timed import (
    CriticalPath,
    Holder,
    KernelTime,
    LiveBytes,
    Memory,
    Occupancy,
    OpMemory,
    Owner,
    Race,
    Spread,
    StepShape,
    StepTime,
)
from tflab.records.verdicts import Experiment, Untried, Verdict
from tflab.views import stages

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
    achieved_parallelism=1.751,
    slack=(("x", 0.0), ("conv1/Relu", 0.0), ("dense/add", 142_000.0), ("loss", 0.0)),
)


def shape(most: int, mean: float, *idle: float) -> StepShape:
    devices = zip((CPU_0, CPU_1), idle, strict=False)
    return StepShape(most, mean, tuple(Occupancy(cpu, 77, share) for cpu, share in devices))


STEP_TIMES = (
    StepTime(0, 100, 2_900_000, shape(7, 3.33, 0.3, 0.4)),
    StepTime(1, 200, 2_200_000, shape(1, 1.11, 0.5, 0.6)),
    StepTime(2, 300, 2_500_000, shape(5, 2.346, 0.125, 0.875)),
    StepTime(3, 400, 2_800_000, shape(6, 4.44, 0.7, 0.8)),
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
RACE = Race(
    steps=30,
    usual_step_ns=2_000_000.0,
    without_step_ns=3_100_000.0,
    verdict=Verdict(1.547, 1.4983, 1.6012, 0.9834, 1.0321, 10, "slower"),
)

MEASURED = (
    "4 untraced steps and as many traced ones, alternating, after 3 warm-up steps of each, which "
    "are not counted. Batch size 16, data: MNIST."
)
TYPE_COLUMNS = ("type that ran", "calls", "self", "mean", "share")
NODE_COLUMNS = ("node", "type that ran", "calls", "self", "mean", "median", "share")


def told(stage: Execution = STAGE, **changes) -> list:
    return list(map(read, stages.blocks(replace(stage, **changes))))


def test_the_view_tells_where_the_time_of_a_step_went():
    assert told() == [
        MEASURED,
        [
            "Time of a step",
            ("step", "median", "p10", "p90"),
            ("untraced", "2.40 ms", "2.10 ms", "3.30 ms"),
            ("traced", "2.70 ms", "2.25 ms", "3.60 ms"),
            "",
        ],
        [
            "Where the wall time of the traced steps went",
            ("owner", "a step, mean", "share"),
            ("before the first op", "104 us", "4.0 %"),
            ("at least one op running", "2.03 ms", "78.0 %"),
            ("no op running between ops", "338 us", "13.0 %"),
            ("after the last op", "130 us", "5.0 %"),
            "",
        ],
        [
            "The most expensive op types (self time, 4 traced steps)",
            TYPE_COLUMNS,
            ("_FusedConv2D", "8", "5.60 ms", "800 us", "70.0 %"),
            ("_MklMatMul", "12", "1.92 ms", "200 us", "24.0 %"),
            ("Const", "1,004", "480 us", "600 ns", "6.0 %"),
            "",
        ],
        [
            "The most expensive nodes (self time, 4 traced steps)",
            NODE_COLUMNS,
            ("conv1/Relu", "_FusedConv2D", "4", "3.60 ms", "1.00 ms", "77 ns", "45.0 %"),
            ("dense/add", "_MklMatMul", "16", "2.00 ms", "130 us", "77 ns", "25.0 %"),
            "",
        ],
        "In the step of median length at most 5 ops ran at once, 2.35 on average. No op ran for "
        "12.5 % of it on CPU:0, 87.5 % of it on CPU:1: the runtime itself may have been working, "
        "so this is not idle time.",
        "The critical path, the longest chain of ops that wait for one another, has 3 op runs. In "
        "a traced step these took 1.25 ms. All ops together took 2.51 x as long. While any of them "
        "ran, 1.75 ran at once on average.",
        "The ops had at most 3.50 MiB alive at once; dense/add requested most, 5.00 MiB a step. "
        "The step of median length peaked after 812 us: 3.00 MiB, allocated by 4 ops, the largest "
        "parts by conv1/Relu (2.00 MiB, still running), dense/add (512 KiB), loss (384 KiB).",
    ]


def test_the_kernels_take_a_part_of_the_time_of_ops():
    before, taken, after = told(kernel_time=KernelTime(357_000, 1_540_000))[4:7]
    assert before[0] == "The most expensive nodes (self time, 4 traced steps)"
    assert taken == (
        "In the step of median length, the time of all ops adds up to 1.54 ms. Their kernels took "
        "357 us of it (23.2 %). In the rest, the executor prepared their inputs and handed their "
        "outputs on to the ops that wait for them."
    )
    assert after.startswith("In the step of median length at most 5 ops ran at once")


def test_ten_types_and_ten_nodes_are_shown_and_the_others_counted():
    totals = tuple(
        op_total(f"n{n}", f"Op{n}", n + 2, 9_000 + n, 800 + n, 100.0 + n, n / 1000)
        for n in range(1_013)
    )
    _, _, _, types, nodes, *_ = told(top_types=totals, top_ops=totals[:13])
    shown = [
        ("Op0", "2", "800 ns", "100 ns", "0.0 %"),
        ("Op1", "3", "801 ns", "101 ns", "0.1 %"),
        ("Op2", "4", "802 ns", "102 ns", "0.2 %"),
        ("Op3", "5", "803 ns", "103 ns", "0.3 %"),
        ("Op4", "6", "804 ns", "104 ns", "0.4 %"),
        ("Op5", "7", "805 ns", "105 ns", "0.5 %"),
        ("Op6", "8", "806 ns", "106 ns", "0.6 %"),
        ("Op7", "9", "807 ns", "107 ns", "0.7 %"),
        ("Op8", "10", "808 ns", "108 ns", "0.8 %"),
        ("Op9", "11", "809 ns", "109 ns", "0.9 %"),
    ]
    assert types[2:] == [*shown, "... and 1,003 more"]
    assert nodes[2:] == [
        *((f"n{n}", *row[:-1], "77 ns", row[-1]) for n, row in enumerate(shown)),
        "... and 3 more",
    ]


def test_ten_of_ten_are_all():
    _, _, _, types, nodes, *_ = told(top_types=OPS * 5, top_ops=OPS * 5)
    assert (len(types), types[-1], len(nodes), nodes[-1]) == (13, "", 13, "")


def test_an_interruption_is_told_first():
    assert told(interrupted=True) == [
        "Partial: these are the measurements before the interruption.",
        *told(),
    ]


def test_the_load_is_told_first_of_all():
    line, interruption, *_ = told(load=LOAD, interrupted=True)
    assert (line, interruption) == (
        LOAD_LINE,
        "Partial: these are the measurements before the interruption.",
    )


def test_one_step_is_singular():
    sentence, _, ledger, types, *_ = told(steps=1, warmup_steps=1)
    assert sentence == (
        "1 untraced step and as many traced ones, alternating, after 1 warm-up step of each, "
        "which are not counted. Batch size 16, data: MNIST."
    )
    assert ledger[2] == ("before the first op", "416 us", "4.0 %")
    assert types[0] == "The most expensive op types (self time, 1 traced step)"


def test_a_race_stands_below_the_times_and_tells_what_the_passes_are_worth():
    blocks = told(race=RACE)
    raced = (
        "3.10 ms without these passes, 2.00 ms with all passes: 1.55 x as long [1.50, 1.60], "
        "slower. Control, all passes compared with themselves: [0.98, 1.03]. 30 untraced steps "
        "each, in turn, in 10 observations from separate sessions."
    )
    assert blocks == [*told()[:2], raced, *told()[2:]]


def test_a_single_op_at_once_is_singular():
    steps = (StepTime(0, 100, 2_900_000, shape(1, 0.456, 0.25)),)
    assert told(step_times=steps)[5] == (
        "In the step of median length at most 1 op ran at once, 0.46 on average. No op ran for "
        "25.0 % of it on CPU:0: the runtime itself may have been working, so this is not idle time."
    )


def test_of_steps_without_op_runs_nothing_is_told_of_what_ran_at_once():
    whole = told()
    without = [*whole[:5], *whole[6:]]
    assert told(step_times=()) == without
    assert told(step_times=(StepTime(0, 100, 2_900_000),)) == without
    assert told(step_times=(StepTime(0, 100, 2_900_000, shape(5, 2.5)),)) == without


def test_of_memory_without_a_curve_only_the_peak_is_told():
    peak = "The ops had at most 3.50 MiB alive at once; dense/add requested most, 5.00 MiB a step."
    assert told(memory=replace(MEMORY, curve=None))[-1] == peak
    assert told(memory=replace(MEMORY, curve=replace(CURVE, holders=())))[-1] == peak
    alone = told(memory=replace(MEMORY, curve=replace(CURVE, holders=CURVE.holders[1:2])))[-1]
    assert alone.endswith(", allocated by 1 op, all of it by dense/add (512 KiB).")


def test_where_nothing_was_allocated_memory_is_not_told():
    assert told(memory=Memory((), 0)) == told()[:-1]


def test_of_compiled_code_no_memory_is_told():
    run = Node("cluster_0_1/xla_run", "_XlaRun")
    sentence = "The runtime did not record the memory of the code that XLA compiled."
    assert told(nodes=(run,)) == [*told()[:-1], sentence]


def test_experiments_stand_below_their_control_with_interval_and_self_time():
    blocks = told(
        control=Experiment("control", "", -1_500.0, -4_000.0, 2_500.0, 6),
        experiments=(
            Experiment("conv1/Relu", "_FusedConv2D", 812e3, 790e3, 845e3, 6, 608e3),
            Experiment("loss", "Mean", 3_000.0, -2_000.0, 9_000.0, 6, 8_500.0),
            Experiment("dense/add", "_MklMatMul", 400e3, 390e3, 410e3, 6, 499e3),
            Experiment("fed", "Cast", 5_000.0, 4_000.0, 6_000.0, 6),
        ),
        one_by_one=Experiment("ops one by one", "", -250e3, -310e3, -190e3, 6),
        untried=(Untried("train/w", "ResourceApplyAdam", "it changes something"),),
    )
    at = next(place for place, block in enumerate(blocks) if block[0][:7] == "What an")
    assert blocks[at : at + 4] == [
        [
            "What an op costs a step: time added by running it a second time in place",
            ("node", "type that ran", "adds", "from", "to", "self a step, mean"),
            ("control", "", "-1.50 us", "-4.00 us", "2.50 us", ""),
            ("ops one by one", "", "-250 us", "-310 us", "-190 us", ""),
            ("conv1/Relu", "_FusedConv2D", "812 us", "790 us", "845 us", "900 us"),
            ("loss", "Mean", "3.00 us", "-2.00 us", "9.00 us", ""),
            ("dense/add", "_MklMatMul", "400 us", "390 us", "410 us", "500 us"),
            ("fed", "Cast", "5.00 us", "4.00 us", "6.00 us", ""),
            "",
        ],
        "Each value is the median of 6 observations. An observation has new sessions, in which "
        "all of these steps alternate, untraced. From and to are the ends of the interval that "
        "contains the true median in 95 of 100 experiments. The control compares the unchanged "
        "step with itself: an op whose interval overlaps it may add nothing.",
        "Ops one by one is the unchanged step with a single thread that starts ops, each on all "
        "processors. If this is negative, running ops in parallel does not pay.",
        "Not repeated: train/w (ResourceApplyAdam): it changes something.",
    ]


def test_where_nothing_could_be_run_once_more_only_the_reasons_are_told():
    blocks = told(untried=(Untried("a", "Op", "it is part of a loop"),))
    assert "Not repeated: a (Op): it is part of a loop." in blocks
    assert not any(block[0][:7] == "What an" for block in blocks)
