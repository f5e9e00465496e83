"""Op statistics: runs that were kept are folded exactly."""

import pytest

from tflab.analysis import op_stats
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun


def test_kept_runs_are_folded_exactly():
    runs = [
        OpRun(0, "a", "Mul", "CPU:0", 1_005, 10, 64),
        OpRun(0, "b", "Add", "CPU:1", 1_000, 7),
        OpRun(1, "a", "Mul", "CPU:0", 5_001, 40, 100),
        OpRun(1, "a", "Mul", "CPU:0", 5_000, 16, 100),
    ]
    assert op_stats.fold(runs) == (
        NodeStats("a", "Mul", "CPU:0", 3, 66, 22, 16, 40, 2, 88, pytest.approx(168**0.5)),
        NodeStats("b", "Add", "CPU:1", 1, 7, 7, 7, 7, 0, 0, 0),
    )
    assert op_stats.fold([]) == ()


def test_quantiles_of_kept_runs_are_those_of_nearest_rank():
    durations = [10 * place for place in range(1, 41)]
    runs = [OpRun(0, "a", "Mul", "", 0, duration) for duration in reversed(durations)]
    (node,) = op_stats.fold(runs)
    assert (node.median_ns, node.p95_ns) == (200, 380)


def test_a_node_that_ran_as_two_types_is_folded_as_two():
    runs = [OpRun(0, "x", op, "GPU:0", 0, ns) for op, ns in (("Conv2D", 5), ("Kernel", 4))] * 2
    assert [(node.name, node.op, node.calls, node.total_ns) for node in op_stats.fold(runs)] == [
        ("x", "Conv2D", 2, 10),
        ("x", "Kernel", 2, 8),
    ]


@pytest.mark.parametrize("longest", [3, 2**60])
def test_runs_that_are_counted_bit_by_bit_are_folded_alike(monkeypatch, longest):
    runs = [
        OpRun(step, name, "Op", "CPU", 10 * step, (step * 7 + place) % 3 * (longest // 3), 0)
        for step in range(6)
        for place, name in enumerate("abcdefghijklmnopqa")
    ]
    whole = op_stats.fold(runs)
    monkeypatch.setattr(op_stats, "COUNTED", 20)
    assert op_stats.fold(runs) == whole
    for row in whole:
        own = sorted(run.duration_ns for run in runs if run.name == row.name)
        counts = (row.calls, row.total_ns, row.median_ns, row.p95_ns)
        assert counts == (len(own), sum(own), own[(len(own) - 1) // 2], own[-1])
