"""The plot of one step's ops: every bar, gap and word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.pictures import caption, points, stroke, ticks, title, words
from tflab.exporters.plots import style, timeline
from tflab.records.timed import CriticalPath, OpRun, StepTime

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
    layers = sorted(collection.get_zorder() for collection in figure.axes[0].collections)
    assert layers[0] == 0 < layers[1]


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


def test_a_name_loses_its_scopes_if_its_bar_is_short_and_a_shorter_bar_has_none():
    """A letter needs 2 ms * 5.5 / 460, which is 24 us: 6 letters 144 us, 5 letters 120 us."""
    runs = [run("net/conv", "Op", "CPU:0", 100, 144), run("net/conv", "Op", "CPU:0", 400, 143)]
    (axes,) = timeline.draw(runs, STEP, PATH).axes
    assert words(axes) == ["…/conv"]


def test_what_reaches_out_of_the_step_is_cut_off():
    long = run("net/long", "Mul", "CPU:0", 1_700, 600)
    drawn = timeline.draw((long,), STEP, PATH)
    assert spans(drawn.axes[0], style.PALE) == [(-0.4, 0.4, 1_700, 2_000)]
    assert drawn.axes[0].texts[0].get_position() == (1_850_000, 0)


def test_the_title_counts_the_ops_of_the_step_and_those_on_the_critical_path(figure):
    assert title(figure) == "A step of 2.00 ms: 2 ops of 5 are on the critical path"


def test_the_title_speaks_of_one_op_in_the_singular():
    drawn = timeline.draw(RUNS, STEP, replace(PATH, nodes=PATH.nodes[:1]))
    assert title(drawn) == "A step of 2.00 ms: 1 op of 5 is on the critical path"


def test_the_caption_tells_when_no_op_was_running(figure):
    assert caption(figure) == (
        "Step 5. Strong colour: the critical path by median times, a model, joined by a line. "
        "Grey columns: no op was running, for 23.0 % of the step (100 us before the first op, 300 "
        "us between ops, 60.0 us after the last). A row has ops that did not overlap; it is not a "
        "thread."
    )


def test_a_step_without_ops_says_which_one_and_how_long_it_took():
    drawn = timeline.draw(RUNS, StepTime(9, START, 340_000), PATH)
    assert (drawn.axes, title(drawn), caption(drawn)) == ([], "No op ran", "Step 9 took 340 us.")


def panel(lanes=3):
    """A panel of 400 by 300 points: a nanosecond of the step is 1 / 5000 of a point."""
    axes = Figure(figsize=(8, 6), dpi=144).add_axes((0.1, 0.1, 400 / 576, 300 / 432))
    axes.set_xlim(0, 2_000_000)
    axes.set_ylim(lanes - 0.4, -0.6)
    return axes


def test_a_device_has_as_many_lanes_as_ops_run_at_once_and_its_name_at_the_first():
    long = "gpu-" + "a" * 20
    runs = [
        *RUNS[1:],
        replace(RUNS[1], name="far", device=long),
    ]
    assert [
        (label, [run.name for run in lane]) for label, lane in timeline.lanes_by_device(runs)
    ] == [
        ("CPU:0", ["net/conv", "net/dense"]),
        ("", ["net/side"]),
        ("CPU:1", ["net/copy", "net/late"]),
        ("gpu-aaa…aaaaaaaa", ["far"]),
    ]


def test_an_op_within_another_does_not_lie_in_its_lane():
    inner = run("net/inner", "Mul", "CPU:0", 200, 100)
    lanes = timeline.lanes_by_device([RUNS[2], inner])
    assert [[run.name for run in lane] for _, lane in lanes] == [["net/conv"], ["net/inner"]]


def test_times_are_cut_off_at_both_edges_of_the_step():
    early = run("early", "Mul", "CPU:0", -50, 100)
    late = run("late", "Mul", "CPU:0", 1_900, 500)
    assert timeline.span_in_step(early, STEP) == (0, 50_000)
    assert timeline.span_in_step(late, STEP) == (1_900_000, 2_000_000)
    assert timeline.gaps((early, late), STEP) == [(50_000, 1_900_000)]
    assert timeline.gaps((), STEP) == [(0, 2_000_000)]


def test_up_to_two_thousand_runs_are_drawn_one_by_one_and_more_are_joined():
    spans = [(100, 200), (1_000, 1_500), (2_100, 3_900)]
    assert timeline.merged_if_many(spans, 2_000, 2_000_000) == spans
    # A pixel is 2000 ns.
    assert [*timeline.merged_if_many(spans, 2_001, 2_000_000)] == [(0, 4_000)]
    apart = [(100, 200), (6_500, 7_000), (9_000, 9_100)]
    assert [*timeline.merged_if_many(apart, 2_001, 2_000_000)] == [(0, 2_000), (6_000, 10_000)]
    assert [*timeline.merged_if_many([(3, 5), (7, 8)], 2_001, 999)] == [(3, 5), (7, 8)]
    assert [*timeline.merged_if_many([(3, 5), (10, 11)], 2_001, 3_000)] == [(3, 6), (9, 12)]


def test_gaps_of_very_many_runs_end_at_the_end_of_the_step():
    runs = [OpRun(5, f"x{n}", "Mul", JOB + "CPU:0", START + 400 * n, 399) for n in range(2_500)]
    step = replace(STEP, wall_ns=999_999)
    assert timeline.gaps(runs, step) == []
    assert timeline.gaps(runs, STEP) == [(1_000_000, 2_000_000)]
    assert timeline.gaps(runs[:2_000], replace(STEP, wall_ns=799_999))[:2] == [
        (399, 400),
        (799, 800),
    ]


def test_a_bar_fills_eight_tenths_of_its_lane_above_the_line_of_the_path():
    axes = panel()
    timeline.draw_bars(axes, 2, [(100, 600), (900, 1_600)], style.BLUE)
    (bars,) = axes.collections
    assert spans(axes, style.BLUE) == [(1.6, 2.4, 0.1, 0.6), (1.6, 2.4, 0.9, 1.6)]
    assert (bars.get_linewidth(), bars.get_zorder()) == ([0.5], 2)


def test_the_line_of_the_path_goes_from_lane_to_lane_in_the_order_of_time():
    axes = panel()
    lanes = [("CPU:0", [RUNS[1], RUNS[4]]), ("", [RUNS[2]]), ("CPU:1", [RUNS[5]])]
    timeline.draw_critical_path(axes, lanes, STEP, {"net/conv", "net/dense", "net/late"})
    (line,) = axes.lines
    assert points(line) == [
        *((100_000, 1), (600_000, 1)),
        *((900_000, 0), (1_600_000, 0)),
        *((1_700_000, 2), (1_940_000, 2)),
    ]
    assert stroke(line)[:4] == (style.BLUE, 1, "-", "None")
    assert line.get_zorder() == 1


def test_the_caption_of_a_step_without_length_divides_by_nothing():
    none = replace(STEP, wall_ns=0)
    assert timeline.caption((), none).startswith(
        "Step 5. Strong colour: the critical path by median times, a model, joined by a line. "
        "Grey columns: "
        "no op was running, for 0.0 % of the step (0 ns before the first op, 0 ns between ops, 0 "
        "ns after the last)."
    )


def test_the_caption_adds_up_the_times_without_an_op():
    assert timeline.caption([*RUNS[1:]], STEP) == (
        "Step 5. Strong colour: the critical path by median times, a model, joined by a line. "
        "Grey columns: no op was running, for 23.0 % of the step (100 us before the first op, 300 "
        "us between ops, 60.0 us after the last). A row has ops that did not overlap; it is not a "
        "thread."
    )
    assert timeline.headline([*RUNS[1:]], STEP, {"net/conv", "net/dense"}) == (
        "A step of 2.00 ms: 2 ops of 5 are on the critical path"
    )
