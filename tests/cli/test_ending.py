"""Ending: what ends a command from outside ends its children, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tflab.cli import command, ending

BODY = """
import subprocess, sys, time
from tflab import atomic
from tflab.cli import command, ending
def body():
    with atomic.temporary("work"), subprocess.Popen(["sleep", "60"]) as child, ending.child(child):
        try:
            print(child.pid, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            if "keeps" in sys.argv:
                return command.INTERRUPTED
            raise
sys.exit(command.run(body))
"""


def started(tmp_path: Path, *arguments: str, ignoring: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BODY, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=(lambda: signal.signal(ignoring, signal.SIG_IGN)) if ignoring else None,
    )


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [(), ("keeps",)])
@pytest.mark.parametrize(
    "number, status, said",
    [
        (signal.SIGINT, 130, "tflab: interrupted.\n"),
        (signal.SIGTERM, 143, "tflab: interrupted by SIGTERM.\n"),
        (signal.SIGHUP, 129, "tflab: interrupted by SIGHUP.\n"),
    ],
)
def test_each_signal_ends_the_children_and_removes_temporary_folders(
    tmp_path, number, status, said, keeps
):
    with started(tmp_path, *keeps) as process:
        assert process.stdout and process.stderr
        child = int(process.stdout.readline())
        assert any(tmp_path.iterdir())
        process.send_signal(number)
        if number == signal.SIGINT:  # which a terminal sends to both
            os.kill(child, number)
        assert process.wait(20) == status
        assert process.stderr.read() == ("" if keeps else said)
    assert not any(tmp_path.iterdir())
    assert not is_alive(child)


LOST = """
import signal, sys, time, os
from tflab.cli import command, ending
class Lossy:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
def body():
    if "exec" in sys.argv:
        exec("import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(0)")
    Lossy()
    with ending.deferred(), ending.released():
        print("not reached")
    return 0
sys.exit(command.run(body))
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["destructor", "exec"])
def test_a_signal_that_python_loses_ends_the_command_all_the_same(tmp_path, where):
    (tmp_path / "lost.py").write_text(LOST)
    done = subprocess.run(
        [sys.executable, "-m", "lost", where],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (143, "")
    assert done.stderr == "tflab: interrupted by SIGTERM.\n"


@pytest.mark.slow
def test_a_command_under_nohup_goes_on(tmp_path):
    with started(tmp_path, ignoring=signal.SIGHUP) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert process.poll() is None
        process.terminate()
        assert process.wait(20) == 143


def test_afterwards_signals_do_what_they_did():
    before = signal.getsignal(signal.SIGTERM)
    assert command.run(lambda: 0) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    assert not ending.children


def test_without_enough_memory_there_is_one_sentence(capsys):
    def body() -> int:
        raise MemoryError("Unable to allocate 8.00 TiB")

    assert command.run(body) == 1
    assert capsys.readouterr().err == (
        "tflab: There is not enough memory: Unable to allocate 8.00 TiB.\n"
    )


def test_an_error_with_a_name_that_acts_is_one_line(capsys):
    from tflab.errors import UsageError

    def body() -> int:
        raise UsageError("There is no node 'a\x1b[2J\n\u202eb'.")

    assert command.run(body) == 2
    assert capsys.readouterr().err == r"tflab: There is no node 'a\x1b[2J\x0a\u202eb'." + "\n"
