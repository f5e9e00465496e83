"""Child: a process of its own, for what has to be set before TensorFlow is imported.

`call` runs a function of this package in a new Python, one that is ready to dump graphs, and
brings its result back. `stream` does so with a generator: the process lives on between two items,
so that several can take turns. It works from the command line, from a test and from a notebook
alike.

Arguments and results travel as pickles, over pipes that only the two processes see.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from tflab.cli import confined, temporary
from tflab.errors import TflabError
from tflab.runtime import dumps, quiet_import

STREAMED = "--streamed"
PATIENCE_S = 10.0  # in which a process whose stream is closed has to end


def call(
    function: str,
    *args: Any,
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> Any:
    """The result of `module:function(*args)`, computed in a process of its own.

    `environment` is set for it, besides what every child has; after `seconds` it is ended.

    Raises the TflabError that the function raised, or one that says how the process ended.
    """
    with (
        subprocess.Popen(
            command(function),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=surroundings(environment),
        ) as process,
    ):
        try:
            answer, notes = process.communicate(framed(args), timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TflabError(
                f"The process that ran {function} did not end within {seconds} s."
            ) from None
        except BaseException:
            process.kill()
            raise
    try:
        worked, result = pickle.loads(answer)
    except (pickle.UnpicklingError, EOFError):
        raise exit_error(function, process.returncode, notes) from None
    if not worked:
        raise result
    return result


@contextmanager
def stream(
    function: str, *args: Any, environment: Mapping[str, str] | None = None
) -> Iterator[Iterator[Any]]:
    """What the generator `module:function(*args)` yields, made in a process of its own that stands
    still until the next item is asked for, and ends with the context.

    Raises as `call` does, where an item is asked for.
    """
    with (
        temporary.file() as notes,
        subprocess.Popen(
            command(function, STREAMED),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=notes,
            env=surroundings(environment),
        ) as process,
    ):
        assert process.stdin
        try:
            with suppress(OSError):  # if it has already ended, the first item reports it
                process.stdin.write(framed(args))
                process.stdin.flush()
            yield items(function, process, notes)
        except BaseException:
            process.kill()
            raise
        end(process)


def items(function: str, process: subprocess.Popen[bytes], notes: IO[bytes]) -> Iterator[Any]:
    assert process.stdin and process.stdout
    while True:
        try:
            process.stdin.write(b"\n")
            process.stdin.flush()
            worked, result = pickle.load(process.stdout)
        except (pickle.UnpicklingError, EOFError, OSError):  # a broken pipe; Windows has others
            with suppress(OSError):  # it still holds what could not be written
                process.stdin.close()
            status = process.wait()
            notes.seek(0)
            raise exit_error(function, status, notes.read()) from None
        if not worked:
            raise result
        yield result


def end(process: subprocess.Popen[bytes]) -> None:
    """Let the process end by itself, as it does when nothing more can be asked for."""
    if process.poll() is not None:
        return
    try:
        process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def framed(args: tuple[Any, ...]) -> bytes:
    """The arguments behind their length, so that they are read before one of them is imported."""
    pickled = pickle.dumps(args)
    return b"%d\n" % len(pickled) + pickled


def command(function: str, *options: str) -> list[str]:
    return [*python(), "-m", "tflab.runtime.child", function, *options]


def python() -> list[str]:
    """The command that starts Python; in a confined process it is another one."""
    return confined.python() if confined.CONFINED else [sys.executable]


def surroundings(environment: Mapping[str, str] | None) -> dict[str, str]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    # What a child leaves behind is where this process removes it.
    own_variables = {"PYTHONPATH": path, "TMPDIR": os.fspath(temporary.process_folder())}
    return {**os.environ, **(environment or {}), **own_variables}


def exit_error(function: str, status: int, notes: bytes) -> TflabError:
    ending = f"The process that ran {function} ended with status {status}"
    if status < 0:  # what it wrote last is then a stack frame, if anything
        return TflabError(f"{ending} ({signal.Signals(-status).name}).")
    last = notes.decode(errors="backslashreplace").strip().splitlines()[-1:]
    return TflabError(f"{ending}{': ' + last[0] if last else '.'}")


def main() -> None:
    """Answer the parent: (True, result) or (False, error), pickled, on standard output."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may get into the answer
    dumps.prepare()
    module, _, name = sys.argv[1].partition(":")
    pickled = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    with quiet_import.fast_imports():
        args = pickle.loads(pickled)  # may import TensorFlow, so only now
    with answer:
        try:
            with quiet_import.fast_imports():
                function = getattr(importlib.import_module(module), name)
            result = function(*args)
            if STREAMED not in sys.argv:
                pickle.dump((True, result), answer)
                return
            for _, item in zip(iter(sys.stdin.buffer.readline, b""), result, strict=False):
                pickle.dump((True, item), answer)  # made only after it was asked for
                answer.flush()
        except TflabError as error:
            pickle.dump((False, error), answer)


if __name__ == "__main__":
    main()
