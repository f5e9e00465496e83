"""CSV: every cell of two saved comparisons; `compare.csv` has those of a measured one."""

from dataclasses import replace
from math import inf

from tests.approval import approve
from tflab.exporters import csv
from tflab.records.measured import Change, Verdict

SLOWER = Verdict(1.5, 1.25, 1.75, 0.95, 1.05, 7, "slower")


def test_each_step_configuration_and_row_is_a_line_and_no_interval_ends_at_infinity():
    changes = {
        "step": (Change(4, "step", 800_000.0, 1_200_000.0, SLOWER),),
        "configuration": (Change(4, "xla", None, 700_000.5, None),),
        "op": (Change(4, "=Conv2D", 1.5, 2.5, replace(SLOWER, high=inf, word="cannot tell")),),
    }
    approve("changes.csv", csv.changes(changes))
