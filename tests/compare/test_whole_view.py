"""Everything that is shown and written of one comparison, compared with values worked out by hand.

In the record no two numbers that could be mixed up agree: one step in four was traced, so that
traced steps, their images and all steps differ, and nothing is divided by 1.
"""

import io
import json
from dataclasses import replace

import pytest

from tests.records_by_hand import BUSY, BUSY_LINE, op_at_size, op_stats, op_total, read, verdict
from tflab.analysis import quality
from tflab.compare import findings, view
from tflab.exporters import csv, text
from tflab.exporters import json as exported_json
from tflab.records.blocks import Block, Frame, Strip, Table
from tflab.records.measured import Compared, Comparison, ConfigTimes, Fit, OpStats, StepTimes
from tflab.records.timed import Holder, LiveBytes, Spread
from tflab.records.verdicts import Diagnosis, Experiment, Experiments, Untried
from tflab.views import execution, op_table

# 600 images are 150 steps of 4, 38 of 16 and 10 of 64, of which 38, 10 and 3 were traced.
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        4: op_at_size(190, 11_400_000, 60_000, 70_000, 0.75, 2_048, 0.09),
        16: op_at_size(50, 6_000_000, 120_000, 35_500, 0.71, 8_192, 0.17),
        64: op_at_size(15, 3_600_000, 240_000, 17_500, 0.61, 32_768, 0.35),
    },
    # Its line is 1,680 / 33 + 105 n / 33; the relative errors are 2, -5 and 2 parts of 33.
    fit=Fit(50_909, 3_182, 0.152),
)
CONV = Compared(
    key="_FusedConv2D",
    ops=("_FusedConv2D", "Conv2D"),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
    cells={
        4: op_at_size(76, 3_040_000, 40_000, 19_000, 0.24, 1_024, 16.5),
        16: op_at_size(20, 2_000_000, 100_000, 12_000, 0.28, 4_096, 26.4),
        64: op_at_size(6, 2_040_000, 340_000, 9_500, 0.38, 16_384, 31.0),
    },
    fit=Fit(20_000, 5_000, 0.0),
)
SOFTMAX = Compared(
    key="Softmax",
    ops=("Softmax",),
    fused_from=(),
    cells={
        4: op_at_size(114, 102_600, 900, 640, 0.007, 160, None),
        16: op_at_size(30, 24_000, 800, 140, 0.004, 640, None),
        64: op_at_size(9, 6_300, 700, 32, 0.002, 2_560, None),
    },
    fit=None,
)
CONST = Compared(
    key="Const",
    ops=("Const",),
    fused_from=(),
    cells={
        4: op_at_size(228, 13_680, 60, 88, 0.003, 96, None),
        64: op_at_size(18, 1_440, 80, 7, 0.001, 97, None),
    },
    fit=None,
)
STEPS = {
    4: StepTimes(
        steps=38,
        images=152,
        untraced_ns=Spread(median=800_000, p10=750_000, p90=890_000),
        traced_ns=Spread(median=920_000, p10=880_000, p90=1_060_000),
        mean_images_per_second=4_812.3,
        ops_ns=383_000,
        untraced_steps=150,
        peak_bytes=3_072,
        curve=LiveBytes(
            step=7,
            points=((1_000, 2_000), (9_000, 0)),
            peak_bytes=2_001,
            peak_ns=1_001,
            holders=(Holder("a", "B", 5, running=True),),
        ),
    ),
    16: StepTimes(
        steps=10,
        images=160,
        untraced_ns=Spread(median=1_050_000, p10=990_000, p90=1_200_000),
        traced_ns=Spread(median=1_240_000, p10=1_190_000, p90=1_390_000),
        mean_images_per_second=14_436.9,
        ops_ns=802_000,
        untraced_steps=38,
        peak_bytes=12_288,
    ),
    64: StepTimes(
        steps=3,
        images=192,
        untraced_ns=Spread(median=2_300_000, p10=2_210_000, p90=2_560_000),
        traced_ns=Spread(median=2_740_000, p10=2_650_000, p90=2_980_000),
        mean_images_per_second=25_264.6,
        ops_ns=1_882_000,
        untraced_steps=10,
        peak_bytes=49_152,
    ),
}
POOL_AT_4 = op_stats(
    key="MaxPool",
    ops=("MaxPool",),
    nodes=("pool1/MaxPool", "pool2/MaxPool"),
    fused_from=(),
    calls=190,
    total_ns=11_400_000,
    self_ns=10_640_000,
    mean_ns=60_000,
    median_ns=55_000,
    p95_ns=91_000,
    share=0.74,
    cumulative_share=0.75,
    requested_bytes=2_048,
    flops=26_000,
    gflops=0.09,
    std_ns=7_000,
    step_ns=300_000,
    step_std_ns=21_000,
    step_median_ns=290_000,
    peak_bytes=1_536,
    image_ns=70_000.0,
)
CONV_AT_4 = op_stats(
    key="_FusedConv2D",
    ops=("_FusedConv2D", "Conv2D"),
    nodes=("conv1/Relu", "conv2/Relu"),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd", "conv1/Relu", "conv2/Conv2D", "conv2/Relu"),
    calls=76,
    total_ns=3_040_000,
    self_ns=2_888_000,
    mean_ns=40_000,
    median_ns=38_000,
    p95_ns=47_000,
    share=0.24,
    cumulative_share=0.99,
    requested_bytes=1_024,
    flops=1_254_000,
    gflops=16.5,
    std_ns=3_000,
    step_ns=80_000,
    step_std_ns=4_500,
    step_median_ns=77_000,
    peak_bytes=768,
    image_ns=19_000.0,
)
CONST_AT_4 = op_stats(
    key="Const",
    ops=("Const",),
    nodes=("one",),
    fused_from=(),
    calls=228,
    total_ns=13_680,
    self_ns=13_300,
    mean_ns=60,
    median_ns=58,
    p95_ns=77,
    share=0.003,
    cumulative_share=1.0,
    requested_bytes=96,
    flops=None,
    gflops=None,
    std_ns=9,
    step_ns=360,
    step_std_ns=None,
    peak_bytes=None,
    image_ns=87.5,
)
CONV_AT_16 = op_stats(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    nodes=("conv1/Relu",),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
    calls=20,
    total_ns=2_000_000,
    self_ns=1_920_000,
    mean_ns=100_000,
    median_ns=97_000,
    p95_ns=130_000,
    share=0.28,
    cumulative_share=0.98,
    requested_bytes=4_096,
    flops=5_016_000,
    gflops=26.4,
    std_ns=6_000,
    step_ns=200_000,
    step_std_ns=8_500,
    step_median_ns=198_000,
    peak_bytes=3_584,
    image_ns=12_000.0,
)


