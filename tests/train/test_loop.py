"""Training: true means, every row once an epoch, and on from the last checkpoint after a stop."""

import math
import resource
import signal
from contextlib import closing
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import interrupts
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.records.options import Model, Options, Recipe
from tflab.records.trained import Epoch
from tflab.train import checkpoints, history, loop, trainer
from tflab.train.history import Settings, TimedStep

pytestmark = pytest.mark.tensorflow

ROWS = {"train": 70, "test": 30}  # 70 rows in batches of 16: four, and one of 6
CLASSES = 5


def data(split, data_dir):
    rng = np.random.default_rng(len(split))
    labels = rng.integers(0, CLASSES, ROWS[split]).astype(np.int32)
    images = rng.normal(size=(ROWS[split], 8, 8, 1)).astype(np.float32)
    images[:, 0, 0, 0] += labels
    return Dataset("noise", split, {"images": images, "labels": labels})


def rate(step, epoch, steps):
    return 0.01 * (1 - step / steps)


def build() -> Model:
    """A dense layer on images of noise, of which a pixel tells the label."""
    images = tf1.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    weights = tf1.get_variable("weights", [64, CLASSES], use_resource=True)
    logits = tf.matmul(tf.reshape(images, [-1, 64]), weights)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=data,
        loss=tf.reduce_mean(losses),
        recipe=Recipe(3, 16, tf1.train.AdamOptimizer, rate),
    )


SETTINGS = Settings("small", "noise", 70, 30, 16, epochs=3, seed=1)
STEPS = 15


@pytest.fixture
def folder(tmp_path) -> Path:
    """Where nothing was trained yet."""
    history.create(tmp_path / history.NAME, SETTINGS)
    return tmp_path


def prepared(function=build):
    return trainer.prepare("small", function, SETTINGS.seed, Options())


def trained(folder, function=build, settings=SETTINGS):
    """All that a training gives, from where it stands."""
    start = checkpoints.newest(folder / checkpoints.FOLDER)
    return loop.train(prepared(function), settings, folder, start)


def values(folder, step) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder / checkpoints.FOLDER / f"step-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def untimed(record):
    times = {"seconds", "images_per_second", "traced"}
    return replace(record, **{name: 0 for name in times if name in asdict(record)})


def steps_in(folder) -> list[int]:
    """The steps of the checkpoints, the newest first."""
    state = tf.train.get_checkpoint_state(folder / checkpoints.FOLDER)
    paths = state.all_model_checkpoint_paths if state else []
    return [int(path.rpartition("-")[2]) for path in paths][::-1]


