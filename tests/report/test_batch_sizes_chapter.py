"""The chapter of batch sizes: every sentence and cell, from a comparison worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.lab import COMPARED, SWEPT, shown
from tests.shown import layout
from tflab.compare import view
from tflab.records.blocks import Frame, Strip
from tflab.report import comparison_chapters

pytestmark = pytest.mark.usefixtures("undrawn")


def test_the_batch_sizes_are_handed_in_then_told_in_full():
    assert shown(comparison_chapters.batch_sizes(COMPARED)) == [
        [
            "lenet, inference: findings at each batch size",
            ("batch", "a step, median", "mean", "images a second", "found"),
            (
                *("4", "1.20 ms", "1.35 ms", "2,957"),
                "_FusedConv2D takes 62.5 % of the op time, 100 us a call on average",
            ),
            (
                *("16", "3.00 ms", "3.19 ms", "5,013"),
                "MaxPool takes 75.0 % of the op time, 960 us a call on average; 4 x the images "
                "of batch 4 take 2.5 x as long (medians)",
            ),
            (
                *("64", "8.00 ms", "8.36 ms", "7,654"),
                "Softmax takes 50.0 % of the op time, 1.30 ms a call on average; 4 x the images "
                "of batch 16 take 2.7 x as long (medians)",
            ),
            0,
        ],
        ("batch_sizes", ("batch_sizes", COMPARED)),
        [
            "Mean time of a call at each batch size (and its ratio to the size before)",
            ("type that ran", "batch 4", "batch 16", "batch 64"),
            ("_FusedConv2D", "100 us", "160 us (1.6 x)", "400 us (2.5 x)"),
            ("MaxPool", "120 us", "960 us (8.0 x)", ""),
            ("Softmax", "", "", "1.30 ms"),
            0,
        ],
        Strip(
            "Findings, computed from the tables",
            (Frame("", "", ("The first finding.", "The last finding.")),),
        ),
        [
            "Steps of each batch size",
            (
                *("batch", "traced steps", "median", "p10", "p90", "mean", "images a second"),
                *("traced, median", "ops, mean", "memory peak"),
            ),
            (
                *("4", "11 of 12", "1.20 ms", "1.10 ms", "1.90 ms", "1.35 ms", "2,957"),
                *("1.50 ms", "700 us", "6.00 KiB"),
            ),
            (
                *("16", "5 of 6", "3.00 ms", "2.70 ms", "4.10 ms", "3.19 ms", "5,013"),
                *("3.40 ms", "1.60 ms", "9.00 MiB"),
            ),
            (
                *("64", "1,003", "8.00 ms", "7.20 ms", "9.90 ms", "8.36 ms", "7,654"),
                *("8.60 ms", "5.60 ms", "3.00 GiB"),
            ),
            0,
        ],
        view.units(COMPARED),
        [
            "Cold: the first step, at batch 4, took 21.7 ms, and a warm traced step took 1.50 ms "
            "(median); the first step also set up kernels and memory",
            ("node", "type that ran", "first run", "warm, mean", "ratio"),
            ("conv1/Relu", "_FusedConv2D", "484 us", "121 us", "4.00 x"),
            ("only/cold", "Const", "94.0 us", "", ""),
            0,
        ],
        SWEPT,
    ]


def test_a_comparison_that_found_nothing_has_no_findings():
    parts = list(comparison_chapters.batch_sizes(replace(COMPARED, findings=())))
    assert not [part for part in parts if isinstance(part, Strip)]


def test_numbers_of_batch_sizes_stand_right_and_findings_give_way():
    assert layout(comparison_chapters.table(COMPARED)) == [
        *("batch right", "a step, median right", "mean right"),
        *("images a second right", "found gives way to 16"),
    ]


def test_what_is_no_image_is_a_row():
    rows = replace(COMPARED, unit="row")
    *_, recipe = comparison_chapters.batch_sizes(rows)
    assert recipe.how.startswith("64,192 rows of points at each batch size: untraced and traced ")
    assert "rows a second" in [column.header for column in comparison_chapters.table(rows).columns]
    assert "x the rows of batch" in comparison_chapters.finding_at(rows, 16)
