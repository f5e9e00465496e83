"""Notebook: a result shows itself as HTML, whatever its names hold."""

from html.parser import HTMLParser

from tflab.exporters import notebook
from tflab.records import blocks
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.records.graph import Node
from tflab.records.options import Program
from tflab.records.stages import Frontend
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


OPS = Table(
    "Ops",
    (
        Column("node", lambda row: row[0]),
        Column("calls", lambda row: str(row[1]), right=True),
        Column("types", lambda row: row[2]),
    ),
    (("conv1/Relu", 64, "_FusedConv2D"), ("pool_1", 128, "MaxPool & Const"), ("one", 3, "")),
    more=1234,
    option="--top",
)


def test_every_line_of_a_stage_with_all_kinds_of_blocks(monkeypatch):
    strip = Strip(
        "The passes",
        (
            Frame("remapper", "2 of 3 nodes", ("fused: conv1", "taken: bias")),
            Frame("", "", ("By the dumps.",)),
        ),
    )
    drawing = Table("Graph", OPS.columns[:2], (("●", 1), ("│ ●", 20)), drawing=True)
    monkeypatch.setattr(stages, "blocks", lambda *_: ["Two ops ran.", strip, OPS, drawing])
    stage = Frontend(Program("m", None, None, None), (Node("y", "Neg"),))
    page = notebook.render(stages.page(stage))
    left, right = '<td style="text-align: left">', '<td style="text-align: right">'
    drawn = "; white-space: pre; font-family: monospace"
    drawn_left, drawn_right = (tag.replace('">', f'{drawn}">') for tag in (left, right))
    assert page.replace("\n", "") == "".join(
        [
            "<p>Frontend: Python calls become nodes: 1 node, 0 edges.</p>",
            "<p>Two ops ran.</p>",
            "<p><b>The passes</b></p>",
            "<p>remapper <i>2 of 3 nodes</i></p>",
            "<ul><li>fused: conv1</li><li>taken: bias</li></ul>",
            "<ul><li>By the dumps.</li></ul>",
            "<table><caption>Ops</caption>",
            "<tr><th>node</th><th>calls</th><th>types</th></tr>",
            f"<tr>{left}conv1/Relu</td>{right}64</td>{left}_FusedConv2D</td></tr>",
            f"<tr>{left}pool_1</td>{right}128</td>{left}MaxPool &amp; Const</td></tr>",
            f"<tr>{left}one</td>{right}3</td>{left}</td></tr>",
            "</table><p>... and 1,234 more</p>",
            "<table><caption>Graph</caption>",
            "<tr><th>node</th><th>calls</th></tr>",
            f"<tr>{drawn_left}●</td>{drawn_right}1</td></tr>",
            f"<tr>{drawn_left}│ ●</td>{drawn_right}20</td></tr>",
            "</table>",
        ]
    )


def test_a_table_shows_its_title_its_rows_and_how_many_there_are_more():
    page = Texts(TABLE._repr_html_())
    cells = ["name", "n", HOSTILE, "1", "b", "2", "... and 3 more"]
    assert page.texts == [f"Title {HOSTILE}", *cells]
    assert "script" not in page.tags


def test_a_strip_shows_its_frames():
    page = Texts(Strip("Passes", (Frame("pass", HOSTILE, ("first", "second")),))._repr_html_())
    assert page.texts == ["Passes", "pass", HOSTILE, "first", "second"]
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


def test_a_record_is_shown_as_the_blocks_of_its_view(monkeypatch):
    html: dict = {}
    monkeypatch.setattr(blocks, "HTML", html)
    monkeypatch.setattr(notebook, "HTML", html)

    class Result(blocks.Shown):
        name = "a & b"

    assert Result()._repr_html_() is None
    notebook.show_as(Result, lambda result: [result.name, "second"])
    page = Result()._repr_html_()
    assert page is not None
    assert page.split() == ["<p>a", "&amp;", "b</p>", "<p>second</p>"]
