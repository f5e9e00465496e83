"""Segments: what the program's process leaves for the command that waits, as literals of Python.

The process may end at any moment, so there is always a whole one: it is written beside and renamed.
This imports nothing that a file of the program may have the name of.
"""

import os

NAME = "segment"
FAULT = "fault"  # what could not even be watched
ASKED = "asked"  # is there while the command waits for a new segment


def write(folder: str, segment: dict[str, object]) -> None:
    path = os.path.join(folder, NAME)
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(repr(segment))
    os.replace(f"{path}.new", path)


def write_fault(folder: str, fault: str) -> None:
    with open(os.path.join(folder, FAULT), "w", encoding="utf-8") as file:
        file.write(fault)


def ask(folder: str) -> None:
    """Ask the program's process for a segment."""
    with open(os.path.join(folder, ASKED), "w", encoding="utf-8"):
        pass


def is_asked(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, ASKED))


def answer(folder: str) -> None:
    os.remove(os.path.join(folder, ASKED))
