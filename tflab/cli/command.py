"""Command: what all commands share: the parser, errors as exit statuses, TensorFlow's log.

Exit status: 0 done, 1 the run failed, 2 a wrong argument, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
"""

from __future__ import annotations

import argparse
import codecs
import difflib
import errno
import importlib.util
import logging
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, NoReturn

from tflab.cli import gone, interrupts, output_paths, temporary, terminal
from tflab.errors import RanDryError, RefusedError, TflabError, UsageError, did_you_mean
from tflab.escaping import visible

# The packages that tflab needs, by the names under which they are imported
NEEDED = (
    *("tensorflow", "tensorboard", "xprof", "numpy", "google", "rich", "matplotlib", "jinja2"),
    *("igraph", "sklearn", "capstone", "elftools"),
)
INTERRUPTED = interrupts.INTERRUPTED


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong argument is a UsageError of one sentence."""

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split()
        instead = next(filter(None, map(gone.sentence, unknown)), None)
        sentence = instead or f"{message[0].upper()}{message[1:]}.{self.meant(unknown)}"
        raise UsageError(f"{sentence} See `{self.prog} --help`.")

    def format_help(self) -> str:
        return terminal.fold(super().format_help(), terminal.width())

    def meant(self, unknown: Sequence[str]) -> str:
        """Return a hint at the option nearest to the first of these that starts with dashes."""
        # Without their dashes, which would make all of them similar
        options = [word[2:].partition("=")[0] for word in unknown if word.startswith("--")]
        option_names = [name[2:] for name in self._option_string_actions if name.startswith("--")]
        nearest = difflib.get_close_matches(options[0], option_names, n=1) if options else []
        return f" Did you mean '--{nearest[0]}'?" if nearest else ""


def parser(name: str, about: str | None) -> Parser:
    """The parser of the command `name`; `about` is the docstring of its module."""
    return Parser(
        prog=f"python -m tflab.{name}",
        description=about,
        epilog="docs/glossary.md explains terms such as node, op, kernel and fate.",
        formatter_class=terminal.HelpFormatter,
    )


def one_of(kind: str, names: Sequence[str]) -> Callable[[str], str]:
    """An argparse type: one of these names, or an error with the nearest one."""

    def check(text: str) -> str:
        if text in names:
            return text
        if instead := gone.sentence(text):
            raise UsageError(f"{instead} Choose from {', '.join(names)}.")
        hint = did_you_mean(text, names)
        raise UsageError(f"No {kind} named '{text}'.{hint} Choose from {', '.join(names)}.")

    return check


MOST = 1_000_000_000


def count(
    what: str, least: int = 1, most: int = MOST, several: bool = False
) -> Callable[[str], int]:
    """An argparse type: a whole number from `least` to `most`, or `several` of them."""

    def check(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            bounds = f"of at least {least}" if most == MOST else f"from {least} to {most}"
            spaces = (
                " Separate several numbers with spaces, not commas."
                if several and "," in text
                else ""
            )
            raise UsageError(
                f"The {what} is '{text}'; it has to be a whole number {bounds}.{spaces}"
            )
        return number

    return check


def percentage(what: str, most: int = 100) -> Callable[[str], float]:
    """An argparse type: a number from 0 to `most`."""

    def check(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:
            raise UsageError(f"The {what} is '{text}'; it has to be a percentage from 0 to {most}.")
        return number

    return check


def folder(what: str) -> Callable[[str], str]:
    """An argparse type: the name of a folder, which must not be empty."""

    def check(text: str) -> str:
        if not text:
            raise UsageError(f"The {what} is empty; give the name of a folder.")
        return text

    return check


def file(what: str) -> Callable[[str], str]:
    """An argparse type: the name of a file, which must not be empty or end with a slash."""

    def check(text: str) -> str:
        if not text or text.endswith(("/", os.sep)):
            raise UsageError(f"The {what} is '{text}'; give the name of a file.")
        return text

    return check


def run(body: Callable[[], int]) -> int:
    """Run a command's body; turn errors into a sentence and an exit status."""
    prepare_streams()
    with chatter_kept() as chatter, interrupts.raised() as ended:
        try:
            try:
                status = body()
                if status == INTERRUPTED:
                    interrupts.take()  # what was measured has been shown
                return ended.status(status)
            finally:
                with interrupts.held():
                    sys.stdout.flush()  # so that a closed pipe is not mistaken for a failure
        except TflabError as error:
            if ended.signal:  # it may have ended a process that this one waited for
                return interrupted(ended)
            if isinstance(error, RefusedError) and not isinstance(error, RanDryError):
                show(chatter)
            terminal.say(f"tflab: {visible(str(error))}", sys.stderr)
            return error.status
        except KeyboardInterrupt:
            return interrupted(ended)
        except BrokenPipeError:  # the reader closed the pipe (`| head`)
            to_nowhere()
            return 0
        except Exception as error:
            if ended.signal:  # during an import, for example; or the terminal is gone
                if isinstance(error, OSError) and error.errno == errno.EIO:
                    to_nowhere()
                return interrupted(ended)
            sentence = what_is_full(error) or what_is_missing(error) or what_is_too_large(error)
            if sentence is None:
                show(chatter)
                raise
            terminal.say(f"tflab: {visible(sentence)}", sys.stderr)
            return TflabError.status


