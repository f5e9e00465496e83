"""The plot of one step's ops: every bar, gap and word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from tests.pictures import caption, points, ticks, title, words
from tflab.exporters.plots import style, timeline
from tflab.records import CriticalPath, OpRun, StepTime

JOB = "/job:localhost/replica:0/task:0/device:"
START = 7_000_000  # of the step, on the clock
STEP = StepTime(step=5, start_ns=START, wall_ns=2_000_000)


def run(name, op, device, start_us, us, step=5) -> OpRun:
    return OpRun(step, name, op, JOB + device, START + start_us * 1000, us * 1000)


RUNS = (
    run("net/other", "Mul", "CPU:0", 250, 900, step=4),
    run("net/dense", "MatMul", "CPU:0", 900, 700),
    run("net/conv", "Conv2D", "CPU:0", 100, 500),
    run("net/copy", "Copy", "CPU:1", 150, 300),
    run("net/side", "Mul", "CPU:0", 300, 400),
    run("net/late", "Send", "CPU:1", 1_700, 240),
)
PATH = CriticalPath(nodes=("net/conv", "net/dense"), ns=1_200_000.0, parallelism=1.4)


@pytest.fixture(scope="module")
def figure():
    return timeline.draw(RUNS, STEP, PATH)


def spans(axes, color) -> list[tuple]:
    """(lowest, highest, start, end) of each bar of a colour; us."""
    boxes = [
        path.get_extents()
        for collection in axes.collections
        if collection.get_facecolor().size
        and to_hex(collection.get_facecolor()[0]).upper() == color
        for path in collection.get_paths()
    ]
    return [
        (round(box.y0, 6), round(box.y1, 6), round(box.x0) / 1000, round(box.x1) / 1000)
        for box in boxes
    ]


def test_ops_of_the_step_lie_in_the_lanes_of_their_devices(figure):
    (axes,) = figure.axes
    assert ticks(axes.yaxis) == [(0, "CPU:0"), (1, ""), (2, "CPU:1")]
    assert spans(axes, style.BLUE) == [(-0.4, 0.4, 100, 600), (-0.4, 0.4, 900, 1_600)]
    assert spans(axes, style.PALE) == [
        (0.6, 1.4, 300, 700),
        (1.6, 2.4, 150, 450),
        (1.6, 2.4, 1_700, 1_940),
    ]


def test_grey_columns_are_the_times_without_an_op(figure):
    assert spans(figure.axes[0], timeline.IDLE) == [
        (0, 1, 0, 100),
        (0, 1, 700, 900),
        (0, 1, 1_600, 1_700),
        (0, 1, 1_940, 2_000),
    ]


def test_a_line_runs_through_the_critical_path(figure):
    (line,) = figure.axes[0].lines
    assert points(line) == [(100_000, 0), (600_000, 0), (900_000, 0), (1_600_000, 0)]


def test_the_axis_is_the_step_from_its_start_to_its_end(figure):
    (axes,) = figure.axes
    assert axes.get_xlim() == (0, 2_000_000)
    assert ticks(axes.xaxis) == [
        (0, "0 ms"),
        (500_000, "0.5 ms"),
        (1_000_000, "1 ms"),
        (1_500_000, "1.5 ms"),
        (2_000_000, "2 ms"),
    ]
    assert axes.get_xlabel() == "time since the step's start"


def test_names_stand_in_the_middle_of_their_bars(figure):
    (axes,) = figure.axes
    assert words(axes) == ["net/conv", "net/dense", "net/side", "net/copy", "net/late"]
    assert [text.get_position() for text in axes.texts] == [
        (350_000, 0),
        (1_250_000, 0),
        (500_000, 1),
        (300_000, 2),
        (1_820_000, 2),
    ]
    assert [text.get_color() for text in axes.texts] == ["white", "white", *3 * [style.INK]]


def test_the_title_counts_the_ops_of_the_step_and_those_on_the_critical_path(figure):
    assert title(figure) == "A step of 2.00 ms: 2 ops of 5 are on the critical path"


def test_the_title_speaks_of_one_op_in_the_singular():
    drawn = timeline.draw(RUNS, STEP, replace(PATH, nodes=PATH.nodes[:1]))
    assert title(drawn) == "A step of 2.00 ms: 1 op of 5 is on the critical path"


def test_the_caption_tells_when_no_op_was_running(figure):
    assert caption(figure) == (
        "Step 5. Dark: the critical path, joined by a line. Grey columns: no op was running, for "
        "23.0 % of the step (100 us before the first op, 300 us between ops, 60.0 us after the "
        "last). A row holds ops that did not overlap; it is not a thread."
    )


def test_what_reaches_out_of_the_step_is_cut_off():
    long = run("net/long", "Mul", "CPU:0", 1_850, 400)
    drawn = timeline.draw((long,), STEP, PATH)
    assert spans(drawn.axes[0], style.PALE) == [(-0.4, 0.4, 1_850, 2_000)]
    assert words(drawn.axes[0]) == ["net/\nlong"]
    assert drawn.axes[0].texts[0].get_position() == (1_925_000, 0)
    assert title(drawn) == "A step of 2.00 ms: 0 ops of 1 are on the critical path"


def test_a_step_without_ops_says_which_one_and_how_long_it_took():
    drawn = timeline.draw(RUNS, StepTime(9, START, 340_000), PATH)
    assert (drawn.axes, title(drawn), caption(drawn)) == ([], "No op ran", "Step 9 took 340 us.")
