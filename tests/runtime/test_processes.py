"""Processes: results and errors come back from the other process, and so does news of its death."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.approval import refused
from tflab.cli import temporary
from tflab.errors import TflabError
from tflab.runtime import processes

pytestmark = pytest.mark.slow

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def this_module_can_be_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def call(name, *args):
    return processes.call(f"{__name__}:{name}", *args)


# What the other process is asked to do


def answer(*given):
    print("on Python's standard output")
    os.write(1, b"on that of C\n")
    os.write(2, b"on standard error\n")
    known = (os.environ.get(name) for name in ("TF_DUMP_GRAPH_FMT", "TFLAB_TEST", "TMPDIR"))
    return given, os.getpid(), tuple(known)


def complain():
    raise TflabError("No such node.")


def fail():
    raise ValueError("of something unforeseen")


def leave():
    os._exit(3)


def abort():
    os.write(2, b"    @     0x7f3d2c  tensorflow::Kernel::Compute()\n")
    os.abort()


def test_the_result_of_another_process_comes_back_whatever_it_prints(monkeypatch):
    """It is ready to dump, has the environment of this one, and leaves files in its folder."""
    monkeypatch.setenv("TFLAB_TEST", "1")
    given = ({"a": 1}, (b"\0", None), bytes(10_000_000))
    result, process, variables = call("answer", *given)
    assert (result, variables) == (given, ("BIN", "1", str(temporary.process_folder())))
    assert process != os.getpid()


ENDED = f"The process that ran {__name__}:{{}} ended with status"


SAID = {
    "complain": "No such node.",
    "abort": f"{ENDED} -6 (SIGABRT).",  # without the stack that C prints
    "leave": f"{ENDED} 3.",
    "fail": f"{ENDED} 1: ValueError: of something unforeseen",
    "gone": f"{ENDED} 1: AttributeError: module '{__name__}' has no attribute 'gone'",
}


def test_what_goes_wrong_in_the_other_process_is_a_sentence():
    assert [refused(call, name) for name in SAID] == [
        f"TflabError: {said.format(name)}" for name, said in SAID.items()
    ]


# Streams


def stream(name, *args, **more):
    return processes.stream(f"{__name__}:{name}", *args, **more)


def squares(path, first):
    """Notes in a file which of them was begun."""
    for number in range(first, 100):
        with open(path, "a") as notes:
            notes.write(f"{number} ")
        yield os.getpid(), number**2


def one_and_an_error():
    yield 1
    raise TflabError("No second one.")


def test_a_stream_stands_still_until_the_next_item_is_asked_for_and_ends_with_its_context(tmp_path):
    notes = tmp_path / "notes"
    with pytest.raises(KeyboardInterrupt), stream("squares", notes, 3) as numbers:
        (process, first), (same_process, second) = next(numbers), next(numbers)
        assert notes.read_text() == "3 4 "
        raise KeyboardInterrupt
    assert (first, second) == (9, 16)
    assert process == same_process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert notes.read_text() == "3 4 "


def test_an_error_comes_where_the_item_is_asked_for():
    with stream("one_and_an_error") as items, pytest.raises(TflabError, match="No second one"):
        assert next(items) == 1
        next(items)


def test_a_stream_that_is_killed_between_two_items_is_a_sentence_with_its_status(tmp_path):
    with (
        pytest.raises(TflabError, match="ended with status -9") as error,
        stream("squares", tmp_path / "notes", 0) as numbers,
    ):
        process, _ = next(numbers)
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)  # it still has its status
        next(numbers)
    assert "tests.runtime.test_processes:squares" in str(error.value)


def test_a_stream_that_never_began_says_so_for_its_first_item(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        pytest.raises(TflabError, match=r"ended with status 1\.$"),
        stream("squares", "x" * 1_000_000, 0) as numbers,
    ):
        next(numbers)


# The end of the parent


def never(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)
    yield


PARENT = """
from tflab.runtime import processes
with processes.stream("tests.runtime.test_processes:never", {!r}) as items:
    next(items)
"""


def is_running(process: int) -> bool:
    """Nobody may be there who fetches the status of an orphan that has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel offers this")
def test_a_process_ends_with_the_one_that_started_it_however_that_ends(tmp_path):
    path = tmp_path / "process"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(str(path))], env={**os.environ, "PYTHONPATH": ROOT}
    )
    while not (path.exists() and path.read_text()):
        assert parent.poll() is None
        time.sleep(0.1)
    process = int(path.read_text())
    assert is_running(process)
    parent.kill()
    parent.wait()
    end = time.monotonic() + 60
    while is_running(process) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_running(process)
