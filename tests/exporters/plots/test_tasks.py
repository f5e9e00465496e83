"""The plot of a step on several tasks: every lane, arrow and word, worked out by hand."""

from dataclasses import replace

import pytest

from tests.exporters.plots.test_timeline import spans
from tests.pictures import caption, ticks, title, words
from tflab.exporters.plots import style, tasks
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun, StepTime

CLIENT = "/job:client/replica:0/task:0/device:CPU:0"
FIRST, SECOND = (f"/job:worker/replica:0/task:{n}/device:CPU:0" for n in (0, 1))
START = 7_000_000
STEP = StepTime(step=5, start_ns=START, wall_ns=2_000_000)


def run(name, device, start_us, us, step=5) -> OpRun:
    return OpRun(step, name, "Op", device, START + start_us * 1000, us * 1000)


def wire(name, sender, receiver, start_us, us, step=5) -> OpRun:
    return run(name, f"wire from {sender} to {receiver}", start_us, us, step)


def sent(tensor, recv, bytes_) -> Transfer:
    return Transfer(tensor, "", recv, "", "", "float32", None, bytes_)


RUNS = (
    run("feed", CLIENT, 100, 100),
    run("dense", SECOND, 1_400, 300),
    run("conv", FIRST, 600, 400),
    run("side", FIRST, 700, 100),
    run("before", FIRST, 0, 900, step=4),
)
WIRES = (
    wire("loss/_5", "task 1", "client", 1_750, 150),
    wire("x/_1", "client", "task 0", 250, 300),
    wire("conv/_3", "task 0", "task 1", 1_050, 250),
    wire("conv/_3", "task 0", "task 1", 950, 250, step=4),
)
PATH = CriticalPath(("conv", "conv/_3", "dense"), 950_000.0, 1.4)
SENT = (sent("x", "x/_1", 4096), sent("conv", "conv/_3", 512), sent("loss", "loss/_5", 0))
DRAWN = (RUNS, WIRES, STEP, PATH, SENT)


def test_what_is_written_beside_an_arrow_is_the_tensor_with_its_bytes_or_these_alone():
    unknown = replace(SENT[0], bytes=None)
    found = list(tasks.places(unknown, (10, 20), [(15, 30), (50, 60)], 1.0))
    both, alone = (found[place][1][1] - 30 for place in (0, 2))
    assert both > alone > 0
    assert found == [
        ("x, 0 B", (30, 30 + both)),
        ("x, 0 B", (10 - both, 10)),
        ("0 B", (30, 30 + alone)),
        ("0 B", (10 - alone, 10)),
    ]


@pytest.fixture(scope="module")
def axes():
    return tasks.draw(*DRAWN).axes[0]


def arrows(axes) -> list[tuple]:
    """(from when, from where, until when, to where, how thick) of each arrow; us and lanes."""
    drawn = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    return [
        (
            *(round(number, 6) for at, lane in (text.get_position(), text.xy)
            for number in (at / 1000, lane)),
            text.arrow_patch.get_linewidth(),
        )
        for text in drawn
    ]  # fmt: skip


def test_each_task_has_a_band_of_lanes_in_the_order_of_their_numbers(axes):
    assert ticks(axes.yaxis) == [
        *((0, "client CPU:0"), (1, ""), (2, "task 0 CPU:0"), (3, ""), (4, "")),
        (5, "task 1 CPU:0"),
    ]
    assert spans(axes, style.BLUE) == [(1.6, 2.4, 600, 1_000), (4.6, 5.4, 1_400, 1_700)]
    assert spans(axes, style.PALE) == [(-0.4, 0.4, 100, 200), (2.6, 3.4, 700, 800)]


def test_the_tenth_task_comes_after_the_second():
    many = [run("op", f"/job:worker/replica:0/task:{n}/device:CPU:0", 0, 9) for n in (10, 2)]
    _, bands = tasks.in_bands(many, ())
    assert bands == {"task 2": (0, 0), "task 10": (2, 2)}


def test_a_task_that_only_receives_has_an_empty_band():
    packed, bands = tasks.in_bands(RUNS[2:3], [wire("a", "task 0", "task 1", 0, 9)])
    assert packed == [("task 0 CPU:0", (RUNS[2],)), ("", ()), ("task 1", ())]
    assert bands == {"task 0": (0, 0), "task 1": (2, 2)}


def test_an_arrow_leads_from_when_a_tensor_was_sent_to_when_it_had_arrived(axes):
    assert arrows(axes) == [
        (250, 0.4, 550, 1.6, 0.9),
        (1_050, 3.4, 1_300, 4.6, 2.0),
        (1_750, 4.6, 1_900, 0.4, 0.9),
    ]


def test_beside_an_arrow_stands_what_it_carries_unless_that_is_only_the_order(axes):
    written = [text.get_text() for text in axes.texts if "B" in text.get_text()]
    assert written == ["x, 4.00 KiB", "conv, 512 B"]
    assert [text.get_position()[1] for text in axes.texts if "B" in text.get_text()] == [1, 4]


def test_words_stand_nowhere_on_an_arrow_or_on_other_words():
    crowd = [wire(f"t/_{n}", "client", "task 0", 250 + 40 * n, 30) for n in range(30)]
    sizes = [sent("a_tensor_of_a_long_name", one.name, 1000 + n) for n, one in enumerate(crowd)]
    axes = tasks.draw(RUNS, crowd, STEP, PATH, sizes).axes[0]
    # Only right of the last arrow, and left of the first, is there room
    assert [text for text in words(axes) if "KiB" in text or " B" in text] == [
        "1.00 KiB",
        "1000 B",
    ]


def test_of_very_many_tensors_those_are_drawn_that_took_longest():
    many = [wire(f"t/_{n}", "client", "task 0", n, 1 + n) for n in range(201)]
    figure = tasks.draw(RUNS, many, STEP, PATH)
    assert len(arrows(figure.axes[0])) == 200
    assert 0 not in [arrow[0] for arrow in arrows(figure.axes[0])]
    assert "thick ones are on the critical path (the 200 slowest of 201)." in caption(figure)


def test_the_title_has_the_share_of_the_wire():
    figure = tasks.draw(*DRAWN)
    assert title(figure) == (
        "A step of 2.00 ms on 2 tasks: for 35.0 % of it, no op ran and a tensor was on the wire"
    )
    assert caption(figure) == (
        "Step 5, all times on one clock. Strong colour: the critical path by median times, a "
        "model. Grey columns: no op was running. Arrows: tensors on the wire, from sending to "
        "arrival; thick ones are on the critical path. A row has ops that did not overlap; it is "
        "not a thread."
    )
    alone = tasks.draw(RUNS, (), replace(STEP, wall_ns=0), PATH)
    assert title(alone).startswith("A step of 0 ns on 2 tasks: for 0.0 % of it, no op ran")
