"""Text: what reaches the stream stays within its columns, whatever the names are."""

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.approval import approve
from tests.commands import Terminal
from tests.examples.blocks import BLOCKS, CALLS
from tflab.exporters import text
from tflab.records import blocks
from tflab.records.blocks import Column, Table, listing

PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=150)
COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
TITLE = "1  Frontend: Python calls become nodes"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def lines(*shown) -> list[str]:
    return text.as_text(shown).splitlines()


LONG = listing("Passes", (("pass", ("y" * 92 + " z", "x" * 200, "short")),))


@pytest.mark.parametrize("width", ["100", "44", "30"])
def test_every_line_of_all_kinds_of_blocks(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    stream = io.StringIO()
    text.show_section(text.console(stream), TITLE, [*BLOCKS, LONG, "word " * 60])
    shown = stream.getvalue()
    assert max(map(cell_len, shown.splitlines())) <= int(width)
    approve(f"blocks-{width}.txt", shown)


def test_titles_and_headers_are_bold_and_what_is_of_less_use_is_dim(monkeypatch):
    """In the approved file, {1} begins what is bold, {2} what is dim, {36} what is cyan."""
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    out = text.console(stream)
    text.show_section(out, TITLE, [*BLOCKS, LONG])
    out.print("[red]A sentence[/red] :smile: of 12 'words'")
    approve("blocks-in-colour.txt", COLOUR.sub(r"{\1}", stream.getvalue()))


def test_prose_keeps_to_100_columns_and_a_table_takes_what_there_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    stream, table = io.StringIO(), Table("Nodes", (Column("n", str, name=True),), ("n" * 160,))
    text.show_section(text.console(stream), TITLE, ["word " * 60, table])
    shown = [len(line) for line in stream.getvalue().splitlines()]
    assert shown == [0, 100, 99, 99, 99, 0, 5, 3, 150, 150, 16]


COLUMNS = (
    Column("node", lambda row: row[0]),
    Column("types", lambda row: row[1], elastic=True),
    Column("time", lambda row: row[2], right=True),
)
ROWS = st.lists(st.tuples(PRINTABLE, PRINTABLE, PRINTABLE), max_size=3)


@settings(max_examples=25)
@given(PRINTABLE, ROWS, st.booleans())
def test_no_line_of_a_table_has_over_100_columns(title, rows, drawing):
    assert max(map(cell_len, lines(Table(title, COLUMNS, tuple(rows), drawing)))) <= 100


@pytest.mark.parametrize(
    "columns, width", [("60", 60), ("200", 200), ("3", 20), (None, 100), ("", 100), ("wide", 100)]
)
def test_the_width_is_what_the_environment_says_and_that_of_a_pipe_100(monkeypatch, columns, width):
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    if columns and columns.isdigit():
        assert text.console(Terminal()).width == width
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    in_notebook = text.console(io.StringIO())
    assert (in_notebook.width, in_notebook.is_jupyter) == (width, False)


def test_a_reader_who_leaves_is_an_error_of_the_command():
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        text.show_blocks(["word", Table("t", (CALLS,), ((0, 1),))], Closed())


def test_the_format_that_was_asked_for_is_printed(capsys):
    for name, printed in (
        ("text", "One.\n"),
        ("markdown", "# T\n\na: 1.\n\nOne.\n"),
        ("json", "{}\n"),
    ):
        text.show_in_format(name, "T", {"a": 1}, ["One."], json=lambda: "{}\n")
        assert capsys.readouterr().out == printed


def test_a_record_shows_itself_in_a_notebook_as_the_blocks_of_its_view(monkeypatch):
    html: dict = {}
    monkeypatch.setattr(blocks, "HTML", html)
    monkeypatch.setattr(text, "HTML", html)

    class Result(blocks.Shown):
        name = "a & b"

    assert Result()._repr_html_() is None
    text.show_as(Result, lambda result: [result.name, "second"])
    assert Result()._repr_html_().split() == ["<pre>a", "&amp;", "b", "second", "</pre>"]
