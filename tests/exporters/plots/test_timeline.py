"""The timeline: lanes and gaps, worked out by hand."""

from tests.examples.plots import RUNS, STEP, run
from tflab.exporters.plots import timeline


def test_a_device_has_as_many_lanes_as_ops_run_at_once_and_its_name_at_the_first():
    far = RUNS[1]._replace(name="far", device="gpu-" + "a" * 20)
    lanes = timeline.lanes_by_device([*RUNS[1:], far])
    assert [(label, [run.name for run in lane]) for label, lane in lanes] == [
        ("CPU:0", ["net/conv", "net/dense"]),
        ("", ["net/side"]),
        ("CPU:1", ["net/copy", "net/late"]),
        ("gpu-aaa…aaaaaaaa", ["far"]),
    ]


def test_times_are_cut_off_at_both_edges_of_the_step():
    early, late = run("early", "Mul", "CPU:0", -50, 100), run("late", "Mul", "CPU:0", 1_900, 500)
    assert timeline.span_in_step(early, STEP) == (0, 50_000)
    assert timeline.span_in_step(late, STEP) == (1_900_000, 2_000_000)
    assert timeline.gaps((early, late), STEP) == [(50_000, 1_900_000)]
    assert timeline.gaps((), STEP) == [(0, 2_000_000)]
