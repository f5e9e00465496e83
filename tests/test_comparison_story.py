"""The story of a comparison made by hand, and the same as JSON and CSV."""

import csv
import io
import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tflab import environment
from tflab.exporters import data, markdown, text
from tflab.records import (
    Cell,
    Compared,
    Comparison,
    ConfigTimes,
    Fit,
    OpTotal,
    Row,
    Spread,
    StepTimes,
)
from tflab.story import comparison as story
from tflab.table import Strip, Table

CONV = Compared(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    fused_from=("conv1/Conv2D", "conv1/Relu"),
    cells={
        1: Cell(64, 6_400_000, 100_000, 100_000, 0.4, 2**20, 6.24),
        16: Cell(4, 1_200_000, 300_000, 18_750, 0.75, 2**24, None),
    },
    fit=Fit(87_000, 13_300, 0.05),
)
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        1: Cell(64, 9_600_000, 150_000, 150_000, 0.6, 0, 0.06),
        16: Cell(4, 400_000, 100_000, 6_250, 0.25, 0, 1),
    },
    fit=Fit(153_000, -3_300, None),
)
CONST = Compared("Const", ("Const",), (), {1: Cell(64, 64, 1, 1, 0, 0, None)}, fit=None)
STEPS = {
    1: StepTimes(64, 64, Spread(3e5, 2e5, 4e5), Spread(5e5, 4e5, 6e5), 3_333.4, ops_ns=2.5e5),
    16: StepTimes(4, 64, Spread(8e5, 7e5, 9e5), Spread(9e5, 8e5, 1e6), 20_000, ops_ns=4e5),
}
WHOLE = Row(
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
    intensity=None,
    roof_share=0.125,
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
    cold=(OpTotal("conv1/Relu", "_FusedConv2D", 1, 486_000, 486_000, 486_000, 0.5),),
    cold_step_ns=2_170_000,
    uncovered=("Relu",),
    tables={1: (WHOLE,)},
)


def told(found: Comparison = FOUND, top: int = 10) -> list:
    return list(story.tell(found, top))


def shown(found: Comparison, top: int = 10) -> list[str]:
    stream = io.StringIO()
    for block in told(found, top):
        text.show_block(text.console(stream), block)
    return stream.getvalue().splitlines()


def tables(found: Comparison = FOUND, top: int = 10) -> dict[str, Table]:
    """The tables of the story by the first word or two of their titles."""
    found = [block for block in told(found, top) if isinstance(block, Table)]
    return {table.title.partition(":")[0]: table for table in found}


def cells(table: Table) -> list[tuple[str, ...]]:
    return list(table.cells())


# The story


def test_it_opens_with_what_was_measured_on_how_many_images_and_how():
    assert told()[0] == (
        "lenet, inference, 64 images of MNIST at each batch size, each worked on untraced and "
        "traced in turn. Warm: the first 3 steps of each batch size are not counted."
    )


def test_steps_have_a_row_for_each_batch_size():
    assert cells(tables()["Steps"]) == [
        ("1", "64", "300 us", "200 us", "400 us", "500 us", "250 us", "3,333"),
        ("16", "4", "800 us", "700 us", "900 us", "900 us", "400 us", "20,000"),
    ]


def test_each_batch_size_has_its_rows_the_dearest_first():
    by_title = tables()
    assert cells(by_title["Batch 1"]) == [
        ("MaxPool", "64", "9.60 ms", "150 us", "", "150 us", "60.0 %", "0 B", "0.1", ""),
        (
            *("_FusedConv2D", "64", "6.40 ms", "100 us", "180 us", "100 us"),
            *("40.0 %", "1.00 MB", "6.2", "12.5 %"),
        ),
        ("Const", "64", "64 ns", "1 ns", "", "1 ns", "0.0 %", "0 B", "", ""),
    ]
    assert cells(by_title["Batch 16"]) == [
        ("_FusedConv2D", "4", "1.20 ms", "300 us", "", "18.8 us", "75.0 %", "16.0 MB", "", ""),
        ("MaxPool", "4", "400 us", "100 us", "", "6.25 us", "25.0 %", "0 B", "1.0", ""),
    ]


