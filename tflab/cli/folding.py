"""Folding: no printed line is wider than the terminal, if its width is known.

`exporters.text` fits tables and views; this module is for sentences, commands and help.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from typing import TextIO

LEAST_WIDTH = 20


def width(stream: TextIO | None = None) -> int:
    """The columns of a stream's terminal, 0 if unknown."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit():
        return max(int(named), LEAST_WIDTH)
    stream = stream or sys.stdout
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (AttributeError, OSError, ValueError):
        return 0
    return max(columns, LEAST_WIDTH) if columns else 0


def fold(text: str, columns: int) -> str:
    """A text with lines of at most this many columns; 0: no limit. Continuation lines are
    indented by two columns. A word that is longer than a line is cut."""
    return "\n".join(
        line if not columns or len(line) <= columns else folded(line, columns)
        for line in text.split("\n")
    )


def folded(line: str, columns: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if len(indent) + 2 > columns // 2:  # a separate column, as in help
        indent = indent[: columns // 3]
    parts = textwrap.wrap(
        line.strip(),
        columns,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
    return "\n".join(parts)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a sentence."""
    print(fold(text, width(stream)), file=stream or sys.stdout)


def say_command(about: str, line: str, stream: TextIO | None = None) -> None:
    """Print a command to type, after its purpose; on a line of its own if both do not fit, and
    on several lines that a shell joins."""
    columns = width(stream)
    if columns and len(about) + 2 + len(line) > columns:
        print(f"{fold(about, columns)}\n{with_continuations(line, columns)}", file=stream)
    else:
        print(f"{about}  {line}", file=stream)


def with_continuations(line: str, columns: int) -> str:
    """A command in lines that a shell joins, even if a word is cut."""
    lines, remaining = [], line
    for part in textwrap.wrap(line, columns - 2, break_on_hyphens=False):
        remaining = remaining[len(part) :]
        lines.append(
            part + (" " if remaining.startswith(" ") else "") + ("\\" if remaining else "")
        )
        remaining = remaining.lstrip(" ")
    return "\n".join(lines)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose paragraphs keep their lines if these fit."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = super()._fill_text(text, width, indent).split("\n\n")
        return "\n\n".join(map(paragraph, paragraphs))


def paragraph(text: str) -> str:
    """A paragraph of help, refilled if it is too wide; indented commands stay unchanged."""
    columns, lines = width(), text.strip("\n").split("\n")
    if not columns or max(map(len, lines)) <= columns or text.startswith(" "):
        return text
    return textwrap.fill(" ".join(lines), columns, break_on_hyphens=False)
