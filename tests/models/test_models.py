"""Models: each has its parameters, computes what NumPy computes, and trains as it says."""

import contextlib
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tests.approval import approve, refused
from tests.examples import accounts
from tests.models import reference
from tflab import datasets, models
from tflab.lifecycle import backward, frontend, placement
from tflab.models import convnet, layers
from tflab.records.options import Options

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", models.MODELS)


@functools.cache
def built(name):
    return frontend.build((name, models.find(name)), Options()).program


@every_model
def test_a_model_feeds_columns_of_its_data_and_starts_with_the_same_weights_in_every_run(name):
    program = built(name)
    assert program.model.output.graph is program.graph
    columns = program.dataset("train").columns
    for feed, column in program.model.feeds.items():
        assert feed.op.type in ("Placeholder", "PlaceholderWithDefault")
        assert feed.shape.is_compatible_with([None, *columns[column].shape[1:]])
    again = frontend.build((name, models.find(name)), Options()).program
    first, second = (initial_values(program) for program in (program, again))
    assert list(first) == list(second)
    for variable, value in first.items():
        assert np.array_equal(value, second[variable])


PARAMETERS = {  # as published
    "toy": 2,
    "lenet": 61_706,
    "cudnn-lenet": 431_080,
    "convnet": 1_199_882,
    "resnet20": 272_474,
}


@every_model
def test_a_model_has_as_many_parameters_as_its_layers_have(name):
    variables = built(name).graph.get_collection("trainable_variables")
    assert sum(variable.shape.num_elements() for variable in variables) == PARAMETERS[name]


@pytest.mark.parametrize("name", reference.FORWARD)
def test_a_model_computes_what_numpy_computes(name):
    program = built(name)
    images = columns(program, 4)["images"]
    with disturbed(program.graph) as session:
        logits = session.run(program.model.output, {"images:0": images})
        expected = reference.FORWARD[name](values(session), images)
    assert np.ptp(expected, axis=0).min() > 0.01  # the images tell on every class
    np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-4)


@functools.cache
def differentiated(name):
    return backward.differentiate(frontend.build((name, models.find(name)), Options()), Options())


@pytest.mark.usefixtures("whole_walks")
@pytest.mark.parametrize(
    ("name", "precision", "bound"),
    [
        ("convnet", "float64", 1e-4),
        ("resnet20", "float32", 0.1),  # fused batch norm has no float64 version
    ],
)
def test_gradients_agree_with_finite_differences_through_dropout_and_batch_norm(
    name, precision, bound
):
    stage = differentiated(name)
    variables = stage.program.graph.get_collection("trainable_variables")
    assert [check.tensor for check in stage.gradient_checks] == [v.op.name for v in variables]
    assert {check.precision for check in stage.gradient_checks} == {precision}
    assert max(check.max_relative_error for check in stage.gradient_checks) < bound


@pytest.mark.parametrize("name", walks.PLACED)
def test_the_account_of_every_other_model_is_closed(name):
    placed = placement.place(differentiated(name), Options())
    accounts.check(placed)


def test_training_the_toy_recovers_3_and_2():
    program = built("toy")
    with started(program) as (session, train):
        run_steps(session, program, train, 16, 100)
        result = values(session)
    assert result == {"y": pytest.approx(3, abs=1e-3), "z": pytest.approx(2, abs=1e-3)}


# What training changes


@pytest.mark.parametrize(
    "name, batch_size, steps", [("lenet", 64, 60), ("cudnn-lenet", 64, 60), ("convnet", 32, 30)]
)
def test_training_halves_the_loss(name, batch_size, steps):
    program = built(name)
    loss = program.model.loss if program.model.test_loss is None else program.model.test_loss
    unseen = fed(program, columns(program, 500, "test"))
    with started(program) as (session, train):
        before = session.run(loss, unseen)
        run_steps(session, program, train, batch_size, steps)
        assert session.run(loss, unseen) < before / 2