def config(
    name: str, batch_size: int, median: int, rate: float, ratio: float, significant: bool
) -> ConfigTimes:
    spread = Spread(median, p10=median - 50_000, p90=median + 90_000)
    against = None if name == "default" else verdict(ratio, significant)
    return ConfigTimes(name, batch_size, spread, rate, against)


CONFIGS = (
    config("default", 4, 810_000, 4_900, 1, False),
    config("xla", 4, 405_000, 9_700, 0.51, True),
    config("no-onednn", 4, 910_000, 4_300, 1.09, True),  # less than a tenth
    config("no-grappler", 4, 1_010_000, 3_900, 1.22, False),  # by chance
    config("one-thread", 4, 640_000, 6_100, 0.78, True),
    config("gpu", 4, 1_500_000, 2_600, 1.84, True),
    config("default", 64, 2_310_000, 27_000, 1, False),
    config("xla", 64, 2_420_000, 26_000, 1.03, False),
    config("no-onednn", 64, 4_700_000, 13_000, 2.04, True),
    config("no-grappler", 64, 2_350_000, 25_000, 1.21, True),
    config("one-thread", 64, 5_600_000, 11_000, 2.41, True),
    config("gpu", 64, 500_000, 120_000, 0.22, True),
)
EXPERIMENTS = {
    4: Experiments(
        ops=(Experiment("conv1/Relu", "_FusedConv2D", 41e3, 38e3, 44.5e3, 5),),
        control=Experiment("control", "", 300.0, -900.0, 1_100.0, 5),
        untried=(Untried("w", "VarHandleOp", "it changes something"),),
    )
}
COMPARISON = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(4, 16, 64),
    rows=(POOL, CONV, SOFTMAX, CONST),
    steps=STEPS,
    configs=CONFIGS,
    findings=("One finding.", "And another."),
    cold=(
        op_total("conv1/Relu", "_FusedConv2D", 1, 990_000, 950_000, 991_000, 0.5),
        op_total("loop/Mul", "Mul", 4, 92_000, 80_000, 23_000, 0.1),
        op_total("loss/w", "VariableV2", 1, 7_000, 6_000, 7_001, 0.01),
    ),
    cold_step_ns=5_170_000,
    uncovered={"MaxPool": 1, "Softmax": 2},
    tables={4: (POOL_AT_4, CONV_AT_4, CONST_AT_4), 16: (CONV_AT_16,)},
    images=600,
    trace_every=4,
    without=("remapper", "layout"),
    warm_ns={"conv1/Relu": 38_000, "loop/Mul": 2_000},
    experiments=EXPERIMENTS,
)
SIZES = COMPARISON.batch_sizes
ABREAST = "at each batch size (and its ratio to the size before); fit: fixed cost + cost per image"
PER_CALL, PER_STEP = f"Mean time of a call {ABREAST}", f"Mean time of a step {ABREAST}"
DIAGNOSIS = (
    Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement"),
    Diagnosis("The session is next.", 250_000, 0.11, 64, "session"),
)
CONFIGURED = (
    "Median untraced step under other configurations, each in its own processes (ratio to default)"
)


def whole(table: Table) -> tuple[str, list[str], list[tuple[str, ...]], int]:
    """All that a table says: its title, headers and rows, and how many were left out."""
    return table.title, [column.header for column in table.columns], [*table.cells()], table.more


def gist(block: Block) -> str:
    """The title of a table or strip, the first words of a text."""
    return " ".join(block.split()[:3]) if isinstance(block, str) else block.title


# The whole


def test_the_blocks_come_in_the_order_of_a_readers_questions():
    assert [gist(block) for block in view.blocks(COMPARISON, 10)] == [
        "lenet, inference, 600",
        "Steps of each batch size",
        "Median, p10, p90",
        "Total time at each batch size (and number of calls)",
        PER_CALL,
        "Time per image at each batch size (and share of the time of all ops)",
        CONFIGURED,
        CONFIGURED,
        CONFIGURED,
        "Each ratio comes",
        "What an op costs a step at batch 4: time added by running it a second time in place",
        "Each value is",
        "Not repeated at",
        "Findings, computed from the tables",
        "Batch 4: times, the most expensive first",
        "Batch 4: work per step, in the same order",
        "Batch 16: times, the most expensive first",
        "Batch 16: work per step, in the same order",
        "Requested is the",
        "Cold: the first step, at batch 4, took 5.17 ms, and a warm traced step took 920 us "
        "(median); the first step also set up kernels and memory",
    ]


def test_one_screen_has_the_steps_the_most_expensive_rows_and_what_was_found():
    whole = list(map(read, view.blocks(COMPARISON, 10)))
    shown = list(map(read, view.blocks(COMPARISON, 10, full=False)))
    an_image = read(view.an_image(COMPARISON, 10, COMPARISON.batch_sizes))
    assert shown == [*whole[:2], an_image, *whole[6:14], view.MORE]
    assert gist(shown[-2]) == "Findings, computed from the tables"


def test_one_batch_size_on_one_screen_is_its_most_expensive_rows():
    one = replace(COMPARISON, batch_sizes=(16,), configs=(), experiments={}, findings=())
    one = replace(one, tables={16: COMPARISON.tables[16]})
    assert list(map(read, view.blocks(one, 10, full=False))) == [
        view.opening(one),
        read(view.steps(one)),
        read(op_table.costs(one, 16, 10)),
        view.MORE,
    ]


def test_only_tables_say_which_option_shows_more():
    blocks = list(view.blocks(COMPARISON, 1))
    assert {block.option for block in blocks if isinstance(block, Table)} == {"--top"}
    assert [block.more for block in blocks if isinstance(block, Table)] == [
        *(0, 3, 3, 3, 0, 0, 0),  # steps; in all, a call, an image; configurations
        *(0, 2, 2, 0, 0, 0),  # experiments; batch 4, batch 16; cold
    ]


def test_the_opening_has_the_images_the_warm_up_and_the_passes_that_are_off():
    assert view.opening(COMPARISON) == (
        "lenet, inference, 600 images of MNIST at each batch size, each processed once untraced "
        "and once traced, alternating. Warm: the first 3 steps of each batch size are not "
        "counted. One step in "
        "4 was traced; calls, totals and all other numbers of ops come from the traced steps. "
        "Graph passes switched off: remapper, layout."
    )


def test_where_every_step_was_traced_nothing_is_said_of_which():
    assert "One step in" not in view.opening(replace(COMPARISON, trace_every=1))


def test_a_single_warm_up_step_is_one():
    assert " Warm: the first step of each batch size is not counted. " in view.opening(
        replace(COMPARISON, warmup=1)
    )


