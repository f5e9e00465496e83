"""Scaling, as a user asks for it: one task and two, and what is kept of it."""

import json
import re
import signal

import pytest

from tests.shown import without_progress
from tflab.compare import __main__ as compare
from tflab.lifecycle import execution
from tflab.runtime import server

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

TOY = ["--model", "toy", "--phase", "training", "--format", "json", "--cluster"]


def test_numbers_of_tasks_are_compared_with_this_process_alone(two_tasks, capsys):
    before = set(server.STARTED)
    # On a busy machine the runtime leaves receives out of its traces: of three steps, sometimes all
    # of a tensor, which then is no message.
    assert compare.main([*TOY, "1", ",".join(two_tasks), "--steps", "20"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    lines_of_progress = re.compile(r"tflab: .*\d+ s")
    assert [line for line in err.splitlines() if not lines_of_progress.fullmatch(line)] == []
    assert [row["tasks"] for row in result["rows"]] == [0, 1, 2]
    alone, one, two = result["rows"]
    assert (alone["bytes"], alone["communication"], alone["speed_up"]) == (0, None, 1.0)
    assert 0 < one["messages"] < two["messages"]
    assert two["efficiency"] == pytest.approx(two["speed_up"] / 2)
    assert (result["batch_size"], result["split"]) == (64, "layers")
    assert (result["local"], result["interrupted"], result["failure"]) == (True, False, None)
    (address,) = set(server.STARTED) - before
    assert server.STARTED[address].poll() == -signal.SIGKILL  # it ended with its turn


def test_a_task_that_does_not_come_leaves_what_was_measured(two_tasks, capsys):
    missing = "127.0.0.1:1"
    assert compare.main([*TOY, two_tasks[0], missing, "--steps", "2"]) == 1
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert [row["tasks"] for row in result["rows"]] == [0, 1]
    said = f"Task 0 of the cluster, {missing}, cannot be reached: connection refused."
    assert result["failure"].startswith(said)
    assert without_progress(err) == f"tflab: {result['failure']}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_what_was_measured(number, two_tasks, capsys, monkeypatch):
    observe = execution.Measured.observe

    def is_interrupted(measured, turn, timed, recorded):
        observe(measured, turn, timed, recorded)
        if measured.received and len(measured.steps) == 2:  # over tasks
            signal.raise_signal(number)

    monkeypatch.setattr(execution.Measured, "observe", is_interrupted)
    assert compare.main([*TOY, *two_tasks, "--steps", "9"]) == 128 + number
    result = json.loads(capsys.readouterr().out)
    assert [(row["tasks"], row["steps"]) for row in result["rows"]] == [(0, 9), (1, 2)]
    assert result["interrupted"]
