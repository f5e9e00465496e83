"""The stages of a walk on one screen, and the words that views share."""

from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.printed import printed
from tests.examples.walk import BACKWARD, EXECUTION, FORWARD, FRONTEND, PLACEMENT
from tests.records_by_hand import source
from tflab.records.gradients import Derivative
from tflab.records.graph import Tensor
from tflab.records.values import ValuesStep
from tflab.views import stages, words

OF_A_LINE = tuple(replace(node, source=source(3, "x = placeholder()")) for node in FORWARD[:2])
WALK = (
    replace(FRONTEND, nodes=OF_A_LINE + FORWARD[2:], notes=("A note.",)),
    replace(BACKWARD, derivatives=(Derivative("y", "mean(x)", -0.633878, 1e-8, 0.0),)),
    PLACEMENT,
    replace(EXECUTION, values_step=ValuesStep("the first step", 1, (), ())),
)


def test_the_stages_on_one_screen():
    approve("views-one-screen.txt", printed(b for stage in WALK for b in on_screen(stage)))


def on_screen(stage):
    return [f"{stages.title(stage)}: {stages.summary(stage)}.", *stages.on_one_screen(stage)]


def test_the_facts_of_all_stages_are_one_story():
    approve("views-story.txt", printed([stages.story(WALK)]))


def test_a_source_is_its_file_without_folders_and_its_line():
    assert words.place(source(7)) == "model.py:7"
    assert words.place(None) == ""


@pytest.mark.parametrize(
    "tensor, text",
    [
        (Tensor("float32", (None, 10)), "float32 [?, 10]"),
        (Tensor("int64", ()), "int64 []"),
        (Tensor("bool", None), "bool [...]"),
        (Tensor("bool", (0, 3)), "bool [0, 3]"),
    ],
)
def test_a_tensor_is_its_dtype_and_shape(tensor, text):
    assert words.tensor(tensor) == text


def test_things_are_counted_the_most_frequent_first():
    assert words.counted(["Exp", "Const", "Log", "Const"]) == "2 Const, Exp, Log"


def test_of_many_names_the_first_are_listed_and_the_others_counted():
    assert words.listed(["a", "b", "c"], 3) == "a, b, c"
    assert words.listed(["a", "b", "c"], 1) == "a and 2 more"
