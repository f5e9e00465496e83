"""Narrow: whatever the views say fits a terminal of 40 columns."""

import pytest
from rich.cells import cell_len

from tests.examples.comparison import COMPARISON
from tests.examples.histories import FUSED
from tests.examples.lab import LAB, STAGES
from tests.examples.printed import printed
from tflab import doctor
from tflab.compare import view as compare_view
from tflab.follow import view as follow_view
from tflab.records.blocks import Strip, Table
from tflab.report import chapters
from tflab.views import stages

pytestmark = pytest.mark.usefixtures("undrawn")
LONG = "/srv/somebody/with/a/rather/long/name/of/a/folder/runs/lenet-20260101-120000"
CHECK = doctor.Check("a folder", f"'{LONG}' is not there", "", False, f"mkdir {LONG}")


def report():
    for chapter in chapters.report(LAB, "").chapters:
        yield from (part for part in chapter.parts if isinstance(part, str | Table | Strip))


BLOCKS = {
    "compare": lambda: compare_view.blocks(COMPARISON),
    "follow": lambda: follow_view.blocks(FUSED),
    "doctor": lambda: doctor.blocks((CHECK,)),
    "report": report,
    "stages": lambda: [block for stage in STAGES for block in stages.page(stage)],
    "stages in short": lambda: [block for stage in STAGES for block in stages.on_one_screen(stage)],
}


@pytest.mark.parametrize("view", BLOCKS)
def test_a_view_fits_forty_columns(view):
    lines = printed(BLOCKS[view](), 40).splitlines()
    assert lines
    assert [line for line in lines if cell_len(line) > 40] == []
