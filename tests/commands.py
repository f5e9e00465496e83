"""Commands in the process of the tests, which has TensorFlow loaded: much sooner than a process of
their own, which tests of starting, ending and standard error itself need."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

OF_TESTS = re.compile("TF_|XLA_")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_here(
    main: Callable[[Sequence[str]], int], *args: str, folder: Path | None = None
) -> CompletedProcess:
    """What `main(args)` returns and prints, in this folder."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(args))
    except SystemExit as end:
        status = end.code
    finally:
        os.chdir(before)
    return CompletedProcess(args, status, out.getvalue(), err.getvalue())


def run_python(folder: Path, *words: str, log: str = "2", **given: str) -> CompletedProcess[str]:
    """What `python WORDS` prints in this folder, with this tflab, without what the tests ask of the
    runtime, and with these variables; with the log that a user has if `log` is empty."""
    usual = {name: text for name, text in os.environ.items() if not OF_TESTS.match(name)}
    known = {"PYTHONPATH": str(Path(__file__).parents[1])}
    if log:
        known["TF_CPP_MIN_LOG_LEVEL"] = log
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**usual, **known, **given},
        capture_output=True,
        text=True,
        timeout=300,
    )


def children_of(process: int) -> list[int]:
    """The processes that a process has started from its first thread, and that are there."""
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def processor_seconds(process: int) -> float:
    """The time of processors that a process has taken (proc(5)); unlike the time of day it is the
    same on a busy machine."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def in_one_process(patch: pytest.MonkeyPatch) -> None:
    """Run here what tflab runs in processes of its own, of which `tests/runtime` has tests."""
    from tflab.runtime import processes

    def here(function: str, *args: Any, **options: Any) -> Any:
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)(*args)

    patch.setattr(processes, "call", here)
    patch.setattr(processes, "stream", lambda *args, **_: contextlib.nullcontext(here(*args)))
