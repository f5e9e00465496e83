"""The example notebook is a lesson: each cell runs, and shows what the text beside it says.

Its cells run in IPython in this process; that the first of them prints nothing beside its result is
a test of `tests/runtime/test_tf_import.py`.
"""

import html
from pathlib import Path

import nbformat
import pytest
from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

pytestmark = pytest.mark.tensorflow

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells():
    """What each cell shows, by the beginning of its text."""
    code = [
        cell.source
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOK.parents[1])
        shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
        return {source.partition("\n")[0]: outputs(shell, source) for source in code}


def outputs(shell: InteractiveShell, source: str) -> list[dict[str, str]]:
    """The results that a cell shows."""
    hook = CapturingDisplayHook(shell, [])
    shell.display_trap.hook = hook
    shell.run_cell(source).raise_error()
    return [output["data"] for output in hook.outputs]


def only(shown: list[dict[str, str]]) -> tuple[str, str]:
    """The one result of a cell, as text and as HTML."""
    (data,) = shown
    return data["text/plain"], data.get("text/html", "")


def test_the_notebook_is_kept_without_its_results():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%tflab --stage frontend", "15 nodes, 14 edges"),
        ("%%tflab --stage backward", "size(x * y + z) = 16"),
        ("%%tflab", "23 nodes, 31 edges"),
        ("%%tflab --stage placement --without dependency_optimizer", "29 nodes,"),
        ("%%tflab --devices 2", "516 B from CPU:1 to CPU:0"),
        ("%%tflab --xla", "18 nodes, by XLA, as 1 cluster"),
        ("%%tflab --batch-size 16", "images float32 [batch, 28, 28, 1]"),
    ],
)
def test_a_cell_shows_its_story_as_text_and_its_drawing_in_a_frame(cells, cell, words):
    text, page = only(cells[cell])
    assert words in text
    story, _, frame = page.partition("<iframe ")
    assert words in html.unescape(story)
    assert 'sandbox="allow-scripts" srcdoc="' in frame
    assert "Content-Security-Policy" in frame
    assert "cell:2" in frame  # the first line is that of the magic
    assert "cell:1 " not in frame
    assert cell != "%%tflab --xla" or "&#34;Generated code&#34;:" in frame


def test_records_show_themselves(cells):
    _, page = only(cells["from tflab import lifecycle"])
    assert page.startswith("<pre>")
    assert "'executed'" in only(cells["from collections import Counter"])[0]
    assert "mul (Mul" in only(cells["from tflab.follow import node_history"])[1]


def test_a_watched_cell_shows_where_its_time_went(cells):
    text, page = only(cells["import numpy as np"])
    assert " runs, median " in text
    assert " runs, median " in page
    assert "The most expensive ops in the steps, estimated from " in " ".join(text.split())
