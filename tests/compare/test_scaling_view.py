"""View of the scaling: every cell and sentence, from a record by hand."""

from dataclasses import replace

import pytest

from tests.records_by_hand import BUSY, BUSY_LINE, read
from tflab.compare import scaling_view
from tflab.records import Spread
from tflab.records.scaling import Amdahl, Extrapolated, Scaling, ScalingRow, WireCost

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
    wire=WireCost(150_000, 1.5, 7),
    amdahl=Amdahl(1e6, 3e6, 0.125),
    extrapolated=(Extrapolated(4, 8e6, 8_000, 0.25, 262_144),),
    quality=None,
    cores=2,
    local=True,
)


def blocks(scaling):
    return [read(block) for block in scaling_view.blocks(scaling)]


def test_every_cell_and_sentence():
    assert blocks(SCALING) == [
        "A step of training on the same 64 rows of MNIST, split by layers. 0 tasks are this "
        "process alone. Each number of tasks was measured once, so that no speed-up has an "
        "interval.",
        [
            "Measured: untraced steps; the network's share of traced ones, with no op running",
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
        "A message takes 150 us and 1.54 us for each KiB, by a line through the medians of 7 "
        "tensors with the most tasks; several are on their way at once.",
        "With 2 tasks a step is slower than alone, its p10 above p90 alone: 7 messages and 128 KiB "
        "go over the wire in every step, which in one process are pointers; tasks of this machine "
        "share its 2 cores, which one process already uses; layers wait for one another, so that "
        "mostly one task works at a time.",
        "By Amdahl's law, with the bytes besides, 25.0 % of a step do not become less with more "
        "tasks: 1.00 ms serial, 3.00 ms shared by the tasks. The measured steps lie within 12.5 % "
        "of that. It holds for tasks on this machine: with machines of their own they would share "
        "no cores, and the wire would be slower.",
        [
            "Extrapolated by that, not measured",
            ("tasks", "step", "rows/s", "speed-up", "bytes"),
            ("4", "8.00 ms", "8,000", "0.25", "256 KiB"),
            "",
        ],
    ]


@pytest.mark.parametrize("spread", [Spread(1.5e6, 1.4e6, 1.6e6), Spread(2.1e6, 2e6, 3e6)])
def test_tasks_that_are_not_slower_by_more_than_steps_vary_need_no_reason(spread):
    rows = (SCALING.rows[0], replace(SCALING.rows[1], step_ns=spread))
    assert not [b for b in blocks(replace(SCALING, rows=rows)) if "slower than alone" in b]


def test_what_may_be_chance_is_not_called_slower():
    overlapping = Spread(2.2e6, 2.1e6, 2.5e6)  # a tenth of its steps were as quick as alone
    rows = (SCALING.rows[0], replace(SCALING.rows[1], step_ns=overlapping, speed_up=0.91))
    assert not [b for b in blocks(replace(SCALING, rows=rows)) if "slower than alone" in b]


def test_where_larger_messages_were_not_slower_no_byte_has_a_cost():
    assert blocks(replace(SCALING, wire=WireCost(1.25e6, 0.0, 7)))[2] == (
        "A message took 1.25 ms on average, by the medians of 7 tensors with the most tasks; "
        "larger ones took no longer, so what a byte costs cannot be told. Several are on their way "
        "at once."
    )


def test_one_task_shares_nothing_and_has_no_other_layers():
    rows = (SCALING.rows[0], replace(SCALING.rows[1], tasks=1))
    assert blocks(replace(SCALING, rows=rows))[3] == (
        "With 1 task a step is slower than alone, its p10 above p90 alone: 7 messages and 128 KiB "
        "go over the wire in every step, which in one process are pointers."
    )


def test_tasks_elsewhere_share_no_cores_of_this_machine():
    elsewhere = blocks(replace(SCALING, local=False))
    assert elsewhere[3].endswith(
        "pointers; layers wait for one another, so that mostly one task works at a time."
    )
    assert elsewhere[4].endswith("within 12.5 % of that. It holds for more machines like these.")


def test_a_law_that_does_not_fit_says_so():
    bad = replace(SCALING, amdahl=Amdahl(1e6, 3e6, 0.25), extrapolated=())
    assert blocks(bad)[-1].endswith(
        "But a measured step lies 25.0 % away from that, so nothing is extrapolated."
    )


def test_too_few_numbers_of_tasks_are_said():
    few = replace(SCALING, amdahl=None, extrapolated=())
    assert blocks(few)[-1] == (
        "How it would go on is not said: that takes three different numbers of tasks."
    )


def test_what_ended_it_comes_first():
    failed = replace(SCALING, interrupted=True, failure="Task 1 went away.")
    assert blocks(failed)[:2] == [
        "Interrupted: what follows was measured until then.",
        "Until this went wrong: Task 1 went away.",
    ]


def test_of_a_busy_machine_there_are_times_and_no_conclusions():
    first, *others = blocks(replace(SCALING, quality=BUSY))
    assert first == BUSY_LINE
    assert others == blocks(SCALING)[:3]
