"""Cluster, as a user runs it: tasks of this machine, tasks that were started before, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

TOY = ["-m", "tflab.lifecycle", "--model", "toy", "--steps", "3"]


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


@contextmanager
def workers(count):
    """Addresses of tasks that a user started."""
    command = [sys.executable, "-m", "tflab.worker", "0"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield [re.search(r"127\.0\.0\.1:\d+", task.stdout.readline())[0] for task in started]
    finally:
        for task in started:
            task.kill()
            task.wait()
            task.stdout.close()


MARK = "STARTED_BY_A_TEST"


def tasks_alive(mark):
    """Processes of tasks, of whatever parent, that bear a mark in their environment: others of
    this user may come and go."""
    alive = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline") as file:
                words = file.read().split("\0")
            with open(f"/proc/{process}/environ") as file:
                marked = f"{MARK}={mark}" in file.read().split("\0")
        except OSError:
            continue
        if marked and "tflab.worker" in words and "--watched" in words:
            alive.add(process)
    return alive


def test_a_walk_over_two_tasks_leaves_a_profile_of_three_hosts_and_a_chart(tmp_path):
    done = python(*TOY, "--cluster", "2", "--logdir", str(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "no op running, a tensor on its way between tasks (network)" in done.stdout
    assert "Clocks, by the messages of the steps against the client's: task 0 " in done.stdout
    assert f"Open it in ui.perfetto.dev:  {tmp_path / 'run' / 'trace.json'}" in done.stdout
    chart = json.loads((tmp_path / "run/trace.json").read_text())
    processes = {e["args"]["name"] for e in chart["traceEvents"] if e["name"] == "process_name"}
    assert {"wire from client to task 0", "wire from task 1 to client"} <= processes
    profiles = tmp_path / "run/plugins/profile"
    hosts = {folder.name: sorted(os.listdir(folder)) for folder in profiles.iterdir()}
    files = ["client.xplane.pb", "task-0.xplane.pb", "task-1.xplane.pb"]
    assert hosts == {f"toy-batch-{size}": files for size in (1, 16, 64)}


def test_tasks_that_were_started_before_are_used_and_left_running(tmp_path):
    with workers(2) as addresses:
        command = [*TOY, "--cluster", ",".join(addresses), "--split", "batch", "--format", "json"]
        runs = [python(*command, "--logdir", str(tmp_path / name)) for name in "ab"]
    for done in runs:
        assert (done.returncode, done.stderr.count("\n")) == (0, 3 + 1), done.stderr
        execution = json.loads(done.stdout)["stages"][-1]
        assert execution["network"]["split"] == "batch"
        assert [task["task"] for task in execution["network"]["tasks"]][1:] == ["task 0", "task 1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_task_is_left_after_a_signal(number, tmp_path):
    command = [*TOY[:-1], "100000", "--cluster", "1", "--logdir", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, MARK: str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        for line in running.stdout:
            if "Kernels, inferred" in line:
                break
        assert tasks_alive(tmp_path)
        time.sleep(3)  # into the steps
        running.send_signal(number)
        running.communicate(timeout=120)
    assert running.returncode == 128 + number
    deadline = time.monotonic() + 20
    while tasks_alive(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.2)
