"""Which nodes that no optimiser made belong to updates: in graphs of ordinary training programs."""

from collections.abc import Callable

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.runtime import nodes

pytestmark = pytest.mark.tensorflow


def phases_of(rest: Callable, *, v1_loops: bool = False) -> dict[str, str]:
    """Node -> phase, in a graph with a loss and `rest`."""
    with tf.Graph().as_default() as graph:
        if v1_loops:
            tf1.disable_control_flow_v2()
        try:
            x = tf1.placeholder(tf.float32, [None, 8], name="x")
            w = tf1.get_variable("w", [8, 1])
            rest(x, w, tf.reduce_mean(tf.square(x @ w), name="loss"))
        finally:
            tf1.enable_control_flow_v2()
    return {node.name: node.phase for node in nodes.from_graph(graph)}


def phases_in(phases: dict[str, str], scope: str) -> set[str]:
    return {phase for name, phase in phases.items() if name.startswith(scope)}


@pytest.mark.parametrize("v1_loops", [False, True])
def test_all_of_a_schedule_that_the_step_runs_belongs_to_updates(v1_loops):
    def rest(x, w, loss):
        step = tf1.train.get_or_create_global_step()
        rate = tf1.train.piecewise_constant(step, [50, 100], [0.1, 0.01, 0.001], name="schedule")
        tf1.summary.scalar("rate", rate)
        tf1.train.GradientDescentOptimizer(rate).minimize(loss, step)

    phases = phases_of(rest, v1_loops=v1_loops)
    comparisons = {name: phases[name] for name in phases if "schedule/Greater" in name}
    assert {*comparisons.values()} == {"update"} and len(comparisons) == 2
    assert phases["schedule/case/num_true_conds"] == "update"
    guard = "schedule/case/Assert/AssertGuard"
    assert phases[f"{guard}/Merge" if v1_loops else guard] == "update"
    assert phases["rate"] == "forward"  # the summary itself
    assert phases["loss"] == phases["matmul"] == phases["w"] == "forward"
    unused = {"schedule/case/Assert/Const"}
    if not v1_loops:
        assert {
            name for name in phases if "schedule/" in name and phases[name] == "forward"
        } == unused


def test_a_rate_that_is_fed_and_shown_belongs_to_updates():
    def rest(x, w, loss):
        rate = tf1.placeholder(tf.float32, [], name="rate")
        tf1.summary.scalar("shown", rate)
        tf1.train.GradientDescentOptimizer(rate).minimize(loss)

    phases = phases_of(rest)
    assert (phases["rate"], phases["x"], phases["shown"]) == ("update", "forward", "forward")


def test_changes_of_weights_from_variables_belong_to_updates():
    """Gradients that add up over several steps, and a step of its own that applies them."""

    def rest(x, w, loss):
        total = tf.Variable(tf.zeros([8, 1]), name="total")
        total.assign_add(tf1.gradients(loss, [w])[0])
        with tf1.control_dependencies([w.assign_sub(tf.multiply(0.1, total, name="scaled"))]):
            total.assign(tf.zeros([8, 1]))

    phases = phases_of(rest)
    assigns = {name: phases[name] for name in phases if name.startswith("Assign")}
    assert assigns == dict.fromkeys(
        ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"), "update"
    )
    assert (phases["scaled"], phases["total"]) == ("update", "update")
    assert phases["total/Assign"] == phases["w/Assign"] == "forward"  # initialisers


def test_an_average_of_weights_belongs_to_updates_and_statistics_of_a_batch_are_forward():
    def rest(x, w, loss):
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf1.control_dependencies([train]):
            tf.train.ExponentialMovingAverage(0.9, name="average").apply([w])
        mean = tf1.get_variable("mean", [8], trainable=False)
        with tf1.name_scope("statistics"):
            tf1.assign_sub(mean, 0.1 * (mean - tf.reduce_mean(x, 0)))

    phases = phases_of(rest)
    assert phases["average/AssignMovingAvg/AssignSubVariableOp"] == "update"
    assert phases["average/AssignMovingAvg/mul"] == "update"
    assert phases_in(phases, "statistics/") == {"forward"}


def test_metrics_are_forward_also_after_an_update():
    def rest(x, w, loss):
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        tf1.metrics.mean(loss, name="metric")
        with tf1.control_dependencies([train]):
            tf1.metrics.mean(loss, name="after")
        tf1.argmax(x @ w, 1, name="best")

    phases = phases_of(rest)
    assert phases_in(phases, "metric/") == phases_in(phases, "after/") == {"forward"}
    assert phases["best"] == "forward"


def test_a_graph_without_gradients_is_forward():
    phases = phases_of(lambda x, w, loss: w.assign_sub(0.1 * w))
    assert {*phases.values()} == {"forward"}
