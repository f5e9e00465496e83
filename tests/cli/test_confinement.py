"""Confinement: commands on graphs from files, with the rules about ops switched off."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs, needs

pytestmark = [pytest.mark.tensorflow, needs.LANDLOCK]


# A program that calls tflab, and has loaded what starts threads of its own
PROGRAM = "import sys, numpy; from tflab.__main__ import main; sys.exit(main(sys.argv[1:]))"


def command(folder, *arguments, start=("-m", "tflab")):
    """(exit status, standard output, standard error) of a command in a folder of its own."""
    done = subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def copying(source, target):
    def build():
        with tf.control_dependencies([tf.io.write_file(str(target), tf.io.read_file(str(source)))]):
            tf.constant(1.0, name="out")

    return build


@pytest.fixture
def place(tmp_path):
    """A folder to work in, beside one with a secret."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("open sesame")
    return tmp_path


def test_what_the_gate_lets_through_still_reads_and_writes_nothing_outside(place):
    secret, harm = place / "outside" / "secret", place / "outside" / "harm"
    graphs.write(place / "work" / "g.pb", graphs.graph_def(copying(secret, harm)))
    wanted = ("lifecycle", "--model", "g.pb", "--fetch", "out")
    status, out, err = command(place / "work", *wanted, "--allow-side-effects")
    assert (status, "sesame" in out + err) == (1, False)
    assert err.endswith(
        f"tflab: The runtime refused the step: {secret}; Permission denied. Give --allow-read "
        f"{secret.parent} if you trust the graph.\n"
    )
    assert not list((place / "work").glob("runs/*"))
    reads = ("--allow-read", secret.parent)
    status, _, err = command(place / "work", *wanted, "--allow-side-effects", *reads)
    assert (status, harm.exists()) == (1, False)
    assert f"Permission denied. Give --allow-write {harm.parent} if you trust" in err
    assert command(place / "work", *wanted, *reads, "--allow-write", harm.parent)[0] == 0
    assert harm.read_text() == "open sesame"
    assert [path.name for path in (place / "work" / "runs").iterdir()]


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--batch-sizes", "4", "--images", "16"),
        ("report", "--chapters", "batch-sizes", "--out", "report"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_measures_in_processes_of_its_own_does_so_for_a_file(tmp_path, arguments):
    def product():
        x = tf1.placeholder(tf.float32, [None, 8], name="x")
        tf.matmul(x, tf.ones([8, 2]), name="out")

    graphs.write(tmp_path / "g.pb", graphs.graph_def(product))
    status, out, err = command(tmp_path, *arguments, "--model", "g.pb")
    assert (status, "ended with status" in err) == (0, False), err
    assert "Batch 4" in out or (tmp_path / "report" / "report.html").exists()


def test_what_takes_too_much_memory_is_shown_and_not_run(tmp_path):
    def huge():
        tf.identity(tf1.placeholder(tf.float32, [16, 10**9], name="x"), name="out")

    graphs.write(tmp_path / "g.pb", graphs.graph_def(huge))
    status, out, err = command(tmp_path, "lifecycle", "--model", "g.pb", start=("-c", PROGRAM))
    assert status == 1
    assert "2 nodes and 1 edge" in out
    assert "tflab: 'x' takes 59.6 GiB" in err


def test_a_killed_process_is_one_sentence_and_what_was_known_is_printed(tmp_path):
    graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.dense))
    arguments = ("--model", "g.pb", "--steps", "1000000", "--format", "json")
    process = subprocess.Popen(
        [sys.executable, "-m", "tflab", "lifecycle", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    partial = None
    while partial is None and process.poll() is None:
        time.sleep(0.2)
        kept = list(temporary_of(process.pid).glob("confined-*/partial"))
        stages = [path for path in kept if '"placement"' in path.read_text()]
        partial = stages[0] if stages else None
    (child,) = children_of(process.pid)
    os.kill(child, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith(
        "tflab: The graph ended the process that ran it, with SIGKILL after"
    )
    document = json.loads(out)
    assert [stage["stage"] for stage in document["stages"]][-1] == "placement"


def temporary_of(pid):
    found = list(Path(tempfile.gettempdir()).glob(f"tflab-{pid}-*.tmp"))
    return found[0] if found else Path("nowhere")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
