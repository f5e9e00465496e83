"""The timeline: lanes, worked out by hand."""

from tests.examples.plots import RUNS, STEP, run
from tflab.exporters.plots import timeline
from tflab.records.timed import CriticalPath

NO_PATH = CriticalPath((), 0, 0, ())


def test_a_device_has_as_many_lanes_as_ops_run_at_once_and_its_name_at_the_first():
    far = RUNS[1]._replace(name="far", device="gpu-" + "a" * 20)
    lanes = timeline.slices([*RUNS[1:], far], STEP, NO_PATH)
    assert lanes["lanes"] == ["CPU:0", "", "CPU:1", "gpu-aaa…aaaaaaaa"]
    assert [(lane, name) for lane, _, _, name, *_ in lanes["slices"]] == [
        *((0, "net/conv"), (0, "net/dense"), (1, "net/side")),
        *((2, "net/copy"), (2, "net/late"), (3, "far")),
    ]


ON_PATH = "; on the critical path"


def test_times_are_cut_off_at_both_edges_of_the_step():
    early, late = run("early", "Mul", "CPU:0", -50, 100), run("late", "Mul", "CPU:0", 1_900, 500)
    bars = timeline.slices((early, late), STEP, CriticalPath(("late",), 1, 1, ()))["slices"]
    assert bars == [
        (0, 0, 50_000, "early", "early (Mul): 50.0 us, from 0 ns on", False),
        (0, 1_900_000, 100_000, "late", f"late (Mul): 100 us, from 1.90 ms on{ON_PATH}", True),
    ]
