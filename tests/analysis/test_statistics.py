"""Op statistics: runs that were kept are folded exactly."""

import pytest

from tflab.analysis import statistics
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun


def test_kept_runs_are_folded_exactly():
    runs = [
        OpRun(0, "a", "Mul", "CPU:0", 1_005, 10, 64),
        OpRun(0, "b", "Add", "CPU:1", 1_000, 7),
        OpRun(1, "a", "Mul", "CPU:0", 5_001, 40, 100),
        OpRun(1, "a", "Mul", "CPU:0", 5_000, 16, 100),
    ]
    assert statistics.fold(runs) == (
        NodeStats("a", "Mul", "CPU:0", 3, 66, 22, 16, 40, 2, 88, pytest.approx(168**0.5)),
        NodeStats("b", "Add", "CPU:1", 1, 7, 7, 7, 7, 0, 0, 0),
    )
    assert statistics.fold([]) == ()


def test_quantiles_of_kept_runs_are_those_of_nearest_rank():
    durations = [10 * place for place in range(1, 41)]
    runs = [OpRun(0, "a", "Mul", "", 0, duration) for duration in reversed(durations)]
    (node,) = statistics.fold(runs)
    assert (node.median_ns, node.p95_ns) == (200, 380)


def test_a_node_that_ran_as_two_types_is_folded_as_two():
    runs = [OpRun(0, "x", op, "GPU:0", 0, ns) for op, ns in (("Conv2D", 5), ("Kernel", 4))] * 2
    assert [(node.name, node.op, node.calls, node.total_ns) for node in statistics.fold(runs)] == [
        ("x", "Conv2D", 2, 10),
        ("x", "Kernel", 2, 8),
    ]
