"""Graphs at random, watched from outside: what the gate lets through touches nothing."""

import shutil
import subprocess

import pytest

from tests import needs
from tests.fuzz import gate

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

GRAPHS = 15


def strace_works():
    watch = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=%file", "true"]
    return shutil.which("strace") and not subprocess.run(watch, capture_output=True).returncode


@pytest.fixture(autouse=True)
def strace():
    if not strace_works():
        needs.missing("strace is missing, or may not watch here; get it with: apt install strace")


def test_what_the_gate_lets_through_touches_nothing():
    tried = list(gate.tried(seed=1, graphs=GRAPHS, seconds=0))
    assert [graph.number for graph in tried] == list(range(GRAPHS))
    assert {"ran", "gated"} <= {graph.outcome for graph in tried}
    assert [graph for graph in tried if graph.touched or graph.failed] == []


@needs.LANDLOCK
def test_what_the_kernel_confines_touches_nothing_without_the_gate():
    tried = list(gate.tried(seed=2, graphs=GRAPHS, seconds=0, way=gate.WALL))
    assert [graph.number for graph in tried] == list(range(GRAPHS))
    assert "ran" in {graph.outcome for graph in tried}
    assert "gated" not in {graph.outcome for graph in tried}
    assert [graph for graph in tried if graph.touched or graph.failed] == []


def test_a_system_call_that_touches_something_is_seen(tmp_path):
    lines = (
        'openat(AT_FDCWD, "/etc/before", O_RDONLY) = 3',
        'access("/watched-graph-7", F_OK) = -1 ENOENT',
        'openat(AT_FDCWD, "bait", O_RDONLY) = 3',
        'openat(AT_FDCWD, "/usr/lib/x.py", O_RDONLY|O_CLOEXEC) = 3',
        'openat(AT_FDCWD, "/usr/lib/x.py", O_WRONLY|O_CREAT, 0644) = 3',
        'openat(AT_FDCWD, "graph.meta", O_RDONLY) = 3',
        'stat("bait", {st_mode=S_IFREG}) = 0',
        'mkdir("new", 0777) = 0',
        'rename("new", "old") = 0',
        'access("/watched-graph-8", F_OK) = -1 ENOENT',
        "connect(5, {sa_family=AF_INET, sin_port=htons(9)}, 16) = -1 ECONNREFUSED",
        'access("/watched-graph-end", F_OK) = -1 ENOENT',
        'unlink("/after") = 0',
    )
    touched = gate.Touched(str(tmp_path))
    touched.read(f"12 {line}" for line in lines)
    walled = gate.Touched(str(tmp_path), walled=True)
    walled.read(
        f"{thread} {line}"
        for thread, line in (
            (12, 'access("/watched-graph-7", F_OK) = -1 ENOENT (No such file)'),
            (12, 'openat(AT_FDCWD, "/etc/passwd", O_RDONLY <unfinished ...>'),
            (13, 'openat(AT_FDCWD, "/secret", O_RDONLY) = -1 EACCES (Permission denied)'),
            (12, "<... openat resumed>) = 3"),
            (12, "connect(5, {sa_family=AF_INET}, 16) = -1 EACCES (Permission denied)"),
            (12, "connect(6, {sa_family=AF_INET}, 16) = -1 ECONNREFUSED (Refused)"),
            (12, f'mkdir("{tmp_path}/inside/a", 0777) = 0'),
        )
    )
    assert walled.by == {
        7: (
            "openat /etc/passwd",
            "connect(6, {sa_family=AF_INET}, 16) = -1 ECONNREFUSED (Refused)",
        ),
    }
    assert touched.by == {
        7: ("openat bait", "openat /usr/lib/x.py", "mkdir new", "rename new old"),
        8: ("connect(5, {sa_family=AF_INET, sin_port=htons(9)}, 16)",),
    }
