"""Processes: every process of Python that tflab starts for a part of its own work.

`call` runs a function of this package in a new Python, which is ready to dump graphs; `stream` runs
a generator. Arguments and results travel as pickles, over pipes that only the two processes see.
"""

from __future__ import annotations

import importlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from tflab.cli import confined, landlock, temporary
from tflab.errors import TflabError

Process = subprocess.Popen[bytes]
TAIL = 4_096  # bytes of an output that are read again


def start(
    module: str,
    *words: str,
    environment: Mapping[str, str] | None = None,
    stderr: int | IO[bytes] = subprocess.PIPE,
    own_session: bool = False,
) -> Process:
    """Start `python -m MODULE WORDS...`, with pipes to its standard input and output. If it has a
    session of its own, a signal from the terminal does not reach it."""
    own_variables = {
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
        "TMPDIR": os.fspath(temporary.process_folder()),  # which this process removes
    }
    python = confined.python() if confined.CONFINED else [sys.executable]
    return subprocess.Popen(
        [*python, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, **(environment or {}), **own_variables},
        start_new_session=own_session,
    )


@contextmanager
def started(module: str, *words: str, **options: Any) -> Iterator[tuple[Process, IO[bytes]]]:
    """Start a process, killed as the context ends. Yield it and its standard error's file."""
    with temporary.file() as errors:
        process = start(module, *words, stderr=errors, **options)
        try:
            yield process, errors
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # the standard input may hold what could not be written
                    assert pipe
                    pipe.close()


def has_output(process: Process, seconds: float) -> bool:
    """Wait for output of a process, or for its end; return False if this takes longer."""
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def ending(process: Process, errors: IO[bytes]) -> str:
    """Wait for a process; return its status and the last line of its errors, as words."""
    status = process.wait()
    if status < 0:  # what it wrote last is then a stack frame, if anything
        return f"with status {status} ({signal.Signals(-status).name})."
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - TAIL))
    last = errors.read().decode(errors="backslashreplace").strip().splitlines()[-1:]
    return f"with status {status}{': ' + last[0] if last else '.'}"


def call(function: str, *args: object) -> Any:
    """Return the result of `module:function(*args)`, computed in a process of its own. Raises the
    TflabError that the function raised, or one that says how the process ended."""
    with stream(function, *args) as results:
        return next(results)


@contextmanager
def stream(
    function: str, *args: object, environment: Mapping[str, str] | None = None
) -> Iterator[Iterator[Any]]:
    """Yield the items of the generator `module:function(*args)`, made in a process of its own that
    stands still until the next item is requested, so that several can take turns."""
    pickled = pickle.dumps(args)
    with started(__name__, function, environment=environment) as (process, errors):
        assert process.stdin
        with suppress(OSError):  # if it has already ended, the first item reports it
            # The length comes first, so that nothing is imported before all of it is read.
            process.stdin.write(b"%d\n" % len(pickled) + pickled)
            process.stdin.flush()

        def items() -> Iterator[Any]:
            assert process.stdin and process.stdout
            while True:
                try:
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    worked, result = pickle.load(process.stdout)
                except (pickle.UnpicklingError, EOFError, OSError):
                    how = ending(process, errors)
                    raise TflabError(f"The process that ran {function} ended {how}") from None
                if not worked:
                    raise result
                yield result

        yield items()


def main() -> None:
    """Answer the parent: (True, item) or (False, error), pickled, on standard output."""
    from tflab.runtime import dumps, tf_import  # of no use to the parent

    landlock.die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may get into the answers
    dumps.prepare()
    module, _, name = sys.argv[1].partition(":")
    pickled = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    with answers:
        try:
            with tf_import.fast_imports():
                args = pickle.loads(pickled)  # may import TensorFlow, so only now
                function = getattr(importlib.import_module(module), name)
            result = function(*args)
            results = result if isinstance(result, Iterator) else iter([result])
            for _, item in zip(iter(sys.stdin.buffer.readline, b""), results, strict=False):
                pickle.dump((True, item), answers)  # made only after it was requested
                answers.flush()
        except TflabError as error:
            pickle.dump((False, error), answers)


if __name__ == "__main__":
    main()
