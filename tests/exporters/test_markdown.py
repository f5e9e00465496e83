"""Markdown: a page that pastes into a report, and names that stay names."""

from types import SimpleNamespace

import pytest

from tflab.exporters import markdown
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.records.graph import Node
from tflab.records.stages import Frontend
from tflab.views import stages

ENVIRONMENT = {
    "python": "3.11.2",
    "os": "Debian",
    "processor": "Some_CPU",
    "cpus": 2,
    "packages": {"tensorflow": "2.21.0", "xprof": None, "numpy": "2.4.6"},
}
STAGE = Frontend(SimpleNamespace(ends=()), (Node("a_b", "Placeholder"),))
COLUMNS = (Column("node", lambda row: row[0]), Column("time", lambda row: row[1], right=True))


OPS = Table(
    "Ops_1",
    (
        Column("node", lambda row: row[0]),
        Column("calls", lambda row: str(row[1]), right=True),
        Column("types", lambda row: row[2], elastic=True),
    ),
    (
        ("conv1/Relu", 64, "_FusedConv2D"),
        ("pool_1", 128, "MaxPool, 2 Const"),
        ("one", 3, ""),
    ),
    more=1234,
    option="--top",
)
BLOCKS = (
    "Two *ops* ran.",
    Strip(
        "The_passes",
        (
            Frame("re_mapper", "2 of <3> nodes", ("fused: conv_1", "taken: bias")),
            Frame("layout", "", ("moved: pool_1",)),
            Frame("", "", ("By the dumps_.",)),
        ),
    ),
    OPS,
    Table("Graph", OPS.columns[:2], (("●", 1), ("│ ●", 20)), drawing=True, more=5),
)
LINES = [
    "Two \\*ops\\* ran.",
    "",
    "**The\\_passes**",
    "",
    "- **re\\_mapper** 2 of \\<3\\> nodes",
    "  - fused: conv\\_1",
    "  - taken: bias",
    "- **layout**",
    "  - moved: pool\\_1",
    "- By the dumps\\_.",
    "",
    "**Ops\\_1**",
    "",
    "| node | calls | types |",
    "| --- | ---: | --- |",
    "| conv1/Relu | 64 | \\_FusedConv2D |",
    "| pool\\_1 | 128 | MaxPool, 2 Const |",
    "| one | 3 |  |",
    "",
    "... and 1,234 more (--top shows more)",
    "",
    "**Graph**",
    "",
    "```text",
    "node  calls",
    "●     1",
    "│ ●   20",
    "```",
    "",
    "... and 5 more",
]
MACHINE = "2 CPUs (Some\\_CPU), Debian, Python 3.11.2, tensorflow 2.21.0, numpy 2.4.6."


def test_every_line_of_a_page_of_one_subject():
    page = markdown.page("le_net by batch size", ENVIRONMENT, BLOCKS)
    assert page.split("\n") == ["# le\\_net by batch size", "", MACHINE, "", *LINES, ""]


def test_every_line_of_a_page_of_stages():
    page = markdown.render(
        "le_net", ENVIRONMENT, [STAGE, STAGE], lambda _: BLOCKS, "No kernel for a_b."
    )
    assert page.split("\n") == [
        *("# The stages of le\\_net", "", MACHINE, ""),
        *("## 1. Frontend: Python calls become nodes", "", *LINES, ""),
        *("## 2. Frontend: Python calls become nodes", "", *LINES, ""),
        *("**Stopped here:** No kernel for a\\_b.", ""),
    ]


def test_a_table_without_a_title_is_its_rows():
    columns = Column("", lambda row: row[0]), Column("", lambda row: row[1])
    assert markdown.table(Table("", columns, (("step", "2.40 ms"),))).splitlines() == [
        *("|  |  |", "| --- | --- |", "| step | 2.40 ms |")
    ]


def test_a_table_aligns_numbers_on_the_right():
    rows = (("mul", "18.3 us"), ("add", "2.40 ms"))
    assert markdown.table(Table("Nodes", COLUMNS, rows)).splitlines() == [
        "**Nodes**",
        "",
        "| node | time |",
        "| --- | ---: |",
        "| mul | 18.3 us |",
        "| add | 2.40 ms |",
    ]


def test_a_drawing_keeps_its_columns_in_a_code_block():
    rows = (("●", "x|y"), ("│ ●", "`code`"))
    assert markdown.table(Table("Graph", COLUMNS, rows, drawing=True)).splitlines() == [
        "**Graph**",
        "",
        "```text",
        "node  time",
        "●     x|y",
        "│ ●   `code`",
        "```",
    ]


def test_rows_that_were_left_out_are_counted():
    table = Table("Nodes", COLUMNS, (("a", "b"),), more=1234)
    assert markdown.table(table).splitlines()[-2:] == ["", "... and 1,234 more"]


def test_a_table_without_rows_is_its_header():
    assert markdown.table(Table("t", COLUMNS[:1], ())).splitlines()[2:] == ["| node |", "| --- |"]
    assert markdown.table(Table("t", COLUMNS[:1], (), drawing=True)).splitlines()[2:] == [
        "```text",
        "node",
        "```",
    ]


@pytest.mark.parametrize(
    "name, escaped",
    [
        ("a|b", "a\\|b"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("`code`", "\\`code\\`"),
        ("my_conv_1*2", "my\\_conv\\_1\\*2"),
        ("[text](url)", "\\[text\\](url)"),
        ("a\\b", "a\\\\b"),
        ("conv1/Conv2D", "conv1/Conv2D"),
        ("MaxPool & X~Y", "MaxPool &amp; X\\~Y"),
    ],
)
def test_names_become_neither_markdown_nor_html(name, escaped):
    assert markdown.escape(name) == escaped
    assert f"| {escaped} | 1 |" in markdown.table(Table("t", COLUMNS, ((name, "1"),)))


def test_a_page_begins_with_the_machine_and_goes_on_with_each_stage():
    page = markdown.render("my_model", ENVIRONMENT, [STAGE, STAGE])
    assert page.startswith(
        "# The stages of my\\_model\n\n"
        "2 CPUs (Some\\_CPU), Debian, Python 3.11.2, tensorflow 2.21.0, numpy 2.4.6.\n\n"
        f"## 1. {markdown.escape(stages.title(STAGE))}\n\n"
    )
    assert [line[:5] for line in page.splitlines() if line.startswith("## ")] == ["## 1.", "## 2."]
    assert page.endswith("\n") and not page.endswith("\n\n")


def test_a_page_ends_with_the_error_that_ended_it():
    page = markdown.render("toy", ENVIRONMENT, [], error="No kernel for <Op>.")
    assert page.splitlines()[-1] == "**Stopped here:** No kernel for \\<Op\\>."