@pytest.mark.parametrize(
    "change, sentence",
    [
        (
            {"interrupted": True},
            "Partial: these are the measurements before the interruption.",
        ),
        (
            {"failure": "It broke."},
            "Partial: these are the measurements before this error: It broke.",
        ),
    ],
)
def test_what_is_partial_says_so_and_how_many_images_it_was_to_be(change, sentence):
    first, opening, *_ = view.blocks(replace(COMPARISON, **change), 10)
    assert first == sentence
    assert opening.startswith("lenet, inference, up to 600 images of MNIST at each batch size,")


def test_below_the_steps_it_says_what_each_number_is_of():
    assert view.units(COMPARISON) == (
        "Median, p10, p90 and mean describe untraced steps. Images per second are the batch size "
        "divided by the mean, which slow steps raise above the median. Ops is the total time of "
        "all ops in a traced step."
    )


def test_the_findings_are_one_strip():
    strips = [block for block in view.blocks(COMPARISON, 10) if isinstance(block, Strip)]
    assert [(strip.title, strip.frames[0].lines) for strip in strips] == [
        ("Findings, computed from the tables", ("One finding.", "And another."))
    ]


# All batch sizes


def test_every_column_of_the_steps():
    assert whole(view.steps(COMPARISON)) == (
        "Steps of each batch size",
        [
            *("batch", "traced steps", "median", "p10", "p90", "mean"),
            *("images a second", "traced, median", "ops, mean", "memory peak"),
        ],
        [
            (
                *("4", "38 of 150", "800 us", "750 us", "890 us", "831 us"),
                *("4,812", "920 us", "383 us", "3.00 KiB"),
            ),
            (
                *("16", "10 of 38", "1.05 ms", "990 us", "1.20 ms", "1.11 ms"),
                *("14,437", "1.24 ms", "802 us", "12.0 KiB"),
            ),
            (
                *("64", "3 of 10", "2.30 ms", "2.21 ms", "2.56 ms", "2.53 ms"),
                *("25,265", "2.74 ms", "1.88 ms", "48.0 KiB"),
            ),
        ],
        0,
    )


def test_every_total_and_number_of_calls():
    assert whole(view.in_all(COMPARISON, 10, SIZES)) == (
        "Total time at each batch size (and number of calls)",
        ["type that ran", "batch 4", "batch 16", "batch 64"],
        [
            ("MaxPool", "11.4 ms (190)", "6.00 ms (50)", "3.60 ms (15)"),
            ("_FusedConv2D", "3.04 ms (76)", "2.00 ms (20)", "2.04 ms (6)"),
            ("Softmax", "103 us (114)", "24.0 us (30)", "6.30 us (9)"),
            ("Const", "13.7 us (228)", "", "1.44 us (18)"),
        ],
        0,
    )


CALLS = [
    (
        *("MaxPool", "60.0 us", "120 us (2.0 x)", "240 us (2.0 x)"),
        *("50.9 us + 3.18 us", "15.2 %"),
    ),
    (
        *("_FusedConv2D", "40.0 us", "100 us (2.5 x)", "340 us (3.4 x)"),
        *("20.0 us + 5.00 us", "0.0 %"),
    ),
    ("Softmax", "900 ns", "800 ns (0.9 x)", "700 ns (0.9 x)", "", ""),
    ("Const", "60 ns", "", "80 ns", "", ""),
]
CALL_HEADERS = ["type that ran", "batch 4", "batch 16", "batch 64", "fit", "error"]


def test_every_call_its_ratio_and_its_fit():
    assert whole(view.side_by_side(COMPARISON, 10)) == (PER_CALL, CALL_HEADERS, CALLS, 0)


def test_of_a_busy_machine_no_line_is_fitted():
    title, headers, rows, _ = whole(view.side_by_side(replace(COMPARISON, quality=BUSY), 10))
    assert title == PER_CALL.partition(";")[0]
    assert headers == CALL_HEADERS[:-2]
    assert rows == [row[:-2] for row in CALLS]


def test_rows_beyond_the_cut_off_are_left_out_of_the_end():
    assert whole(view.side_by_side(COMPARISON, 3, SIZES)) == (
        *(PER_CALL, CALL_HEADERS),
        *(CALLS[:3], 1),
    )


def by_line() -> Comparison:
    """The same rows as those of source lines; that of Softmax is in no file that was found."""

    def with_code(stats: OpStats, key: str) -> OpStats:
        return replace(stats, code=None if key == "Softmax" else f"the code of {key}")

    rows = tuple(
        replace(row, cells={size: with_code(stats, row.key) for size, stats in row.cells.items()})
        for row in COMPARISON.rows
    )
    tables = {
        size: tuple(with_code(row, row.key) for row in table)
        for size, table in COMPARISON.tables.items()
    }
    return replace(COMPARISON, by="line", rows=rows, tables=tables)


def of_phases() -> Comparison:
    """Two lines of a step that trains, with long codes."""
    row = COMPARISON.tables[4][0]
    phases = {"forward_ns": 1_000_000, "backward_ns": 2_000_000, "update_ns": 300_000}
    times = {"total_ns": 3_300_000, "step_ns": 1_650_000, "step_median_ns": 1_600_000}
    shares = {"calls": 4, "share": 0.75, "cumulative_share": 0.75}
    code = "embedded = tf.nn.embedding_lookup(table, words)"
    first = replace(row, key="embedding_model.py:10", code=code, **phases, **times, **shares)
    last = replace(first, key="embedding_model.py:9", code="y = x", share=0.25, backward_ns=0)
    return replace(COMPARISON, by="line", tables={4: (first, last)})


