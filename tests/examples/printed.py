"""Views as they are printed: approved whole, and their variants as differences."""

import io
from collections.abc import Iterable, Mapping
from difflib import unified_diff

from tests.approval import approve
from tflab.exporters import text
from tflab.records.blocks import Block, Table


def printed(blocks: Iterable[Block], width: int = 100) -> str:
    stream = io.StringIO()
    out = text.Terminal(
        file=stream, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False
    )
    for block in blocks:
        text.show_block(out, block)
    return stream.getvalue()


def approve_view(
    name: str, whole: Iterable[Block], variants: Mapping[str, Iterable[Block]] | None = None
) -> None:
    """Approve a view at 100 columns, its tables at 60, and the lines in which variants differ."""
    blocks = list(whole)
    usual = printed(blocks)
    tables = [block for block in blocks if isinstance(block, Table)]
    parts = [usual, f"\n==== in 60 columns\n{printed(tables, 60)}" if tables else ""]
    for title, variant in (variants or {}).items():
        lines = (line.rstrip() for line in printed(variant).splitlines())
        before = [line.rstrip() for line in usual.splitlines()]
        changes = list(unified_diff(before, list(lines), n=0, lineterm=""))[2:]
        parts.append("\n".join(["", f"==== {title}", *changes, ""]))
    approve(name, "".join(parts))
