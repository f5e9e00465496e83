"""Cluster, as a user runs it: tasks of this machine, tasks that were started before, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.commands import children_of, processor_seconds, run_here
from tflab.lifecycle import __main__ as lifecycle

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

TOY = ["-m", "tflab.lifecycle", "--model", "toy", "--steps", "3"]


def is_task(process):
    """Whether a process, by its number, is a task that a command started, and alive."""
    try:
        with open(f"/proc/{process}/cmdline") as file:
            return "--watched" in file.read().split("\0")
    except OSError:
        return False


def test_a_walk_over_two_tasks_leaves_a_profile_of_three_hosts(tmp_path, two_tasks):
    command = ["--model", "toy", "--steps", "3", "--full", "--cluster", ",".join(two_tasks)]
    run = tmp_path / "run"
    done = run_here(lifecycle.main, *command, "--logdir", str(run))
    assert (done.returncode, done.stderr) == (0, "")
    assert "no op running, a tensor on its way between tasks" in done.stdout
    assert "The tasks' clocks, compared with the client's through the messages" in done.stdout
    profiles = run / "plugins/profile"
    hosts = {folder.name: sorted(os.listdir(folder)) for folder in profiles.iterdir()}
    files = ["client.xplane.pb", "task-0.xplane.pb", "task-1.xplane.pb"]
    assert hosts == {f"toy-batch-{size}": files for size in (1, 16, 64)}


def test_a_task_that_a_user_started_says_where_it_listens_is_used_and_left_running(
    tmp_path, two_tasks, capsys
):
    start = [sys.executable, "-m", "tflab.worker", "0"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as task:
        try:
            first, second = task.stdout.readline(), task.stdout.readline()
            assert first.startswith("This task of TensorFlow ")
            assert first.endswith(" and is open to this machine only.\n")
            assert second == (
                "Its connections are neither encrypted nor authenticated. Ctrl-C ends the task.\n"
            )
            addresses = f"{two_tasks[0]},{re.search(r'127[.]0[.]0[.]1:[0-9]+', first)[0]}"
            network = walked_in_json(addresses, tmp_path / "run", capsys)["network"]
            assert len(network["offsets"]) == 2
        finally:
            task.send_signal(signal.SIGINT)
        assert task.wait(timeout=20) == 130


def walked_in_json(addresses, logdir, capsys):
    """The execution, of a command that says nothing but where its results are."""
    command = ["--model", "toy", "--steps", "2", "--format", "json"]
    assert lifecycle.main([*command, "--cluster", addresses, "--logdir", str(logdir)]) == 0
    said = capsys.readouterr()
    assert said.err.count("\n") == 2, said.err
    return json.loads(said.out)["stages"][-1]


# SIGTERM goes to the whole group, as that of `timeout` does
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_task_is_left_after_a_signal(number):
    command = [*TOY[:-1], "100000", "--full", "--cluster", "1"]
    with subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        while not (tasks := [*filter(is_task, children_of(running.pid))]):
            time.sleep(0.1)
        (task,) = tasks
        begun = processor_seconds(running.pid)
        # Into the steps, which only SIGTERM leaves time to print: the stages before take 2 s
        while processor_seconds(running.pid) < begun + 6 * (number == signal.SIGTERM):
            time.sleep(0.1)
        os.killpg(running.pid, number)
        out, _ = running.communicate(timeout=120)
    if number == signal.SIGTERM:
        assert running.returncode == 128 + number
        assert "Partial: these are the measurements before the interruption." in out
    deadline = time.monotonic() + 20
    while is_task(task):
        assert time.monotonic() < deadline
        time.sleep(0.2)
