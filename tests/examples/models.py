"""Small models, what the stages make of them, and a session with the initial values."""

from contextlib import contextmanager

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab.datasets import Dataset
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.options import Model, Options, Start
from tflab.runtime import session

USUAL = Options()


def ones(split, data_dir=None):
    return Dataset("ones", split, {"x": np.ones(100, np.float32)})


def differentiate(build, options=USUAL):
    return backward.differentiate(frontend.build(("mine", build), options), options)


def placed(build, options=USUAL):
    return placement.place(differentiate(build, options), options)


def executed(build, options=USUAL):
    return execution.execute(placed(build, options), options)


def model_of(loss_of, variables, data=ones, optimizer=None, shape=(None,)):
    """A model function whose loss is made of the fed `x` and of these variables."""

    def build():
        x = tf1.placeholder(tf1.float32, shape, name="x")
        made = [
            tf1.get_variable(name, initializer=value, use_resource=True)
            for name, value in variables.items()
        ]
        loss = loss_of(x, *made)
        descent = optimizer or tf1.train.GradientDescentOptimizer(0.1)
        return Model(loss, {x: "x"}, data, loss, descent)

    return build


def numbers(split, data_dir=None):
    values = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    return Dataset("numbers", split, {"x": values})


def differentiated(loss_of, *names):
    """The stage of a loss of the fed `x` and of variables with these names, of 4 numbers each."""
    start = np.random.default_rng(5).normal(size=4).astype(np.float32)
    variables = dict.fromkeys(names, start)
    return differentiate(model_of(loss_of, variables, numbers, shape=(None, 4)))


@contextmanager
def opened(graph, start=None):
    with session.fresh(graph, Options()) as live:
        session.begin(live, start or Start(session.initializers(graph)))
        yield live
