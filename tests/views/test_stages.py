"""The stages of a walk on one screen, and the words that views share."""

from dataclasses import replace

from tests.approval import approve
from tests.examples.printed import printed
from tests.examples.walk import BACKWARD, EXECUTION, FORWARD, FRONTEND, PLACEMENT
from tests.records_by_hand import source
from tflab.records.graph import Derivative
from tflab.records.values import ValuesStep
from tflab.views import stages

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
    return [f"{stages.title(stage)}: {stages.facts(stage)[0].text}.", *stages.on_one_screen(stage)]


def test_the_facts_of_all_stages_are_one_story():
    approve("views-story.txt", printed([stages.story(WALK)]))
