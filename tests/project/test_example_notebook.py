"""The example notebook is a lesson: each cell runs, and shows what the text beside it says.

Its cells run in IPython in this process; that a first walk prints nothing beside its result is a
test of `tests/runtime/test_quiet_import.py`.
"""

import html
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from tests.commands import in_one_process

pytestmark = pytest.mark.tensorflow

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def shown():
    """Of each cell with code, by its first line: all that it printed or showed."""
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        return {
            cell.source.partition("\n")[0]: output(shell, cell.source)
            for cell in cells
            if cell.cell_type == "code"
        }


def output(shell: InteractiveShell, source: str) -> str:
    with capture_output() as captured:
        ran = shell.run_cell(source)
    ran.raise_error()
    result = shell.display_formatter.format(ran.result)[0]
    return captured.stdout + "".join(result.values())


def test_the_notebook_is_kept_without_its_results():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%tflab --stage frontend", "written  15 nodes and 14 edges"),
        ("%%tflab --stage backward", "dL/dz       size(x * y + z), for the first batch 16"),
        ("%%tflab", "run         23 nodes on CPU:0: 20 of the 47 built, 3 made by the runtime"),
        ("%%tflab --stage placement --without dependency_optimizer", "29 nodes run instead of 23"),
        ("%%tflab --devices 2", "transfers   A step carries 516 B from CPU:1 to CPU:0"),
        ("%%tflab --xla", "became one _XlaRun"),
        ("%%tflab --batch-size 16", "conv1/Conv2D + conv1/BiasAdd + conv1/Relu became one"),
    ],
)
def test_a_cell_shows_its_story_as_text_and_its_drawing_in_a_frame(shown, cell, words):
    text, _, page = shown[cell].partition("<pre>")
    story, _, frame = page.partition("<iframe ")
    assert words in text
    assert words in html.unescape(story)
    assert 'sandbox="allow-scripts" srcdoc="' in frame
    assert "Content-Security-Policy" in frame


def test_records_show_themselves(shown):
    assert "<table>" in shown["from tflab import lifecycle"]
    assert "'executed'" in shown["from collections import Counter"]
    assert "The history of mul (Mul)" in shown["from tflab.follow import node_history"]


def test_a_watched_cell_shows_where_its_time_went(shown):
    assert "steps of group 2" in shown["%%tflab watch"]
