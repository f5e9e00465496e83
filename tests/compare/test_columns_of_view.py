"""How the columns of a comparison stand: numbers right, names lose their middle."""

from dataclasses import replace

from tests.report.lab_by_hand import COMPARED
from tests.shown import layout
from tflab.compare import view
from tflab.records.blocks import Table
from tflab.records.measured import ConfigTimes

SIZES = ("batch 4 right", "batch 16 right", "batch 64 right")
ROW, SHORT_ROW = (f"type that ran gives way to {least} in the middle" for least in (24, 18))
TIMES = ("total right", "self right", "mean right", "median right", "p95 right")
WORK = ("requested right", "peak right", "FLOPs right", "GFLOP/s right", "FLOP/byte right")
BATCH = [
    [SHORT_ROW, "calls right", *TIMES, "share right", "cumulative right"],
    [SHORT_ROW, *WORK, "of roof right", "fused from gives way to 15"],
]


def test_numbers_stand_right_and_names_lose_their_middle():
    tables = [block for block in view.blocks(COMPARED, 10) if isinstance(block, Table)]
    assert list(map(layout, tables)) == [
        [
            *("batch right", "traced steps right", "median right", "p10 right", "p90 right"),
            *("mean right", "images a second right", "traced, median right", "ops, mean right"),
            "memory peak right",
        ],
        [ROW, *SIZES],
        [ROW, *SIZES],
        [ROW, *SIZES],
        *(3 * BATCH),
        [
            *("node gives way to 30 in the middle", "type that ran", "first run right"),
            *("warm, mean right", "ratio right"),
        ],
    ]


def test_a_configuration_is_a_column_of_numbers():
    spread = COMPARED.steps[4].untraced_ns
    raced = tuple(ConfigTimes(name, 4, spread, 20_000.0, None) for name in ("default", "xla"))
    table = next(view.configs(replace(COMPARED, configs=raced)))
    assert layout(table) == ["batch right", "default right", "xla right"]
