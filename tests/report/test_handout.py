"""The report as Markdown: one small page, compared whole."""

from tests.examples import walk
from tflab.follow import node_history
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.report import drawing, handout
from tflab.report.contents import Chapter, DrawnGraph, Method, Picture, Report

LIVES = node_history.histories(walk.STAGES[:1])
CURVES = Picture("curves", "A_curve.", "<svg/>", b"png")
ROOF = Picture("roof", "A roof.", "<svg>2</svg>", b"png 2")
TOLD = Report(
    "The stages of x*y",
    "About <it>.",
    "python -m tflab.report",
    (
        Chapter(
            "First",
            (
                "A sentence.",
                Table(
                    "Costs",
                    (Column("op", str), Column("n", lambda op: str(len(op)), right=True)),
                    ("Relu",),
                    more=3,
                ),
                Strip("Passes", (Frame("placer", "devices", ("moved", "rewired")),)),
                CURVES,
            ),
        ),
        Chapter(
            "Last",
            (
                DrawnGraph("x*y", drawing.draw(walk.STAGES[:1], LIVES), LIVES, {}, 16),
                ROOF,
                Method("As it was *measured*.", "tflab run\ntflab again"),
            ),
        ),
    ),
)
PAGE = r"""# The stages of x\*y

About \<it\>.

```text
python -m tflab.report
```

## First

A sentence.

**Costs**

| op | n |
| --- | ---: |
| Relu | 4 |

... and 3 more

**Passes**

- **placer** devices
  - moved
  - rewired

![A\_curve.](report_files/curves.png)

## Last

[report.html](report.html) draws x\*y; its states are listed here.

**The changes of the graph, step by step**

| step | nodes before | after | what happened |
| --- | ---: | ---: | --- |
| Written | 0 | 7 | 7 nodes, 8 edges |

![A roof.](report_files/roof.png)

As it was \*measured\*.

```text
tflab run
tflab again
```
"""


def test_the_page_holds_its_chapters_whole_and_in_their_order():
    assert handout.page(TOLD) == PAGE


def test_every_picture_of_every_chapter_is_written_in_both_formats(tmp_path):
    folder = tmp_path / "report_files"
    handout.write_pictures(TOLD, folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files == {
        "curves.png": b"png",
        "curves.svg": b"<svg/>",
        "roof.png": b"png 2",
        "roof.svg": b"<svg>2</svg>",
    }
