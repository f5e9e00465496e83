"""Special cases of the view of a comparison; `test_whole_view` has all cells of a usual one."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.records_by_hand import op_at_size, op_stats, op_total, verdict
from tflab.analysis import batch_fit
from tflab.cli import environment
from tflab.compare import view
from tflab.exporters import markdown, text
from tflab.records.blocks import Table
from tflab.records.measured import Compared, Comparison, ConfigTimes, Level, Peaks, StepTimes
from tflab.records.timed import Holder, LiveBytes, Spread
from tflab.views import op_table

CONV = Compared(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    fused_from=("conv1/Conv2D", "conv1/Relu"),
    cells={
        1: op_at_size(64, 6_400_000, 100_000, 100_000, 0.4, 2**20, 6.24),
        16: op_at_size(4, 1_200_000, 300_000, 18_750, 0.75, 2**24, None),
    },
    fit=None,
)
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        1: op_at_size(64, 9_600_000, 150_000, 150_000, 0.6, 0, 0.06),
        16: op_at_size(4, 400_000, 100_000, 6_250, 0.25, 0, 1),
    },
    fit=None,
)
CONST = Compared("Const", ("Const",), (), {1: op_at_size(64, 64, 1, 1, 0, 0, None)}, fit=None)
CURVE = LiveBytes(
    step=1,
    points=((2_000, 4_096), (9_000, 0)),
    peak_bytes=4_096,
    peak_ns=2_000,
    holders=(Holder("conv1/Relu", "_FusedConv2D", 4_096, running=False),),
)
STEPS = {
    1: StepTimes(
        steps=64,
        images=64,
        untraced_ns=Spread(3e5, 2e5, 4e5),
        traced_ns=Spread(5e5, 4e5, 6e5),
        mean_images_per_second=3_333.4,
        ops_ns=2.5e5,
        untraced_steps=64,
        peak_bytes=8_192,
        curve=CURVE,
    ),
    16: StepTimes(
        steps=4,
        images=64,
        untraced_ns=Spread(8e5, 7e5, 9e5),
        traced_ns=Spread(9e5, 8e5, 1e6),
        mean_images_per_second=20_000,
        ops_ns=4e5,
        untraced_steps=4,
        peak_bytes=2**20,
    ),
}
WHOLE = op_stats(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    nodes=("conv1/Relu", "conv2/Relu"),
    fused_from=("conv1/Conv2D", "conv1/Relu"),
    calls=64,
    total_ns=6_400_000,
    self_ns=6_400_000,
    mean_ns=100_000,
    median_ns=90_000,
    p95_ns=180_000,
    share=0.4,
    cumulative_share=0.4,
    requested_bytes=2**20,
    flops=624_000,
    gflops=6.24,
    intensity=12.5,
    roof_share=0.125,
    peak_bytes=2**19,
    image_ns=100_000.0,
)
PLAIN = replace(
    WHOLE,
    key="Const",
    ops=("Const",),
    nodes=("one",),
    fused_from=(),
    share=0.0,
    cumulative_share=1.0,
    requested_bytes=0,
    flops=None,
    gflops=None,
    intensity=None,
    roof_share=None,
    peak_bytes=None,
)
FOUND = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(1, 16),
    rows=(CONV, POOL, CONST),
    steps=STEPS,
    configs=(),
    findings=("Batch 16 does 6.00 x the images per second of batch 1.",),
    cold=(op_total("conv1/Relu", "_FusedConv2D", 1, 486_000, 486_000, 486_000, 0.5),),
    cold_step_ns=2_170_000,
    uncovered={"Relu": 2},
    tables={1: (WHOLE, PLAIN)},
    images=64,
    warm_ns={"conv1/Relu": 54_000},
    peaks=Peaks(gflops=214.6, gigabytes_per_s=38.72),
)


def told(found: Comparison = FOUND, top: int = 10) -> list:
    return list(view.blocks(found, top))


def shown(found: Comparison, top: int = 10) -> list[str]:
    stream = io.StringIO()
    for block in told(found, top):
        text.show_block(text.console(stream), block)
    return stream.getvalue().splitlines()


def tables(found: Comparison = FOUND, top: int = 10) -> dict[str, Table]:
    """The tables of the story by their titles, which are `Steps` and `Cold` for short."""
    found = [block for block in told(found, top) if isinstance(block, Table)]
    return {re.sub(r"^(Steps|Cold)\b.*", r"\1", table.title): table for table in found}


def cells(table: Table) -> list[tuple[str, ...]]:
    return list(table.cells())


# The story


CONFIGURED = (
    "Median untraced step under other configurations, each in its own processes (ratio to default)"
)
ABREAST = {
    "Total": "Total time at each batch size (and number of calls)",
    "Call": "Mean time of a call at each batch size (and its ratio to the size before)",
    "Step": "Mean time of a step at each batch size (and its ratio to the size before)",
    "Image": "Time per image at each batch size (and share of the time of all ops)",
}


def called(name: str, **means: int) -> Compared:
    """A row of ten calls a step, with the mean time of a call: `b16=200`."""
    by_size = {int(size[1:]): mean for size, mean in means.items()}
    counts = {size: 10 * STEPS_OF_3[size].steps for size in by_size}
    of_size = {
        size: op_at_size(counts[size], counts[size] * mean, mean, 1, 0.1, 0, None)
        for size, mean in by_size.items()
    }
    return Compared(name, (name,), (), of_size, batch_fit.fit(of_size, STEPS_OF_3))


STEPS_OF_3 = {**STEPS, 64: replace(STEPS[16], steps=1)}
OF_3 = replace(
    FOUND,
    batch_sizes=(1, 16, 64),
    steps=STEPS_OF_3,
    rows=(
        called("ReadVariableOp", b1=1_100, b16=2_600, b64=7_400),
        called("Falling", b1=300, b16=200, b64=100),
        called("Missing", b1=100, b64=200),
    ),
)
FITTED = "; fit: fixed cost + cost per image"


def test_a_fit_is_of_the_calls_beside_it_and_a_falling_one_is_not_told():
    assert cells(tables(OF_3)[ABREAST["Call"] + FITTED]) == [
        (
            *("ReadVariableOp", "1.10 us", "2.60 us (2.4 x)", "7.40 us (2.8 x)"),
            *("1.00 us + 100 ns", "0.0 %"),
        ),
        ("Falling", "300 ns", "200 ns (0.7 x)", "100 ns (0.5 x)", "", ""),
        ("Missing", "100 ns", "", "200 ns", "", ""),
    ]


def test_where_no_row_has_a_fit_there_is_no_column_for_it():
    found = tables(replace(OF_3, rows=OF_3.rows[1:]))[ABREAST["Call"]]
    headers = [column.header for column in found.columns]
    assert headers == ["type that ran", "batch 1", "batch 16", "batch 64"]


@pytest.mark.parametrize(
    "flops, said",
    [
        (0, "0"),
        (999, "999"),
        (9_990, "9.99 k"),
        (999_700, "1.00 M"),  # not 1000 k
        (15.34e6, "15.3 M"),
        (1.2e12, "1200 G"),
    ],
)
def test_flops_have_three_digits(flops, said):
    assert op_table.flops_text(flops) == said


@pytest.mark.parametrize("by, header", op_table.NAMES.items())
def test_the_first_column_says_what_a_row_is(by, header):
    found = tables(replace(FOUND, by=by))
    first = {title: table.columns[0].header for title, table in found.items()}
    assert first | {"Steps": header, "Cold": header} == dict.fromkeys(first, header)


def test_rows_beyond_the_top_are_counted():
    left_out = {title.partition(" ")[0]: table.more for title, table in tables(top=1).items()}
    assert left_out == {"Steps": 0, "Total": 2, "Mean": 2, "Time": 2, "Batch": 1, "Cold": 0}


def test_the_legend_says_what_is_not_covered_and_what_the_roof_is():
    legend = (
        "Requested: bytes that the ops of a row requested from their allocators; peak: the most "
        "of these in use at once. FLOPs are counted from op type and shapes; a multiply-add "
        "counts as two"
    )
    assert told()[-2] == (
        f"{legend}. They are unknown for Relu (2 nodes), so rows with these have none. The roof "
        f"is what a short benchmark reached at the same FLOPs per byte: 215 GFLOP/s, with 38.7 "
        "GB/s from memory."
    )
    assert told(replace(FOUND, uncovered={}, peaks=None))[-2] == f"{legend}."
    levels = (Level(2**14, 201.4, 150.0), Level(2**27, 30.0, 40.0))
    table = (replace(FOUND.tables[1][0], roof_share=7.83),)
    cached = replace(FOUND.peaks, levels=levels)
    held = told(replace(FOUND, uncovered={}, peaks=cached, tables={1: table}))[-2]
    assert held == (
        f"{legend}. The roof is what a short benchmark reached at the same FLOPs per byte: "
        "215 GFLOP/s, with 38.7 GB/s from memory and up to 201 GB/s from caches if a call's "
        "inputs and outputs fit. Above: _FusedConv2D with 6.24 GFLOP/s was faster than that "
        "benchmark, so the roof is too low and shares of it are too high."
    )


# Configurations


def config(name: str, ratio: float, significant: bool) -> ConfigTimes:
    against = None if name == "default" else verdict(ratio, significant)
    return ConfigTimes(name, 16, Spread(8e5, 7e5, 9e5), 20_000, against)


def test_configurations_are_columns_with_intervals_and_what_nobody_can_tell_is_called_that():
    raced = (
        config("default", 1, False),
        config("xla", 0.5, True),
        config("one-thread", 1.02, False),
    )
    table = tables(replace(FOUND, configs=raced))[CONFIGURED]
    assert [column.header for column in table.columns] == ["batch", "default", "xla", "one-thread"]
    assert cells(table) == [
        ("16", "800 us", "800 us (0.50 x [0.45, 0.55])", "800 us (cannot tell [0.92, 1.12])")
    ]


def test_default_alone_has_no_table_of_configurations():
    assert tables(replace(FOUND, configs=(config("default", 1, False),))).keys() == tables().keys()


# On paper


def test_three_batch_sizes_fit_into_100_columns_with_no_number_cut():
    slow = op_at_size(10_000, 10**12, 123_456_789, 123_456_789, 1, 2**30, 1234.5)
    means = {1: 2e8, 16: 1.1e9, 64: 1.61e10}  # far from a straight line
    by_size = {size: replace(slow, mean_ns=mean) for size, mean in means.items()}
    steps = dict.fromkeys(means, replace(STEPS[1], untraced_steps=10_000, steps=1_000))
    row = Compared("x" * 60, ("Op",), (), by_size, batch_fit.fit(by_size, steps))
    whole = replace(
        WHOLE,
        key="x" * 60,
        fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
        calls=1_000_000,
        share=1.0,
        cumulative_share=1.0,
        gflops=123.4,
        roof_share=1.0,
    )
    found = replace(
        FOUND,
        batch_sizes=(1, 16, 64),
        rows=(row,),
        steps=steps,
        tables=dict.fromkeys((1, 16, 64), (whole,)),
    )
    lines = shown(found)
    assert {line.count("…") for line in lines if "xxx" in line} == {1}  # that of the name
    assert not any("…" in line for line in lines if "xxx" not in line)
    assert any(line.endswith("16.1 s (14.6 x)  119 ms + 75.0 ms  69.5 %") for line in lines)


NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(NAMES, NAMES, st.integers(1, 8), st.sampled_from([*op_table.NAMES]))
def test_no_line_has_over_100_columns(name, sentence, count, by):
    sizes = tuple(10**power for power in range(count))
    row = replace(CONV, key=name, cells=dict.fromkeys(sizes, CONV.cells[1]))
    found = replace(
        FOUND,
        model=name,
        by=by,
        batch_sizes=sizes,
        rows=(row, CONST),
        steps=dict.fromkeys(sizes, STEPS[1]),
        tables=dict.fromkeys(sizes, (replace(WHOLE, key=name, fused_from=(sentence, name)),)),
        configs=(config("default", 1, False), config(name, 2, True)),
        findings=(sentence,),
        cold=(replace(FOUND.cold[0], key=name, ops=(sentence,)),),
        uncovered={name: 1, sentence: 1},
    )
    assert max(map(cell_len, shown(found))) <= 100


def test_the_page_has_every_table_and_finding():
    page = markdown.page("lenet by batch size", environment.describe(), told())
    for title in tables():
        assert title in page
    assert FOUND.findings[0] in page
