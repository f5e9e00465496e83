"""Narrow: whatever the views say fits a terminal of 40 columns."""

import io

import pytest
from rich.cells import cell_len

from tests.examples.comparison import COMPARISON
from tests.examples.histories import FUSED as HISTORY
from tests.examples.lab import LAB, STAGES
from tflab import doctor
from tflab.compare import view as compare_view
from tflab.exporters import text
from tflab.follow import view as follow_view
from tflab.records.blocks import Strip, Table
from tflab.report import chapters
from tflab.views import in_short, stages

pytestmark = pytest.mark.usefixtures("undrawn")
LONG = "/srv/somebody/with/a/rather/long/name/of/a/folder/runs/lenet-20260101-120000"
CHECK = doctor.Check("a folder", f"'{LONG}' is not there", "", False, f"mkdir {LONG}")


def report():
    for chapter in chapters.report(LAB, "").chapters:
        yield from (part for part in chapter.parts if isinstance(part, str | Table | Strip))


BLOCKS = {
    "compare": lambda: compare_view.blocks(COMPARISON),
    "follow": lambda: follow_view.blocks(HISTORY),
    "doctor": lambda: doctor.blocks((CHECK,)),
    "report": report,
}


@pytest.fixture
def narrow(monkeypatch):
    """A console, and what it has printed in lines that are too wide."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()

    def too_wide():
        lines = stream.getvalue().splitlines()
        assert lines
        return [line for line in lines if cell_len(line) > 40]

    return text.console(stream), too_wide


@pytest.mark.parametrize("view", BLOCKS)
def test_a_view_fits_forty_columns(narrow, view):
    out, too_wide = narrow
    for block in BLOCKS[view]():
        text.show_block(out, block)
    assert too_wide() == []


@pytest.mark.parametrize("blocks", [stages.blocks, in_short.blocks], ids=["full", "short"])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: type(stage).__name__)
def test_a_stage_fits_forty_columns(narrow, stage, blocks):
    out, too_wide = narrow
    text.show(out, 1, stage, list(blocks(stage)))
    assert too_wide() == []
