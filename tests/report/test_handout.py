"""The report as Markdown: one small page, compared whole."""

import itertools

import pytest
from matplotlib.figure import Figure

from tests.pictures import caption, title
from tests.report import test_graph_states as walk
from tests.report.test_drawing import STAGES
from tests.report.test_graph_states import STAGES as LONGER
from tflab.follow import node_history
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.report import drawing, handout
from tflab.report.contents import Chapter, DrawnGraph, Method, Picture, Report

LIVES = node_history.histories(walk.STAGES[:1])
CURVES = Picture("curves", "A_curve.", "<svg/>", "<svg/>", b"png")
ROOF = Picture("roof", "A roof.", "<svg>2</svg>", "<svg/>", b"png 2")
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

![x\*y](report_files/graph-1.png)

In [report.html](report.html) you can click its nodes; its states are listed here.

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
    assert files.pop("graph-1.png").startswith(b"\x89PNG")
    assert b">relu</text>" in files.pop("graph-1.svg")
    assert files == {
        "curves.png": b"png",
        "curves.svg": b"<svg/>",
        "roof.png": b"png 2",
        "roof.svg": b"<svg>2</svg>",
    }


# A drawn graph as a picture


def figure_of(stages):
    histories = node_history.histories(stages)
    return handout.draw(
        DrawnGraph("g", drawing.draw(stages, histories), histories, {}, 16),
    )


@pytest.fixture(scope="module")
def axes():
    return figure_of(STAGES).axes[0]


def boxes(axes):
    """Label -> (left, right, row, whether it is dashed) of every box."""
    middles = {text.get_text(): text.get_position() for text in axes.texts}
    spans = {}
    for patch in axes.patches:
        if hasattr(patch, "get_width"):
            x, y = patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2
            label = next(
                words for words, place in middles.items() if place == pytest.approx((x, y))
            )
            dashed = patch.get_linestyle() != "solid" and patch.get_facecolor()[:3] == (1, 1, 1)
            spans[label] = (patch.get_x(), patch.get_x() + patch.get_width(), round(y), dashed)
    return spans


def test_scopes_are_closed_and_what_is_gone_is_dashed(axes):
    assert {label: (row, dashed) for label, (*_, row, dashed) in boxes(axes).items()} == {
        "x": (0, True),
        "layer (4)": (1, False),
        "loss": (2, False),
        "layer gradients (3)": (1, False),
        "layer updates (2)": (1, False),
    }


def test_boxes_of_a_row_do_not_overlap(axes):
    spans = sorted((row, left, right) for left, right, row, _ in boxes(axes).values())
    for (row, _, right), (next_row, left, _) in itertools.pairwise(spans):
        assert row != next_row or right < left


def sides(axes):
    """Label -> the middle of each side of a box, by the name of the side."""
    half = handout.HEIGHT / handout.PITCH / 2
    return {
        label: {
            "left": (left, row),
            "right": (right, row),
            "top": ((left + right) / 2, row - half),
            "foot": ((left + right) / 2, row + half),
        }
        for label, (left, right, row, _) in boxes(axes).items()
    }


def end_of(point, axes):
    """(label, side) of the box at which an arrow starts or ends."""
    return next(
        (label, side)
        for label, places in sides(axes).items()
        for side, place in places.items()
        if place == pytest.approx(point)
    )


def arrows(axes):
    """((label, side), (label, side)) of the two ends of every arrow."""
    drawn = [patch for patch in axes.patches if not hasattr(patch, "get_width")]
    assert all(patch.get_arrowstyle().arrow == "-|>" for patch in drawn)  # the head is at the end
    return [tuple(end_of(point, axes) for point in patch._posA_posB) for patch in drawn]


def test_every_edge_between_boxes_is_one_arrow_from_the_side_that_faces_the_other_box(axes):
    gradients, updates = "layer gradients (3)", "layer updates (2)"
    assert sorted(arrows(axes)) == [
        (("layer (4)", "foot"), ("loss", "top")),
        (("layer (4)", "right"), (gradients, "left")),
        (("layer (4)", "right"), (updates, "left")),
        ((gradients, "right"), (updates, "left")),
        (("x", "foot"), ("layer (4)", "top")),
        (("x", "right"), (gradients, "left")),
    ]


@pytest.mark.parametrize(
    ("source", "target", "start", "end"),
    [
        ((1, 2, 50), (1, 1, 50), (50, 1.7), (50, 1.3)),  # up, as gradients flow
        ((1, 1, 50), (1, 2, 50), (50, 1.3), (50, 1.7)),
        ((1, 1, 50), (1, 1, 90), (60, 1), (80, 1)),  # to the right in a row, and back
        ((1, 1, 90), (1, 1, 50), (80, 1), (60, 1)),
        ((2, 1, 90), (1, 2, 50), (80, 1), (60, 2)),  # to a track on the left
    ],
)
def test_an_arrow_leads_from_the_nearest_side_to_the_nearest_side(source, target, start, end):
    axes = Figure().add_subplot()
    placed = [handout.Placed("", (), track, row, x, width=20) for track, row, x in (source, target)]
    handout.draw_edge(axes, *placed, {1: 1.0, 2: 2.0})
    (arrow,) = axes.patches
    assert arrow._posA_posB == [pytest.approx(start), pytest.approx(end)]


def test_it_says_how_many_nodes_are_not_in_the_graph_that_runs():
    figure = figure_of(STAGES)
    assert title(figure) == "g: 11 nodes and their fates"
    assert caption(figure) == (
        "Scopes are closed and show their number of nodes. 2 nodes are not in the graph that "
        "runs: a box with no node left is dashed."
    )
    assert caption(figure_of(LONGER[:2])) == "Scopes are closed and show their number of nodes."
