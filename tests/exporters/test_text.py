"""Text: what reaches the stream stays within its columns, whatever the names are."""

import io
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.cli.test_terminal import Terminal
from tflab.exporters import text
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.records.graph import Node, Source, Tensor
from tflab.records.stages import Frontend
from tflab.views import stages

PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=150)
NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)

COLUMNS = (
    Column("node", lambda row: row[0]),
    Column("types", lambda row: row[1], elastic=True),
    Column("time", lambda row: row[2], right=True),
)


def shown(table: Table) -> list[str]:
    """The lines of a table, without the spaces at their ends."""
    stream = io.StringIO()
    text.show_table(text.console(stream), table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def frontend(*nodes: Node) -> Frontend:
    return Frontend(SimpleNamespace(ends=()), nodes)


def stage_lines(stage: Frontend, whole: bool = True) -> list[str]:
    stream = io.StringIO()
    text.show(text.console(stream), 1, stage, stages.blocks(stage) if whole else None)
    return stream.getvalue().splitlines()


def test_every_line_of_a_stage_with_all_kinds_of_blocks(monkeypatch):
    table = Table(
        "Ops",
        (
            Column("node", lambda row: row[0], elastic=True, name=True),
            Column("calls", lambda row: f"{row[1]:,}", right=True),
            Column("total", lambda row: row[2], right=True),
            Column("types", lambda row: row[3], elastic=True),
        ),
        (
            ("conv1/Relu", 64, "6.40 ms", "_FusedConv2D"),
            ("pool_1", 1_280, "9.60 us", "MaxPool, 2 Const"),
            ("one", 3, "7 ns", ""),
        ),
        more=1234,
        option="--top",
    )
    drawing = Table("Graph", table.columns[:2], (("●", 1), ("│ ●", 20)), drawing=True, more=5)
    strip = Strip(
        "The passes",
        (
            Frame("remapper", "2 of 3 nodes", ("fused: conv1", "taken: bias")),
            Frame("layout", "1 node", ("moved: pool_1",)),
            Frame("", "", ("By the dumps.",)),
        ),
    )
    monkeypatch.setattr(stages, "blocks", lambda *_: ["Two ops ran.", strip, table, drawing])
    assert [line.rstrip() for line in stage_lines(frontend(Node("x", "Placeholder")))] == [
        "",
        f"1  Frontend: Python calls become nodes {'─' * 61}",
        "Two ops ran.",
        "",
        "The passes",
        "  remapper  2 of 3 nodes",
        "      fused: conv1",
        "      taken: bias",
        "  layout  1 node",
        "      moved: pool_1",
        "      By the dumps.",
        "",
        "Ops",
        "  node        calls    total  types",
        "  ────────────────────────────────────────────",
        "  conv1/Relu     64  6.40 ms  _FusedConv2D",
        "  pool_1      1,280  9.60 us  MaxPool, 2 Const",
        "  one             3     7 ns",
        "  ... and 1,234 more (--top shows more)",
        "",
        "Graph",
        "  node  calls",
        "  ●         1",
        "  │ ●      20",
        "  ... and 5 more",
    ]


def test_a_long_line_of_a_strip_takes_four_lines_and_what_it_is_about_is_whole():
    stream = io.StringIO()
    long = Strip("Passes", (Frame("pass", "y" * 92 + " z", ("x" * 1000, "short")),))
    text.show_block(text.console(stream), long)
    assert stream.getvalue().splitlines() == [
        "",
        "Passes",
        "  pass",
        "    " + "y" * 92 + " z",
        " " * 6 + "x" * 94,
        " " * 8 + "x" * 92,
        " " * 8 + "x" * 92,
        " " * 8 + "x" * 89 + "…",
        "      short",
    ]


def test_on_a_narrow_line_no_sentence_is_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    owner = Column("owner", lambda row: row)
    about = "drops what the fetches do not need"
    assert shown(Table("T", (owner,), ("before the first op (Python, session, feeds)",))) == [
        "T",
        "  owner",
        "  ────────────────────────────",
        "  before the first op (Python,",
        "  session, feeds)",
    ]
    stream = io.StringIO()
    text.show_block(text.console(stream), Strip("S", (Frame("pass", about, ("one " * 50,)),)))
    lines = stream.getvalue().splitlines()
    assert lines[2:5] == ["  pass", "    drops what the fetches do", "      not need"]
    assert " ".join(lines[5:]).split() == ["one"] * 50


def test_a_title_that_does_not_fit_on_its_line_is_wrapped(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    text.show(text.console(stream), 1, Frontend(program=None, nodes=()), ())
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines[1:3] == ["1  Frontend: Python calls", "become nodes"]


def test_what_would_steer_a_terminal_is_visible_in_every_block():
    stream = io.StringIO()
    for block in (
        "a\x1bb\nc",
        Strip("Passes of l\x1bm", (Frame("d\x1be", "f\x1bg", ("h\x1bi",)),)),
        Table("Nodes of n\x1bo", COLUMNS[:1], (("j\x1bk",),)),
    ):
        text.show_block(text.console(stream), block)
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert [line for line in lines if line] == [
        r"a\x1bb\x0ac",
        *(r"Passes of l\x1bm", r"d\x1be  f\x1bg", r"h\x1bi"),
        *(r"Nodes of n\x1bo", "node", "──────", r"j\x1bk"),
    ]


def test_a_table_has_a_title_a_header_and_a_rule():
    rows = (("conv1", "Conv2D, 2 Const", "18.3 us"), ("x", "Placeholder", "812 ns"))
    assert shown(Table("Nodes", COLUMNS, rows)) == [
        "Nodes",
        "  node   types               time",
        "  ───────────────────────────────",
        "  conv1  Conv2D, 2 Const  18.3 us",
        "  x      Placeholder       812 ns",
    ]


def test_a_drawing_has_no_rule_between_its_rows():
    rows = (("●", "x", ""), ("●", "neg", ""))
    assert shown(Table("Graph", COLUMNS, rows, drawing=True)) == [
        "Graph",
        "  node  types  time",
        "  ●     x",
        "  ●     neg",
    ]


def test_rows_that_were_left_out_are_counted():
    table = Table("Nodes", COLUMNS[:1], (("x",),), more=1234)
    assert shown(table)[-1] == "  ... and 1,234 more"


def test_a_table_without_rows_is_its_header():
    assert shown(Table("Nodes", COLUMNS, ())) == [
        "Nodes",
        "  node  types  time",
        "  ─────────────────",
    ]


def test_a_header_that_is_too_long_is_wrapped_and_not_cut():
    lines = shown(Table("Nodes", (Column("a header " * 20, str),), ("x",)))
    headers = [f"  {('a header ' * count).rstrip()}" for count in (11, 9)]
    assert lines == ["Nodes", *headers, f"  {'─' * 98}", "  x"]


def test_markup_in_names_is_printed_as_it_is():
    assert shown(Table("[bold]", COLUMNS[:1], (("[red]x[/red] :smile:",),))) == [
        "[bold]",
        "  node",
        "  ────────────────────",
        "  [red]x[/red] :smile:",
    ]


def test_the_elastic_column_gives_way_first():
    line = shown(Table("Nodes", COLUMNS, (("n" * 40, "t" * 80, "1.00 s"),)))[-1]
    assert line == "  " + "n" * 40 + "  " + "t" * 47 + "…  1.00 s"


def test_then_names_lose_their_middle():
    line = shown(Table("Nodes", COLUMNS, (("a" * 60 + "z" * 60, "t" * 80, "1.00 s"),)))[-1]
    assert line == "  " + "a" * 35 + "…" + "z" * 36 + "  " + "t" * 15 + "…  1.00 s"


ROWS = st.lists(st.tuples(PRINTABLE, PRINTABLE, PRINTABLE), max_size=3)


@settings(max_examples=25)
@given(PRINTABLE, ROWS, st.booleans())
def test_no_line_of_a_table_has_over_100_columns(title, rows, drawing):
    assert max(map(cell_len, shown(Table(title, COLUMNS, tuple(rows), drawing))), default=0) <= 100


@settings(max_examples=25)
@given(st.lists(NAMES, min_size=1, max_size=3, unique=True), PRINTABLE, st.booleans())
def test_no_line_of_a_stage_has_over_100_columns(names, code, whole):
    source = Source(f"{names[0]}.py", 7, "build", code)
    outputs = (Tensor("float32", (None,) * 40),)
    nodes = (Node(name, "Op" * 50, outputs=outputs, source=source) for name in names)
    assert max(map(cell_len, stage_lines(frontend(*nodes), whole))) <= 100


def test_a_stage_in_full_opens_with_its_number_and_title():
    lines = stage_lines(frontend(Node("x", "Placeholder")))
    assert lines[1].startswith(f"1  {stages.STAGES[Frontend].title} ──")


def test_a_stage_on_the_way_is_one_line():
    stage = frontend(Node("x", "Placeholder"))
    assert stage_lines(stage, whole=False) == [
        "1  Frontend: Python calls become nodes: 1 node, 0 edges."
    ]


# Colour


def escapes(stream: io.StringIO) -> bool:
    text.show(text.console(stream), 1, frontend(Node("x", "Placeholder")), ())
    return "\x1b" in stream.getvalue()


@pytest.fixture
def plain_environment(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def coloured(show: Callable[[Console], None]) -> list[str]:
    """The lines in a terminal, with all their spaces; colours as what turns them on and off."""
    stream = Terminal()
    show(text.console(stream))
    return stream.getvalue().splitlines()


BOLD, DIM, TITLE, OFF = "\x1b[1m", "\x1b[2m", "\x1b[1;36m", "\x1b[0m"


def test_titles_headings_and_headers_are_bold_and_what_is_of_less_use_is_dim(plain_environment):
    columns = (
        Column("node", lambda row: row[0]),
        Column("calls", lambda row: str(row[1]), right=True),
    )
    rows = (("a", 1), ("bcdefg", 20))
    strip = Strip("The passes", (Frame("remapper", "2 nodes", ("fused",)),))
    table = Table("Ops", columns, rows, more=3)
    drawing = Table("Graph", columns, rows, drawing=True)
    assert coloured(
        lambda out: [text.show_block(out, block) for block in ("Two.", strip, table, drawing)]
    ) == [
        "",
        "Two.",
        "",
        f"{TITLE}The passes{OFF}",
        f"  {BOLD}remapper{OFF}  2 nodes",
        "      fused",
        "",
        f"{TITLE}Ops{OFF}",
        f"  {BOLD}node  {OFF}{BOLD} {OFF} {BOLD}calls{OFF}",
        f"  {'─' * 13}",
        "  a           1",
        "  bcdefg     20",
        f"{DIM}  ... and 3 more{OFF}",
        "",
        f"{TITLE}Graph{OFF}",
        f"  {DIM}node  {OFF}{DIM}  {OFF}{DIM}calls{OFF}",
        "  a           1",
        "  bcdefg     20",
    ]


def test_a_stage_in_full_has_a_bold_title_and_one_on_the_way_is_dim(plain_environment):
    stage = frontend(Node("x", "Placeholder"))
    title = "1  Frontend: Python calls become nodes"
    full = coloured(lambda out: text.show(out, 1, stage, ["A sentence."]))
    assert full[1].startswith(f"{BOLD}{title}{OFF}")
    assert len(full) > 2
    assert coloured(lambda out: text.show(out, 1, stage)) == [
        f"{DIM}{title}: 1 node, 0 edges.{OFF}"
    ]


def test_a_sentence_is_printed_as_it_is(plain_environment):
    sentence = "[red]x[/red] :smile: 12 'a'"
    assert coloured(lambda out: out.print(sentence)) == [sentence]


def test_a_table_without_title_and_headers_is_its_rows():
    columns = Column("", lambda row: row[0]), Column("", lambda row: row[1])
    rows = (("step", "2.40 ms"), ("chain rule", "one factor " * 9))
    assert shown(Table("", columns, rows)) == [
        "  step        2.40 ms",
        "  chain rule" + "  one factor" + " one factor" * 6 + " one",
        "              factor one factor",
    ]


def test_only_a_terminal_gets_colours(plain_environment):
    assert escapes(Terminal())
    assert not escapes(io.StringIO())


@pytest.mark.parametrize("columns, width", [("60", 60), ("200", 200), ("3", 20)])
@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_the_width_is_what_the_environment_says(
    plain_environment, monkeypatch, stream, columns, width
):
    monkeypatch.setenv("COLUMNS", columns)
    assert text.console(stream()).width == width


@pytest.mark.parametrize("columns", [None, "", "wide"])
def test_where_nobody_says_how_wide_it_is_a_pipe_has_100_columns(
    plain_environment, monkeypatch, columns
):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert text.console(io.StringIO()).width == 100


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("", 100)])
def test_in_a_notebook_a_stream_is_as_wide_as_elsewhere(
    plain_environment, monkeypatch, columns, width
):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    out = text.console(io.StringIO())
    assert (out.width, out.is_jupyter) == (width, False)


def test_prose_keeps_to_100_columns_and_a_table_takes_what_there_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    stream = io.StringIO()
    out = text.console(stream)
    text.show_block(out, "word " * 60)
    text.show_block(out, Table("Nodes", COLUMNS[:1], (("n" * 140,),)))
    lines = [len(line.rstrip()) for line in stream.getvalue().splitlines()]
    assert lines == [0, 99, 99, 99, 0, 5, 6, 142, 142]


def test_columns_that_are_left_out_are_named_below(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    columns = (
        Column("node", lambda row: row[0]),
        Column("time", lambda row: row[1], right=True),
        Column("output", lambda row: row[2], spare=1),
        Column("code", lambda row: row[3], spare=2),
    )
    rows = (("conv1", "18.3 us", "float32[16, 28]", "tf.nn.relu(x)"),)
    assert shown(Table("Nodes", columns, rows)) == [
        "Nodes",
        "  node      time",
        "  ──────────────",
        "  conv1  18.3 us",
        "  Columns omitted (terminal",
        "too narrow): output, code.",
    ]


# Widths


def test_wide_letters_stay_within_the_line_of_their_row():
    lines = shown(Table("Nodes", COLUMNS, (("日" * 60, "本" * 60, "1.00 s"),)))
    assert len(lines) == 4
    assert max(map(cell_len, lines)) <= 100
    assert lines[-1].endswith("1.00 s")


def test_rows_that_matter_less_are_dim_where_somebody_looks():
    rows = (("count", "Shape", "1"), ("compute", "Mul", "2"))
    table = Table("Ops", COLUMNS, rows, dimmed=lambda row: row[0] == "count")
    stream = io.StringIO()
    out = Console(file=stream, force_terminal=True, width=60, color_system="standard")
    text.show_table(out, table)
    first, second = stream.getvalue().splitlines()[-2:]
    assert "\x1b[2m" in first and "count" in first
    assert "\x1b[2m" not in second and "compute" in second
    assert shown(table)[-2:] == ["  count    Shape     1", "  compute  Mul       2"]