def interrupted(ended: interrupts.Interrupts) -> int:
    """Print that a signal ended the command; return its exit status."""
    name = ended.signal.name if ended.signal else "SIGINT"
    with suppress(OSError):  # SIGHUP means that the terminal is gone
        terminal.say(f"tflab: interrupted{'' if name == 'SIGINT' else f' by {name}'}.", sys.stderr)
    return ended.status(INTERRUPTED)


def what_is_full(error: Exception) -> str | None:
    """An error that there is no space for an output, which may be standard output."""
    if not isinstance(error, OSError) or error.errno not in output_paths.NO_ROOM:
        return None
    try:
        sys.stdout.flush()
    except OSError:  # standard output is full
        to_nowhere()
    return f"The output cannot be written: {error.strerror}."


def what_is_too_large(error: Exception) -> str | None:
    if not isinstance(error, MemoryError):
        return None
    return f"There is not enough memory{f': {error}' if str(error) else ''}."


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print something; if the reader closed the pipe (`| head`), go on, and discard what is printed
    from here on: there are files to write."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere()


def to_nowhere() -> None:
    """Discard the remaining output, about which Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def what_is_missing(error: Exception) -> str | None:
    """What to do about a package that this Python lacks, such as the system's own Python."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or name not in NEEDED:
        return None
    own = name == "tensorflow" or importlib.util.find_spec("tensorflow") is None
    return (
        f"{'TensorFlow' if own else f'The package {name!r}'} is missing for this Python "
        f"({sys.executable}). Run it as `.venv/bin/python -m tflab...`, or activate .venv before."
    )


@contextmanager
def chatter_kept() -> Iterator[BinaryIO]:
    """Send what C++ writes to standard error into a file; Python's own stderr is unchanged.

    TensorFlow logs to file descriptor 2 before this can be prevented. The log of its Python side
    goes to the same file.
    """
    with temporary.file() as kept:
        if not writes_to_descriptor_2():
            yield kept
            return
        logging.basicConfig(stream=os.fdopen(os.dup(kept.fileno()), "w"))
        logging.captureWarnings(True)
        original = os.dup(2)
        python_stderr = sys.stderr
        sys.stderr.flush()
        os.dup2(kept.fileno(), 2)
        sys.stderr = os.fdopen(os.dup(original), "w", buffering=1, errors=HANDLER)
        try:
            yield kept
        finally:
            sys.stderr.close()
            sys.stderr = python_stderr
            os.dup2(original, 2)
            os.close(original)


def writes_to_descriptor_2() -> bool:
    """False in a notebook and under a test runner, which have a stderr of their own."""
    try:
        return sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False


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


# Plain: replacement characters for an output whose encoding lacks some, such as ASCII or GBK
#
# A replacement is as wide as the original, so that tables and drawings keep their shape.


HANDLER = "tflab.plain"  # as an `errors` handler of a text stream

SIGNS = {
    **dict.fromkeys("─━", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰", "+"),
    **dict.fromkeys("●■◆", "*"),
    "…": "~",
    "±": "~",
    "▲": "^",
    "▼": "v",
    "✖": "x",
    "✚": "+",
    "µ": "u",
}


def replaced(error: UnicodeError) -> tuple[str, int]:
    """What is printed instead of characters that cannot be encoded, and where to continue."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(sign, error.object[error.start : error.end])), error.end


def sign(letter: str) -> str:
    """`-` for a rule, `e` for an accented e, and `?` for characters without a similar one."""
    return SIGNS.get(letter) or unicodedata.normalize("NFD", letter)[0].encode(
        "ascii", "replace"
    ).decode("ascii")


def prepare_streams() -> None:
    """Let standard output and error print plain characters for those that they cannot encode. If
    they are closed (`>&-`), discard what is printed."""
    codecs.register_error(HANDLER, replaced)
    if sys.stdout is None:  # a file that is opened later must not get its descriptor
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a notebook's stream has none
        if reconfigure:
            reconfigure(errors=HANDLER)
