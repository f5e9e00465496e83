"""Signals: at any moment what was measured is kept; see `tests/signals.py` for more moments."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests import signals
from tflab.cli import ending

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# The only step of this graph waits for a queue that nobody fills
STUCK = """
import sys
from tflab.runtime import quiet_import
quiet_import.load()
import tensorflow.compat.v1 as tf
from tflab.cli import command, ending
from tflab.records import Options
from tflab.runtime import session
ending.CANCEL_S, ending.LEAVE_S = 0.2, float(sys.argv[1])
graph = tf.Graph()
with graph.as_default():
    taken = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32])
    out = tf.raw_ops.QueueDequeueV2(handle=taken, component_types=[tf.float32])[0]
def body():
    with ending.shown_by(lambda: print("kept")), session.fresh(graph, Options()) as live:
        if sys.argv[2:]:
            ending.current.cancels.clear()
        print("begun", flush=True)
        live.run(out)
sys.exit(command.run(body))
"""


def test_a_signal_at_any_moment_keeps_what_was_measured():
    ends = list(signals.ends("lifecycle", "json", 2))
    assert [one for one in ends if one.wrong] == []
    assert ends[-1].kept


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("60",), "tflab: interrupted by SIGTERM.\n"),
        (("0.2", "uncancelled"), ending.LEFT.format("SIGTERM")),
    ],
)
def test_a_step_that_does_not_return_is_cancelled_or_left(tmp_path, arguments, said):
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        assert process.stderr.read().endswith(said)
        assert process.stdout.read() == ("kept\n" if len(arguments) > 1 else "")
    assert not any(tmp_path.iterdir())


def test_ctrl_c_before_a_command_is_ready_has_no_traceback(tmp_path):
    """As far as a Python program can: the interpreter's own start and `site`, about 20 ms of
    processor time, come before the first line of tflab, and there SIGINT has Python's handler."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(
        "import time; print(1, flush=True); time.sleep(9)"
    )
    (tmp_path / "sitecustomize.py").write_text("")
    line = "import sys; sys.argv = ['tflab', 'doctor']; import tflab; import rich"
    with subprocess.Popen(
        [sys.executable, "-c", line],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{signals.ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == "tflab: interrupted.\n"
