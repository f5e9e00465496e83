"""The example notebook runs from its first cell to its last, and its results show themselves."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.tensorflow

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = {"metadata": {"path": str(NOTEBOOK.parents[1])}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=folder).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell) -> str:
    """All that a cell printed or showed."""
    return "".join(
        output.get("text", "") + "".join(output.get("data", {}).values()) for output in cell.outputs
    )


def test_the_notebook_is_kept_without_its_results():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_a_stage_shows_itself_as_tables(cells):
    assert "<table>" in shown(cells[0])
    assert "x * y + z" in shown(cells[0])


def test_the_ledger_can_be_counted(cells):
    assert "'executed'" in shown(cells[1])


def test_a_node_history_shows_itself(cells):
    assert "The history of mul (Mul)" in shown(cells[2])


def test_rows_and_findings_are_plain_values(cells):
    assert "('conv1/Relu', " in shown(cells[3])
    assert shown(cells[4])


def test_the_first_cell_prints_nothing_beside_its_result(cells):
    assert [output.output_type for output in cells[0].outputs] == ["execute_result"]
