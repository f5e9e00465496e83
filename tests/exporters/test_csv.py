"""CSV: every cell of several measurements, worked out by hand."""

from dataclasses import replace
from math import inf

from tflab.exporters import csv
from tflab.records.measured import ConfigTimes
from tflab.records.measurements import Contrast, RowTimes
from tflab.records.timed import Spread
from tflab.records.verdicts import Verdict

SLOWER = Verdict(1.5, 1.25, 1.75, 0.001, 7, "slower")
CONTRAST = Contrast(
    measurements=("usual", "new"),
    when=("2026-03-01", "2026-03-02"),
    processes=(7, 7),
    model="lenet",
    phase="inference",
    by="op",
    differences=(),
    notes=(),
    steps=(
        ConfigTimes("usual", 4, Spread(800_000, 700_000, 900_000), 5_000.0, None),
        ConfigTimes("new", 4, Spread(1_200_000, 1_100_000, 1_300_000), 3_333.0, SLOWER),
    ),
    rows=(
        RowTimes("Conv2D", 4, "usual", 600_000.5, 0.75, None),
        RowTimes("Conv2D", 4, "new", None, None, replace(SLOWER, high=inf, word="cannot tell")),
    ),
)


def test_each_step_and_row_of_each_measurement_is_a_line_and_no_interval_ends_at_infinity():
    assert csv.contrast(CONTRAST).split("\n") == [
        "measurement,batch_size,key,step_ns,ratio,low,high,observations,verdict",
        "usual,4,,800000,,,,,",
        "new,4,,1200000,1.5,1.25,1.75,7,slower",
        "usual,4,Conv2D,600000.5,,,,,",
        "new,4,Conv2D,,1.5,1.25,,7,cannot tell",
        "",
    ]
