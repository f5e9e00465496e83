"""Experiments: ops of a real step are run once more; what that adds comes with its interval."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import interrupts
from tflab.lifecycle import execution, experiments
from tflab.records.graph import node_of
from tflab.records.options import Options
from tflab.runtime import measure

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def made(walked):
    stages = walked("lenet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "ROUNDS", 3)
        patch.setattr(experiments, "LARGEST", 3)
        top_ops = stages["execution"].top_ops
        made = experiments.run(stages["placement"], top_ops, Options(experiments=1))
    return made, top_ops[:3]


@pytest.mark.thorough
def test_each_of_the_largest_ops_has_an_experiment_or_a_reason(made):
    experiments_made, largest = made
    tried = [(row.name, row.op) for row in (*experiments_made.ops, *experiments_made.untried)]
    assert sorted(tried) == sorted((row.key, row.op) for row in largest)
    assert experiments_made.ops


@pytest.mark.thorough
def test_every_experiment_lies_within_its_interval_and_has_the_controls_observations(made):
    control = made[0].control
    assert (control.name, control.op) == ("control", "")
    for row in (control, *made[0].ops):
        assert row.low_ns < row.high_ns
        assert row.observations == control.observations >= experiments.LEAST


def test_an_observation_is_the_median_of_the_differences_of_a_round(walked, monkeypatch):
    times = [[100, 200, 300], [101, 203, 302], [150, 260, 340]]
    turns = ([{Options().batch_size: ns} for ns in times] for _ in range(99))
    monkeypatch.setattr(measure, "untraced_here", lambda *_, **__: turns)
    jobs = [measure.Job(None, None, None, Options())] * 3
    added_ns = experiments.observe(jobs, walked("toy")["placement"], Options())
    assert added_ns == [[2, 50]] * experiments.LEAST  # differences 1, 3, 2 and 50, 60, 40


def test_a_step_of_updates_and_the_runtimes_own_nodes_has_nothing_to_try(walked):
    stages = walked("lenet")
    own = [row for row in stages["execution"].top_ops if row.key.startswith("_")]
    made = experiments.run(stages["placement"], own, Options(experiments=1))
    assert (made.ops, made.control) == ((), None)
    assert [row.name for row in made.untried] == [row.key for row in own[: experiments.LARGEST]]


def test_ctrl_c_keeps_the_execution_and_says_so(walked, monkeypatch):
    def interrupted(*_, **__):
        interrupts.current.waiting = True
        return iter([[]])

    monkeypatch.setattr(measure, "untraced_here", interrupted)
    options = Options(experiments=1, steps=2, values=False)
    kept = execution.execute(walked("toy")["placement"], options)
    assert (kept.steps, kept.experiments.control, kept.interrupted) == (2, None, True)
    assert "interrupted" in [row.reason for row in kept.experiments.untried]


# The graph in which an op runs twice


def chain() -> tf.Graph:
    """`x -> square -> minus -> twice`, and `half` beside `twice`."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [4], name="x")
        minus = tf.negative(tf.square(x, name="square"), name="minus")
        tf.multiply(minus, 2.0, name="twice")
        tf.multiply(minus, 0.5, name="half")
    return graph


def inputs(graph_def: tf1.GraphDef) -> dict[str, list[str]]:
    return {node.name: list(node.input) for node in graph_def.node}


def test_the_copy_waits_for_the_original_and_what_follows_waits_for_the_copy():
    changed, target = experiments.with_copy(chain(), ["minus"])
    by_name = inputs(changed)
    assert by_name["once_more/minus"] == ["once_more/minus/input_0"]
    assert by_name["once_more/minus/input_0"] == ["square", "^once_more/minus/original"]
    assert by_name["once_more/minus/original"] == ["minus"]
    assert by_name["once_more/gate/minus"] == ["minus", "^once_more/minus/done"]
    assert (target, by_name[target]) == ("once_more/minus/done", ["once_more/minus"])
    assert by_name["twice"][0] == by_name["half"][0] == "once_more/gate/minus"
    assert by_name["minus"] == ["square"]
    by_name = inputs(experiments.with_copy(chain(), ["minus"], free=frozenset({"half"}))[0])
    assert (by_name["half"][0], by_name["twice"][0]) == ("minus", "once_more/gate/minus")
    # Of fused nodes all are copied and take one another
    by_name = inputs(experiments.with_copy(chain(), ["square", "minus"], "first")[0])
    assert by_name["once_more/minus"] == ["once_more/square"]
    assert by_name["once_more/square"] == ["once_more/minus/input_0"]
    assert by_name["once_more/minus/input_0"] == ["x", "^once_more/minus/original"]


def test_both_graphs_compute_the_same():
    def results(graph_def, *more):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        with tf1.Session(graph=graph) as session:
            fetched = session.run(["twice:0", "half:0", *more], {"x:0": [1, 2, 3, 4]})
        return [values.tolist() for values in fetched]

    changed, _ = experiments.with_copy(chain(), ["square", "minus"])
    twice, half, copy = results(changed, "once_more/minus:0")
    assert [twice, half] == results(chain().as_graph_def())
    assert copy == [-1, -4, -9, -16]


def test_what_cannot_be_run_twice_says_why(walked):
    placement = walked("lenet")["placement"]
    update = next(node for node in placement.user_nodes if node.op.startswith("ResourceApply"))
    for names, reason in (
        ("_arg_images_0_0", "the runtime made it, so the program has no node to copy"),
        (update.name, f"a copy of {update.op} might not do the same work"),
        # The copies would wait for one another
        ("conv1/Conv2D conv1/Relu", "other nodes lie between the nodes whose work it does"),
        ("conv1/Conv2D", "None"),
        ("conv1/Conv2D conv1/BiasAdd conv1/Relu", "None"),
    ):
        assert str(experiments.refusal(names.split(), placement)).startswith(reason)


def test_a_fused_convolution_is_run_once_more_as_the_same_kernel_on_the_same_input(walked):
    """LeNet's first convolution runs under the name of its ReLU."""
    placement = walked("lenet")["placement"]
    names = experiments.nodes_of("conv1/Relu", placement.ledger)
    assert set(names) == {"conv1/Conv2D", "conv1/BiasAdd", "conv1/Relu"}
    job = experiments.same_kernels(placement, names, Options())
    ran = experiments.types_that_run(job, placement, Options())
    types = {node.name: node.op for node in placement.nodes}
    assert ran["once_more/conv1/Relu"] == types["conv1/Relu"]
    assert {name: ran[name] for name in types} == types
    by_name = inputs(job.graph.as_graph_def())
    assert node_of(by_name["once_more/conv1/Relu"][0]) == "once_more/conv1/BiasAdd"
