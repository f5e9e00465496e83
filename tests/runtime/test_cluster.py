"""Cluster: where tasks listen; those that do not come, are others than expected, die or stand still
are named, and what was measured is kept."""

import http.server
import os
import re
import signal
import socket
import threading
from contextlib import closing, contextmanager

import pytest
import tensorflow as tf

from tests.approval import refused
from tests.examples.models import placed
from tflab.errors import RefusedError, TflabError
from tflab.lifecycle import execution
from tflab.models import toy
from tflab.records.options import Options
from tflab.runtime import cluster, session

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


# Where it listens


def test_a_local_server_takes_connections_from_this_machine_only():
    """Looking for its sockets leaves no file open."""
    address, local = cluster.start("127.0.0.1:0")
    assert local == hasattr(socket, "SO_BINDTODEVICE")
    port = int(address.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    before = len(os.listdir("/proc/self/fd"))
    assert all(cluster.keep_local(port) == local for _ in range(20))
    assert len(os.listdir("/proc/self/fd")) < before + 20  # other threads open some, too


def test_what_only_this_machine_reaches():
    here, elsewhere = "127.0.0.1 localhost 127.1.2.3 [::1]", "0.0.0.0 10.0.0.5 example.org"
    assert all(map(cluster.is_local, here.split()))
    assert not any(map(cluster.is_local, elsewhere.split()))


def test_an_address_that_cannot_be_had_is_said():
    reasons = {
        "127.0.0.1": "address already in use",
        "192.0.2.1": "cannot assign requested address",
    }
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for host, reason in reasons.items():
            address = f"{host}:{taken.getsockname()[1]}"
            assert refused(cluster.start, address) == (
                f"UsageError: No task can listen at {address}: {reason}. Give an address of this "
                "machine, and a free port, or 0 for any."
            )


# Tasks that do not come


def test_what_listens_and_is_no_task_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    handler = http.server.SimpleHTTPRequestHandler
    with closing(socket.socket()) as mute, http.server.HTTPServer(("127.0.0.1", 0), handler) as web:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
        for port in (mute.getsockname()[1], web.server_port):
            address = f"127.0.0.1:{port}"
            assert refused(cluster.check, 1, address) == (
                f"TflabError: Task 1 of the cluster, {address}, does not answer as a task of tflab "
                f"with TensorFlow {tf.__version__}. Start it there with `python -m tflab.worker "
                f"{address}`."
            )
        web.shutdown()
    with pytest.raises(TflabError, match=f"{address}, cannot be reached: connection refused"):
        cluster.check(1, address)


def test_a_task_of_another_version_is_said(two_tasks, monkeypatch):
    monkeypatch.setattr(cluster, "job", lambda: "tflab_1_2_3")
    with pytest.raises(TflabError, match=rf"^Task 1 of the cluster, {two_tasks[1]}, does not"):
        cluster.check(1, two_tasks[1])


def test_this_machine_is_reached_by_the_address_of_the_route_to_a_task():
    assert cluster.client_host(["127.0.0.1:1", "localhost:2"]) == "127.0.0.1"
    with pytest.raises(TflabError, match=r"^This machine has no route to 255\.255\."):
        cluster.client_host(["127.0.0.1:1", "255.255.255.255:2", "127.0.0.1:3"])


@pytest.mark.parametrize(
    ("constant", "value", "said"),
    [
        ("START_S", 0.05, r"^Task 0 of the cluster did not start within 0\.05 s\.$"),
        ("LOCAL", "192.0.2.1", r"ended during start-up, with status 2: tflab: No task can listen"),
    ],
)
def test_a_task_that_does_not_begin_is_said_and_ended(constant, value, said, monkeypatch):
    started, processes = cluster.processes.started, []

    @contextmanager
    def noted(*words, **options):
        with started(*words, **options) as (process, errors):
            processes.append(process)
            yield process, errors

    monkeypatch.setattr(cluster.processes, "started", noted)
    monkeypatch.setattr(cluster, constant, value)
    with pytest.raises(TflabError, match=said):
        cluster.tasks(1).__enter__()
    assert [process.poll() is not None for process in processes] == [True]


# Tasks that die or stand still


@pytest.fixture(scope="module")
def pool(two_tasks):
    """Addresses of tasks: the first one lives, each of the others is for a test that ends it."""
    with cluster.tasks(2) as addresses:
        yield (two_tasks[0], *addresses)
    assert all(cluster.STARTED[address].poll() is not None for address in addresses)


def after_three_steps(monkeypatch, number, address):
    """Send a signal to a task after the third step."""
    observe = execution.Measured.observe
    sent = []

    def observed(measured, turn, timed, recorded):
        observe(measured, turn, timed, recorded)
        if len(measured.steps) == 3 and recorded is not None and not sent:
            os.kill(cluster.STARTED[address].pid, number)
            sent.append(number)

    monkeypatch.setattr(execution.Measured, "observe", observed)


def test_steps_until_a_task_died_are_kept_and_none_begins_without_it(pool, monkeypatch):
    options = Options(steps=50, warmup=0, cluster=(pool[1], pool[0]))
    stage = placed(toy.build, options)
    after_three_steps(monkeypatch, signal.SIGKILL, pool[1])
    executed = execution.execute(stage, options)
    said = f"A step over 2 tasks was abandoned: task 0 ({pool[1]}) is gone."
    assert (executed.steps, executed.failure) == (3, said)
    assert sum(owner.ns for owner in executed.time_ledger) == executed.wall_ns
    with pytest.raises(RefusedError, match=f"^{re.escape(said)}$"):
        placed(toy.build, options)


def test_a_task_that_stands_still_in_a_step_is_named_after_its_time_limit(pool, monkeypatch):
    options = Options(steps=50, warmup=0, cluster=(pool[0], pool[2]))
    stage = placed(toy.build, options)
    monkeypatch.setattr(session, "TIME_LIMIT_S", 4)
    monkeypatch.setattr(cluster, "ANSWER_S", 2)
    after_three_steps(monkeypatch, signal.SIGSTOP, pool[2])
    executed = execution.execute(stage, options)
    said = f"A step over 2 tasks was abandoned: task 1 ({pool[2]}) does not answer."
    assert (executed.steps, executed.failure) == (3, said)


def test_before_a_session_begins_a_task_that_stands_still_is_named_at_once(two_tasks, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    still = cluster.STARTED[two_tasks[1]]
    monkeypatch.setattr(cluster, "STARTED", {})  # it is not ended for that
    still.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(RefusedError, match=r"task 1 \(127\.0\.0\.1:\d+\) does not answer\.$"):
            cluster.check_all(two_tasks)
    finally:
        still.send_signal(signal.SIGCONT)


def test_a_task_that_answers_and_has_forgotten_the_session_is_said(two_tasks):
    forgotten = tf.errors.AbortedError(None, None, "Session handle is not found: d7fd99f71ae75903.")
    assert str(session.refused(forgotten, Options(cluster=two_tasks))) == (
        "A step over 2 tasks was abandoned: a task was restarted, or is used by another command, "
        "and serves one at a time."
    )
