"""How the columns of the execution's tables stand: numbers right, what is long gives way."""

from tests.examples import walk
from tests.shown import layout
from tflab.records.blocks import Table
from tflab.views import execution


def test_numbers_stand_right_and_names_give_way():
    tables = [block for block in execution.blocks(walk.EXECUTION) if isinstance(block, Table)]
    assert list(map(layout, tables)) == [
        ["step", "median right", "p10 right", "p90 right"],
        ["owner", "a step, mean right", "share right"],
        ["type that ran", "calls right", "self right", "mean right", "share right"],
        [
            *("node gives way to 16 in the middle", "type that ran goes 1", "calls right"),
            *("self right", "mean right", "median right goes 1", "share right"),
        ],
    ]
