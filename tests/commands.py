"""Commands in the process of the tests, which has TensorFlow loaded: much sooner than a process of
their own, which tests of starting, ending and standard error itself need."""

import contextlib
import importlib
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

PEAKS = (100.0, 10.0)  # GFLOPS and GB/s


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


def in_one_process(patch: pytest.MonkeyPatch) -> None:
    """Run here what tflab runs in processes of its own, and give the machine's peaks instead of
    measuring them. `tests/runtime` has tests of those processes and of the measurement."""
    from tflab.records.measured import Peaks
    from tflab.runtime import child, machine

    def here(function: str, *args: Any, environment: object = None) -> Any:
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)(*args)

    patch.setattr(machine, "peaks", lambda: Peaks(*PEAKS))
    patch.setattr(machine, "measure_again", lambda known: known)
    patch.setattr(child, "call", here)
    patch.setattr(child, "stream", lambda *args, environment: contextlib.nullcontext(here(*args)))