def printed(table: Table, width: int, monkeypatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    text.show_table(text.console(stream), table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_table_of_lines_at_100_columns_has_whole_headers_and_most_of_the_code(monkeypatch):
    title, headers, _, *rows = printed(op_table.costs(of_phases(), 4, 10), 100, monkeypatch)
    assert title == "Batch 4: times, the most expensive first"
    assert [line.strip() for line in (headers, *rows)] == [
        "line                   code                            forward  backward  updates"
        "    total   share",
        "embedding_model.py:10  embedded = tf.nn.embedding_lo…  1.00 ms   2.00 ms   300 us"
        "  3.30 ms  75.0 %",
        "embedding_model.py:9   y = x                           1.00 ms             300 us"
        "  3.30 ms  25.0 %",
        "Columns omitted (terminal too narrow): calls, a step, median step, cumulative.",
    ]


def test_a_table_of_lines_has_all_columns_where_they_fit_and_its_code_wherever_it_is(monkeypatch):
    table = op_table.costs(of_phases(), 4, 10)
    _, headers, *_ = printed(table, 160, monkeypatch)
    assert headers.split() == [
        *("line", "code", "forward", "backward", "updates", "total"),
        *("calls", "a", "step", "median", "step", "share", "cumulative"),
    ]
    for width in range(40, 160, 8):
        lines = printed(table, width, monkeypatch)
        (headers,) = (line for line in lines if line.startswith("  line "))
        assert " code " in headers and "…" not in headers


STEPS_ABREAST = [
    (
        *("MaxPool", "300 us", "600 us (2.0 x)", "1.20 ms (2.0 x)"),
        *("255 us + 15.9 us", "15.2 %"),
    ),
    (
        *("_FusedConv2D", "80.0 us", "200 us (2.5 x)", "680 us (3.4 x)"),
        *("40.0 us + 10.0 us", "0.0 %"),
    ),
    ("Softmax", "2.70 us", "2.40 us (0.9 x)", "2.10 us (0.9 x)", "", ""),
    ("Const", "360 ns", "", "480 ns", "", ""),
]
STEP_HEADERS = ["batch 4", "batch 16", "batch 64", "fit", "error"]


def by_step(comparison: Comparison, by: str) -> Comparison:
    """The same rows, of which the time of a step counts: five calls of a pool, two of the other."""
    fits = (Fit(254_545, 15_909, 0.152), Fit(40_000, 10_000, 0.0), None, None)
    rows = tuple(replace(row, fit=fit) for row, fit in zip(comparison.rows, fits, strict=True))
    return replace(comparison, by=by, rows=rows)


def test_every_step_of_layers_its_ratio_and_its_fit():
    assert whole(view.side_by_side(by_step(COMPARISON, "layer"), 10)) == (
        *(PER_STEP, ["layer", *STEP_HEADERS]),
        *(STEPS_ABREAST, 0),
    )


def test_source_lines_have_their_code_beside_them():
    code = ("the code of MaxPool", "the code of _FusedConv2D", "", "the code of Const")
    assert whole(view.side_by_side(by_step(by_line(), "line"), 10)) == (
        *(PER_STEP, ["line", "code", *STEP_HEADERS]),
        [(key, text, *values) for text, (key, *values) in zip(code, STEPS_ABREAST, strict=True)],
        0,
    )


def test_rows_of_other_data_are_no_images():
    title = view.an_image(replace(COMPARISON, unit="row"), 10, SIZES).title
    assert title == "Time per row of data at each batch size (and share of the time of all ops)"


def test_every_time_of_an_image_and_its_share():
    assert whole(view.an_image(COMPARISON, 10, SIZES)) == (
        "Time per image at each batch size (and share of the time of all ops)",
        ["type that ran", "batch 4", "batch 16", "batch 64"],
        [
            ("MaxPool", "70.0 us (75.0 %)", "35.5 us (71.0 %)", "17.5 us (61.0 %)"),
            ("_FusedConv2D", "19.0 us (24.0 %)", "12.0 us (28.0 %)", "9.50 us (38.0 %)"),
            ("Softmax", "640 ns (0.7 %)", "140 ns (0.4 %)", "32 ns (0.2 %)"),
            ("Const", "88 ns (0.3 %)", "", "7 ns (0.1 %)"),
        ],
        0,
    )


def test_a_fourth_batch_size_has_tables_of_its_own_and_keeps_its_ratio_to_the_third():
    by_size = CONV.cells | {128: op_at_size(14, 9_240_000, 660_000, 9_000, 0.45, 70_000, 32.0)}
    more = replace(
        COMPARISON,
        batch_sizes=(*SIZES, 128),
        rows=(replace(CONV, cells=by_size), CONST),
        steps=STEPS | {128: replace(STEPS[64], steps=7, images=896)},
    )
    parts = [
        whole(block)
        for block in view.parts(more, 10)
        if isinstance(block, Table)
        and block.title.startswith(("Total", "Mean time of a call", "Time per image"))
    ]
    name, three = "type that ran", ["batch 4", "batch 16", "batch 64"]
    assert [(headers, rows) for _, headers, rows, _ in parts] == [
        (
            [name, *three],
            [
                ("_FusedConv2D", "3.04 ms (76)", "2.00 ms (20)", "2.04 ms (6)"),
                ("Const", "13.7 us (228)", "", "1.44 us (18)"),
            ],
        ),
        ([name, "batch 128"], [("_FusedConv2D", "9.24 ms (14)"), ("Const", "")]),
        (
            [name, *three],
            [
                ("_FusedConv2D", "40.0 us", "100 us (2.5 x)", "340 us (3.4 x)"),
                ("Const", "60 ns", "", "80 ns"),
            ],
        ),
        (
            [name, "batch 128", "fit", "error"],
            [
                ("_FusedConv2D", "660 us (1.9 x)", "20.0 us + 5.00 us", "0.0 %"),
                ("Const", "", "", ""),
            ],
        ),
        (
            [name, *three],
            [
                ("_FusedConv2D", "19.0 us (24.0 %)", "12.0 us (28.0 %)", "9.50 us (38.0 %)"),
                ("Const", "88 ns (0.3 %)", "", "7 ns (0.1 %)"),
            ],
        ),
        ([name, "batch 128"], [("_FusedConv2D", "9.00 us (45.0 %)"), ("Const", "")]),
    ]


# One batch size


def test_every_time_of_the_rows_of_a_batch_size():
    assert whole(op_table.costs(COMPARISON, 4, 10)) == (
        "Batch 4: times, the most expensive first",
        [
            *("type that ran", "calls", "total", "self", "mean", "median", "p95"),
            *("share", "cumulative"),
        ],
        [
            (
                *("MaxPool", "190", "11.4 ms", "10.6 ms", "60.0 us", "55.0 us", "91.0 us"),
                *("74.0 %", "75.0 %"),
            ),
            (
                *("_FusedConv2D", "76", "3.04 ms", "2.89 ms", "40.0 us", "38.0 us", "47.0 us"),
                *("24.0 %", "99.0 %"),
            ),
            (
                *("Const", "228", "13.7 us", "13.3 us", "60 ns", "58 ns", "77 ns"),
                *("0.3 %", "100.0 %"),
            ),
        ],
        0,
    )


@pytest.mark.parametrize(
    "by, order",
    [
        ("layer", "the 2 most expensive, in the order of execution"),
        ("line", "the most expensive first"),
    ],
)
def test_every_time_of_the_layers_and_lines_of_a_batch_size(by, order):
    comparison = by_line() if by == "line" else replace(COMPARISON, by=by)

    def code(key: str) -> tuple[str, ...]:
        return (f"the code of {key}",) if by == "line" else ()

    assert whole(op_table.costs(comparison, 4, 2)) == (
        f"Batch 4: times, {order}",
        [
            *((by, "code") if by == "line" else (by,)),
            *(
                "calls",
                "total",
                "self",
                "a step",
                "median step",
                "± deviation",
                "share",
                "cumulative",
            ),
        ],
        [
            (
                *(
                    "MaxPool",
                    *code("MaxPool"),
                    "190",
                    "11.4 ms",
                    "10.6 ms",
                    "300 us",
                    "290 us",
                    "21.0 us",
                ),
                *("74.0 %", "75.0 %"),
            ),
            (
                *(
                    "_FusedConv2D",
                    *code("_FusedConv2D"),
                    "76",
                    "3.04 ms",
                    "2.89 ms",
                    "80.0 us",
                    "77.0 us",
                    "4.50 us",
                ),
                *("24.0 %", "99.0 %"),
            ),
        ],
        1,
    )


def test_all_work_of_the_rows_of_a_batch_size():
    assert whole(op_table.work(COMPARISON, 4, 10)) == (
        "Batch 4: work per step, in the same order",
        [
            *("type that ran", "requested", "peak", "FLOPs", "GFLOP/s", "fused from"),
        ],
        [
            ("MaxPool", "2.00 KiB", "1.50 KiB", "26.0 k", "0.09", ""),
            (
                *("_FusedConv2D", "1.00 KiB", "768 B", "1.25 M", "16.5"),
                "Conv2D, BiasAdd, Relu",
            ),
            ("Const", "96 B", "", "", "", ""),
        ],
        0,
    )


def test_another_batch_size_has_its_own_rows():
    assert whole(op_table.costs(COMPARISON, 16, 10))[2:] == (
        [
            (
                *("_FusedConv2D", "20", "2.00 ms", "1.92 ms", "100 us", "97.0 us", "130 us"),
                *("28.0 %", "98.0 %"),
            )
        ],
        0,
    )
    assert whole(op_table.work(COMPARISON, 16, 10))[2:] == (
        [
            (
                *("_FusedConv2D", "4.00 KiB", "3.50 KiB", "5.02 M", "26.4"),
                "Conv2D, BiasAdd",
            )
        ],
        0,
    )


def test_the_legend_names_every_type_without_flops():
    assert op_table.legend(COMPARISON) == (
        "Requested is the number of bytes that the ops of a row requested from their allocators; "
        "peak is the most of these in use at once. FLOPs are counted from op type and shapes; a "
        "multiply-add counts as two. They are unknown for MaxPool (1 node), Softmax (2 nodes), "
        "so rows with these have none."
    )


# Experiments


def test_the_ops_that_were_run_once_more_stand_by_batch_size_without_self_times():
    table, interval, untried = execution.op_costs(EXPERIMENTS[4], {}, " at batch 4")
    assert whole(table) == (
        "What an op costs a step at batch 4: time added by running it a second time in place",
        ["node", "type that ran", "adds", "from", "to"],
        [
            ("control", "", "300 ns", "-900 ns", "1.10 us"),
            ("conv1/Relu", "_FusedConv2D", "41.0 us", "38.0 us", "44.5 us"),
        ],
        0,
    )
    assert interval.startswith(
        "Each value is the median of 5 observations. An observation has new sessions, in which"
    )
    assert untried == "Not repeated at batch 4: w (VarHandleOp): it changes something."
    shown = list(view.blocks(COMPARISON))
    assert shown[shown.index(interval) : shown.index(untried) + 1] == [interval, untried]


# Configurations


def test_every_configuration_of_both_tables():
    *tables, basis = view.configs(COMPARISON)
    assert [whole(table) for table in tables] == [
        (
            CONFIGURED,
            ["batch", "default", "xla", "no-onednn"],
            [
                ("4", "810 us", "405 us (0.51 x [0.46, 0.56])", "910 us (1.09 x [0.98, 1.20])"),
                (
                    "64",
                    "2.31 ms",
                    "2.42 ms (cannot tell [0.93, 1.13])",
                    "4.70 ms (2.04 x [1.84, 2.24])",
                ),
            ],
            0,
        ),
        (
            CONFIGURED,
            ["batch", "default", "no-grappler", "one-thread"],
            [
                (
                    "4",
                    "810 us",
                    "1.01 ms (cannot tell [1.10, 1.34])",
                    "640 us (0.78 x [0.70, 0.86])",
                ),
                ("64", "2.31 ms", "2.35 ms (1.21 x [1.09, 1.33])", "5.60 ms (2.41 x [2.17, 2.65])"),
            ],
            0,
        ),
        (
            CONFIGURED,
            ["batch", "default", "gpu"],
            [
                ("4", "810 us", "1.50 ms (1.84 x [1.66, 2.02])"),
                ("64", "2.31 ms", "500 us (0.22 x [0.20, 0.24])"),
            ],
            0,
        ),
    ]
    assert basis == (
        "Each ratio comes from 7 observations. An observation is the median of steps in its own "
        "process, so the default here differs from the default in the other tables. If the "
        "observations are independent, the interval contains the true ratio in 99 of 100 "
        "comparisons. Alike means within 5 %. Cannot tell means that there are too few "
        "observations, or that the machine is too noisy. With more comparisons each test is "
        "stricter, so an interval that barely excludes 1 may still be `cannot tell`. A ratio "
        "compares with a default that took turns with the configuration, so it can differ from the "
        "ratio of the two medians."
    )
    alike = [row for row in CONFIGS if row.config in ("default", "xla")]  # 405 us of 810 us: 0.50 x
    *_, basis = view.configs(replace(COMPARISON, configs=alike))
    assert basis.endswith("may still be `cannot tell`.")


# The first step


def test_every_op_of_the_cold_step_stands_beside_as_many_warm_calls():
    assert whole(*view.cold(COMPARISON)) == (
        "Cold: the first step, at batch 4, took 5.17 ms, and a warm traced step took 920 us "
        "(median); the first step also set up kernels and memory",
        ["node", "type that ran", "first run", "warm, mean", "ratio"],
        [
            ("conv1/Relu", "_FusedConv2D", "950 us", "38.0 us", "25.0 x"),
            ("loop/Mul", "Mul", "80.0 us", "8.00 us", "10.0 x"),
            ("loss/w", "VariableV2", "6.00 us", "", ""),
        ],
        0,
    )


# Findings


def test_every_finding_of_the_comparison():
    assert findings.sentences(COMPARISON.rows, STEPS, "op", CONFIGS) == (
        "The share of _FusedConv2D rises from 24.0 % at batch 4 to 38.0 % at 64, via 28.0 % at 16.",
        "The share of MaxPool falls from 75.0 % at batch 4 to 61.0 % at 64, via 71.0 % at 16.",
        "MaxPool: from 4 to 16 a call takes 2.00 x as long for 4 x the images; from 16 to 64 a "
        "call takes 2.00 x as long for 4 x the images.",
        "_FusedConv2D: from 4 to 16 a call takes 2.50 x as long for 4 x the images; from 16 to 64 "
        "a call takes 3.40 x as long for 4 x the images.",
        "Softmax: from 4 to 16 a call takes 0.89 x as long for 4 x the images; from 16 to 64 a "
        "call takes 0.88 x as long for 4 x the images.",
        "Batch 16 processes 3.00 x as many images per second as batch 4.",
        "Batch 64 processes 1.75 x as many images per second as batch 16.",
        "At batch 4 an untraced step takes 800 us, but its ops take only 383 us: no op runs for "
        "more than half of the step.",
        "Compared with default, an untraced step under xla takes 0.51 x as long [0.46, 0.56] at "
        "batch 4.",
        "Compared with default, an untraced step under one-thread takes 0.78 x as long [0.70, "
        "0.86] at batch 4, 2.41 x as long [2.17, 2.65] at batch 64.",
        "Compared with default, an untraced step under gpu takes 1.84 x as long [1.66, 2.02] at "
        "batch 4, 0.22 x as long [0.20, 0.24] at batch 64.",
        "Compared with default, an untraced step under no-onednn takes 2.04 x as long [1.84, "
        "2.24] at batch 64.",
        "Compared with default, an untraced step under no-grappler takes 1.21 x as long [1.09, "
        "1.33] at batch 64.",
    )


def test_of_layers_the_findings_compare_steps():
    unequal = {
        4: op_at_size(38, 380_000, 10_000, 1, 0.5, 0, None),
        16: op_at_size(30, 600_000, 20_000, 1, 0.5, 0, None),  # three times as many calls a step
    }
    row = Compared("conv1", ("Conv2D",), (), unequal, None)
    steps = {size: STEPS[size] for size in (4, 16)}
    of_layers = findings.sentences([row], steps, "layer")
    assert of_layers[0] == "conv1: from 4 to 16 a step takes 6.00 x as long for 4 x the images."
    of_ops = findings.sentences([row], steps, "op")
    assert of_ops[0] == "conv1: from 4 to 16 a call takes 2.00 x as long for 4 x the images."


def test_of_a_busy_machine_only_shares_are_told():
    assert findings.sentences(COMPARISON.rows, STEPS, "op", CONFIGS, BUSY) == (
        "The share of _FusedConv2D rises from 24.0 % at batch 4 to 38.0 % at 64, via 28.0 % at 16.",
        "The share of MaxPool falls from 75.0 % at batch 4 to 61.0 % at 64, via 71.0 % at 16.",
        "The machine was busy, so the findings on fixed costs, on growth with the batch size, "
        "and on which batch size or configuration is faster are withheld.",
    )


# A busy machine


def test_that_the_machine_was_busy_is_said_first():
    busy = replace(COMPARISON, quality=BUSY, interrupted=True)
    first, second, *rest = view.blocks(busy)
    assert (first, second) == (
        BUSY_LINE,
        "Partial: these are the measurements before the interruption.",
    )
    assert rest.count(execution.WITHHELD) == 1  # for a table and two sentences
    assert len(rest) == len([*view.blocks(COMPARISON)]) - 2


def test_why_a_step_is_slow_is_said_before_all_else_of_a_whole_comparison():
    strip, *others = view.blocks(replace(COMPARISON, diagnosis=DIAGNOSIS))
    assert strip == Strip(
        "Why a step is slow (largest cost first)",
        (Frame("", "", ("Transposes cost most.", "The session is next.")),),
    )
    assert [*map(gist, others)] == [*map(gist, view.blocks(COMPARISON))]
    (busy,) = view.diagnosis(replace(COMPARISON, diagnosis=DIAGNOSIS, quality=BUSY))
    assert busy.title == "Why a step is slow (largest cost first) (the machine was busy)"


def test_of_a_quiet_machine_nothing_is_said():
    quiet = replace(COMPARISON, quality=replace(BUSY, quiet=True, reasons=()))
    assert [*map(gist, view.blocks(quiet))] == [*map(gist, view.blocks(COMPARISON))]


def test_by_layer_it_is_said_that_the_machine_was_quiet():
    layers = replace(COMPARISON, by="layer")
    calm = replace(BUSY, quiet=True, reasons=())
    before, after = (
        [block for block in view.blocks(replace(layers, quality=row)) if isinstance(block, str)]
        for row in (None, calm)
    )
    assert [block for block in after if block not in before] == [quality.verdict(calm)]


def test_on_a_busy_machine_no_configuration_is_faster():
    default, *others = CONFIGS[:3]
    withheld = [replace(row, verdict=replace(row.verdict, word="withheld")) for row in others]
    table, basis = view.configs(replace(COMPARISON, configs=(default, *withheld)))
    assert whole(table) == (
        CONFIGURED,
        ["batch", "default", "xla", "no-onednn"],
        [("4", "810 us", "405 us (withheld)", "910 us (withheld)")],
        0,
    )
    assert basis.startswith("Each ratio comes from 7 observations")


# For other programs


def test_every_field_of_the_csv():
    lines = csv.comparison(COMPARISON).split("\n")
    assert lines == [
        "data,partial,batch_size,traced_steps,key,ops,nodes,fused_from,calls,total_ns,self_ns,"
        "mean_ns,median_ns,p95_ns,share,cumulative_share,requested_bytes,flops,gflops,"
        "std_ns,step_ns,step_std_ns,peak_bytes,ns_per_image,code,step_median_ns,"
        "forward_ns,backward_ns,update_ns",
        "MNIST,False,4,38,MaxPool,MaxPool,pool1/MaxPool pool2/MaxPool,,190,11400000,10640000,"
        "60000,55000,91000,0.74,0.75,2048,26000,0.09,"
        "7000,300000,21000,1536,70000.0,,290000,10640000,0,0",
        "MNIST,False,4,38,_FusedConv2D,_FusedConv2D Conv2D,conv1/Relu conv2/Relu,"
        "conv1/Conv2D conv1/BiasAdd conv1/Relu conv2/Conv2D conv2/Relu,76,3040000,2888000,"
        "40000,38000,47000,0.24,0.99,1024,1254000,16.5,"
        "3000,80000,4500,768,19000.0,,77000,2888000,0,0",
        "MNIST,False,4,38,Const,Const,one,,228,13680,13300,60,58,77,0.003,1.0,96,,,9,360,,,87.5,,,13300,0,0",
        "MNIST,False,16,10,_FusedConv2D,_FusedConv2D,conv1/Relu,"
        "conv1/Conv2D conv1/BiasAdd,20,2000000,1920000,"
        "100000,97000,130000,0.28,0.98,4096,5016000,26.4,"
        "6000,200000,8500,3584,12000.0,,198000,1920000,0,0",
        "",
    ]


def test_a_comparison_that_ended_early_is_partial_in_every_line_of_the_csv():
    for change in ({"interrupted": True}, {"failure": "It broke."}):
        _, *lines = csv.comparison(replace(COMPARISON, **change)).splitlines()
        assert [line.split(",")[:3] for line in lines] == [
            *[["MNIST", "True", "4"]] * 3,
            ["MNIST", "True", "16"],
        ]


def test_every_field_of_the_json():
    assert json.loads(
        exported_json.comparison(
            replace(COMPARISON, quality=BUSY, diagnosis=DIAGNOSIS), {"cpus": 2}
        )
    ) == {
        "environment": {"cpus": 2},
        "model": "lenet",
        "phase": "inference",
        "by": "op",
        "unit": "image",
        "calls_python": None,
        "data": "MNIST",
        "warmup": 3,
        "batch_sizes": [4, 16, 64],
        "rows": [
            {
                "key": "MaxPool",
                "ops": ["MaxPool"],
                "fused_from": [],
                "cells": {
                    "4": json_cell(190, 11_400_000, 60_000, 70_000, 0.75, 2_048, 0.09),
                    "16": json_cell(50, 6_000_000, 120_000, 35_500, 0.71, 8_192, 0.17),
                    "64": json_cell(15, 3_600_000, 240_000, 17_500, 0.61, 32_768, 0.35),
                },
                "fit": {"fixed_ns": 50_909, "per_image_ns": 3_182, "error": 0.152},
            },
            {
                "key": "_FusedConv2D",
                "ops": ["_FusedConv2D", "Conv2D"],
                "fused_from": ["conv1/Conv2D", "conv1/BiasAdd"],
                "cells": {
                    "4": json_cell(76, 3_040_000, 40_000, 19_000, 0.24, 1_024, 16.5),
                    "16": json_cell(20, 2_000_000, 100_000, 12_000, 0.28, 4_096, 26.4),
                    "64": json_cell(6, 2_040_000, 340_000, 9_500, 0.38, 16_384, 31.0),
                },
                "fit": {"fixed_ns": 20_000, "per_image_ns": 5_000, "error": 0.0},
            },
            {
                "key": "Softmax",
                "ops": ["Softmax"],
                "fused_from": [],
                "cells": {
                    "4": json_cell(114, 102_600, 900, 640, 0.007, 160, None),
                    "16": json_cell(30, 24_000, 800, 140, 0.004, 640, None),
                    "64": json_cell(9, 6_300, 700, 32, 0.002, 2_560, None),
                },
                "fit": None,
            },
            {
                "key": "Const",
                "ops": ["Const"],
                "fused_from": [],
                "cells": {
                    "4": json_cell(228, 13_680, 60, 88, 0.003, 96, None),
                    "64": json_cell(18, 1_440, 80, 7, 0.001, 97, None),
                },
                "fit": None,
            },
        ],
        "steps": {
            "4": {
                "steps": 38,
                "images": 152,
                "untraced_ns": {"median": 800_000, "p10": 750_000, "p90": 890_000},
                "traced_ns": {"median": 920_000, "p10": 880_000, "p90": 1_060_000},
                "images_per_second": 4_812.3,
                "ops_ns": 383_000,
                "untraced_steps": 150,
                "peak_bytes": 3_072,
                "curve": {
                    "step": 7,
                    "points": [[1_000, 2_000], [9_000, 0]],
                    "peak_bytes": 2_001,
                    "peak_ns": 1_001,
                    "holders": [{"name": "a", "op": "B", "bytes": 5, "running": True}],
                },
            },
            "16": {
                "steps": 10,
                "images": 160,
                "untraced_ns": {"median": 1_050_000, "p10": 990_000, "p90": 1_200_000},
                "traced_ns": {"median": 1_240_000, "p10": 1_190_000, "p90": 1_390_000},
                "images_per_second": 14_436.9,
                "ops_ns": 802_000,
                "untraced_steps": 38,
                "peak_bytes": 12_288,
                "curve": None,
            },
            "64": {
                "steps": 3,
                "images": 192,
                "untraced_ns": {"median": 2_300_000, "p10": 2_210_000, "p90": 2_560_000},
                "traced_ns": {"median": 2_740_000, "p10": 2_650_000, "p90": 2_980_000},
                "images_per_second": 25_264.6,
                "ops_ns": 1_882_000,
                "untraced_steps": 10,
                "peak_bytes": 49_152,
                "curve": None,
            },
        },
        "configs": [
            json_config("default", 4, 810_000, 760_000, 900_000, 4_900, 1, False),
            json_config("xla", 4, 405_000, 355_000, 495_000, 9_700, 0.51, True),
            json_config("no-onednn", 4, 910_000, 860_000, 1_000_000, 4_300, 1.09, True),
            json_config("no-grappler", 4, 1_010_000, 960_000, 1_100_000, 3_900, 1.22, False),
            json_config("one-thread", 4, 640_000, 590_000, 730_000, 6_100, 0.78, True),
            json_config("gpu", 4, 1_500_000, 1_450_000, 1_590_000, 2_600, 1.84, True),
            json_config("default", 64, 2_310_000, 2_260_000, 2_400_000, 27_000, 1, False),
            json_config("xla", 64, 2_420_000, 2_370_000, 2_510_000, 26_000, 1.03, False),
            json_config("no-onednn", 64, 4_700_000, 4_650_000, 4_790_000, 13_000, 2.04, True),
            json_config("no-grappler", 64, 2_350_000, 2_300_000, 2_440_000, 25_000, 1.21, True),
            json_config("one-thread", 64, 5_600_000, 5_550_000, 5_690_000, 11_000, 2.41, True),
            json_config("gpu", 64, 500_000, 450_000, 590_000, 120_000, 0.22, True),
        ],
        "findings": ["One finding.", "And another."],
        "cold": [
            {
                "name": "conv1/Relu",
                "op": "_FusedConv2D",
                "calls": 1,
                "total_ns": 990_000,
                "self_ns": 950_000,
                "mean_ns": 991_000,
                "share": 0.5,
            },
            {
                "name": "loop/Mul",
                "op": "Mul",
                "calls": 4,
                "total_ns": 92_000,
                "self_ns": 80_000,
                "mean_ns": 23_000,
                "share": 0.1,
            },
            {
                "name": "loss/w",
                "op": "VariableV2",
                "calls": 1,
                "total_ns": 7_000,
                "self_ns": 6_000,
                "mean_ns": 7_001,
                "share": 0.01,
            },
        ],
        "cold_step_ns": 5_170_000,
        "uncovered": {"MaxPool": 1, "Softmax": 2},
        "interrupted": False,
        "failure": None,
        "tables": {
            "4": [
                {
                    "key": "MaxPool",
                    "ops": ["MaxPool"],
                    "nodes": ["pool1/MaxPool", "pool2/MaxPool"],
                    "fused_from": [],
                    "calls": 190,
                    "total_ns": 11_400_000,
                    "self_ns": 10_640_000,
                    "mean_ns": 60_000,
                    "median_ns": 55_000,
                    "p95_ns": 91_000,
                    "share": 0.74,
                    "cumulative_share": 0.75,
                    "requested_bytes": 2_048,
                    "flops": 26_000,
                    "gflops": 0.09,
                    "std_ns": 7_000,
                    "step_ns": 300_000,
                    "step_std_ns": 21_000,
                    "peak_bytes": 1_536,
                    "code": None,
                    "step_median_ns": 290_000,
                    "forward_ns": 10_640_000,
                    "backward_ns": 0,
                    "update_ns": 0,
                },
                {
                    "key": "_FusedConv2D",
                    "ops": ["_FusedConv2D", "Conv2D"],
                    "nodes": ["conv1/Relu", "conv2/Relu"],
                    "fused_from": [
                        *("conv1/Conv2D", "conv1/BiasAdd", "conv1/Relu"),
                        *("conv2/Conv2D", "conv2/Relu"),
                    ],
                    "calls": 76,
                    "total_ns": 3_040_000,
                    "self_ns": 2_888_000,
                    "mean_ns": 40_000,
                    "median_ns": 38_000,
                    "p95_ns": 47_000,
                    "share": 0.24,
                    "cumulative_share": 0.99,
                    "requested_bytes": 1_024,
                    "flops": 1_254_000,
                    "gflops": 16.5,
                    "std_ns": 3_000,
                    "step_ns": 80_000,
                    "step_std_ns": 4_500,
                    "peak_bytes": 768,
                    "code": None,
                    "step_median_ns": 77_000,
                    "forward_ns": 2_888_000,
                    "backward_ns": 0,
                    "update_ns": 0,
                },
                {
                    "key": "Const",
                    "ops": ["Const"],
                    "nodes": ["one"],
                    "fused_from": [],
                    "calls": 228,
                    "total_ns": 13_680,
                    "self_ns": 13_300,
                    "mean_ns": 60,
                    "median_ns": 58,
                    "p95_ns": 77,
                    "share": 0.003,
                    "cumulative_share": 1.0,
                    "requested_bytes": 96,
                    "flops": None,
                    "gflops": None,
                    "std_ns": 9,
                    "step_ns": 360,
                    "step_std_ns": None,
                    "peak_bytes": None,
                    "code": None,
                    "step_median_ns": None,
                    "forward_ns": 13_300,
                    "backward_ns": 0,
                    "update_ns": 0,
                },
            ],
            "16": [
                {
                    "key": "_FusedConv2D",
                    "ops": ["_FusedConv2D"],
                    "nodes": ["conv1/Relu"],
                    "fused_from": ["conv1/Conv2D", "conv1/BiasAdd"],
                    "calls": 20,
                    "total_ns": 2_000_000,
                    "self_ns": 1_920_000,
                    "mean_ns": 100_000,
                    "median_ns": 97_000,
                    "p95_ns": 130_000,
                    "share": 0.28,
                    "cumulative_share": 0.98,
                    "requested_bytes": 4_096,
                    "flops": 5_016_000,
                    "gflops": 26.4,
                    "std_ns": 6_000,
                    "step_ns": 200_000,
                    "step_std_ns": 8_500,
                    "peak_bytes": 3_584,
                    "code": None,
                    "step_median_ns": 198_000,
                    "forward_ns": 1_920_000,
                    "backward_ns": 0,
                    "update_ns": 0,
                }
            ],
        },
        "images": 600,
        "trace_every": 4,
        "without": ["remapper", "layout"],
        "tasks": 0,
        "warm_ns": {"conv1/Relu": 38_000, "loop/Mul": 2_000},
        "experiments": {
            "4": {
                "ops": [
                    {
                        "name": "conv1/Relu",
                        "op": "_FusedConv2D",
                        "once_more_ns": 41_000.0,
                        "low_ns": 38_000.0,
                        "high_ns": 44_500.0,
                        "observations": 5,
                        "predicted_ns": None,
                    }
                ],
                "control": {
                    "name": "control",
                    "op": "",
                    "once_more_ns": 300.0,
                    "low_ns": -900.0,
                    "high_ns": 1_100.0,
                    "observations": 5,
                    "predicted_ns": None,
                },
                "untried": [{"name": "w", "op": "VarHandleOp", "reason": "it changes something"}],
                "one_by_one": None,
            }
        },
        "quality": {
            "quiet": False,
            "reasons": ["one thing was wrong", "another too"],
            "cores": 2,
            "load_average": 2.5,
            "stolen_share": 0.125,
            "p90_to_p10": 3.75,
            "untraced_to_traced": 1.0625,
            "even_if_busy": False,
        },
        "diagnosis": [
            {
                "sentence": "Transposes cost most.",
                "cost_ns": 120_000,
                "share": 0.15,
                "batch_size": 4,
                "kind": "movement",
            },
            {
                "sentence": "The session is next.",
                "cost_ns": 250_000,
                "share": 0.11,
                "batch_size": 64,
                "kind": "session",
            },
        ],
    }


def json_cell(calls, total_ns, mean_ns, ns_per_image, share, bytes_, gflops) -> dict:
    return {
        "calls": calls,
        "total_ns": total_ns,
        "mean_ns": mean_ns,
        "ns_per_image": ns_per_image,
        "share": share,
        "bytes": bytes_,
        "gflops": gflops,
        "forward_ns": 0,
        "backward_ns": 0,
        "update_ns": 0,
    }


def json_config(name, batch_size, median, p10, p90, rate, ratio, significant) -> dict:
    return {
        "config": name,
        "batch_size": batch_size,
        "untraced_ns": {"median": median, "p10": p10, "p90": p90},
        "median_images_per_second": rate,
        "verdict": None
        if name == "default"
        else {
            "ratio": ratio,
            "low": 0.9 * ratio,
            "high": 1.1 * ratio,
            "p_value": 0.001,
            "observations": 7,
            "word": ("slower" if ratio > 1 else "faster") if significant else "cannot tell",
        },
    }


# In a notebook


def test_a_notebook_shows_ten_rows_of_a_comparison_and_counts_the_others():
    rows = tuple(replace(CONV, key=f"row {number}") for number in range(12))
    blocks = list(view.blocks(replace(COMPARISON, rows=rows)))
    in_all = next(block for block in blocks if gist(block).startswith("Total"))
    assert [cells[0] for cells in in_all.cells()] == [f"row {number}" for number in range(10)]
    assert in_all.more == 2