@pytest.mark.parametrize(
    "name, epoch_steps, last, rates",
    [
        ("cudnn-lenet", 938, 938, {0: 0.01, 1_000: 0.00931012}),  # 0.01 / (1.1 ** 3) ** (1 / 4)
        ("convnet", 938, 14 * 938, {0: 1, 937: 1, 938: 0.7, 2 * 938: 0.49}),
        # Those of the paper: it falls half-way and after three quarters
        ("resnet20", 390, 64_000, {0: 0.1, 31_999: 0.1, 32_000: 0.01, 47_999: 0.01, 48_000: 1e-3}),
    ],
)
def test_the_rate_falls(name, epoch_steps, last, rates):
    rate = built(name).model.recipe.rate
    assert {step: rate(step, epoch_steps, last) for step in rates} == pytest.approx(rates)


# Convnet: dropout


@pytest.mark.mnist
def test_the_images_of_mnist_have_mean_0_and_deviation_1_in_the_convnet():
    built_anew = frontend.build(("convnet", models.find("convnet")), Options())
    dataset = built_anew.program.dataset("train")  # `built` may have read what stands in for it
    assert dataset.name == "MNIST"
    images = dataset.columns["images"]
    assert images.mean(dtype=np.float64) == pytest.approx(0, abs=1e-3)
    assert images.std(dtype=np.float64) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("percent, grown", [(25, 4 / 3), (50, 2)])
def test_dropout_zeroes_its_share_and_keeps_the_mean_and_its_mask_follows_from_the_seed(
    percent, grown
):
    ones = np.ones((1000, 100), np.float32)
    result = dropped(ones, percent, (1, 7))
    assert set(np.unique(result)) == {np.float32(0), np.float32(grown)}
    # 100,000 draws: five standard deviations of their share are below 0.8 %.
    assert np.mean(result == 0) == pytest.approx(percent / 100, abs=0.008)
    assert result.mean() == pytest.approx(1, abs=0.016)
    in_double = dropped(ones.astype(np.float64), percent, (1, 7))
    assert np.array_equal(result == 0, in_double == 0)
    for other in ((1, 8), (2, 7)):
        alike = np.mean((result == 0) == (dropped(ones, percent, other) == 0))
        assert alike == pytest.approx((percent / 100) ** 2 + (1 - percent / 100) ** 2, abs=0.02)


def test_a_step_of_the_convnet_has_one_loss_and_the_next_step_another():
    program = built("convnet")
    (next_step,) = program.model.updates
    waited_for = [op for value in next_step.inputs for op in value.op.control_inputs]
    assert waited_for == [program.model.loss.op]  # after all masks have been drawn
    feeds = fed(program, columns(program, 32))
    with started(program) as (session, _):
        losses = []
        for _ in range(3):
            losses.append([session.run(program.model.loss, feeds) for _ in range(2)])
            session.run(program.model.updates, feeds)  # without the optimiser: other masks only
        assert session.run("step/Read/ReadVariableOp:0") == 3
        inferred = {float(session.run(program.model.test_loss, feeds)) for _ in range(2)}
    assert all(first == again for first, again in losses)
    assert len({first for first, _ in losses}) == 3
    assert len(inferred) == 1


def test_adadelta_has_the_decay_and_constant_of_the_sample():
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("w", initializer=0.0, use_resource=True)
        train = convnet.optimizer(1.0).apply_gradients([(tf.constant(0.3), weight)])
        session.run(tf1.global_variables_initializer())
        session.run(train)
        result = session.run(weight)
    # Algorithm 1 in Zeiler, "ADADELTA: an adaptive learning rate method", 2012
    assert result == pytest.approx(-0.3 * np.sqrt(1e-6 / (0.1 * 0.3**2 + 1e-6)), rel=1e-4)


# ResNet-20: batch norm


