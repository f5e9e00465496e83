"""The example notebook runs from its first cell to its last, and its results show themselves.

Its cells run in IPython in this process; that the first of them prints nothing beside its result is
a test of `tests/runtime/test_quiet_import.py`.
"""

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
    """Of each cell with code, all that it printed or showed."""
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        return [output(shell, cell.source) for cell in cells if cell.cell_type == "code"]


def output(shell: InteractiveShell, source: str) -> str:
    with capture_output() as captured:
        ran = shell.run_cell(source)
    ran.raise_error()
    result = shell.display_formatter.format(ran.result)[0]
    return captured.stdout + "".join(result.values())


def test_the_notebook_is_kept_without_its_results():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_a_stage_shows_itself_as_tables(shown):
    assert "<table>" in shown[0]
    assert "x * y + z" in shown[0]


def test_the_ledger_can_be_counted(shown):
    assert "'executed'" in shown[1]


def test_a_node_history_shows_itself(shown):
    assert "The history of mul (Mul)" in shown[2]


def test_rows_and_findings_are_plain_values(shown):
    assert "('conv1/Relu', " in shown[3]
    assert shown[4]
