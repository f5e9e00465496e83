"""Names of strangers: whatever they hold, no format lets it act, and two names stay two."""

import csv as csv_module
import io
import json as json_module
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.examples.records import filled
from tflab import records
from tflab.convert import conversion
from tflab.convert import read as reading
from tflab.escaping import visible
from tflab.exporters import chrome_trace, csv, json, markdown, text, xspace
from tflab.records.blocks import Column, Table, listing, sentences
from tflab.records.measured import OpStats
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.report import html
from tflab.runtime.private import watched_functions

ACTING = "\x00\x07\x1b\x7f\x85\x9b\n\r\t\u061c\u200e\u202e\u2066\u2028\u2029\ufeff\ud800"
STEERING = "\x1b]0;owned\x07\x1b[2J\u202e\n```\n# <script>alert(1)</script> |\u2028=1+1"
LETTERS = ACTING + "`~|<>&*_[]()!#=+-@$\\ux1b/. a1"
NAMES = st.text(st.sampled_from(LETTERS), min_size=1, max_size=12).filter(lambda n: n.strip(" "))


def silent(output: str) -> None:
    """Nothing in it acts, but the ends of its own lines."""
    assert not [letter for letter in output if not letter.isprintable() and letter != "\n"]


def blocks_of(name: str) -> list:
    columns = (Column(name, lambda row: row), Column("n", lambda row: "1", right=True))
    return [
        name,
        listing(name, ((name, (name, name)),)),
        sentences(name, (name,)),
        Table(name, columns, (name,)),
        Table(name, columns, (name,), drawing=True, more=1, option="--top shows more"),
    ]


@settings(max_examples=50)
@given(NAMES)
@example(STEERING)
def test_no_text_notebook_or_markdown_lets_a_name_act(name):
    environment = dict.fromkeys(("python", "os", "processor"), name)
    environment |= {"cpus": 2, "packages": {"a": name}}
    cells = text.as_html(blocks_of(name))
    page = markdown.page(name, environment, {"": blocks_of(name)})
    for output in (text.as_text(blocks_of(name)), cells, page, markdown.fenced(visible(name))):
        silent(output)
    assert Page(cells).tags == ["pre"]
    assert cells.count("<") == 2


IN_TABLE = ("table", "thead", "tbody", "tr", "th", "td")


class Page(HTMLParser):
    """The tags of a page, and the text within each cell of its tables."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and self.tags[-1] in ("td", "th"):
            self.cells[-1] += data


@settings(max_examples=100)
@given(NAMES)
@example(STEERING)
@example("1. one")
@example("- one")
@example("# one")
@example("https://example.org and www.example.org")
def test_in_markdown_a_name_stays_text_within_its_own_block(name):
    read = MarkdownIt("commonmark").enable("table").render
    shown = " ".join(visible(name).split())
    pages = (Page(read(markdown.rendered(block))) for block in blocks_of(name))
    paragraph, listed, said, table, drawing = pages
    assert set(paragraph.tags) <= {"p"}
    assert set(said.tags) <= {"p", "strong", "ul", "li"}
    for of_cells in (listed, table):
        assert set(of_cells.tags) <= {"p", "strong", *IN_TABLE}
    assert [cell.strip() for cell in table.cells] == [shown, "n", shown, "1"]
    assert drawing.tags == ["p", "strong", "pre", "code", "p"][: len(drawing.tags)]
    assert Page(read(markdown.fenced(visible(name)))).tags == ["pre", "code"]


def test_what_github_makes_an_address_of_is_broken_up():
    assert markdown.escape("https://a.b www.a.b") == r"https\://a.b www\.a.b"


# Records


MODULES = [
    import_module(f"tflab.records.{module.name}") for module in iter_modules(records.__path__)
]
RECORDS = [
    kind
    for module in MODULES
    for kind in vars(module).values()
    if is_dataclass(kind) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("kind", dict.fromkeys(RECORDS), ids=lambda kind: kind.__name__)
def test_json_keeps_every_string_of_every_record_and_lets_none_act(kind):
    record = filled(kind, lambda _: STEERING)
    document = json.document(record=record)
    silent(document)
    held = json_module.loads(document)["record"]
    assert isinstance(held, dict)
    page = html.as_json(html.readable(record))
    silent(page)
    assert "<" not in page
    if kind is not OpStats:  # whose keys depend on where it stands
        written = [(item.name, item.metadata.get("json", item.name)) for item in fields(kind)]
        strings = [key for name, key in written if key and getattr(record, name) == STEERING]
        assert [held[key] for key in strings] == [STEERING] * len(strings)


def recorded(*names: str) -> reading.Recording:
    runs = tuple(OpRun(0, name, name, name, 1_000, 1, 1, ((1, 1, name),)) for name in names)
    return reading.Recording(names, names, (StepTime(0, 1_000, 10),), runs)


@settings(max_examples=30)
@given(NAMES)
@example(STEERING)
def test_no_recorded_trace_lets_a_name_act(name):
    found = recorded(name)
    for write in (
        lambda stream: chrome_trace.write(stream, [found.capture()]),
        lambda stream: conversion.write_csv(stream, found),
        lambda stream: conversion.write_json(stream, conversion.convert(found)),
    ):
        stream = io.StringIO()
        write(stream)
        silent(stream.getvalue())
    profile = xspace.encode(Capture(name, found.steps, found.runs), host="h")
    for plane in watched_functions.xspace(profile).planes:
        names = [*plane.event_metadata.values(), *plane.stat_metadata.values(), *plane.lines]
        for about in (plane, *names):
            silent(about.name + getattr(about, "display_name", ""))


def test_a_profile_and_a_chart_keep_two_names_apart():
    found = recorded("a\u202e", "a")
    stream = io.StringIO()
    chrome_trace.write(stream, [found.capture()])
    events = json_module.loads(stream.getvalue())["traceEvents"]
    assert {e["args"]["node"] for e in events if "node" in e.get("args", {})} >= {r"a\u202e", "a"}


# Spreadsheets


@pytest.mark.parametrize(
    "value, shown",
    [
        ("conv1", "conv1"),
        ("=1+1", "'=1+1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("'=1", "''=1"),
        ("\t=1", r"\x09=1"),
        ("a=b", "a=b"),
        (["=a", "b"], "'=a b"),
        (-1.5, -1.5),
        (None, None),
        (True, True),
    ],
)
def test_a_cell_is_never_a_formula_and_a_number_stays_one(value, shown):
    assert csv.cell(value) == shown


@given(NAMES)
@example("=HYPERLINK(1)\n")
def test_a_line_of_csv_is_one_line(name):
    stream = io.StringIO()
    conversion.write_csv(stream, recorded(name))
    _, line = stream.getvalue().splitlines()
    (row,) = csv_module.reader([line])
    assert row[1] == csv.cell(name)
    assert row[1][0] not in "=+-@\t\r"