def test_calls_stand_side_by_side_with_ratio_fit_and_error():
    assert cells(
        tables()[
            "A call at each batch size (and its ratio to the one before); "
            "fixed cost + cost an image"
        ]
    ) == [
        ("_FusedConv2D", "100 us", "300 us (3.0 x)", "87.0 us + 13.3 us", "5.0 %"),
        ("MaxPool", "150 us", "100 us (0.7 x)", "153 us + -3.30 us", ""),
        ("Const", "1 ns", "", "", ""),
    ]


def test_layers_stand_in_the_order_of_execution():
    layers = replace(FOUND, by="layer")
    table = tables(layers)["Batch 1"]
    assert table.title == "Batch 1: the layers in the order of execution (self time)"
    assert [row[0] for row in cells(table)] == ["_FusedConv2D", "MaxPool", "Const"]


@pytest.mark.parametrize("by, header", story.NAMES.items())
def test_the_first_column_says_what_a_row_is(by, header):
    assert tables(replace(FOUND, by=by))["Batch 1"].columns[0].header == header


def test_rows_beyond_the_top_are_counted():
    for title, table in tables(top=1).items():
        rows, more = {"Batch 1": (1, 2), "Batch 16": (1, 1), "A call": (1, 2)}.get(
            title.partition(" at")[0], (len(table.rows), 0)
        )
        assert (len(table.rows), table.more) == (rows, more)


def test_the_cold_step_stands_apart():
    (table,) = (table for title, table in tables().items() if title.startswith("Cold"))
    assert table.title == (
        "Cold: the very first step of a process took 2.17 ms: kernels and memory were set up"
    )
    assert cells(table) == [("conv1/Relu", "_FusedConv2D", "486 us")]


def test_types_without_flops_are_listed():
    assert told()[-1] == (
        "The framework's registry has no FLOPs for: Relu. They have none here either, and are "
        "not counted as 0."
    )
    assert isinstance(told(replace(FOUND, uncovered=()))[-1], Table)


def test_findings_are_sentences_below_a_heading():
    (strip,) = (block for block in told() if isinstance(block, Strip))
    assert [frame.lines for frame in strip.frames] == [FOUND.findings]


def test_without_findings_there_is_no_heading_for_them():
    assert not any(isinstance(block, Strip) for block in told(replace(FOUND, findings=())))


def test_what_was_interrupted_is_marked_before_anything_else():
    first, *rest = told(replace(FOUND, interrupted=True))
    assert first == "Partial: interrupted, what follows was measured until then."
    assert len(rest) == len(told())


# Configurations


def config(name: str, ratio: float, significant: bool) -> ConfigTimes:
    return ConfigTimes(name, 16, Spread(8e5, 7e5, 9e5), 20_000, ratio, significant)


def test_a_difference_within_the_noise_is_called_that():
    raced = (
        config("default", 1, False),
        config("xla", 0.5, True),
        config("one-thread", 1.02, False),
    )
    table = tables(replace(FOUND, configs=raced))[
        "Untraced steps under other configurations, measured in turn"
    ]
    times = ("16", "800 us", "700 us", "900 us", "20,000")
    assert cells(table) == [
        ("default", *times, ""),
        ("xla", *times, "0.50 x"),
        ("one-thread", *times, "no significant difference"),
    ]


def test_default_alone_has_no_table_of_configurations():
    assert tables(replace(FOUND, configs=(config("default", 1, False),))).keys() == tables().keys()


# On paper


