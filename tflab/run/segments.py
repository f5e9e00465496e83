"""Segments: the results that the program's process writes for the command, as Python literals.

The process may end at any moment, so there is always a complete segment: it is written under
another name and renamed. This module imports nothing that a file of the program may be named like.
"""

import os

NAME = "segment"
FAULT = "fault"  # why watching failed
ASKED = "asked"  # exists while the command waits for a new segment


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
