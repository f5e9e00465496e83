"""What a reader sees of a table, as a value that a test compares whole."""

import difflib
from collections.abc import Iterable, Iterator

from tflab.records.blocks import Block, Table


def grid(table: Table) -> list:
    """The title, the headers, and the cells of every row; in the end how many rows were cut."""
    headers = tuple(column.header for column in table.columns)
    return [table.title, headers, *table.cells(), table.more]


def layout(table: Table) -> list[str]:
    """How each column stands: `nodes right`, `types gives way to 20`, `node in the middle`,
    `first line goes 2`, the higher the sooner, where the line is too short."""
    return [
        column.header
        + " right" * (column.right is True)
        + f" gives way to {column.least}" * (column.elastic is True)
        + " in the middle" * (column.name is True)
        + f" goes {column.spare}" * bool(column.spare)
        for column in table.columns
    ]


def whole(blocks: Iterable[Block]) -> Iterator[str]:
    """Each sentence, and each row of the tables under their titles, with no cell cut."""
    for block in blocks:
        if isinstance(block, Table):
            yield f"{block.title} [{'; '.join(layout(block))}]"
            yield from (" | ".join(cells) for cells in block.cells())
            if rest := block.rest():
                yield rest
        else:
            yield str(block)


def unlike(usual: Iterable[str], lines: Iterable[str]) -> list[str]:
    """The lines that are not the usual ones after a `+`, and those that are missing after a `-`."""
    changes = difflib.unified_diff([*usual], [*lines], n=0, lineterm="")
    return [line for line in changes if line[:2] not in ("--", "++", "@@")]
