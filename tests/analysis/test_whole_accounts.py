"""Account: every node of the user's graph has one fate, every node that runs one origin."""

import itertools
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.examples.accounts import check
from tflab import datasets
from tflab.lifecycle import backward, frontend, placement
from tflab.records.graph import node_of
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]

FETCHES = {
    "training step": lambda stage: (),
    "output": lambda stage: (stage.program.model.output.name,),
    "gradients": lambda stage: gradients(stage),
    "middle": lambda stage: (with_output(stage)[len(with_output(stage)) // 2],),
    "constant": lambda stage: (next(node.name for node in stage.nodes if node.op == "Const"),),
}


def gradients(stage):
    """The tensors that updates take from gradient nodes."""
    made = {*stage.added_nodes} - {*stage.update_nodes}
    updates = (node for node in stage.nodes if node.name in stage.update_nodes)
    return tuple(t for node in updates for t in node.inputs if node_of(t) in made)


def with_output(stage):
    return [node.name for node in stage.nodes if node.outputs]


# Models


@pytest.mark.parametrize("name, devices", [("toy", 2), ("lenet", 1)])
@pytest.mark.parametrize("fetches", FETCHES)
def test_the_account_is_closed_whatever_is_fetched(name, devices, fetches, walked):
    stage = walked(name, devices)["backward"]
    options = Options(devices=devices, fetches=FETCHES[fetches](stage))
    placed = placement.place(stage, options)
    check(placed)


# TensorFlow set up in another way

WALK = """
import dataclasses, pickle, sys
from tflab.runtime import dumps, tf_import
dumps.prepare()  # else the placement would need another process
tf_import.load()
from tflab import lifecycle
from tflab.lifecycle import gradient_check, placement
from tflab.records import Options
gradient_check.ELEMENTS, placement.SMALL = 1, 0  # neither is looked at
*_, stage = lifecycle.walk("lenet", Options(), "placement")
pickle.dump(dataclasses.replace(stage, program=None), sys.stdout.buffer)
"""


@pytest.mark.thorough
def test_the_account_is_closed_without_onednn():
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_ENABLE_ONEDNN_OPTS": "0"}
    command = [sys.executable, "-c", WALK]
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    stage = pickle.loads(done.stdout)
    assert not any(node.op.startswith("_Mkl") for node in stage.nodes)
    check(stage)


# Graphs with more to them than a model has


def walk(build, **options):
    """The placement of a graph that a function builds; its value is fetched."""
    return placed(lambda: Model(output=build(), feeds={}, data=None), Options(**options))


def placed(model, options):
    built = frontend.build(("test", model), options)
    return placement.place(backward.differentiate(built, options), options)


@tf.function
def doubled(x):
    return tf.nn.relu(x) * 2


@tf.function(jit_compile=True)
def compiled(x):
    return tf.nn.relu(x * 1.0) * 2


def loop(body):
    start = (tf.constant(0), tf.random.uniform([]))
    return tf1.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, body(a)), start)[1]


def on_the_other_device(a):
    with tf.device("/device:CPU:1"):
        return a * 2.0


def condition():
    x = tf.random.uniform([3])
    return tf1.cond(tf.reduce_sum(x) > 1, lambda: x * 2, lambda: x + 1)


def reference_variable():
    v = tf1.get_variable("v", initializer=1.0, use_resource=False)
    return tf1.assign_add(v, 1.0) * 2 + tf.random.uniform([])


def dataset():
    squares = tf.data.Dataset.range(5).map(lambda x: x * x + 1)
    return squares.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)


def all_constant():
    values, _ = tf.unique(tf.constant([1, 1]))
    return tf.strings.length(tf.constant(["ab"])) + tf.size(values)


