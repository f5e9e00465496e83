"""How the columns of recorded steps stand: numbers right, names lose their middle."""

from tests.convert.test_view import RECORDED
from tests.shown import layout
from tflab.convert import conversion, view
from tflab.records.blocks import Table

NODE = "node gives way to 16 in the middle"


def test_numbers_stand_right_and_names_lose_their_middle():
    converted = conversion.convert(RECORDED)
    tables = [block for block in view.blocks(converted) if isinstance(block, Table)]
    assert list(map(layout, tables)) == [
        [
            *("device gives way to 16 in the middle", "its rows are", "op runs right"),
            *("total right", "left out right"),
        ],
        [
            *("step right", "file gives way to 16 in the middle"),
            *("start to end right", "an op ran right", "op runs right"),
            "at most at once right",
        ],
        ["owner", "a step right", "share right"],
        [
            *(NODE, "type that ran", "kind", "calls right", "self right", "mean right"),
            "share of kind right",
        ],
        [NODE, "type that ran", "took right", "share right"],
    ]
