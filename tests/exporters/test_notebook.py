"""Notebook: a result shows itself as HTML, whatever its names hold."""

from html.parser import HTMLParser

from tflab.exporters import notebook
from tflab.records import Frontend, Node
from tflab.records.asked import Program
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.views import stages

HOSTILE = "<script>alert(1)</script>&\"'"


class Texts(HTMLParser):
    """The text and the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] * bool(data.strip())

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


TABLE = Table(
    f"Title {HOSTILE}",
    (Column("name", lambda row: row[0]), Column("n", lambda row: str(row[1]), right=True)),
    ((HOSTILE, 1), ("b", 2)),
    more=3,
)


def test_a_table_shows_its_title_its_rows_and_how_many_there_are_more():
    page = Texts(TABLE._repr_html_())
    cells = ["name", "n", HOSTILE, "1", "b", "2", "... and 3 more"]
    assert page.texts == [f"Title {HOSTILE}", *cells]
    assert "script" not in page.tags


def test_a_strip_shows_its_frames():
    page = Texts(Strip("Film", (Frame("pass", HOSTILE, ("one", "two")),))._repr_html_())
    assert page.texts == ["Film", "pass", HOSTILE, "one", "two"]
    assert "script" not in page.tags


def test_a_stage_shows_its_title_and_its_blocks():
    nodes = (Node(HOSTILE, "NoOp"), Node("y", "Neg", inputs=("x",)))
    stage = Frontend(Program("m", None, None, None), nodes)
    page = Texts(notebook.render(stages.page(stage)))
    assert page.texts[0] == "Frontend: Python calls become nodes: 2 nodes, 1 edge."
    assert HOSTILE in page.texts
    assert "script" not in page.tags


def test_rows_are_plain_dicts_for_a_data_frame():
    assert TABLE.dicts() == [{"name": HOSTILE, "n": "1"}, {"name": "b", "n": "2"}]
