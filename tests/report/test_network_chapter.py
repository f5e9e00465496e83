"""The chapter of what the network saw, from maps worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.examples.lab import LAB
from tests.maps_by_hand import IMAGES, MAPS, SCORES
from tflab.report import chapters, step_chapters
from tflab.report.contents import Method, Picture


def lab(maps):
    stages = LAB.walked.stages
    return replace(
        LAB, walked=replace(LAB.walked, stages=(*stages[:-1], replace(stages[-1], maps=maps)))
    )


@pytest.mark.slow
def test_the_chapter_has_a_picture_its_reading_and_its_recipe():
    walked = lab(MAPS).walked
    reading, picture, recipe = step_chapters.network(walked, MAPS)
    assert reading.startswith("From top to bottom, the image passes through the layers: ")
    assert isinstance(picture, Picture) and picture.name == "feature_maps"
    assert picture.caption.startswith("The network reads the first image as 1, with 62.5 %; its ")
    assert "This is the first step after initialisation, for" in picture.caption
    assert picture.svg.count("<image") == 5
    assert isinstance(recipe, Method)
    assert recipe.command.startswith("python -m tflab.lifecycle --model lenet")


@pytest.mark.usefixtures("undrawn")
def test_of_a_mean_cross_entropy_it_says_where_the_gradients_begin():
    batch = LAB.walked.execution.batch_size
    gradient = np.array([0.125, 0.625, -0.75]) / batch
    maps = replace(MAPS, probabilities=replace(SCORES, gradient=gradient))
    _, scores, *_ = step_chapters.network(lab(maps).walked, maps)
    assert scores == (
        "The gradient starts in the last row: the gradient with respect to a score is its "
        "probability, minus 1 for the label (2), divided by the number of images in the batch. A "
        "step against it raises the score of the label and lowers all others."
    )
    for other in ({"gradient": -gradient}, {"gradient": None}, {"label": None}, {"computed": True}):
        maps = replace(MAPS, probabilities=replace(SCORES, **{"gradient": gradient, **other}))
        assert len(list(step_chapters.network(lab(maps).walked, maps))) == 3


@pytest.mark.usefixtures("undrawn")
def test_it_stands_between_the_graph_and_the_training():
    titles = [chapter.title for chapter in chapters.report(lab(MAPS), "command").chapters]
    place = titles.index("What the network saw")
    assert titles[place - 1] == "The stages of lenet"
    assert titles[place + 1] == "Loss and accuracy"


@pytest.mark.usefixtures("undrawn")
def test_a_model_without_layers_of_images_has_no_such_chapter():
    for maps in (None, replace(MAPS, maps=()), replace(MAPS, maps=(IMAGES,))):
        titles = [chapter.title for chapter in chapters.report(lab(maps), "command").chapters]
        assert "What the network saw" not in titles
        assert "Loss and accuracy" in titles