def test_in_training_the_resnet_goes_by_the_statistics_of_the_batch_and_its_averages_go_to_them():
    """Its loss adds the decay of its kernels."""
    program = built("resnet20")
    batch = columns(program, 8)
    feeds = fed(program, batch)
    ends = ("training/dense1/BiasAdd:0", program.model.loss, "training/loss/mean:0")
    with disturbed(program.graph) as session:
        start = values(session)
        logits, loss, entropy = session.run(ends, feeds)
        for _ in range(20):
            session.run(program.model.updates, feeds)
        result = values(session)
    statistics = {}
    expected = reference.resnet20(start, batch["images"], statistics)
    np.testing.assert_allclose(logits, expected, atol=1e-3, rtol=1e-3)
    by_averages = reference.resnet20(start, batch["images"])
    assert np.abs(logits - by_averages).max() > 0.1
    assert len(statistics) == 21
    for name, batch_values in statistics.items():
        for what, value in zip(("mean", "variance"), batch_values, strict=True):
            moving = f"{name}/moving_{what}"
            expected = value + 0.9**20 * (start[moving] - value)
            np.testing.assert_allclose(result[moving], expected, atol=1e-3, rtol=1e-3)
    squares = [np.square(value).sum() for name, value in start.items() if name.endswith("kernel")]
    assert len(squares) == 19 + 2 + 1
    assert loss - entropy == pytest.approx(1e-4 / 2 * sum(squares), rel=1e-3)


# What these tests do with a model


def columns(program, rows, split="train"):
    return {name: column[:rows] for name, column in program.dataset(split).columns.items()}


def fed(program, batch):
    return {feed: batch[column] for feed, column in program.model.feeds.items()}


def initialised(graph):
    session = tf1.Session(graph=graph)
    session.run([variable.initializer for variable in graph.get_collection("variables")])
    return session


def initial_values(program):
    with initialised(program.graph) as session:
        return values(session)


def values(session):
    return session.run({v.op.name: v for v in session.graph.get_collection("variables")})


def disturbed(graph):
    """A session in which no variable is where it starts: a forgotten bias of 0 would not show."""
    session = initialised(graph)
    initial = values(session)
    rng = np.random.default_rng(0)
    feeds = {
        variable.initializer.inputs[1]: value + rng.uniform(-0.05, 0.05, value.shape)
        for variable in graph.get_collection("variables")
        if (value := initial[variable.op.name]).dtype == np.float32
    }
    session.run([initial_value.consumers()[0] for initial_value in feeds], feeds)
    return session


@contextlib.contextmanager
def started(program):
    """A session on a copy of the model with its optimiser, and the op that trains it."""
    with program.graph.as_default():
        if not (train := program.graph.get_collection("trains")):
            train = [program.model.optimizer.minimize(program.model.loss)]
            program.graph.add_to_collection("trains", train[0])
    with initialised(program.graph) as session:
        yield session, [*train, *program.model.updates]


def run_steps(session, program, train, batch_size, steps):
    batches = datasets.batches(program.dataset("train"), batch_size)
    for batch in itertools.islice(batches, steps):
        session.run(train, fed(program, batch))


def dropped(inputs, percent, seed):
    with tf.Graph().as_default(), tf1.Session() as session:
        return session.run(layers.dropout("dropout", tf.constant(inputs), percent, seed))


# What --model accepts


NO_MODELS = """
import functools
import tensorflow as tf

def of_images(images, labels, *more, rate=0.1, **others): ...

def of_defaults(rate=0.1, *more, **others): ...

@tf.function
def traced(): ...

model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3)])
"""
NAMES = (
    *("lenett", "qqq", "", "tflab.models.toy", "no.pb", "no/such", "no/such.py:build", "train.py"),
    *(":build", "tflab.models.toy:", "no_such_module:build", "tflab.models.toy:bild"),
    *("tflab.models.toy:TRUE_Y", "a_broken_model:build", "some_no_models:of_images"),
    "some_no_models:traced",
)


@pytest.fixture
def no_models(tmp_path, monkeypatch):
    (tmp_path / "some_no_models.py").write_text(NO_MODELS)
    (tmp_path / "a_broken_model.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "some_no_models"


def test_a_name_that_is_no_model_is_refused_with_what_would_be_right(no_models):
    said = (f"'{name}': {refused(models.find, name)}" for name in NAMES)
    approve("models-refused.txt", "\n".join(said))


def test_a_function_with_defaults_and_a_keras_model_are_taken(no_models):
    assert models.find(f"{no_models}:of_defaults").__name__ == "of_defaults"
    name = f"{no_models}:model"
    built = frontend.build((name, models.find(name)), Options())
    assert built.notes[0] == (
        f"'{name}' is a Keras model. It is called in this graph, with its own values."
    )
    assert built.program.model.output.shape.as_list() == [None, 3]
