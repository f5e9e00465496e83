"""The chapters of a step: every sentence and cell, from a lab that was worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples import walk
from tests.examples.lab import (
    COMPARED,
    LINEAR,
    ROWS,
    STAGES,
    SWEPT,
    TOY,
    WALKING,
    WARM,
    shown,
)
from tests.shown import layout
from tflab.report import step_chapters
from tflab.report.contents import Method

pytestmark = pytest.mark.usefixtures("undrawn")


def test_the_ten_nodes_and_the_ten_types_that_cost_most():
    assert shown(step_chapters.top_ops(LINEAR, COMPARED)) == [
        step_chapters.phases(LINEAR),
        ("op_bars", ("op_bars", walk.TOTALS, "node")),
        [
            "A training step's nodes (self time, 3 traced steps)",
            ("node", "type that ran", "calls", "self", "mean", "median", "share"),
            ("n1", "Op1", "3", "5.90 us", "701 ns", "77 ns", "1.0 %"),
            ("n2", "Op2", "6", "5.80 us", "702 ns", "77 ns", "2.0 %"),
            ("n3", "Op3", "9", "5.70 us", "703 ns", "77 ns", "3.0 %"),
            ("n4", "Op4", "12", "5.60 us", "704 ns", "77 ns", "4.0 %"),
            ("n5", "Op5", "15", "5.50 us", "705 ns", "77 ns", "5.0 %"),
            ("n6", "Op6", "18", "5.40 us", "706 ns", "77 ns", "6.0 %"),
            ("n7", "Op7", "21", "5.30 us", "707 ns", "77 ns", "7.0 %"),
            ("n8", "Op8", "24", "5.20 us", "708 ns", "77 ns", "8.0 %"),
            ("n9", "Op9", "27", "5.10 us", "709 ns", "77 ns", "9.0 %"),
            ("n10", "Op10", "30", "5.00 us", "710 ns", "77 ns", "10.0 %"),
            2,
        ],
        Method(WARM, WALKING),
        types_at(4, 4, 5),
        types_at(16, 6, 7),
        [
            "Batch 64: times, the most expensive first",
            (
                *("type that ran", "calls", "total", "self", "mean", "median", "p95"),
                *("share", "cumulative"),
            ),
            *map(type_row, range(1, 11)),
            2,
        ],
        "A table has fewer than 10 rows if fewer types of op ran: 2 types at batch 4, 2 types at "
        "batch 16.",
        SWEPT,
    ]


def types_at(batch, *ranks):
    """The table of a batch size at which these types ran."""
    return [
        f"Batch {batch}: times, the most expensive first",
        (
            *("type that ran", "calls", "total", "self", "mean", "median", "p95"),
            *("share", "cumulative"),
        ),
        *map(type_row, ranks),
        0,
    ]


def type_row(n):
    return (
        *(f"Op{n}", f"1,{n:03}", f"{50 - n}.0 ms", f"{30 - n}.0 ms"),
        *(f"{20 + n / 10:.1f} us", f"{10 + n / 10:.1f} us", f"{70 + n / 10:.1f} us"),
        *(f"{20 - n}.0 %", f"{10 + 5 * n}.0 %"),
    )


def test_tables_of_ten_types_do_not_explain_their_rows():
    full = replace(COMPARED, tables={64: ROWS[:10]}, batch_sizes=(64,))
    assert list(step_chapters.fewer_rows(full)) == []


def test_the_report_says_why_some_numbers_are_of_training_and_others_of_inference():
    assert step_chapters.phases(LINEAR) == (
        "The graphs, their nodes, times and memory are from a training step, because only a "
        "training step goes through all stages: it has gradients, and updates of the variables. "
        "The comparisons of batch sizes and configurations measure inference: all use the same "
        "rows and weights, so nothing else differs. A training step would change the weights from "
        "step to step."
    )
    assert step_chapters.phases(TOY) == ("toy is not trained here: all numbers are from inference.")


def test_the_nodes_of_a_model_that_does_not_train_are_those_of_a_step():
    _, _, table, *_ = step_chapters.top_ops(TOY, COMPARED)
    assert table.title == "A step's nodes (self time, 7 traced steps)"


def test_the_times_of_a_step_are_its_lengths_its_owners_and_its_middle_step():
    middle = walk.EXECUTION.step_times[0]
    runs = [run for run in walk.EXECUTION.runs if run.step == 5][1:]
    assert [run.name for run in runs] == ["read", "relu", "loss"]
    assert shown(step_chapters.times(LINEAR)) == [
        [
            "Time of a step",
            ("step", "median", "p10", "p90"),
            ("untraced", "4.10 ms", "3.20 ms", "9.30 ms"),
            ("traced", "5.40 ms", "4.50 ms", "9.60 ms"),
            0,
        ],
        [
            "Where the wall time of the traced steps went",
            ("owner", "a step, mean", "share"),
            ("before the first op (session, feeds)", "600 us", "10.0 %"),
            ("at least one op running", "3.00 ms", "50.0 %"),
            ("no op running between ops (scheduling, waiting)", "1.50 ms", "25.0 %"),
            ("after the last op (fetching, and collecting the trace)", "900 us", "15.0 %"),
            0,
        ],
        ("timeline", ("timeline", runs, middle, walk.EXECUTION.critical_path)),
        "In the step of median length at most 4 ops ran at once, 1.75 on average. No op ran for "
        "25.0 % of it on CPU:0, 40.0 % of it on CPU:1: the runtime itself may have been working, "
        "so this is not idle time.",
        "The critical path, the longest chain of ops that wait for one another, has 3 op runs. In "
        "a traced step these took 9.60 us. All ops together took 1.25 x as long. While any of them "
        "ran, 1.12 ran at once on average.",
        Method(WARM, WALKING),
    ]


def test_the_memory_of_a_step_is_its_curve_and_who_held_it():
    assert list(step_chapters.memory(LINEAR)) == [
        ("memory", ("memory", walk.EXECUTION.memory.curve)),
        "The ops had at most 7.00 KiB alive at once; relu requested most, 3.00 KiB a step. The "
        "step of median length peaked after 6.00 us: 5.00 KiB, allocated by 4 ops, the largest "
        "parts by relu (2.00 KiB, still running), read (1.50 KiB), loss (1.00 KiB).",
        Method(
            "The numbers are computed from the memory that each op requested from its allocators "
            f"in traced steps. {WARM}",
            WALKING,
        ),
    ]


def test_a_step_without_a_memory_curve_has_no_picture_of_it():
    memory = replace(walk.EXECUTION.memory, curve=None)
    stages = (*STAGES[:-1], replace(walk.EXECUTION, memory=memory))
    text, _ = step_chapters.memory(replace(LINEAR, stages=stages))
    assert text == (
        "The ops had at most 7.00 KiB alive at once; relu requested most, 3.00 KiB a step."
    )


def test_numbers_of_ops_stand_right_and_long_names_give_way():
    _, _, table, *_ = step_chapters.top_ops(LINEAR, COMPARED)
    assert layout(table) == [
        *("node gives way to 16 in the middle", "type that ran goes 1", "calls right"),
        *("self right", "mean right", "median right goes 1", "share right"),
    ]
