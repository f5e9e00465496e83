"""What a reader sees of a table, as a value that a test compares whole."""

import re

from tflab.analysis import formula_text
from tflab.analysis.expressions import Expression, Operation, parts_of
from tflab.records.blocks import Table

PROGRESS = re.compile(r"^tflab: .*: (\d+ of \d+, )?\d+ s\n", re.MULTILINE)


def without_progress(stderr: str) -> str:
    """Standard error without the lines that a command writes now and then while it works."""
    return PROGRESS.sub("", stderr)


def formula(value: Expression) -> str:
    """The text of a formula. Its operations have the names by which simplifications find them,
    which the text does not show."""
    if isinstance(value, Operation):
        assert value.op[:1].isupper() and not value.op.isupper(), value.op
    for part in parts_of(value):
        formula(part)
    return formula_text.text(value)


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