def recorded(folder) -> list:
    training = history.read(folder / history.NAME)
    return [*training.steps, *training.epochs]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A training without a stop: its folder, and what it gave."""
    folder = tmp_path_factory.mktemp("straight")
    history.create(folder / history.NAME, SETTINGS)
    return folder, list(trained(folder))


# What is recorded


def test_five_steps_are_an_epoch(straight):
    _, records = straight
    kinds = [type(record) for record in records]
    assert kinds == [*[TimedStep] * 5, Epoch] * 3
    assert [record.step for record in records] == [
        *range(1, 6), 5, *range(6, 11), 10, *range(11, 16), 15,
    ]  # fmt: skip


def test_all_that_is_given_was_written_down(straight):
    folder, records = straight
    assert recorded(folder) == sorted(records, key=lambda record: isinstance(record, Epoch))


def test_the_rate_is_that_of_the_recipe(straight):
    _, records = straight
    given = [record.rate for record in records if isinstance(record, TimedStep)]
    assert given == [rate(step, 5, 15) for step in range(15)]


def test_a_step_is_measured_before_it_is_learned_from(straight):
    _, records = straight
    with tf1.Session(graph=prepared().program.graph) as session:
        session.run(session.graph.get_collection("variables")[0].initializer)
        weights = session.run("weights/Read/ReadVariableOp:0")
    rows = history.order(SETTINGS, 0)[:16]
    loss, right = judged(weights, "train", rows)
    assert records[0].loss == pytest.approx(loss, rel=1e-5)
    assert records[0].accuracy == right


def judged(weights, split, rows=slice(None)):
    """Mean loss and share of right answers, by numpy."""
    columns = data(split, None).columns
    labels = columns["labels"][rows]
    logits = columns["images"][rows].reshape(-1, 64).astype(np.float64) @ weights
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = -np.log(odds[np.arange(len(labels)), labels]).mean()
    return loss, (logits.argmax(axis=1) == labels).mean()


def test_the_means_of_an_epoch_are_true(straight):
    folder, records = straight
    for number in range(3):
        *steps, epoch = records[6 * number : 6 * number + 6]
        rows = [16, 16, 16, 16, 6]
        assert epoch.train_loss == pytest.approx(np.average([s.loss for s in steps], weights=rows))
        right = sum(round(s.accuracy * n) for s, n in zip(steps, rows, strict=True))
        assert epoch.train_accuracy == pytest.approx(right / 70)
        loss, right = judged(values(folder, epoch.step)["weights"], "test")
        assert epoch.test_loss == pytest.approx(loss, rel=1e-5)
        assert epoch.test_accuracy == pytest.approx(right)


def test_an_epoch_feeds_every_row_once(folder):
    def counting() -> Model:
        row = tf1.placeholder(tf.int32, [None], name="row")
        seen = tf1.get_variable("seen", initializer=[0] * 70, trainable=False, use_resource=True)
        model = build()
        return replace(
            model,
            feeds={**model.feeds, row: "row"},
            data=numbered,
            updates=(seen.scatter_add(tf.IndexedSlices(tf.ones_like(row), row)),),
        )

    def numbered(split, data_dir):
        dataset = data(split, data_dir)
        return replace(
            dataset, columns={**dataset.columns, "row": np.arange(dataset.size, dtype=np.int32)}
        )

    list(trained(folder, counting))
    assert [set(values(folder, step)["seen"]) for step in (5, 10, 15)] == [{1}, {2}, {3}]


def test_it_learns(straight):
    _, records = straight
    losses = [record.train_loss for record in records if isinstance(record, Epoch)]
    assert losses == sorted(losses, reverse=True)


# Stops


def assert_as_without_a_stop(folder, straight):
    expected, _ = straight
    for name, value in values(expected, STEPS).items():
        assert np.array_equal(values(folder, STEPS)[name], value), name
    assert list(map(untimed, recorded(folder))) == list(map(untimed, recorded(expected)))


@pytest.mark.parametrize("stop", [1, 4, 5, 6])
def test_a_training_that_ended_goes_on_from_its_last_checkpoint(
    folder, straight, monkeypatch, stop
):
    monkeypatch.setattr(loop, "PAUSE_S", -1)  # a checkpoint before every step
    with closing(trained(folder)) as records:
        for record in records:
            if isinstance(record, TimedStep) and record.step == stop:
                break
    assert steps_in(folder)[0] == stop - 1
    assert len(list(trained(folder))) == STEPS - (stop - 1) + 3 - (stop - 1) // 5
    assert_as_without_a_stop(folder, straight)


def test_the_steps_before_a_stop_in_an_epoch_count_once_in_its_mean(folder):
    done = [TimedStep(n, float(n), 0.5, 0.1, seconds=1.0) for n in range(1, 9)]
    again = replace(done[6], loss=9.0)  # step 7, done once more after a resume
    with history.opened(folder / history.NAME) as file:
        for step in (*done, again):
            history.add(file, step)
    assert loop.steps_before(folder / history.NAME, SETTINGS, 7) == [done[5], again]
    assert loop.steps_before(folder / history.NAME, SETTINGS, 5) == []


def test_a_training_without_a_checkpoint_begins_anew(folder, straight):
    with closing(trained(folder)) as records:
        assert [record.step for record in islice(records, 3)] == [1, 2, 3]
    assert steps_in(folder) == []
    list(trained(folder))
    assert_as_without_a_stop(folder, straight)


def test_the_first_interrupt_saves(folder, straight):
    with pytest.raises(KeyboardInterrupt):
        for record in trained(folder):
            if record.step == 7:
                signal.raise_signal(signal.SIGINT)
    assert steps_in(folder) == [7, 5]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    list(trained(folder))
    assert_as_without_a_stop(folder, straight)


def test_the_second_interrupt_does_not_wait(folder, monkeypatch):
    monkeypatch.setattr(interrupts, "ONE_S", 0)
    with pytest.raises(KeyboardInterrupt), closing(trained(folder)) as records:
        for record in records:
            if record.step == 7:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
    assert steps_in(folder) == [5]


def test_an_interrupt_at_the_end_of_an_epoch_saves_there(folder):
    with pytest.raises(KeyboardInterrupt):
        for record in trained(folder):
            if isinstance(record, Epoch):
                signal.raise_signal(signal.SIGINT)
    assert steps_in(folder) == [5]


def test_an_interrupt_in_the_last_step_lets_it_finish(folder, straight):
    for record in trained(folder):
        if isinstance(record, TimedStep) and record.step == STEPS:
            signal.raise_signal(signal.SIGINT)
    assert_as_without_a_stop(folder, straight)


# Failures


def sgd(function):
    def other() -> Model:
        model = build()
        recipe = replace(model.recipe, optimizer=tf1.train.GradientDescentOptimizer, rate=function)
        return replace(model, recipe=recipe)

    return other


def test_a_loss_that_is_no_number_ends_it_and_keeps_what_was_good(folder):
    with pytest.raises(TflabError) as error:
        list(trained(folder, sgd(lambda step, *_: 1e38 if step >= 6 else 0.01)))
    training = history.read(folder / history.NAME)
    bad = len(training.steps) + 1
    assert 7 < bad < 11
    assert str(error.value).startswith(
        f"The training diverged: the loss of step {bad}, in epoch 2, is "
    )
    assert all(math.isfinite(step.loss) for step in training.steps)
    assert steps_in(folder) == [5]


def test_weights_that_are_no_numbers_are_never_saved(folder):
    with pytest.raises(TflabError) as error:
        list(trained(folder, sgd(lambda step, *_: math.inf if step == 9 else 0.01)))
    assert str(error.value) == (
        "The training diverged: after step 10 'weights' has values that are not finite. The "
        f"earlier checkpoints are kept in '{folder / checkpoints.FOLDER}'. "
        "`python -m tflab.lifecycle --model small` shows the values of the first step."
    )
    assert steps_in(folder) == [5]
    assert len(history.read(folder / history.NAME).epochs) == 1


@pytest.fixture
def small_disk():
    """Files of this process can grow to so many bytes; what is beyond is refused by the system."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.parametrize(
    "file, reason",
    [
        ("checkpoints/step-5.data-00000-of-00001", "File too large"),
        (history.NAME, "No space left on device"),  # half a line still fits
    ],
)
def test_a_disk_without_room_ends_it_and_what_was_saved_stays(
    folder, straight, small_disk, file, reason
):
    records = trained(folder)
    for _ in range(8):
        next(records)
    small_disk((folder / file).stat().st_size + 20)
    with pytest.raises(TflabError) as error:
        list(records)
    small_disk(resource.RLIM_INFINITY)
    assert str(error.value).endswith(
        f"cannot be written to '{folder}': {reason}. The data saved before are complete; --resume "
        "continues from them."
    )
    assert steps_in(folder)[0] == 5
    list(trained(folder))
    assert_as_without_a_stop(folder, straight)
