"""The timeline: lanes, gaps and joined bars, worked out by hand."""

from dataclasses import replace

from tests.examples.plots import JOB, RUNS, START, STEP, run
from tflab.exporters.plots import timeline
from tflab.records.timed import OpRun


def test_a_device_has_as_many_lanes_as_ops_run_at_once_and_its_name_at_the_first():
    far = RUNS[1]._replace(name="far", device="gpu-" + "a" * 20)
    lanes = timeline.lanes_by_device([*RUNS[1:], far])
    assert [(label, [run.name for run in lane]) for label, lane in lanes] == [
        ("CPU:0", ["net/conv", "net/dense"]),
        ("", ["net/side"]),
        ("CPU:1", ["net/copy", "net/late"]),
        ("gpu-aaa…aaaaaaaa", ["far"]),
    ]
    inner = timeline.lanes_by_device([RUNS[2], run("inner", "Mul", "CPU:0", 200, 100)])
    assert [[run.name for run in lane] for _, lane in inner] == [["net/conv"], ["inner"]]


def test_times_are_cut_off_at_both_edges_of_the_step():
    early, late = run("early", "Mul", "CPU:0", -50, 100), run("late", "Mul", "CPU:0", 1_900, 500)
    assert timeline.span_in_step(early, STEP) == (0, 50_000)
    assert timeline.span_in_step(late, STEP) == (1_900_000, 2_000_000)
    assert timeline.gaps((early, late), STEP) == [(50_000, 1_900_000)]
    assert timeline.gaps((), STEP) == [(0, 2_000_000)]


def test_up_to_two_thousand_runs_are_drawn_one_by_one_and_more_are_joined():
    def joined(spans, runs=2_001, wall_ns=2_000_000):  # a pixel is 2000 ns
        return [*timeline.merged_if_many(spans, runs, wall_ns)]

    spans = [(100, 200), (1_000, 1_500), (2_100, 3_900)]
    assert joined(spans, 2_000) == spans
    assert joined(spans) == [(0, 4_000)]
    assert joined([(100, 200), (6_500, 7_000), (9_000, 9_100)]) == [(0, 2_000), (6_000, 10_000)]
    assert joined([(3, 5), (7, 8)], wall_ns=999) == [(3, 5), (7, 8)]
    assert joined([(3, 5), (10, 11)], wall_ns=3_000) == [(3, 6), (9, 12)]


def test_gaps_of_very_many_runs_end_at_the_end_of_the_step():
    runs = [OpRun(5, f"x{n}", "Mul", JOB + "CPU:0", START + 400 * n, 399) for n in range(2_500)]
    assert timeline.gaps(runs, replace(STEP, wall_ns=999_999)) == []
    assert timeline.gaps(runs, STEP) == [(1_000_000, 2_000_000)]
    few = timeline.gaps(runs[:2_000], replace(STEP, wall_ns=799_999))
    assert few[:2] == [(399, 400), (799, 800)]


def test_the_words_of_one_op():
    assert timeline.headline(RUNS[1:], STEP, {"net/conv"}) == (
        "A step of 2.00 ms: 1 op of 5 is on the critical path"
    )
