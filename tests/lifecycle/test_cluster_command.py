"""Cluster, as a user runs it: tasks of this machine, tasks that were started before, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from decimal import Decimal

import pytest

from tests.chart import check

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


def tasks_alive():
    """Processes of tasks, of whatever parent, that this user has, by their command lines."""
    alive = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if "tflab.worker" in words and "--watched" in words:
            alive.add(process)
    return alive


def test_a_walk_over_two_tasks_leaves_a_profile_of_three_hosts_and_a_chart(tmp_path):
    done = python(*TOY, "--cluster", "2", "--logdir", str(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "no op running, a tensor on its way between tasks (network)" in done.stdout
    assert "Clocks, by the messages of the steps against the client's: task 0 " in done.stdout
    assert f"Open it in ui.perfetto.dev:  {tmp_path / 'run' / 'trace.json'}" in done.stdout
    chart = json.loads((tmp_path / "run/trace.json").read_text(), parse_float=Decimal)
    check(chart["traceEvents"])  # also that each arrow begins and ends within a slice
    processes = {
        e["pid"]: e["args"]["name"] for e in chart["traceEvents"] if e["name"] == "process_name"
    }
    tasks = [f"/job:worker/replica:0/task:{number}/device:CPU:0" for number in (0, 1)]
    wires = {"wire from client to task 0", "wire from task 1 to client"}
    assert {"/job:client/replica:0/task:0/device:CPU:0", *tasks, *wires} <= {*processes.values()}
    ends = {
        phase: {e["id"]: processes[e["pid"]] for e in chart["traceEvents"] if e["ph"] == phase}
        for phase in "sf"
    }
    assert ends["s"].keys() == ends["f"].keys()
    arrows = {(ends["s"][number], ends["f"][number]) for number in ends["s"]}
    wire = "wire from task 0 to task 1"
    assert {(tasks[0], wire), (wire, tasks[1])} == {pair for pair in arrows if wire in pair}
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
    before = tasks_alive()
    command = [*TOY[:-1], "100000", "--cluster", "1", "--logdir", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        for line in running.stdout:
            if "Kernels, inferred" in line:
                break
        assert tasks_alive() - before
        time.sleep(3)  # into the steps
        running.send_signal(number)
        running.communicate(timeout=120)
    assert running.returncode == 128 + number
    deadline = time.monotonic() + 20
    while tasks_alive() - before:
        assert time.monotonic() < deadline
        time.sleep(0.2)
