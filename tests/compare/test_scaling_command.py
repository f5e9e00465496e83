"""Scaling, as a user asks for it: one task and two, and what does not go together."""

import json
import subprocess
import sys

import pytest

from tflab.compare import __main__ as compare
from tflab.errors import UsageError

pytestmark = pytest.mark.tensorflow


@pytest.mark.slow
def test_numbers_of_tasks_are_compared_with_this_process_alone():
    command = [sys.executable, "-m", "tflab.compare", "--model", "toy", "--phase", "training"]
    options = ["--cluster", "1", "2", "--steps", "3", "--format", "json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert done.stderr == ""
    assert [row["tasks"] for row in result["rows"]] == [0, 1, 2]
    alone, one, two = result["rows"]
    assert (alone["bytes"], alone["communication"], alone["speed_up"]) == (0, None, 1.0)
    assert 0 < one["messages"] < two["messages"]
    assert two["efficiency"] == pytest.approx(two["speed_up"] / 2)
    assert (result["batch_size"], result["split"], result["amdahl"]) == (64, "layers", None)


@pytest.mark.tensorflow
def test_ctrl_c_keeps_what_was_measured_and_says_so(monkeypatch, capsys):
    from tflab.compare import scaling

    on_tasks = scaling.on_tasks

    def interrupted(model, phase, tasks, options):
        if tasks:
            raise KeyboardInterrupt
        return on_tasks(model, phase, tasks, options)

    monkeypatch.setattr(scaling, "on_tasks", interrupted)
    options = ["--model", "toy", "--batch-sizes", "4", "--steps", "1", "--cluster", "1"]
    assert compare.main(options) == 130
    out = capsys.readouterr().out
    assert "Interrupted: what follows was measured until then." in out
    assert "With 1 task" not in out


@pytest.mark.parametrize("other", [["--plots", "new"], ["--configs", "xla"], ["--format", "csv"]])
def test_what_does_not_go_with_numbers_of_tasks_is_said(other):
    args = compare.parser().parse_args(["--cluster", "1", *other])
    with pytest.raises(UsageError, match=r"^--cluster compares numbers of tasks, as text, JSON or"):
        compare.run(args)