LOOPS = {
    "loop": lambda: loop(lambda a: a * 2.0),
    "loop over two devices": lambda: loop(lambda a: on_the_other_device(a) + 1.0),
    "condition": condition,
    "mapped": lambda: tf.map_fn(lambda x: x * 2 + 1, tf.random.uniform([4])),
}
GRAPHS = LOOPS | {
    "call": lambda: doubled(tf.random.uniform([3])) + 1,
    "compiled call": lambda: compiled(tf.random.uniform([3])) + 1,
    "reference variable": reference_variable,
    "dataset": dataset,
    "all constant": all_constant,
}


def set_control_flow(functional):
    (tf1.enable_control_flow_v2 if functional else tf1.disable_control_flow_v2)()


# Loops and conditions are one node each, or Switch, Merge and their kin
KINDS = [*((name, True) for name in GRAPHS), *((name, False) for name in LOOPS)]
OTHERS = ("loop over two devices", "condition", "call")


@pytest.mark.parametrize(
    "name, functional, options",
    [
        *((*kind, {}) for kind in KINDS),
        *((*kind, {"without": ("grappler",)}) for kind in KINDS if kind[0] in OTHERS),
        *((*kind, {"xla": True}) for kind in KINDS if kind[0] in OTHERS),
    ],
)
def test_the_account_is_closed_for_loops_conditions_calls_and_state(name, functional, options):
    usual = tf1.control_flow_v2_enabled()
    set_control_flow(functional)
    try:
        check(walk(GRAPHS[name], devices=2, **options))
    finally:
        set_control_flow(usual)


def test_a_function_that_grappler_optimises_by_itself_is_not_taken_for_the_graph():
    placed = walk(GRAPHS["compiled call"])
    user_names = {node.name for node in placed.user_nodes}
    assert {fate.fate for fate in placed.ledger} == {"executed"}
    assert [step.name for step in placed.passes if user_names & set(step.removed)] == []


# Any graph


def unary(make):
    return lambda a, b: make(a)


def second_half(a, b):
    return tf.split(tf.concat([a, b], 0), 2)[1]


def swapped_halves(a, b):
    left, right = tf.split(a, 2, axis=1)
    return tf.concat([right, left], 1)


def product_with_bias(a, b):
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(a, b), tf.constant([1.0, 2.0])))


def variable(resource):
    return lambda a, b: tf1.get_variable(
        tf1.get_default_graph().unique_name("v"),
        initializer=np.ones([2, 2], np.float32),
        use_resource=resource,
    ).read_value()


OPERATIONS = {  # each takes two 2 x 2 matrices and makes one
    "add": tf.add,
    "mul": tf.multiply,
    "matmul": tf.matmul,
    "relu": unary(tf.nn.relu),
    "neg": unary(tf.negative),
    "identity": unary(tf.identity),
    "zero": lambda a, b: tf.zeros([2, 2]),
    "one": lambda a, b: tf.ones([2, 2]),
    "const": lambda a, b: tf.constant([[1.0, 2.0], [3.0, 4.0]]),
    "random": lambda a, b: tf.random.uniform([2, 2]),
    "reshape": unary(lambda a: tf.reshape(tf.reshape(a, [-1]), [2, 2])),
    "transpose": unary(lambda a: tf.transpose(a)),
    "shape": unary(lambda a: tf.cast(tf.fill([2, 2], tf.size(a)), tf.float32)),
    "second half": second_half,
    "swapped halves": swapped_halves,
    "bias": product_with_bias,
    "resource": variable(True),
    "reference": variable(False),
    "nothing": unary(tf.identity),  # behind a NoOp, see `grow`
}
STEP = st.tuples(
    st.sampled_from(sorted(OPERATIONS)),
    *[st.integers(0, 99)] * 3,  # two operands and a control dependency, by their places
    st.booleans(),  # whether there is that dependency
    st.booleans(),  # whether it stands on the last device
)


