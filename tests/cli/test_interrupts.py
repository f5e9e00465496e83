"""Interrupts: what was measured is kept, and nothing is left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tflab.cli import command, interrupts

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def started(program, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options,
    )


# In this process


def came(*numbers):
    for number in numbers:
        signal.raise_signal(number)
        time.sleep(0)


# The only step of this graph waits for a queue that nobody fills
STUCK = """
import sys
from tflab.runtime import tf_import
tf_import.load()
import tensorflow.compat.v1 as tf
from tflab.cli import command, interrupts, temporary
from tflab.records import Options
from tflab.runtime import session
interrupts.PATIENCE_S = 1.0
graph = tf.Graph()
with graph.as_default():
    queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32])
    out = tf.raw_ops.QueueDequeueV2(handle=queue, component_types=[tf.float32])[0]
def body():
    temporary.process_folder()
    with session.fresh(graph, Options()) as live:
        print("begun", flush=True)
        live.run(out)
sys.exit(command.run(body))
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_step_that_does_not_return_ends_with_its_process(tmp_path):
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with started(["-c", STUCK], env=variables) as process:
        process.stdout.readline()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        last = process.stderr.read().splitlines()[-1]
        assert last == "tflab: interrupted by SIGINT; a step did not return."
    assert not any(tmp_path.iterdir())


# A signal that comes twice and is handled; then the command needs longer than a step may
HANDLED = """
import os, signal, sys, threading, time
from tflab.cli import command, interrupts
interrupts.PATIENCE_S = 1.2
def twice():
    for _ in range(2):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
def body():
    threading.Thread(target=twice).start()
    try:
        time.sleep(10)
    except KeyboardInterrupt:
        time.sleep(3)
        print("written")
    return 130
sys.exit(command.run(body))
"""


@pytest.mark.slow
def test_a_command_that_handled_a_signal_may_take_its_time():
    ended = subprocess.run([sys.executable, "-c", HANDLED], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("written\n", "", 143)


def test_a_signal_raises_a_keyboard_interrupt(capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert command.run(lambda: came(signal.SIGTERM)) == 143
    assert capsys.readouterr().err == "tflab: interrupted by SIGTERM.\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_held_signal_waits_until_it_is_released_taken_or_at_its_end(monkeypatch):
    moments = []

    def released():
        with interrupts.held():
            came(signal.SIGINT)
            moments.append("held")
            with suppress(KeyboardInterrupt), interrupts.released():
                moments.append("released")
            moments.append(interrupts.current.waiting)
            return 130

    def at_its_end():
        with interrupts.held():
            came(signal.SIGINT)
            moments.append("waited")

    def taken():
        with interrupts.held():
            came(signal.SIGINT)
            return [interrupts.current.waiting, interrupts.take(), interrupts.take()].index(False)

    def several():
        with interrupts.held():
            came(signal.SIGTERM, signal.SIGTERM)  # signals at once are one,
            moments.append("one")
            monkeypatch.setattr(interrupts, "ONE_S", 0)
            came(signal.SIGTERM)  # and a later one does not wait
            moments.append("two")

    assert [command.run(body) for body in (released, at_its_end, taken, several)] == [
        *(130, 130, 2, 143)
    ]
    assert moments == ["held", False, "waited", "one"]


def test_what_a_signal_cut_short_is_kept(capsys):
    def items():
        yield 1
        came(signal.SIGINT)
        yield 2

    kept = []

    def body():
        try:
            with interrupts.held():
                kept.extend(interrupts.interruptible(items()))
        finally:
            print("kept", kept)

    assert command.run(body) == 130
    assert capsys.readouterr().out == "kept [1]\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_that_python_loses_is_raised_again():
    class Lossy:
        def __del__(self):
            came(signal.SIGTERM)

    def body():
        Lossy()
        with interrupts.held(), interrupts.released():
            pytest.fail("the signal was lost")

    assert command.run(body) == 143


# In a process of its own

BODY = """
import sys, time
from tflab.cli import temporary
from tflab.cli import command
def body():
    with temporary.folder("work"):
        print("begun", flush=True)
        time.sleep(60)
sys.exit(command.run(body))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [*STATUS])
def test_each_signal_removes_temporary_folders(number, tmp_path):
    with started(["-c", BODY], env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        process.stdout.readline()
        assert any(tmp_path.iterdir())
        process.send_signal(number)
        assert process.wait(20) == STATUS[number]
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_command_under_nohup_goes_on():
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    with started(["-c", BODY], **ignored) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert process.poll() is None
        process.terminate()
        assert process.wait(20) == 143


def test_ctrl_c_before_a_command_begins_is_one_line(tmp_path):
    (tmp_path / "argparse.py").write_text("raise KeyboardInterrupt")
    with started(["-m", "tflab.doctor"], cwd=tmp_path) as process:
        assert process.stderr.read() == "tflab: interrupted.\n"
    assert process.returncode in (130, -signal.SIGINT)


PROGRAM = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
session = tf.Session()
doubled = tf.constant([1.0, 2.0]) * 2
while session.run(doubled).any():
    print("ran", flush=True)
"""
COMMANDS = {  # command line, and what a terminal shows when something was measured
    "lifecycle": ("--steps 1000000 --logdir logs --format json", "steps"),
    "compare": ("--batch-sizes 16 --configs no-grappler --format json", "configurations"),
    "train": ("--model lenet --epochs 1000 --logdir logs", r"training: epoch ([2-9]|\d\d)"),
    "run": ("--format json program.py", "ran"),
}


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [*COMMANDS])
def test_a_command_keeps_what_it_has_measured(name, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    words, measured = COMMANDS[name]
    watched, other = ("stdout", "stderr") if name == "run" else ("stderr", "stdout")
    reading, writing = os.openpty()
    seen, signals = "", iter([signal.SIGINT])
    with (tmp_path / "other").open("w") as file:
        streams = {watched: writing, other: file, "env": {**os.environ, "COLUMNS": "200"}}
        program = ["-m", f"tflab.{name}", *words.split()]
        with started(program, cwd=tmp_path, start_new_session=True, **streams) as process:
            os.close(writing)
            with suppress(OSError):  # the process has ended
                while True:
                    seen += os.read(reading, 4096).decode(errors="replace")
                    if re.search(measured, seen) and (number := next(signals, None)):
                        time.sleep(2)  # in which steps are measured
                        os.killpg(process.pid, number)  # as a terminal does
    os.close(reading)
    out = seen if name == "run" else (tmp_path / "other").read_text()
    # `run` ends by the signal that ended its program
    assert process.returncode == (-signal.SIGINT if name == "run" else 130), seen
    if name == "train":
        assert "To continue:  python -m tflab.train --resume" in seen
        assert (tmp_path / "logs" / "checkpoints" / "checkpoint").exists()
        return
    document = json.loads(out[out.index("{") :])
    if name == "lifecycle":
        assert document["stages"][-1]["steps"] > 0
        assert document["stages"][-1]["interrupted"]
        assert any((tmp_path / "logs").iterdir())
    elif name == "compare":
        assert document["rows"]
    else:
        assert document["groups"][0]["calls"] > 0
