"""Account: every node of the user's graph has one fate, every node that runs one origin."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.commands import run_python
from tests.examples.accounts import check
from tflab import datasets
from tflab.lifecycle import backward, frontend, placement
from tflab.records.graph import node_of
from tflab.records.options import Model, Options
from tools.fuzz import random_programs

pytestmark = pytest.mark.tensorflow

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
from tests.examples.accounts import check
from tflab.runtime import dumps, tf_import
dumps.prepare()  # else the placement would need another process
tf_import.load()
from tflab import lifecycle
from tflab.lifecycle import gradient_check, placement
from tflab.records import Options
gradient_check.ELEMENTS, placement.SMALL = 1, 0  # neither is looked at
*_, stage = lifecycle.walk("lenet", Options(), "placement")
assert not any(node.op.startswith("_Mkl") for node in stage.nodes)
check(stage)
"""


@pytest.mark.thorough
def test_the_account_is_closed_without_onednn(tmp_path):
    done = run_python(tmp_path, "-c", WALK, TF_ENABLE_ONEDNN_OPTS="0")
    assert done.returncode == 0, done.stderr


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


@pytest.mark.thorough
@settings(max_examples=25, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    program=random_programs.PROGRAMS,
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
def test_the_account_of_any_program_is_closed(program, fetched, options):
    def model():
        feeds, loss, _ = random_programs.built(random_programs.sounded(program), tf.float32)
        slopes = [slope for slope in tf1.gradients(loss, [*feeds]) if slope is not None]
        return Model(tf.add_n([loss, *map(tf.reduce_sum, slopes)]), feeds, random_programs.data)

    options = replace(options, batch_size=5)
    stage = backward.differentiate(frontend.build(("any", model), options), options)
    fed = {tensor.op.name for tensor in stage.program.model.feeds}  # cannot be fetched as well
    others = [node.name for node in stage.nodes if node.name not in fed]
    names = tuple(others[place % len(others)] for place in fetched)
    check(placement.place(stage, replace(options, fetches=names)))


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


def sum_with_equals(x):
    return tf.add_n([tf.exp(x), tf.tanh(x), tf.exp(x, name="third")])


def negated(x):
    less, more = tf.negative(tf.exp(x), name="less"), tf.negative(tf.sin(x), name="more")
    return tf.subtract(less, more)


PROGRAMS = {
    "half planted": square,  # it makes a node for the square of half, and leaves half * half
    "cast wide": cast_and_reshape,  # it casts numbers to a larger type after it reshaped them
    # The cast moves up beyond an Identity and a Reshape, in two turns of one pass
    "shaped same cast": cast_after_identity,
    # The product of the three constants has the name of the second product of the program
    "half/y half bent twice thrice": reordered,
    "Const six": six,
    "third": sum_with_equals,  # its inputs get sorted
    "less more": negated,  # (-a) - (-b) runs as b - a
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
