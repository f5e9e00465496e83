"""Views as they are printed: approved whole, and their variants as differences."""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import unified_diff

from tests.approval import approve
from tflab.exporters import text as terminal
from tflab.records.blocks import Block, Table


def printed(blocks: Iterable[Block], width: int = 100) -> str:
    stream = io.StringIO()
    out = terminal.Terminal(
        file=stream, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False
    )
    for block in blocks:
        terminal.show_block(out, block)
    return stream.getvalue()


def approve_view(
    name: str, whole: Iterable[Block], variants: Mapping[str, Iterable[Block]] | None = None
) -> None:
    """Approve a view at 100 columns, its tables as they are in fewer, and the lines in which
    variants differ."""
    blocks = list(whole)
    usual = printed(blocks)
    narrow = (table for block in blocks for table in in_fewer_columns(block))
    others = {title: printed(variant) for title, variant in (variants or {}).items()}
    approve_text(name, usual, others, narrow)


def approve_text(
    name: str, usual: str, variants: Mapping[str, str], more: Iterable[str] = ()
) -> None:
    """Approve a text, others after it, and the lines in which variants of the text differ."""
    parts = [usual, *more]
    for title, variant in variants.items():
        parts.append("\n".join(["", f"==== {title}", *differences(usual, variant), ""]))
    approve(name, "".join(parts))


def in_fewer_columns(block: Block) -> Iterator[str]:
    """A table at each width at which it does not look as at the width before."""
    rows = printed([block]).splitlines()[2:]
    for width in (80, 60, 40) if isinstance(block, Table) else ():
        lines = printed([replace(block, title="")], width).splitlines()[1:]
        if lines != rows:
            rows = lines
            yield "\n".join(["", f"==== in {width} columns: {block.title}", *rows, ""])


def differences(before: str, after: str) -> Iterator[str]:
    """The hunks of a unified diff, with only the first of the lines that each removes."""
    lines = ([line.rstrip() for line in text.splitlines()] for text in (before, after))
    removed = 0
    for line in list(unified_diff(*lines, n=0, lineterm=""))[2:]:
        removed = removed + 1 if line.startswith("-") else 0
        if removed < 2:
            yield line
