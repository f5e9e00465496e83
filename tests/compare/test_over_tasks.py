"""Batch sizes compared over the tasks of a cluster."""

import json
from types import SimpleNamespace

import pytest

from tflab.compare import __main__ as compare
from tflab.compare import sweep
from tflab.records.timed import OpRun, Received, StepTime

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

TOY = ["--model", "toy", "--phase", "training", "--batch-sizes", "16", "64", "--by", "node"]


def test_batch_sizes_are_compared_over_tasks(two_tasks, capsys):
    command = [*TOY, "--steps", "5", "--format", "json", "--cluster", ",".join(two_tasks)]
    assert compare.main(command) == 0
    out, _ = capsys.readouterr()
    result = json.loads(out)
    assert (result["tasks"], result["batch_sizes"], result["diagnosis"]) == (2, [16, 64], [])
    rows = {row["key"]: row for row in result["rows"]}
    assert "RecvTensor" not in rows
    calls = {size: cell["calls"] for size, cell in rows["mul"]["cells"].items()}
    assert calls == {size: result["steps"][size]["steps"] for size in ("16", "64")}
    assert all(row["untraced_ns"]["median"] > 0 for row in result["steps"].values())


def test_kept_runs_are_moved_to_one_time_axis():
    """Task 0's clock is 1 ms ahead: its only op seems to run after the step and the arrival."""
    task, client = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("worker", "client"))
    batch = sweep.MeasuredBatch(1, 1)
    batch.kept = [StepTime(0, 10_000, 100_000)]
    batch.runs = [
        OpRun(0, "x", "MatMul", task, 1_030_000, 10_000, 0, ()),
        OpRun(0, "y", "Relu", client, 80_000, 10_000, 0, ()),
    ]
    batch.received = [Received(0, "edge_1_x", task, client, 1_040_000, 0)]
    batch.graphs = [SimpleNamespace(node=())]
    batch.align()
    moved, same = batch.runs
    assert 10_000 <= moved.start_ns <= 100_000
    assert same.start_ns == 80_000
