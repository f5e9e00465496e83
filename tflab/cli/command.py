"""Command: what all commands share: the parser, errors as exit statuses, TensorFlow's log.

Exit status: 0 done, 1 the run failed, 2 a wrong argument, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from signal import Signals
from typing import BinaryIO, NoReturn

from tflab.cli import environment, interrupts, output_paths, temporary, terminal
from tflab.errors import RanDryError, RefusedError, TflabError, UsageError, did_you_mean
from tflab.escaping import visible

# The packages that every command needs, by the names under which they are imported
NEEDED = ("tensorflow", "tensorboard", "numpy", "google", "rich", "scipy", "jinja2")
INTERRUPTED = interrupts.INTERRUPTED


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong argument is a UsageError of one sentence."""

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split()
        # Without their dashes, which would make all of them similar
        options = [word[2:].partition("=")[0] for word in unknown if word.startswith("--")]
        known = [name[2:] for name in self._option_string_actions if name.startswith("--")]
        nearest = difflib.get_close_matches(options[0], known, n=1) if options else []
        hint = f" Did you mean '--{nearest[0]}'?" if nearest else ""
        sentence = f"{message[0].upper()}{message[1:]}.{hint}"
        raise UsageError(f"{sentence} See `{self.prog} --help`.")

    def format_help(self) -> str:
        return terminal.fold(super().format_help(), terminal.width())


def parser(name: str, about: str | None) -> Parser:
    """Return the parser of a command; `about` is the docstring of its module."""
    return Parser(
        prog=f"python -m tflab.{name}",
        description=about,
        epilog="docs/reference.md explains terms such as node, op, kernel and fate.",
        formatter_class=terminal.HelpFormatter,
    )


# Types of arguments


def one_of(kind: str, names: Sequence[str]) -> Callable[[str], str]:
    """Return an argparse type for one of these names. Its error has the nearest name."""

    def check(text: str) -> str:
        if text in names:
            return text
        hint = did_you_mean(text, names)
        raise UsageError(f"No {kind} named '{text}'.{hint} Choose from {', '.join(names)}.")

    return check


MOST = 1_000_000_000


def count(what: str, least: int = 1, most: int = MOST) -> Callable[[str], int]:
    """Return an argparse type for a whole number from `least` to `most`; `what` is its name."""

    def check(text: str) -> int:
        with suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise UsageError(f"The {what} is '{text}'; give a whole number from {least} to {most:,}.")

    return check


# How a command ends


def run(body: Callable[[], int]) -> int:
    """Run a command's body; turn errors into a sentence and an exit status."""
    prepare_streams()
    with chatter_kept() as chatter, interrupts.raised() as ended:
        try:
            try:
                status = body()
                if status == INTERRUPTED:
                    interrupts.take()  # what was measured has been shown
                return 128 + (ended.signal or Signals.SIGINT) if status == INTERRUPTED else status
            finally:
                with interrupts.held():
                    sys.stdout.flush()  # so that a closed pipe is not mistaken for a failure
        except KeyboardInterrupt:
            return interrupted(ended)
        except BrokenPipeError:  # the reader closed the pipe (`| head`)
            to_nowhere()
            return 0
        except Exception as error:
            if ended.signal:  # it may have ended a process that this one waited for
                if isinstance(error, OSError) and error.errno == errno.EIO:
                    to_nowhere()  # the terminal is gone
                return interrupted(ended)
            sentence = explained(error)
            refused = isinstance(error, RefusedError) and not isinstance(error, RanDryError)
            if refused or sentence is None:
                show(chatter)
            if sentence is None:
                raise
            terminal.say(f"tflab: {visible(sentence)}", sys.stderr)
            return error.status if isinstance(error, TflabError) else TflabError.status


def interrupted(ended: interrupts.Interrupts) -> int:
    """Print that a signal ended the command; return its exit status."""
    number = ended.signal or Signals.SIGINT
    by = "" if number == Signals.SIGINT else f" by {number.name}"
    with suppress(OSError):  # SIGHUP means that the terminal is gone
        terminal.say(f"tflab: interrupted{by}.", sys.stderr)
    return 128 + number


def explained(error: Exception) -> str | None:
    """Return a sentence about an error that the user can mend; None for another error."""
    if isinstance(error, TflabError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory."
    if isinstance(error, OSError) and error.errno in output_paths.NO_ROOM:
        try:
            sys.stdout.flush()
        except OSError:  # standard output is full
            to_nowhere()
        return f"The output cannot be written: {error.strerror}."
    return what_is_missing(error)


def what_is_missing(error: Exception) -> str | None:
    """Return how to get the package that an error says is missing; None for another error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    name = (error.name or "").partition(".")[0]
    if command := environment.missing(name):
        return f"The package {name!r} is not installed. Run: {command}"
    if name not in NEEDED:
        return None
    return (
        f"The package {name!r} is missing for this Python ({sys.executable}). Run it as "
        "`.venv/bin/python -m tflab...`, or activate .venv before."
    )


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Let something be printed. If the reader closed the pipe (`| head`), print nothing more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere()


def to_nowhere() -> None:
    """Discard the remaining output: Python would complain at its end about a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Standard output and error


@contextmanager
def chatter_kept() -> Iterator[BinaryIO]:
    """Send what C++ and the log of TensorFlow write to standard error into a file."""
    with temporary.file() as kept:
        if terminal.descriptor(sys.stderr) != 2:  # in a notebook, or under a test runner
            yield kept
            return
        logging.basicConfig(stream=os.fdopen(os.dup(kept.fileno()), "w"))
        logging.captureWarnings(True)
        original = os.dup(2)
        python_stderr = sys.stderr
        sys.stderr.flush()
        os.dup2(kept.fileno(), 2)
        sys.stderr = os.fdopen(os.dup(original), "w", buffering=1, errors="replace")
        try:
            yield kept
        finally:
            sys.stderr.close()
            sys.stderr = python_stderr
            os.dup2(original, 2)
            os.close(original)


def show(chatter: BinaryIO) -> None:
    """Print the kept log; a repeated message is shown once, with its count."""
    chatter.seek(0)
    lines = chatter.read().decode(errors="backslashreplace").splitlines()
    messages = Counter(line.rpartition("] ")[2] for line in lines if line.strip())
    if messages:
        terminal.say("TensorFlow's messages:", sys.stderr)
    for message, times in messages.items():
        again = f" ({times} times)" if times > 1 else ""
        terminal.say(f"  {visible(message)}{again}", sys.stderr)


def prepare_streams() -> None:
    """Print `?` for what cannot be encoded, and discard what goes to a closed stream (`>&-`)."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # a file that is opened later must not get its descriptor
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):  # a notebook has another one
            stream.reconfigure(errors="replace")
