"""HTML: nothing that a name may hold becomes markup, and the page needs nothing but itself."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.sax.saxutils import escape, quoteattr

from tests.approval import approve
from tests.examples.layer import EVIL, STAGES
from tests.records_by_hand import CPU_0, CPU_1, a_frontend
from tflab.escaping import visible
from tflab.follow import node_history
from tflab.records.blocks import Column, Fact, Table, listing
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.report import drawing, html, viewer_data
from tflab.report.contents import Chapter, DrawnGraph, Picture, Report


def drawn_graph(stages, name="a graph"):
    histories = node_history.histories(stages)
    return DrawnGraph(name, drawing.draw(stages, histories), histories, {"layer/Relu": 1500.0})


def report(*parts, title="A title"):
    return Report(title, "About it.", "python -m tflab.report", (Chapter("A chapter", parts),))


class Reader(HTMLParser):
    """The elements of a page, and (element, text) of all that stands in them, in their order."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.inside, self.read = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "wbr"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        self.inside.pop()

    def handle_data(self, data):
        if data.strip():
            self.read.append((self.inside[-1], data))


def evil_svg():
    return f"<svg aria-label={quoteattr(EVIL)}><text style='fill: #000'>{escape(EVIL)}</text></svg>"


def evil_report():
    nodes = (Node(EVIL, EVIL), Node("b", "Op", (EVIL,)))
    table = Table(EVIL, (Column(EVIL, str), Column("", str, right=True)), (EVIL,))
    return report(
        EVIL,
        table,
        listing(EVIL, ((EVIL, (EVIL,)),)),
        Picture("p", EVIL, evil_svg(), b""),
        drawn_graph((a_frontend(nodes=nodes),), EVIL),
        title=EVIL,
    )


def test_a_hostile_name_makes_no_element_and_no_attribute():
    page = html.page(evil_report())
    elements = Reader(page).elements
    assert [tag for tag, _ in elements].count("script") == 2  # the data and the viewer
    assert not [tag for tag, attributes in elements if tag == "img" and "onerror" in attributes]
    attributes = {name for _, attributes in elements for name in attributes}
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert not set(data) & set("<>&")
    assert [node["name"] for node in json.loads(data)["nodes"]] == [visible(EVIL), "b"]


def test_large_data_are_compressed_and_say_the_same(monkeypatch):
    plain = html.as_json(html.readable({"name": EVIL}))
    assert html.element("d", {"name": EVIL}) == (
        f'<script type="application/json" id="d">{plain}</script>'
    )
    monkeypatch.setattr(html, "LARGE", len(plain) - 1)
    packed = re.fullmatch(
        r'<script type="application/gzip" id="d">([A-Za-z0-9+/=]+)</script>',
        html.element("d", {"name": EVIL}),
    )
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == plain


def test_the_page_lets_in_its_script_and_its_style_alone_and_asks_for_no_address():
    reader = Reader(html.page(report(drawn_graph(STAGES))))
    policy = next(a["content"] for tag, a in reader.elements if "http-equiv" in a)
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    (style,) = (text for element, text in reader.read if element == "style")
    script = dict(reader.read)["script"]  # the last of them
    assert directives == {
        "default-src": "'none'",
        "script-src": f"'sha256-{sha256(script)}'",
        "style-src": f"'sha256-{sha256(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    addresses = [a[name] for _, a in reader.elements for name in ("src", "href") if name in a]
    assert [address for address in addresses if not address.startswith(("#", "data:"))] == []


def sha256(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# What the page and its data hold, worked out by hand


def test_a_page_holds_its_parts_whole_and_in_their_order():
    columns = (Column("op", lambda row: row[0]), Column("calls", lambda row: row[1], right=True))
    bare = (Column("", lambda row: row[0]), Column("", lambda row: row[1]))
    rows = (("Relu", "3"), ("Mean", "7"))
    parts = (
        "A sentence.",
        Table("Costs", columns, rows, more=1_234),
        Table("Pairs", bare, rows[:1]),
        listing("Passes", (("placer", ("moved", "rewired")), ("layout", ("folded",)))),
        Picture("curves", "A curve.", "<svg><text>y</text></svg>", b""),
    )
    chapters = (
        Chapter("First, one", parts),
        Chapter("Folded", ("A sentence in it.",), folded=True, result="2 of 3"),
        Chapter("The last", (replace(parts[4], title="A title below"), "The end.")),
    )
    numbers = (Fact("nodes", "7"), Fact("step", "3 us", "batch 4"))
    whole = Report("A title", "About it.", "python -m tflab.report", chapters, numbers=numbers)
    read = [pair for pair in Reader(html.page(whole)).read if pair[0] not in ("script", "style")]
    lines = (f"{element}: {' '.join(text.split())}" for element, text in read)
    approve("report-page.txt", "\n".join(lines))


def test_each_chapter_is_where_the_contents_point():
    chapters = tuple(
        Chapter(t, ()) for t in ("Where a step's time goes", "Stages of x*y", "步骤 1/图")
    )
    elements = Reader(html.page(Report("", "", "", chapters))).elements
    anchors = ["where-a-step-s-time-goes", "stages-of-x-y", "步骤-1-图"]
    assert [a["href"] for tag, a in elements if tag == "a"] == [f"#{name}" for name in anchors]
    assert [a["id"] for tag, a in elements if tag == "section"] == anchors


def test_a_picture_stands_in_the_page_as_svg_with_attributes_for_styles():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="5pt" height="9pt" viewBox="0 0 5 9" '
        'style="max-width: 100%; height: auto"><text style="font-size: 9px; fill: #222">é</text>'
        "</svg>"
    )
    page = html.page(report(Picture("p", "", svg, b"png")))
    assert '<svg viewBox="0 0 5 9"><text font-size="9px" fill="#222">é</text></svg>' in page


def test_a_name_in_a_table_may_break_after_a_scope_only():
    assert html.breakable("a/b_c/<d> 1 / 2") == "a/<wbr>b_c/&lt;d&gt; 1 / 2"
    assert html.breakable("s/s_1 2 Mbit/s") == "s/<wbr>s_1 2 Mbit/s"


SENT = (
    Transfer("x:0", "x", "layer/MatMul", CPU_0, CPU_1, "float32", (384,), 1_536, ""),
    Transfer("loss:0", "loss", "x", CPU_1, CPU_0, "float32", None, None, ""),
)


def test_the_data_of_a_drawing_are_its_nodes_boxes_and_states_by_number():
    drawn = drawn_graph(STAGES)
    written, derived, *placed = drawn.drawing.states
    states = (written, replace(derived, cut=(("x", "layer/MatMul"),)), *placed)
    drawn = replace(drawn, drawing=replace(drawn.drawing, states=states, transfers=SENT))
    data = viewer_data.graph_data(drawn)
    rows = {key: data.pop(key) for key in ("nodes", "boxes", "states")}
    lines = [f"{key}: {json.dumps(value)}" for key, value in data.items()]
    for key, values in rows.items():
        lines.append(key)
        lines += (json.dumps({k: row[k] for k in row if k != "history"}) for row in values)
    approve("report-viewer.txt", "\n".join(lines))
