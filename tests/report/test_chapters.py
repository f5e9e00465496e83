"""The report's chapters: their order, and those that say what was measured and how.

Plots have tests of their own; here a picture is its name and what is drawn in it.
"""

from dataclasses import replace

import pytest

from tests.examples import walk
from tests.examples.lab import COMPARED, LAB, LINEAR, RACED, STAGES, SWEPT, TOY, shown
from tests.records_by_hand import LOAD, LOAD_LINE
from tests.shown import grid, layout
from tflab.records.blocks import Frame, Strip
from tflab.records.verdicts import Diagnosis
from tflab.report import chapters, comparison_chapters, graph_chapter, selection, step_chapters
from tflab.report.contents import Lab

pytestmark = pytest.mark.usefixtures("undrawn")


def test_the_report_opens_with_what_it_is_about():
    report = chapters.report(LAB, "python -m tflab.report --model lenet")
    assert report.title == "The stages of lenet"
    assert report.about == (
        "This report follows what TensorFlow does between a line of Python and the machine, "
        "through two "
        "graphs: x*y + z, small enough to follow by eye, and lenet. Each chapter says how its "
        "numbers were obtained."
    )
    assert report.command == "python -m tflab.report --model lenet"


def test_a_report_of_the_small_graph_has_it_once():
    small = replace(LAB, model="toy", walked=TOY)
    whole = chapters.report(small, "", selection.chosen((), "toy"))
    assert [title for title in titles(whole) if title.startswith(("The stages", "x*y"))] == [
        "The stages of x*y + z"
    ]
    assert whole.title == "The stages of x*y + z"
    assert whole.about == (
        "This report follows what TensorFlow does between a line of Python and the machine, "
        "through x*y + "
        "z, a graph that is small enough to follow by eye. Each chapter says how its numbers were "
        "obtained."
    )


def titles(report):
    return [chapter.title for chapter in report.chapters]


def test_the_small_graph_on_two_devices_follows_the_same_on_one():
    whole = chapters.report(replace(LAB, toy_on_two=LAB.toy), "")
    assert titles(whole)[:3] == [
        "The stages of x*y + z",
        "x*y + z on two devices",
        f"The stages of {LAB.model}",
    ]


def test_every_chapter_that_can_be_chosen_can_be_written():
    assert tuple(chapters.CHAPTERS) == selection.CHAPTERS


def test_a_report_has_the_chapters_that_were_chosen():
    chosen = chapters.report(LAB, "", ("graph", "batch-sizes"))
    assert titles(chosen) == ["The stages of lenet", "Batch sizes"]
    assert chosen.about == (
        "This report follows what TensorFlow does between a line of Python and the machine, "
        "through lenet. "
        "Each chapter says how its numbers were obtained."
    )
    assert chapters.report(LAB, "", ("memory",)).about == (
        "Measurements of lenet. Each chapter says how its numbers were obtained."
    )


def test_what_was_not_measured_is_in_no_chapter():
    bare = Lab("lenet", LAB.environment, None, None, None, None)
    report = chapters.report(bare, "")
    assert titles(report) == [*("Loss and accuracy", "Environment", "How each number was obtained")]
    assert report.questions == ()
    assert shown(chapters.environment(bare))[1][2:] == [
        ("Model", "lenet, as a graph that a session runs"),
        ("Graph passes", "the runtime's defaults; XLA is off"),
        0,
    ]
    assert [type(part) for part in chapters.methods(bare)] == [str]


def test_a_report_that_was_interrupted_has_the_chapters_that_were_measured_and_says_so():
    lab = replace(LAB, interrupted=True, missing=frozenset({"sweep", "experiments"}))
    report = chapters.report(lab, "", ("graph", "ops", "batch-sizes", "memory"))
    assert titles(report) == ["The stages of lenet", "Memory"]
    assert report.about.endswith(
        " Partial: these are the measurements before the interruption. These chapters "
        "are missing: ops, batch-sizes."
    )
    whole = chapters.report(replace(LAB, interrupted=True), "", ("graph",))
    assert whole.about.endswith(" Partial: these are the measurements before the interruption.")


def test_the_reasons_why_a_step_is_slow_come_before_its_ops():
    slow = Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement")
    lab = replace(LAB, compared=replace(COMPARED, diagnosis=(slow,)))
    *_, first, second = chapters.report(lab, "", ("training", "slow", "ops")).chapters
    assert (first.title, second.title) == ("Why a step is slow", "The ten most expensive ops")
    sentences = Frame("", "", ("Transposes cost most.",))
    assert first.parts == (
        Strip("Why a step is slow (largest cost first)", (sentences,)),
        SWEPT,
    )


