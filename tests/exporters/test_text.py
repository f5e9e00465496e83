"""Text: what reaches the stream stays within its columns, whatever the names are."""

import io
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.approval import approve
from tests.examples.blocks import BLOCKS, CALLS, NODE
from tests.examples.streams import Terminal
from tflab.exporters import text
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.records.graph import Node
from tflab.records.stages import Frontend
from tflab.views import stages

PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=150)
NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)
COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
STAGE = Frontend(SimpleNamespace(ends=()), (Node("x", "Placeholder"),))


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def lines(*shown, stream: io.StringIO | None = None) -> list[str]:
    stream = stream or io.StringIO()
    text.show_blocks(shown, stream)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def stage_lines(stage: Frontend, blocks=None) -> list[str]:
    stream = io.StringIO()
    text.show(text.console(stream), 1, stage, blocks)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


# All kinds of blocks


@pytest.mark.parametrize("width", ["100", "44", "30"])
def test_every_line_of_all_kinds_of_blocks(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    shown = stage_lines(STAGE, BLOCKS)
    assert max(map(cell_len, shown)) <= int(width)
    approve(f"blocks-{width}.txt", "\n".join(shown))


def test_titles_and_headers_are_bold_and_what_is_of_less_use_is_dim(monkeypatch):
    """In the approved file, {1} begins what is bold, {2} what is dim, {36} what is cyan."""
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    out = text.console(stream)
    text.show(out, 1, STAGE, BLOCKS)
    text.show(out, 2, STAGE)
    out.print("[red]A sentence[/red] :smile: of 12 'words'")
    approve("blocks-in-colour.txt", COLOUR.sub(r"{\1}", stream.getvalue()))


def test_a_stage_on_the_way_is_one_line():
    line = f"1  {stages.STAGES[Frontend].title}: 1 node, 0 edges, from a file without lines."
    assert stage_lines(STAGE) == [line]


# Widths


def test_a_long_line_of_a_strip_takes_four_lines_and_what_it_is_about_is_whole():
    long = Strip("Passes", (Frame("pass", "y" * 92 + " z", ("x" * 1000, "short")),))
    assert lines(long)[2:] == [
        "  pass",
        "    " + "y" * 92 + " z",
        " " * 6 + "x" * 94,
        " " * 8 + "x" * 92,
        " " * 8 + "x" * 92,
        " " * 8 + "x" * 89 + "…",
        "      short",
    ]


def test_prose_keeps_to_100_columns_and_a_table_takes_what_there_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    shown = lines("word " * 60, Table("Nodes", (NODE,), (("n" * 140,),)))
    assert [len(line) for line in shown] == [0, 99, 99, 99, 0, 5, 6, 142, 142]


def test_a_header_that_is_too_long_is_wrapped_and_not_cut():
    shown = lines(Table("Nodes", (Column("a header " * 20, str),), ("x",)))
    headers = [f"  {('a header ' * count).rstrip()}" for count in (11, 9)]
    assert shown[1:] == ["Nodes", *headers, f"  {'─' * 98}", "  x"]


TIME = Column("time", lambda row: row[2], right=True)
COLUMNS = (
    Column("node", lambda row: row[0]),
    Column("types", lambda row: row[1], elastic=True),
    TIME,
)


@pytest.mark.parametrize(
    "node, line",
    [
        ("n" * 40, "  " + "n" * 40 + "  " + "t" * 47 + "…  1.00 s"),
        ("a" * 60 + "z" * 60, "  " + "a" * 35 + "…" + "z" * 36 + "  " + "t" * 15 + "…  1.00 s"),
    ],
)
def test_the_elastic_column_gives_way_and_then_names_lose_their_middle(node, line):
    shown = lines(Table("Nodes", COLUMNS, ((node, "t" * 80, "1.00 s"),)))[-1]
    assert shown == line


ROWS = st.lists(st.tuples(PRINTABLE, PRINTABLE, PRINTABLE), max_size=3)


@settings(max_examples=25)
@given(PRINTABLE, ROWS, st.booleans())
def test_no_line_of_a_table_has_over_100_columns(title, rows, drawing):
    assert max(map(cell_len, lines(Table(title, COLUMNS, tuple(rows), drawing)))) <= 100


@pytest.mark.parametrize(
    "columns, width",
    [("60", 60), ("200", 200), ("3", 20), (None, 100), ("", 100), ("wide", 100)],
)
def test_the_width_is_what_the_environment_says_and_that_of_a_pipe_100(monkeypatch, columns, width):
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert text.console(io.StringIO()).width == width
    if columns and columns.isdigit():
        assert text.console(Terminal()).width == width
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    in_notebook = text.console(io.StringIO())
    assert (in_notebook.width, in_notebook.is_jupyter) == (width, False)


# The stream


def test_a_reader_who_leaves_is_an_error_of_the_command():
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        text.show_blocks(["word", Table("t", (CALLS,), ((0, 1),))], Closed())


def test_the_format_that_was_asked_for_is_printed(capsys):
    for name, printed in (
        ("text", "\nOne.\n"),
        ("markdown", "# T\n\na: 1.\n\nOne.\n"),
        ("json", "{}\n"),
    ):
        text.show_in_format(name, "T", {"a": 1}, ["One."], json=lambda: "{}\n")
        assert capsys.readouterr().out == printed
