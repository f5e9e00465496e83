"""A gradient function is Python that writes the nodes of a derivative. It computes nothing.

A registry has one for each type of op. TensorFlow calls it with the op and with the gradient that
arrives at the output of the op, and it returns a gradient for each input. Look at the nodes that
each function made, at their agreement with `tf.gradients` and with finite differences, and at what
happens when one is replaced: the op computes the same as before, but its gradient differs.
"""

from __future__ import annotations

from collections.abc import Callable

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.framework import ops as registry  # of gradient functions (TF 2.21)

from tflab.lifecycle import gradient_check, gradients
from tflab.records.blocks import Table
from tflab.views.words import counted

FORMULAS: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "x * y": lambda x, y: x * y,
    "x @ y": lambda x, y: x @ y,
    "x / y": lambda x, y: x / y,
    "tanh(x)": lambda x, y: tf.tanh(x),
    "relu(x)": lambda x, y: tf.nn.relu(x),
    "softmax(x)": lambda x, y: tf.nn.softmax(x),
}
SHAPE = (3, 3)  # of x and y


def gradient_by_hand(formula: str) -> tuple[object, ...]:
    """The gradient of one formula by x, compared with `tf.gradients` and finite differences."""
    rng = np.random.default_rng(1)
    with tf.Graph().as_default() as graph, tf1.Session() as live:
        x, y, arriving = (tf1.placeholder(tf.float64, SHAPE, name) for name in ("x", "y", "dz"))
        values = {tensor: rng.normal(size=SHAPE) for tensor in (x, y, arriving)}
        output = FORMULAS[formula](x, y)

        function = registry.get_gradient_function(output.op)
        before = len(graph.get_operations())
        returned = function(output.op, arriving)
        made = graph.get_operations()[before:]

        by_x = returned[0] if isinstance(returned, tuple) else returned
        by_hand, reference = live.run([by_x, tf.gradients(output, x, arriving)[0]], values)

        def loss(at: np.ndarray) -> float:
            """A loss whose gradient by z is the arriving gradient."""
            return float((live.run(output, {**values, x: at}) * values[arriving]).sum())

        h = gradient_check.STEPS[tf.float64]
        steps = h * np.eye(by_hand.size).reshape(-1, *SHAPE)  # one element each
        slopes = [(loss(values[x] + s) - loss(values[x] - s)) / (2 * h) for s in steps]
    name, _ = gradients.registered(output.op)
    types = counted(op.type for op in made)
    return (
        formula,
        name,
        types,
        error(reference, by_hand),
        error(np.reshape(slopes, SHAPE), by_hand),
    )


def error(expected: np.ndarray, actual: np.ndarray) -> str:
    largest = np.abs(actual - expected).max() / np.abs(expected).max()
    return f"{largest:.0e}" if largest else "0"


@tf.RegisterGradient("StraightThrough")
def straight_through(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    """A gradient function of our own: as if the op had not been there."""
    return gradient


def sign_gradients() -> Table:
    """The gradient of sign(x) is 0 and trains nothing, so it is often replaced by another's."""
    with tf.Graph().as_default() as graph, tf1.Session() as live:
        x = tf.constant([-1.5, 0.5, 2.0])
        usual = tf.sign(x)
        with graph.gradient_override_map({"Sign": "StraightThrough"}):
            ours = tf.sign(x)
        gradients = [tf.gradients(output, x)[0] for output in (usual, ours)]
        columns = live.run([x, usual, ours, *gradients])
    return lesson.table(
        "sign(x), with the gradient function in the registry and with one of our own",
        ("x", "usual value", "our value", "usual gradient", "our gradient"),
        [[f"{value:g}" for value in row] for row in zip(*columns, strict=True)],
    )


def main() -> None:
    lesson.show(
        lesson.table(
            "Called by hand: the error against tf.gradients and finite differences",
            ("z", "gradient function", "made", "gradients", "differences"),
            [gradient_by_hand(formula) for formula in FORMULAS],
        ),
        sign_gradients(),
    )


if __name__ == "__main__":
    lesson.give(main)
