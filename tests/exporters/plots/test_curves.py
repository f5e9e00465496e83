"""The plot of a training: every point, tick and word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from tests.pictures import caption, points, ticks, title, words
from tflab.exporters.plots import curves, style
from tflab.records import Epoch, History, TrainingStep

# 2 epochs of 3 steps: the test is right more often than the training, and its loss is another
HISTORY = History(
    model="lenet",
    data="MNIST",
    batch_size=16,
    seed=7,
    steps=(
        TrainingStep(1, loss=2.4, accuracy=0.125, rate=0.05),
        TrainingStep(2, loss=1.5, accuracy=0.25, rate=0.04),
        TrainingStep(3, loss=1.2, accuracy=0.375, rate=0.03),
        TrainingStep(4, loss=0.9, accuracy=0.5, rate=0.02),
        TrainingStep(5, loss=0.8, accuracy=0.625, rate=0.01),
        TrainingStep(6, loss=0.6, accuracy=0.6875, rate=0.005),
    ),
    epochs=(
        Epoch(1, 3, 1.7, 0.3, 1.1, 0.4, seconds=2.0, images_per_second=24.0),
        Epoch(2, 6, 0.77, 0.6, 0.55, 0.7375, seconds=1.5, images_per_second=32.0),
    ),
    interrupted=False,
)


@pytest.fixture(scope="module")
def figure():
    return curves.draw(HISTORY)


def test_the_upper_panel_has_the_loss_of_every_step_and_of_every_test(figure):
    above, _ = figure.axes
    train, test = above.lines
    assert points(train) == [(1, 2.4), (2, 1.5), (3, 1.2), (4, 0.9), (5, 0.8), (6, 0.6)]
    assert points(test) == [(3, 1.1), (6, 0.55)]
    assert words(above) == ["━", "training 0.6", "●", "test 0.55"]
    assert [above.texts[index].xy for index in (0, 2)] == [(6, 0.6), (6, 0.55)]
    assert (above.get_ylabel(), above.get_xlabel()) == ("loss", "")


def test_the_lower_panel_has_the_right_answers_of_every_step_and_of_every_test(figure):
    _, below = figure.axes
    train, test = below.lines
    assert points(train) == [
        (1, 0.125),
        (2, 0.25),
        (3, 0.375),
        (4, 0.5),
        (5, 0.625),
        (6, 0.6875),
    ]
    assert points(test) == [(3, 0.4), (6, 0.7375)]
    assert words(below) == ["━", "training 68.75 %", "●", "test 73.75 %"]
    assert [below.texts[index].xy for index in (0, 2)] == [(6, 0.6875), (6, 0.7375)]
    assert below.get_ylabel() == "right answers"
    assert below.get_xlabel() == "epoch (the first is 3 steps of 16 images)"


def test_training_and_test_have_a_colour_and_a_line_style_each_as_have_their_labels(figure):
    for axes in figure.axes:
        looks = [(to_hex(line.get_color()).upper(), line.get_linestyle()) for line in axes.lines]
        assert looks == [(style.BLUE, "-"), (style.VERMILION, "--")]
        assert [axes.texts[index].get_color() for index in (0, 2)] == [style.BLUE, style.VERMILION]


def test_ticks_are_epochs_losses_and_shares(figure):
    above, below = figure.axes
    for axes in figure.axes:
        assert axes.get_xlim() == (0, 6)
        assert ticks(axes.xaxis) == [(3, "1"), (6, "2")]
    assert above.get_ylim() == (0, pytest.approx(1.05 * 2.4))
    assert below.get_ylim() == (0, pytest.approx(1.04))
    assert (above.get_yscale(), below.get_yscale()) == ("linear", "linear")
    assert [label for _, label in ticks(above.yaxis)] == ["0", "0.5", "1", "1.5", "2", "2.5"]
    assert [label for _, label in ticks(below.yaxis)] == [
        *("0 %", "20 %", "40 %", "60 %", "80 %", "100 %")
    ]


def test_title_and_caption_say_what_is_drawn(figure):
    assert title(figure) == "lenet is right about 73.75 % of the test images after 2 epochs"
    assert caption(figure) == (
        "Data: MNIST. Line: the batch that a step learned from, before its update (each step). "
        "Points: all test images, with the weights at the end of an epoch."
    )


# 450 steps in blocks of 3: each of a low, a middle and a high one
BLOCKS = replace(
    HISTORY,
    steps=tuple(
        TrainingStep(n, loss=(1.0, 2.0, 6.0)[n % 3], accuracy=(0.6, 0.7, 0.95)[n % 3], rate=0.1)
        for n in range(1, 451)
    ),
    epochs=(Epoch(1, 450, 3.0, 0.75, 2.5, 0.8, 2.0, 24.0),),
    interrupted=True,
)


def test_a_block_is_its_mean_at_its_middle_step_within_its_middle_eight_tenths():
    drawn = curves.draw(BLOCKS)
    for axes, mean, low, high in zip(drawn.axes, (3.0, 0.75), (1.2, 0.62), (5.2, 0.9), strict=True):
        line = points(axes.lines[0])
        assert [step for step, _ in line] == list(range(2, 450, 3))
        assert [value for _, value in line] == 150 * [pytest.approx(mean)]
        (band,) = axes.collections
        box = band.get_paths()[0].get_extents()
        assert (box.x0, box.x1) == (2, 449)
        assert (box.y0, box.y1) == pytest.approx((low, high))
    assert caption(drawn) == (
        "Data: MNIST. Line: the batch that a step learned from, before its update (mean of 3 "
        "steps, with their middle eight tenths). Points: all test images, with the weights at the "
        "end of an epoch. The lower panel begins at 70 %; what lies below is cut off. The "
        "training was interrupted."
    )
    assert drawn.axes[1].get_ylim() == pytest.approx((0.7, 1 + 0.04 * 0.3))


def test_before_the_first_test_the_axis_counts_steps():
    drawn = curves.draw(replace(HISTORY, epochs=()))
    above, below = drawn.axes
    assert (len(above.lines), len(below.lines)) == (1, 1)
    assert words(below) == ["━", "training 68.75 %"]
    assert below.get_xlabel() == "step (of 16 images)"
    assert ticks(below.xaxis) == [(n, str(n)) for n in range(7)]
    assert title(drawn) == "lenet after 6 steps, before its first test"
    assert caption(drawn) == (
        "Data: MNIST. Line: the batch that a step learned from, before its update (each step)."
    )


def test_of_many_epochs_some_have_a_tick():
    epochs = tuple(Epoch(n, 3 * n, 1, 0.5, 1, 0.5, 1, 48) for n in range(1, 26))
    steps = tuple(TrainingStep(n, 1.0, 0.5, 0.1) for n in range(1, 76))
    _, below = curves.draw(replace(HISTORY, steps=steps, epochs=epochs)).axes
    assert ticks(below.xaxis) == [(9 * n, str(3 * n)) for n in range(1, 9)]


def test_of_losses_far_apart_the_axis_is_logarithmic_with_ticks_at_1_2_and_5():
    steps = (replace(HISTORY.steps[0], loss=30.0), *HISTORY.steps[1:])
    above, _ = curves.draw(replace(HISTORY, steps=steps)).axes
    assert above.get_yscale() == "log"
    assert [label for _, label in ticks(above.yaxis)] == ["0.5", "1", "2", "5", "10", "20"]


def test_an_untrained_model_has_a_sentence():
    drawn = curves.draw(replace(HISTORY, steps=(), epochs=()))
    assert (drawn.axes, title(drawn)) == ([], "Nothing was learned")
    assert caption(drawn) == "lenet has not done a step."
