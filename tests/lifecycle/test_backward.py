"""Backward: every added node has one origin, and the gradients are those of other methods."""

import os
import re
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.framework import ops

from tests import walks
from tests.approval import approve, refused
from tests.examples.models import differentiate, model_of, ones
from tflab import datasets
from tflab.errors import TflabError
from tflab.lifecycle import backward, frontend, gradient_check, gradients, placement
from tflab.records.options import Model, Options
from tflab.runtime import nodes

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)


# Where the nodes come from


@every_model
def test_every_added_node_has_one_origin_and_every_forward_node_gradients_or_a_reason(name, walked):
    forward, stage = walked(name)["frontend"], walked(name)["backward"]
    derived = [node for gradient in stage.gradients for node in gradient.nodes]
    origins = Counter([*derived, *stage.update_nodes])
    shared = Counter(stage.added_nodes) - origins
    assert not any(nodes.forward_of(stage.program.graph, name) for name in shared)
    assert origins + shared == Counter(dict.fromkeys(stage.added_nodes, 1))
    assert stage.nodes[: len(forward.nodes)] == forward.nodes
    added = tuple(node.name for node in stage.nodes[len(forward.nodes) :])
    assert sorted(added) == sorted(stage.added_nodes)
    # Differentiation leaves nothing else in the graph
    in_graph = [op.name for op in stage.program.graph.get_operations()]
    assert in_graph == [node.name for node in stage.nodes]
    assert [(g.forward, g.op) for g in stage.gradients] == [(n.name, n.op) for n in forward.nodes]
    for gradient in stage.gradients:
        assert bool(gradient.nodes) != bool(gradient.reason)
        if gradient.function is not None:
            registered = ops.gradient_registry.lookup(gradient.op)
            file, line = os.path.basename(registered.__code__.co_filename), registered.__code__
            place = f"{file}:{line.co_firstlineno}"
            assert gradient.function == f"{registered.__name__} ({place})"


def test_the_reasons_of_the_toy_are_the_right_ones(walked):
    reasons = {g.forward: g.reason for g in walked("toy")["backward"].gradients}
    assert reasons["mul"] is None
    assert reasons["x"] == reasons["targets"] == gradients.NO_VARIABLE
    assert reasons["y/Initializer/initial_value"] == gradients.NOT_NEEDED
    assert reasons["y"] == gradients.NO_INPUTS
    assert reasons["mul/ReadVariableOp"] == gradients.NONE_MADE


# Whether they are right


@every_model
def test_the_gradients_of_every_variable_agree_with_finite_differences(name, walked):
    stage = walked(name)["backward"]
    variables = stage.program.graph.get_collection("trainable_variables")
    checks = {check.tensor: check for check in stage.gradient_checks}
    assert set(checks) == {variable.op.name for variable in variables}
    for variable in variables:
        check = checks[variable.op.name]
        assert check.max_relative_error < 1e-4
        assert 1 <= check.elements <= variable.shape.num_elements()


def test_a_loss_that_is_random_in_few_numbers_is_computed_until_it_differs(monkeypatch):
    answers = iter(np.float32([*[0.5] * 6, 0.25, 1, 0.5, 0.25]))
    losses, _ = gradient_check.losses_of(lambda: next(answers), 7)
    assert losses == [*[0.5] * 6, 0.25]
    assert gradient_check.no_slope_reason(losses) == gradient_check.RANDOM
    assert gradient_check.no_slope_reason(losses[:6]) == ""
    monkeypatch.setattr(gradient_check, "SECONDS", 0)
    assert gradient_check.losses_of(lambda: next(answers), 7)[0] == [1]


# Models that cannot be differentiated


def test_a_model_without_a_loss_passes_unchanged():
    def model():
        x = tf1.placeholder(tf.float32, [None], name="x")
        return Model(output=x + 1.0, feeds={x: "x"}, data=ones)

    built = frontend.build(("mine", model), Options())
    stage = backward.differentiate(built, Options())
    assert stage.nodes == built.nodes
    assert len(stage.program.graph.get_operations()) == len(built.nodes)
    assert (stage.added_nodes, stage.gradients, stage.gradient_checks) == ((), (), ())


def no_gradient_registered(x, weights):
    return tf.reduce_sum(tf.raw_ops.ResizeArea(images=weights[None, None, None], size=[2, 2]))


def test_a_loss_that_cannot_be_differentiated_is_one_sentence():
    for loss_of, variables, reason in (
        (tf.reduce_sum, {}, "No variables to optimize"),
        (no_gradient_registered, {"w": [1.0]}, "No gradient defined for operation"),
    ):
        sentence = refused(differentiate, model_of(loss_of, variables))
        assert "of the model 'mine' cannot be differentiated: " in sentence
        assert reason in sentence


# Which variables were checked


