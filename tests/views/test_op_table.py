"""The columns of op statistics: every one, of a row known and a row hardly known."""

from dataclasses import replace

import pytest

from tests.approval import approve
from tests.records_by_hand import op_row, op_stats
from tflab.records.blocks import Table
from tflab.views import op_table

ROW = replace(
    op_row(
        *("conv/Relu", "_FusedConv2D Conv2D", "conv/Relu", "conv/Conv2D conv/BiasAdd twin/BiasAdd"),
        *(1_204, 9_000_000, 150_000, 120_000, 0.375),
        *(3 * 2**10, 1_254_400, 8.364, 451_000, 28_200),
    ),
    forward_ns=5_000_000,
    backward_ns=2_000_000,
    update_ns=1_000_000,
)


def test_every_column_shows_its_own_value():
    columns = op_table.COLUMNS.items()
    rows = [f"{name}: {column.header} {column.cell(ROW)!r}" for name, column in columns]
    approve("op-table-columns.txt", "\n".join(rows))


def test_what_nobody_knows_is_left_empty():
    row = op_stats("a", total_ns=0)
    empty = {name for name, column in op_table.COLUMNS.items() if not column.cell(row)}
    unknown = {"type", "fused from"}
    unknown |= {"forward", "backward", "updates"}  # those without any time, too
    assert empty == unknown | {"flops", "all flops", "gflops"}


def test_columns_have_another_priority_and_find_the_statistics_within_other_rows():
    columns = op_table.columns(("mean", "calls"), {"mean": 7})
    table = Table("t", tuple(op_table.columns_of(columns, lambda item: item[1])), ((4, ROW),))
    assert [(column.header, column.spare) for column in table.columns] == [
        ("mean", 7),
        ("calls", 0),
    ]
    assert [*table.cells()] == [("150 us", "1,204")]


@pytest.mark.parametrize(
    ("by", "top", "order"),
    [
        ("layer", 2, "bdace"),  # the two most expensive, and the others, both as they ran
        ("layer", 3, "abdce"),
        ("layer", 0, "abcde"),
        ("layer", 5, "abcde"),
        ("op", 2, "abcde"),
    ],
)
def test_of_layers_the_most_expensive_come_first_in_the_order_of_execution(by, top, order):
    rows = [("a", 3), ("b", 9), ("c", 2), ("d", 7), ("e", 1)]
    assert "".join(row[0] for row in op_table.ranked(by, rows, top, lambda row: row[1])) == order