def grow(steps, devices):
    """A graph of random operations; the last value is its output."""
    x = tf1.placeholder(tf.float32, [None, 2], name="x")
    values = [x, tf.constant([[0.0, 1.0], [1.0, 0.0]])]
    for kind, a, b, control, controlled, apart in steps:
        a, b, control = (values[place % len(values)] for place in (a, b, control))
        first = [tf.group(control)] if kind == "nothing" else [control] * controlled
        device = f"/device:CPU:{devices - 1}" if apart else None
        with tf.device(device), tf1.control_dependencies(first):
            values.append(OPERATIONS[kind](a, b))
    return Model(output=values[-1], feeds={x: "x"}, data=noise)


def noise(split, data_dir):
    rows = np.random.default_rng(0).uniform(size=(4, 2)).astype(np.float32)
    return datasets.Dataset("noise", split, {"x": rows})


@settings(max_examples=25, derandomize=True, database=None)
@given(
    steps=st.lists(STEP, min_size=1, max_size=12),
    fetched=st.lists(st.integers(0, 999), max_size=3),  # by their places; else the output
    options=st.sampled_from(
        [
            Options(devices=2),
            Options(devices=2, without=("grappler",)),
            Options(without=("model_pruner", "constant_folding")),
            Options(without=("remapper", "dependency_optimizer", "arithmetic_optimizer")),
            Options(xla=True),
            Options(xla=True, without=("grappler",)),
        ]
    ),
)
def test_the_account_of_any_graph_is_closed(steps, fetched, options):
    def model():
        return grow(steps, options.devices)

    options = replace(options, batch_size=2)
    stage = backward.differentiate(frontend.build(("any", model), options), options)
    _fed, *others = (node.name for node in stage.nodes)  # what is fed cannot be fetched as well
    names = tuple(others[place % len(others)] for place in fetched)
    placed = placement.place(stage, replace(options, fetches=names))
    check(placed)


# What Grappler's arithmetic is known to do to these nodes


def square(x):
    half = tf.multiply(x, 0.5, name="half")
    return tf.multiply(half, half, name="planted")


def cast_and_reshape(x):
    cast = tf.cast(tf.cast(x, tf.uint8, name="bytes") + 1, tf.float32, name="cast")
    return tf.multiply(tf.expand_dims(cast, 1, name="wide"), 2.0)


def cast_after_identity(x):
    shaped = tf.identity(tf.reshape(x, [-1, 4], name="shaped"), name="same")
    return tf.cast(shaped, tf.bfloat16, name="cast")


def reordered(x):
    half = tf.multiply(tf.exp(x), 0.5, name="half")
    bent = tf.multiply(half, tf.math.erf(x), name="bent")
    return tf.multiply(tf.multiply(bent, 2.0, name="twice"), 3.0, name="thrice")


def six(x):
    return tf.multiply(x, tf.multiply(tf.constant(2.0), tf.constant(3.0), name="six"))


PROGRAMS = {
    "half planted": square,  # it makes a node for the square of half, and leaves half * half
    "cast wide": cast_and_reshape,  # it casts numbers to a larger type after it reshaped them
    # The cast moves up beyond an Identity and a Reshape, in two turns of one pass
    "shaped same cast": cast_after_identity,
    # The product of the three constants has the name of the second product of the program
    "half/y half bent twice thrice": reordered,
    "Const six": six,
}


def fates_of(program, nodes):
    def model():
        x = tf1.placeholder(tf.float32, [None], name="x")
        data = datasets.Dataset("made up", "train", {"x": np.ones(16, np.float32)})
        out = tf.exp(program(x), name="out")
        return Model(out, {x: "x"}, lambda split, data_dir=None: data)

    stage = placed(model, Options())
    check(stage)
    types = {node.name: node.op for node in stage.nodes}
    for fate in stage.ledger:
        if fate.name in nodes.split():
            kind = "replaced" if fate.replaced else fate.fate
            inside = "" if fate.has_value else " in"
            yield f"{fate.name} {kind}{inside} {types.get(fate.into, '-')} {fate.by}"


def test_what_became_of_the_nodes_of_programs():
    told = [[*fates_of(program, nodes), ""] for nodes, program in PROGRAMS.items()]
    approve("fates-of-programs.txt", "\n".join(itertools.chain(*told)))
