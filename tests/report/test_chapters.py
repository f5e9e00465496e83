"""The report's chapters, from a lab that was worked out by hand.

Plots have tests of their own; here the caption of a picture is what is drawn in it.
"""

import math
from dataclasses import replace

import pytest

from tests.examples.histories import value
from tests.examples.lab import COMPARED, HISTORY, LAB, LINEAR, RACED, ROWS, TOY
from tests.examples.printed import approve_text
from tests.examples.walk import BACKWARD, EXECUTION, STAGES
from tests.maps_by_hand import IMAGES, MAPS
from tests.records_by_hand import LOAD
from tflab.records.graph import Link
from tflab.records.measured import Diagnosis
from tflab.records.values import ValuesStep
from tflab.report import chapters, contents, drawing, handout
from tflab.report.contents import Chapter, DrawnGraph, Lab, Picture, Report
from tflab.runtime import trace

pytestmark = pytest.mark.usefixtures("undrawn")


def walked(*stages, **changes):
    """The walk of the model with other stages, or with changes of its execution."""
    of_type = {type(stage): stage for stage in (*STAGES, replace(EXECUTION, **changes), *stages)}
    return replace(LINEAR, stages=tuple(of_type.values()))


SLOW = Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement")
WHOLE = replace(
    LAB,
    walked=walked(maps=MAPS, load=LOAD),
    compared=replace(RACED, load=LOAD, diagnosis=(SLOW,)),
)
SILENT = tuple(
    replace(epoch, train_accuracy=math.nan, test_accuracy=math.nan) for epoch in HISTORY.epochs
)
TINY = replace(HISTORY.epochs[0], train_loss=3.77e-12, test_loss=1.37e-12, seconds=0.00235)
RECORDED = ValuesStep("the first", 1, (), ())
RULE = (Link("loss", "mean(w)", "w", "read", "dL/dw", "dL/d(loss)", True),)
VALUES = walked(
    replace(BACKWARD, chain_rule=RULE), values_step=RECORDED, values=(value("w", (1.0,)),)
)
NOT_UPDATED = {
    name: replace(node, kind="gradient") if node.kind == "update" else node
    for name, node in LINEAR.histories.items()
}
FEW = {size: replace(times, steps=4) for size, times in COMPARED.steps.items()}
BARE = Lab("lenet", LAB.environment)
USUAL = tuple(name for name in contents.CHAPTERS if name != "lab")  # which has its own tests
OF_MODEL = ("graph", "ops", "batch-sizes", "memory")
ONE_EPOCH = replace(HISTORY.settings, epochs=1)


def of_history(**changes):
    return {"history": replace(HISTORY, **changes)}


# Title -> what is different, or the lab and its chapters
VARIANTS = {
    "the toy": (replace(LAB, model="toy", walked=TOY), USUAL),
    "some chapters": (WHOLE, ("graph", "batch-sizes")),
    "a chapter without a graph": (WHOLE, ("memory",)),
    "nothing was measured": (BARE, USUAL),
    "interrupted": (replace(LAB, interrupted=True, compared=None), OF_MODEL),
    "interrupted, but nothing is missing": (replace(LAB, interrupted=True), OF_MODEL[:1]),
    "three batch sizes, nothing found, no configurations": {
        "compared": replace(COMPARED, findings=())
    },
    "too few steps for a cause": {"compared": replace(COMPARED, steps=FEW)},
    "findings": {"compared": COMPARED},
    "rows instead of images": {"compared": replace(COMPARED, unit="row")},
    "tables of ten types": {"compared": replace(RACED, tables={64: ROWS[:10]}, batch_sizes=(64,))},
    "values of the program, and its chain rule": {"walked": VALUES},
    "gradients that nobody applies": {"walked": replace(LINEAR, histories=NOT_UPDATED)},
    "one map": {"walked": walked(maps=replace(MAPS, maps=(IMAGES,)))},
    "a training that broke off": of_history(settings=replace(HISTORY.settings, epochs=4)),
    "a training without an epoch": of_history(epochs=()),
    "a training without right answers": of_history(epochs=SILENT[:1], settings=ONE_EPOCH),
    "a training of very small losses": of_history(epochs=(TINY,), settings=ONE_EPOCH),
    "a model without a loss": {"history": None},
}


def page(lab, names=USUAL):
    """The report as Markdown, with the titles and results of chapters folded in the page."""
    report = chapters.report(lab, "python -m tflab.report", names)
    folded = [f"{one.title} {one.result}".strip() for one in report.chapters if one.folded]
    return f"{handout.page(report)}\nFolded: {', '.join(folded)}\n"


def test_each_chapter_is_its_sentences_its_tables_and_how_the_numbers_were_obtained():
    variants = {
        title: page(replace(WHOLE, **to)) if isinstance(to, dict) else page(*to)
        for title, to in VARIANTS.items()
    }
    approve_text("report.md", page(WHOLE), variants)


def test_every_chapter_that_can_be_chosen_can_be_written():
    assert ("lab", *(name for name, *_ in chapters.drafts(WHOLE))) == contents.CHAPTERS


def test_a_graph_is_drawn_with_the_times_of_its_nodes_and_its_chain_rule():
    (drawn,) = (p for p in chapters.graph(VALUES) if isinstance(p, DrawnGraph))
    assert drawn == DrawnGraph(
        name="lenet",
        drawing=drawing.draw(VALUES.stages, LINEAR.histories),
        histories=LINEAR.histories,
        ns={trace.EXECUTOR: 10, "read": 400, "relu": 7_100, "loss": 2_100},
    )


def test_chapters_come_in_their_order_each_once_and_some_only_if_they_are_named():
    assert contents.chosen(("memory", "graph", "memory")) == ("graph", "memory")
    assert contents.chosen(()) == USUAL
    assert contents.chosen(("lab", "graph")) == ("lab", "graph")


def test_every_picture_of_every_chapter_is_written_in_both_formats(tmp_path):
    pictures = [Picture(name, "A_curve.", f"<svg>{name}</svg>", b"png") for name in "ab"]
    whole = tuple(Chapter(picture.name, ("A sentence.", picture)) for picture in pictures)
    handout.write_pictures(Report("", "", "", whole), tmp_path / "files")
    files = {path.name: path.read_bytes() for path in (tmp_path / "files").iterdir()}
    svgs = {f"{name}.svg": f"<svg>{name}</svg>".encode() for name in "ab"}
    assert files == {"a.png": b"png", "b.png": b"png", **svgs}