def test_the_load_stands_in_the_environment_and_above_the_times():
    times = replace(walk.EXECUTION, load=LOAD)
    stages = tuple(times if stage is walk.EXECUTION else stage for stage in STAGES)
    lab = replace(LAB, compared=replace(COMPARED, load=LOAD))
    parts = {chapter.title: chapter.parts for chapter in chapters.report(lab, "").chapters}
    assert parts["Environment"][0] == LOAD_LINE
    assert next(step_chapters.times(replace(LINEAR, stages=stages))) == LOAD_LINE
    assert next(step_chapters.times(LINEAR)) != LOAD_LINE


def test_each_chapter_holds_what_its_title_says():
    report = chapters.report(LAB, "")
    assert [(chapter.title, shown(chapter.parts)) for chapter in report.chapters] == [
        ("The stages of x*y + z", shown(graph_chapter.parts(TOY, "x*y + z"))),
        ("The stages of lenet", shown(graph_chapter.parts(LINEAR, "lenet"))),
        ("Loss and accuracy", shown(step_chapters.training(LAB))),
        ("The ten most expensive ops", shown(step_chapters.top_ops(LINEAR, COMPARED))),
        ("Batch sizes", shown(comparison_chapters.batch_sizes(COMPARED))),
        ("Configurations", shown(comparison_chapters.configurations(COMPARED, 0))),
        ("Where a step's time goes", shown(step_chapters.times(LINEAR))),
        ("Memory", shown(step_chapters.memory(LINEAR))),
        ("Environment", shown(chapters.environment(LAB))),
        ("How each number was obtained", shown(chapters.methods(LAB))),
    ]
    folded = [chapter.title for chapter in report.chapters if chapter.folded]
    assert folded == [*("Configurations", "Memory", "Environment", "How each number was obtained")]


def test_the_environment_is_what_was_found_and_what_was_measured():
    assert shown(chapters.environment(LAB)) == [
        ["Environment, by inspection", ("", ""), ("CPUs", "2"), ("Python", "3.11.2"), 0],
        [
            "Configuration that was measured",
            ("", ""),
            ("Model", "lenet, as a graph that a session runs"),
            ("Data", "points"),
            ("Devices", "2 devices"),
            ("Graphs, times, memory", "training, batch size 16"),
            ("Batch sizes", "inference, 4, 16, 64"),
            ("Graph passes", "the runtime's defaults; XLA is off"),
            0,
        ],
    ]


METHODS = [
    "Steps, warm-up, tracing",
    ("numbers", "steps", "warm-up, not counted", "traced or not"),
    ("Step times, ledger, path, memory", "3", "2", "in turn"),
    ("Batch sizes, 64,192 images at each", "11, 5, 1,003", "6", "in turn"),
    ("The cold step", "1", "0", "traced, in a separate process"),
]


def test_it_closes_with_how_each_number_was_obtained():
    assert shown(chapters.methods(LAB)) == [
        [*METHODS, ("Loss and accuracy", "1,205", "0", "untraced except for 5"), 0],
        "In turn means that untraced and traced steps alternate, so both run under the same "
        "conditions. The untraced time is the time of a step; the traced time, which is longer, "
        "shows its parts. Passes, devices and the graph that ran are read from the runtime's "
        "dumps. The fate of each node is derived from the graphs before and after each pass.",
    ]


def test_the_observations_of_configurations_are_counted():
    table, _ = chapters.methods(replace(LAB, compared=RACED))
    assert grid(table)[5] == (
        "Configurations, 7 observations",
        *("in turns", "before each turn", "untraced"),
    )


def test_without_a_training_no_numbers_of_one_were_obtained():
    table, _ = chapters.methods(replace(LAB, history=None))
    assert grid(table) == [*METHODS, 0]


def test_numbers_of_steps_stand_right_and_what_is_long_gives_way():
    assert list(map(layout, chapters.environment(LAB))) == 2 * [["", " gives way to 16"]]
    table, _ = chapters.methods(LAB)
    assert layout(table) == [
        *("numbers gives way to 16", "steps right", "warm-up, not counted right"),
        "traced or not",
    ]
