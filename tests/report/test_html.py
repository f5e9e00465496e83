"""HTML: nothing that a name may hold becomes markup, and the page needs nothing but itself."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from tests.report.test_drawing import STAGES
from tflab.follow import node_history
from tflab.records import Frontend, Node
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.report import drawing, html
from tflab.report.contents import Chapter, Picture, Portrait, Recipe, Report

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&{{ 7*7 }}\u2028\\'\""


def portrait(stages, name="a graph"):
    lives = node_history.lives(stages)
    return Portrait(name, drawing.draw(stages, lives), lives, {"layer/Relu": 1500.0}, 16)


def report(*parts, title="A title"):
    return Report(title, "About it.", "python -m tflab.report", (Chapter("A chapter", parts),))


class Reader(HTMLParser):
    """The elements of a page, and the text in its scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self.inside = [], {}, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        self.texts.setdefault(self.inside, []).append(data)

    def handle_endtag(self, tag):
        self.inside = None


def evil_report():
    nodes = (Node(EVIL, EVIL), Node("b", "Op", (EVIL,)))
    table = Table(EVIL, (Column(EVIL, str), Column("", str, right=True)), (EVIL,))
    return report(
        EVIL,
        table,
        Strip(EVIL, (Frame(EVIL, EVIL, (EVIL,)),)),
        Recipe(EVIL, EVIL),
        Picture("p", EVIL, "<svg xmlns='http://www.w3.org/2000/svg'/>", b""),
        portrait((Frontend(program=None, nodes=nodes),), EVIL),
        title=EVIL,
    )


def test_a_hostile_name_makes_no_element_and_no_attribute():
    elements = Reader(html.page(evil_report())).elements
    assert [tag for tag, _ in elements].count("script") == 2  # the data and the viewer
    assert not [tag for tag, attributes in elements if tag == "img" and "onerror" in attributes]
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]


def test_a_name_comes_through_the_data_unchanged():
    page = html.page(evil_report())
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert [node["name"] for node in json.loads(data)["nodes"]] == [EVIL, "b"]


def test_nothing_is_styled_or_handled_inline():
    elements = Reader(html.page(evil_report())).elements
    assert not [attributes for _, attributes in elements if "style" in attributes]


def test_the_policy_lets_in_this_script_and_this_style_alone():
    reader = Reader(html.page(report(portrait(STAGES))))
    policy = next(a["content"] for tag, a in reader.elements if "http-equiv" in a)
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    (style,), scripts = reader.texts["style"], reader.texts["script"]
    assert directives == {
        "default-src": "'none'",
        "script-src": f"'sha256-{sha256(scripts[-1])}'",
        "style-src": f"'sha256-{sha256(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def sha256(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_page_asks_for_no_address():
    page = html.page(report(portrait(STAGES)))
    addresses = [
        value
        for _, attributes in Reader(page).elements
        for name, value in attributes.items()
        if name in ("src", "href") and not value.startswith(("#", "data:"))
    ]
    assert addresses == []


def test_the_data_number_nodes_boxes_and_lanes():
    data = html.viewer_data(portrait(STAGES))
    names = [node["name"] for node in data["nodes"]]
    layer = next(box for box in data["boxes"] if box["label"] == "layer" and box["rows"])
    assert [
        data["boxes"][entry]["label"]
        for row in layer["rows"]
        for entry in row
        if isinstance(entry, int)
    ] == ["kernel", "MatMul/ReadVariableOp", "MatMul", "Relu"]
    assert sorted(b["node"] for b in data["boxes"] if b["node"] is not None) == list(
        range(len(names))
    )
    fused = next(state for state in data["states"] if state["title"] == "remapper")
    assert fused["gone"] == [names.index("layer/MatMul")]
    assert fused["nodes"] == [
        [
            names.index("layer/Relu"),
            "_FusedMatMul",
            "",
            [names.index("_arg_x"), names.index("layer/MatMul/ReadVariableOp")],
            [],
        ]
    ]


def test_a_fused_node_and_the_one_that_does_its_work_are_related():
    data = html.viewer_data(portrait(STAGES))
    related = {
        node["name"]: [data["nodes"][other]["name"] for other in node["related"]]
        for node in data["nodes"]
        if node["related"]
    }
    assert related == {"layer/MatMul": ["layer/Relu"], "layer/Relu": ["layer/MatMul"]}
    assert next(n for n in data["nodes"] if n["name"] == "layer/Relu")["ns"] == 1500.0


def test_tables_keep_their_columns_and_say_what_was_left_out():
    table = Table("Costs", (Column("op", str), Column("time", str, right=True)), ("Relu",), more=3)
    page = html.page(report(table))
    assert '<th scope="col">op</th>' in page
    assert '<th scope="col" class="right">time</th>' in page
    assert '<td>Relu</td><td class="right">Relu</td>' in page
    assert "and 3 more" in page
