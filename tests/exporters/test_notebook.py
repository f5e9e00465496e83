"""Notebook: a result shows itself as HTML. Names that would act are in test_strangers."""

from tests.approval import approve
from tests.examples.blocks import BLOCKS, OPS
from tests.records_by_hand import a_frontend
from tflab.exporters import notebook
from tflab.records import blocks
from tflab.records.graph import Node
from tflab.records.options import Program
from tflab.views import stages


def test_a_cell_has_every_block():
    lines = notebook.render(BLOCKS).splitlines()
    approve("blocks.html", "\n".join(filter(str.strip, lines)))


def test_tables_and_stages_show_themselves():
    assert OPS._repr_html_() == notebook.render([OPS])
    nodes = (Node("x", "NoOp"), Node("y", "Neg", inputs=("x",)))
    page = notebook.render(stages.page(a_frontend(Program("m", None, None, None), nodes)))
    assert "<p>Frontend: Python calls become nodes.</p>" in page
    assert ">2 nodes, 1 edge, from a file without lines</td>" in page


def test_a_record_is_shown_as_the_blocks_of_its_view(monkeypatch):
    html: dict = {}
    monkeypatch.setattr(blocks, "HTML", html)
    monkeypatch.setattr(notebook, "HTML", html)

    class Result(blocks.Shown):
        name = "a & b"

    assert Result()._repr_html_() is None
    notebook.show_as(Result, lambda result: [result.name, "second"])
    assert Result()._repr_html_().split() == ["<p>a", "&amp;", "b</p>", "<p>second</p>"]
