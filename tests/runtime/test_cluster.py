"""Cluster: where tasks listen; those that do not come, or are others than expected, are named."""

import http.server
import os
import re
import socket
import subprocess
import threading
from contextlib import closing

import pytest
import tensorflow as tf

from tflab.errors import TflabError, UsageError
from tflab.runtime import cluster, server

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children():
    """The tasks that this process has started and that are alive."""
    listed = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True
    )
    lines = listed.stdout.splitlines()
    return {int(line.split()[0]) for line in lines if "tflab.worker" in line}


# Where it listens


def test_a_local_server_takes_connections_from_this_machine_only():
    port = int(server.own_address("127.0.0.1").rpartition(":")[2])
    assert server.is_kept_local(port) == hasattr(socket, "SO_BINDTODEVICE")
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="/proc is not there")
def test_looking_for_its_sockets_leaves_no_file_open():
    port = int(server.own_address("127.0.0.1").rpartition(":")[2])
    before = len(os.listdir("/proc/self/fd"))
    assert all(server.is_kept_local(port) for _ in range(20))
    assert len(os.listdir("/proc/self/fd")) < before + 20  # other threads open some, too


@pytest.mark.parametrize(
    "host, local",
    [
        *(("127.0.0.1", True), ("localhost", True), ("127.1.2.3", True), ("[::1]", True)),
        *(("0.0.0.0", False), ("10.0.0.5", False), ("example.org", False)),
    ],
)
def test_what_only_this_machine_reaches(host, local):
    assert server.is_local(host) == local


def test_a_port_in_use_is_said():
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as error:
            server.start(f"127.0.0.1:{port}")
    assert str(error.value) == (
        f"No task can listen at 127.0.0.1:{port}: the port is in use; give another, or 0 for any "
        "free port."
    )


def test_an_address_of_another_machine_is_said():
    with pytest.raises(UsageError, match=r"this machine has no address '192\.0\.2\.1'; give one"):
        server.start("192.0.2.1:0")


# Tasks that do not come


def test_a_task_that_nobody_started_is_said():
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(TflabError) as error, cluster.tasks([address]):
        pass
    assert str(error.value) == (
        f"Task 0 of the cluster, {address}, cannot be reached: connection refused. Start it there "
        f"with `python -m tflab.worker {address}`."
    )


def test_what_listens_and_never_answers_is_said(monkeypatch):
    monkeypatch.setattr(server, "ANSWER_S", 1)
    with closing(socket.socket()) as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(TflabError, match=r"did not answer within 1 s\. Start it there with"):
            server.check(1, address)


def test_a_server_of_another_kind_is_said():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as web:
        threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
        address = f"127.0.0.1:{web.server_port}"
        with pytest.raises(TflabError) as error:
            server.check(1, address)
        web.shutdown()
    assert str(error.value) == (
        f"Task 1 of the cluster, {address}, is not a task: another kind of server answers there. "
        f"Start it there with `python -m tflab.worker {address}`."
    )


def test_the_same_task_at_two_addresses_is_said(two_tasks):
    other = two_tasks[0].replace("127.0.0.1", "localhost")
    with pytest.raises(UsageError) as error, cluster.tasks([*two_tasks, other]):
        pass
    assert str(error.value) == (
        f"Task 0 of the cluster, {two_tasks[0]}, and task 2, {other}, are the same task; name each "
        "once."
    )


# Whether all reach one another


def test_this_machine_is_reached_by_the_address_of_the_route_to_a_task():
    assert server.host_towards("127.0.0.1:1") == "127.0.0.1"
    assert cluster.client_host(["127.0.0.1:1", "localhost:2"]) == "127.0.0.1"
    with pytest.raises(TflabError, match=r"^This machine has no route to 255\.255\."):
        cluster.client_host(["127.0.0.1:1", "255.255.255.255:2", "127.0.0.1:3"])


def test_numbers_pass_between_this_process_and_tasks_that_are_there(two_tasks):
    assert cluster.passes_on(two_tasks)


@pytest.mark.parametrize(
    "broken, said",
    [
        ({"b:2"}, "Task 1 of the cluster, b:2, cannot reach this process at 10.0.0.9:5. Allow con"),
        ({"b:2", "c:3"}, "Task 1 of the cluster, b:2, and task 2, c:3, cannot reach each other."),
    ],
)
def test_the_connection_that_does_not_pass_is_named(monkeypatch, broken, said):
    monkeypatch.setattr(server, "host_towards", lambda address: "10.0.0.9")
    monkeypatch.setattr(server, "own_address", lambda host: f"{host}:5")
    monkeypatch.setattr(cluster, "passes_on", lambda some, host=None: not broken <= {*some})
    with pytest.raises(TflabError, match=f"^{re.escape(said)}"):
        cluster.check_reach(["a:1", "b:2", "c:3"])


def test_a_task_of_another_version_is_said(two_tasks, monkeypatch):
    monkeypatch.setattr(server, "job", lambda: "tflab_1_2_3")
    with pytest.raises(TflabError, match=rf"^Task 1 of the cluster, {two_tasks[1]}, runs Tensor"):
        server.check(1, two_tasks[1])


def test_a_server_that_is_not_tflab_s_is_said():
    spec = tf.train.ClusterSpec({"mine": ["127.0.0.1:0"]})
    other = tf.distribute.Server(spec, job_name="mine", task_index=0)
    with pytest.raises(TflabError, match="answers, but is not a task of tflab"):
        server.check(0, other.target.removeprefix(server.SCHEME))


def test_a_task_that_does_not_begin_in_time_is_ended(monkeypatch):
    monkeypatch.setattr(cluster, "START_S", 0.05)
    before = children()
    with pytest.raises(TflabError, match=r"^Task 0 of the cluster did not start within 0\.05 s\.$"):
        cluster.tasks(1).__enter__()
    assert children() == before


def test_a_task_that_fails_before_it_begins_says_why(monkeypatch):
    monkeypatch.setattr(cluster, "LOCAL", "192.0.2.1")
    with pytest.raises(TflabError, match=r"ended during start-up, with status 2: tflab: No task"):
        cluster.tasks(1).__enter__()
