"""CSV: every cell of two saved comparisons, worked out by hand."""

from dataclasses import replace
from math import inf

from tflab.exporters import csv
from tflab.records.comparison import Change, Changes
from tflab.records.verdicts import Verdict

SLOWER = Verdict(1.5, 1.25, 1.75, 0.95, 1.05, 7, "slower")
CHANGES = Changes(
    files=("usual", "new"),
    model="lenet",
    phase="inference",
    by="op",
    differences=(),
    steps=(Change(4, "step", 800_000.0, 1_200_000.0, SLOWER),),
    configs=(Change(4, "xla", None, 700_000.5, None),),
    rows=(Change(4, "Conv2D", 1.5, 2.5, replace(SLOWER, high=inf, word="cannot tell")),),
)


def test_each_step_configuration_and_row_is_a_line_and_no_interval_ends_at_infinity():
    assert csv.changes(CHANGES).split("\n") == [
        "batch_size,kind,key,first_ns,second_ns,ratio,low,high,observations,verdict",
        "4,step,step,800000.0,1200000.0,1.5,1.25,1.75,7,slower",
        "4,configuration,xla,,700000.5,,,,,",
        "4,op,Conv2D,1.5,2.5,1.5,1.25,,7,cannot tell",
        "",
    ]
