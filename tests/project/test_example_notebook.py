"""The example notebook is a lesson: each cell runs, and shows what the text beside it says."""

import html
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.tensorflow

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells():
    """What each cell shows, by the beginning of its text."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = {"metadata": {"path": str(NOTEBOOK.parents[1])}}
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources=folder).execute()
    return {
        cell.source.partition("\n")[0]: cell.outputs
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def only(outputs):
    """The one result of a cell, as text and as HTML; beside it there is at most progress."""
    (output,) = (one for one in outputs if one["output_type"] != "stream")
    assert {one.get("name", "stderr") for one in outputs} == {"stderr"}
    return output["data"].get("text/plain"), output["data"].get("text/html", "")


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
def test_a_cell_shows_its_story_as_text_and_its_drawing_in_a_frame(cells, cell, words):
    text, page = only(cells[cell])
    assert words in text
    story, _, frame = page.partition("<iframe ")
    assert words in html.unescape(story)
    assert 'sandbox="allow-scripts" srcdoc="' in frame
    assert "Content-Security-Policy" in frame
    assert ("&#34;Generated code&#34;:" in frame) == (cell == "%%tflab --xla")


def test_records_show_themselves(cells):
    _, page = only(cells["from tflab import lifecycle"])
    assert "<table>" in page
    assert "'executed'" in only(cells["from collections import Counter"])[0]
    assert "The history of mul (Mul)" in only(cells["from tflab.follow import node_history"])[1]


def test_a_watched_cell_shows_where_its_time_went(cells):
    text, page = only(cells["%%tflab watch"])
    assert "steps of group 2" in text
    assert "steps of group 2</td>" in page
