"""Command: what all commands share. Arguments, errors to exit status, TensorFlow's chatter kept.

Exit status: 0 done, 1 the run failed, 2 a wrong argument, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import difflib
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NoReturn

from tflab.errors import RefusedError, TflabError, UsageError

INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong argument is a UsageError of one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[0].upper()}{message[1:]}. See `{self.prog} --help`.")


def parser(name: str, about: str | None) -> Parser:
    """The parser of the command `name`; `about` is the docstring of its module."""
    return Parser(
        prog=f"python -m tflab.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def one_of(kind: str, names: Sequence[str]) -> Callable[[str], str]:
    """An argparse type: one of these names, or an error with the nearest right one."""

    def check(text: str) -> str:
        if text in names:
            return text
        nearest = difflib.get_close_matches(text, names, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        raise UsageError(f"No {kind} named '{text}'.{hint} Choose from {', '.join(names)}.")

    return check


MOST = 1_000_000_000


def count(what: str, least: int = 1, most: int = MOST) -> Callable[[str], int]:
    """An argparse type: a whole number from `least` to `most`."""

    def check(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            bounds = f"from {least} on" if most == MOST else f"from {least} to {most}"
            raise UsageError(f"The {what} is '{text}'; it has to be a whole number {bounds}.")
        return number

    return check


def folder(what: str) -> Callable[[str], str]:
    """An argparse type: the name of a folder, which may be anything but empty."""

    def check(text: str) -> str:
        if not text:
            raise UsageError(f"The {what} is empty; give the name of a folder.")
        return text

    return check


def run(body: Callable[[], int]) -> int:
    """Run a command's body and turn what goes wrong into a sentence and an exit status."""
    with chatter_kept() as chatter:
        try:
            try:
                return body()
            finally:
                sys.stdout.flush()  # here a closed pipe can still be told from a failure
        except TflabError as error:
            if isinstance(error, RefusedError):
                show(chatter)
            print(f"tflab: {error}", file=sys.stderr)
            return error.status
        except KeyboardInterrupt:
            print("tflab: interrupted.", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:  # the reader had enough (`| head`)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception:
            show(chatter)
            raise


@contextmanager
def chatter_kept() -> Iterator[BinaryIO]:
    """Send what C++ writes to standard error into a file; Python's own stderr stays as it is.

    TensorFlow logs to file descriptor 2 before anybody can ask it not to. What its Python side
    logs goes to the same file.
    """
    with tempfile.TemporaryFile() as kept:
        if not writes_to_descriptor_2():
            yield kept
            return
        logging.basicConfig(stream=os.fdopen(os.dup(kept.fileno()), "w"))
        logging.captureWarnings(True)
        terminal = os.dup(2)
        python_stderr = sys.stderr
        sys.stderr.flush()
        os.dup2(kept.fileno(), 2)
        sys.stderr = os.fdopen(os.dup(terminal), "w", buffering=1, errors="backslashreplace")
        try:
            yield kept
        finally:
            sys.stderr.close()
            sys.stderr = python_stderr
            os.dup2(terminal, 2)
            os.close(terminal)


def writes_to_descriptor_2() -> bool:
    """False in a notebook and under a test runner, which have a stderr of their own."""
    try:
        return sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False


def show(chatter: BinaryIO) -> None:
    """Print what was kept; a message that came again and again is shown once, with its count."""
    chatter.seek(0)
    lines = chatter.read().decode(errors="backslashreplace").splitlines()
    messages = Counter(line.rpartition("] ")[2] for line in lines if line.strip())
    if messages:
        print("What TensorFlow said meanwhile:", file=sys.stderr)
    for message, times in messages.items():
        print(f"  {message}" + (f" ({times} times)" if times > 1 else ""), file=sys.stderr)
