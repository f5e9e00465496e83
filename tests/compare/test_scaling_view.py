"""View of the scaling: every cell and sentence, from a record by hand."""

from dataclasses import replace

import pytest

from tests.records_by_hand import BUSY, BUSY_LINE, read
from tflab.compare import scaling_view
from tflab.records.cluster import Scaling, ScalingRow
from tflab.records.timed import Spread

SCALING = Scaling(
    model="lenet",
    phase="training",
    batch_size=64,
    split="layers",
    data="MNIST",
    rows=(
        ScalingRow(0, 20, Spread(2e6, 1.9e6, 2.1e6), 32_000, 1.0, None, None, 0, 0),
        ScalingRow(2, 20, Spread(4e6, 3e6, 5e6), 16_000, 0.5, 0.25, 0.375, 7, 131_072),
    ),
    quality=None,
    cores=2,
    local=True,
)


def blocks(scaling):
    return [read(block) for block in scaling_view.blocks(scaling)]


def test_every_cell_and_sentence():
    assert blocks(SCALING) == [
        "Each row is a step of training on the same 64 rows of MNIST, split by layers. 0 tasks "
        "means this process alone. Each number of tasks was measured once, so speed-ups have no "
        "interval.",
        [
            "Untraced steps; network: share of traced steps in which tensors were sent and no op "
            "ran",
            (
                *("tasks", "step", "p10", "p90", "rows/s", "speed-up", "efficiency"),
                *("network", "messages", "bytes"),
            ),
            ("0", "2.00 ms", "1.90 ms", "2.10 ms", "32,000", "1.00", "", "", "0", "0 B"),
            (
                *("2", "4.00 ms", "3.00 ms", "5.00 ms", "16,000", "0.50", "25.0 %"),
                *("37.5 %", "7", "128 KiB"),
            ),
            "",
        ],
        "With 2 tasks a step is slower than in one process (its p10 is above the p90 of one "
        "process): every step sends 7 messages with 128 KiB, while one process only passes "
        "pointers; tasks on this machine share its 2 cores, which one process already uses; "
        "layers wait for one another, so most of the time only one task works.",
    ]


@pytest.mark.parametrize("spread", [Spread(1.5e6, 1.4e6, 1.6e6), Spread(2.1e6, 2e6, 3e6)])
def test_tasks_that_are_not_slower_by_more_than_steps_vary_need_no_reason(spread):
    rows = (SCALING.rows[0], replace(SCALING.rows[1], step_ns=spread))
    assert not [b for b in blocks(replace(SCALING, rows=rows)) if "slower than in one process" in b]


def test_what_may_be_chance_is_not_called_slower():
    overlapping = Spread(2.2e6, 2.1e6, 2.5e6)  # a tenth of its steps were as quick as alone
    rows = (SCALING.rows[0], replace(SCALING.rows[1], step_ns=overlapping, speed_up=0.91))
    assert not [b for b in blocks(replace(SCALING, rows=rows)) if "slower than in one process" in b]


def test_one_task_shares_nothing_and_has_no_other_layers():
    rows = (SCALING.rows[0], replace(SCALING.rows[1], tasks=1))
    assert blocks(replace(SCALING, rows=rows))[2] == (
        "With 1 task a step is slower than in one process (its p10 is above the p90 of one "
        "process): every step sends 7 messages with 128 KiB, while one process only passes "
        "pointers."
    )


def test_tasks_elsewhere_share_no_cores_of_this_machine():
    elsewhere = blocks(replace(SCALING, local=False))
    assert elsewhere[2].endswith(
        "pointers; layers wait for one another, so most of the time only one task works."
    )


def test_what_ended_it_comes_first():
    failed = replace(SCALING, interrupted=True, failure="Task 1 went away.")
    assert blocks(failed)[:2] == [
        "Partial: these are the measurements before the interruption.",
        "Partial: these are the measurements before this error: Task 1 went away.",
    ]


def test_of_a_busy_machine_there_are_times_and_no_conclusions():
    first, *others = blocks(replace(SCALING, quality=BUSY))
    assert first == BUSY_LINE
    assert others == blocks(SCALING)[:2]