def test_three_batch_sizes_fit_into_100_columns_with_no_number_cut():
    slow = Cell(10_000, 10**12, 123_456_789, 123_456_789, 1, 2**30, 1234.5)
    row = Compared("x" * 60, ("Op",), (), dict.fromkeys((1, 16, 64), slow), Fit(1.23e8, 1.23e8, 1))
    steps = dict.fromkeys((1, 16, 64), STEPS[1])
    found = replace(FOUND, batch_sizes=(1, 16, 64), rows=(row,), steps=steps)
    lines = [line for line in shown(found) if "xxx" in line]
    assert [line.count("…") for line in lines] == [1] * 4  # that of the name
    assert lines[-1].endswith("123 ms  123 ms (1.0 x)  123 ms (1.0 x)  123 ms + 123 ms  100.0 %")


NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)


@settings(max_examples=25, deadline=None)
@given(NAMES, NAMES, st.integers(1, 8), st.sampled_from([*story.NAMES]))
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
        configs=(config(name, 1, False), config(name, 2, True)),
        findings=(sentence,),
        cold=(replace(FOUND.cold[0], name=name, op=sentence),),
        uncovered=(name, sentence),
    )
    assert max(map(cell_len, shown(found))) <= 100


def test_the_page_has_every_table_and_finding():
    page = markdown.page("lenet by batch size", environment.describe(), told())
    for title in tables():
        assert title in page
    assert FOUND.findings[0] in page


# For other programs


def as_json(found: Comparison) -> dict:
    text = json.dumps(data.comparison_object(found, {"cpus": 2}), allow_nan=False)
    return json.loads(text)


def test_json_has_rows_with_a_cell_for_each_batch_size():
    found = as_json(FOUND)
    assert found["rows"][0] == {
        "key": "_FusedConv2D",
        "ops": ["_FusedConv2D"],
        "fused_from": ["conv1/Conv2D", "conv1/Relu"],
        "cells": {
            "1": {
                "calls": 64,
                "total_ns": 6_400_000,
                "mean_ns": 100_000,
                "ns_per_image": 100_000,
                "share": 0.4,
                "bytes": 2**20,
                "gflops": 6.24,
            },
            "16": {
                "calls": 4,
                "total_ns": 1_200_000,
                "mean_ns": 300_000,
                "ns_per_image": 18_750,
                "share": 0.75,
                "bytes": 2**24,
                "gflops": None,
            },
        },
        "fit": {"fixed_ns": 87_000, "per_image_ns": 13_300, "error": 0.05},
    }
    assert found["rows"][1]["fit"]["error"] is found["rows"][2]["fit"] is None
    assert [row["key"] for row in found["rows"]] == ["_FusedConv2D", "MaxPool", "Const"]


def test_json_has_steps_findings_and_their_setting():
    found = as_json(FOUND)
    assert found["steps"]["16"] == {
        "steps": 4,
        "images": 64,
        "untraced_ns": {"median": 8e5, "p10": 7e5, "p90": 9e5},
        "traced_ns": {"median": 9e5, "p10": 8e5, "p90": 1e6},
        "images_per_second": 20_000,
        "ops_ns": 4e5,
    }
    assert {
        key: value for key, value in found.items() if key not in ("rows", "steps", "tables")
    } == {
        "environment": {"cpus": 2},
        "model": "lenet",
        "phase": "inference",
        "by": "op",
        "data": "MNIST",
        "warmup": 3,
        "batch_sizes": [1, 16],
        "configs": [],
        "findings": [*FOUND.findings],
        "cold": [asdict(FOUND.cold[0])],
        "cold_step_ns": 2_170_000,
        "uncovered": ["Relu"],
        "interrupted": False,
        "failure": None,
    }


def test_csv_has_a_line_for_each_row_and_batch_size():
    (line,) = csv.DictReader(io.StringIO(data.comparison_csv(FOUND)))
    assert line["batch_size"] == "1"
    assert line["nodes"] == "conv1/Relu conv2/Relu"
    assert (line["p95_ns"], line["intensity"], line["ns_per_image"]) == ("180000", "", "100000.0")