class Halving(tf1.train.GradientDescentOptimizer):
    """Hands on something other than the gradients, like an optimiser that clips."""

    def compute_gradients(self, *args, **kwargs):
        pairs = super().compute_gradients(*args, **kwargs)
        return [(tf1.scalar_mul(0.5, gradient), variable) for gradient, variable in pairs]


def tied(optimizer, twice=False):
    """A table that is looked up and multiplied with: its gradient adds rows to a matrix. If it is
    looked up twice instead, its gradient is the rows of both."""

    def build():
        ids = tf1.placeholder(tf.int32, [None], name="ids")
        table = tf1.get_variable("table", [5, 3], use_resource=True)
        rows = tf.tanh(tf.gather(table, ids))
        other = rows * tf.gather(table, ids) if twice else tf.matmul(rows, table, transpose_b=True)
        loss = tf.reduce_mean(tf.square(other))

        def data(split, data_dir=None):
            return datasets.Dataset("ids", split, {"ids": np.arange(64, dtype=np.int32) % 5})

        return Model(loss, {ids: "ids"}, data, loss=loss, optimizer=optimizer(0.1))

    return build


@pytest.mark.parametrize("optimizer", [tf1.train.GradientDescentOptimizer, Halving])
def test_a_gradient_of_rows_and_a_matrix_is_checked_whatever_an_optimiser_makes_of_it(optimizer):
    stage = differentiate(tied(optimizer))
    (check,) = stage.gradient_checks
    assert (check.tensor, check.agrees) == ("table", True)
    assert stage.unchecked == ""
    assert stage.no_formula == gradient_check.NO_FORMULA


def test_what_an_optimiser_made_of_rows_is_not_checked():
    stage = differentiate(tied(Halving, twice=True))
    assert (stage.gradient_checks, stage.unchecked) == ((), backward.UNKNOWN)


# One way from `w` to the loss has a gradient, or none; the other stops at a node
STOPS = {
    "Round": lambda w: tf.round(w * 2, name="stop"),
    "Floor": lambda w: tf.floor(w * 2, name="stop"),
    "Greater": lambda w: tf.cast(w > 0, tf.float32),
    "Cast": lambda w: tf.cast(tf.cast(w, tf.int32), tf.float32),
    "ArgMax, and another way": lambda w: tf.gather(w * 0 + 1, tf.argmax(w)) * 0 + 1,
    "StopGradient": lambda w: tf.stop_gradient(w * 2, name="stop"),
}
ALONE = {  # losses of one variable
    "no path": lambda x, w: tf.reduce_sum(x),
    "nothing but Floor": lambda x, w: tf.reduce_sum(tf.floor(w, name="f") * x),
    "Sign makes zeros": lambda x, w: tf.reduce_sum(tf.sign(w) * x),
}


def test_a_gradient_that_stops_before_a_variable_names_the_place_and_the_reason():
    models = {
        name: model_of(
            lambda x, w, v, stop=stop: tf.reduce_sum(v * stop(w)) * tf.reduce_mean(x),
            {"w": [0.6, -0.3], "v": [1.0, 2.0]},
        )
        for name, stop in STOPS.items()
    }
    models |= {name: model_of(loss_of, {"w": 1.0}) for name, loss_of in ALONE.items()}
    said = []
    for name, model in models.items():
        stage = differentiate(model)
        (reason,) = (g.reason for g in stage.gradients if g.forward == "w")
        said += [f"# {name}", f"w: {reason}", f"not checked: {stage.unchecked or 'nothing'}"]
        for stop in stage.gradient_stops:
            line = stop.source.code if stop.source else "no line"
            said += [f"stop of {stop.variable}: {stop.node} ({stop.op}), {stop.reason}, at {line}"]
            said += [f"  {' > '.join(stop.path)}"]
    approve(
        "gradient-stops.txt", re.sub(r"test_backward.py:\d+", "test_backward.py", "\n".join(said))
    )


def test_a_loss_without_any_gradient_runs_without_training():
    stage = differentiate(model_of(ALONE["nothing but Floor"], {"w": 1.0}))
    assert (stage.program.train_op, stage.update_nodes) == (None, ())
    assert placement.place(stage, Options()).fetches == (stage.program.loss.name,)


def test_an_optimiser_of_the_program_that_finds_no_gradient_leads_to_the_place_where_it_stops():
    def model():
        w = tf1.get_variable("w", [2], use_resource=True)
        loss = tf.reduce_sum(tf.round(w, name="mask"))
        tf1.train.AdamOptimizer().minimize(loss)
        return Model(loss, {}, ones, loss)

    stage = differentiate(model)
    (stop,) = stage.gradient_stops
    assert (stop.variable, stop.node) == ("w", "mask")
    with pytest.raises(TflabError, match=r"built its graph .*No gradients provided"):
        placement.place(stage, Options())
