"""The same formula twice: computed line by line, or first built as a graph and then run.

In eager mode, each line of Python computes its result immediately. In graph mode, the lines run
once and make nodes; later, the runtime computes the nodes that it kept. Look at the nodes that
never run, at the calls that Python makes for one evaluation, and at how much of the difference
remains when the arrays grow.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.records.blocks import fact_table
from tflab.records.options import Model
from tflab.records.stages import Placement
from tflab.runtime import session
from tflab.views import placement

SIZES = (1, 1_000, 100_000)
ROUNDS = 200
TOLERANCE = 1e-6


def formula(x: tf.Tensor, y: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    scale = tf.sqrt(tf.constant(2.0)) / tf.constant(3.0)  # the same in every evaluation
    tf.exp(x)  # nobody uses it
    return scale * (x * y + z) + tf.tanh(x * y + z)  # the same sum twice


def build() -> Model:
    """The formula as a graph, of the form that tflab's models have."""
    x, y, z = (tf1.placeholder(tf.float32, [None], name=name) for name in "xyz")
    return Model(formula(x, y, z), feeds={x: "x", y: "y", z: "z"}, data=points)


def points(split: str, data_dir: str | None = None) -> Dataset:
    rng = np.random.default_rng(1)
    columns = {name: rng.uniform(-1, 1, max(SIZES)).astype(np.float32) for name in "xyz"}
    return Dataset("random points", split, columns)


def python_calls(evaluate: Callable[[], object]) -> int:
    """How many functions Python calls to do it, those written in C included."""
    events: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, function: events.update((event,)))
    evaluate()
    sys.setprofile(None)
    return events["call"] + events["c_call"]


def main() -> None:
    *_, placed = lifecycle.walk("__main__:build", stop="placement")
    assert isinstance(placed, Placement)
    lesson.show(placement.pass_log(placed), fact_table(placement.facts(placed)))

    columns = points("train").columns.values()
    step = session.step_of(placed.program, placed.fetches)
    rows = []
    with closing(tf1.Session(graph=placed.program.graph)) as live:
        run = step.callable(live, inter_op_thread_pool=-1)  # in this thread, as eager ops are
        for size in SIZES:
            arrays = [column[:size] for column in columns]
            eager = partial(formula, *map(tf.constant, arrays))
            symbolic = partial(run, *arrays)
            apart = np.abs(eager().numpy() - symbolic()[0]).max()
            if apart > TOLERANCE:
                raise TflabError(f"The two ways differ by {apart}.")
            eager_ns, symbolic_ns = lesson.in_turn((eager, symbolic), ROUNDS)
            change = lesson.against(eager_ns, symbolic_ns)
            rows += [
                (size, "eager", python_calls(eager), *lesson.spread(eager_ns), ""),
                (size, "symbolic", python_calls(symbolic), *lesson.spread(symbolic_ns), change),
            ]
    headers = ("elements", "way", "Python calls", "median", "p10", "p90", "against eager")
    lesson.show(
        f"Both ways give the same values, within {TOLERANCE:g}.",
        lesson.table(f"One evaluation, {ROUNDS} of each in turn", headers, rows),
    )


if __name__ == "__main__":
    lesson.give(main)
