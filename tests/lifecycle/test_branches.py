"""Branches: of a small graph with conditions and loops, the nodes that a step did not run."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import needs
from tests.examples.models import model_of
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.options import Options
from tflab.runtime import trace
from tflab.views import placement as view

pytestmark = pytest.mark.tensorflow

ONES = Dataset("ones", "train", {"x": np.ones((64, 3), np.float32)})


def program(v2: bool):
    """The step takes `sin` and not `exp`, and the loop has no turn."""

    def loss_of(x, w):
        (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
        try:
            y = tf1.cond(
                tf.reduce_sum(x) < 0,
                lambda: tf.exp(x, "exp") * w + tf.ones([3]),
                lambda: tf.sin(x, "sin") * w,
                name="choice",
            )
            _, y = tf1.while_loop(
                lambda i, _: i < tf.cast(tf.reduce_min(x), tf.int32),
                lambda i, y: (i + 1, tf.tanh(y, "tanh")),
                [1, y],
                name="loop",
            )
            return tf.reduce_sum(y, name="loss")
        finally:
            tf1.enable_control_flow_v2()

    start = {"w": np.ones(3, np.float32)}
    return model_of(loss_of, start, lambda split, data_dir=None: ONES, shape=(None, 3))


@pytest.fixture(scope="module", params=[False, True], ids=["v1", "v2"])
def stages(request):
    built = frontend.build(("branches", program(request.param)), Options(batch_size=4))
    derived = backward.differentiate(built, Options(batch_size=4))
    return built, derived, placement.place(derived, Options(batch_size=4))


def rows_of_a_step(stage) -> tuple[set[str], set[str]]:
    """The nodes of the graphs that run, and those with a row in the trace, by the runtime."""
    graph, metadata = stage.program.graph, tf1.RunMetadata()
    with tf1.Session(graph=graph) as session:
        session.run([variable.initializer for variable in graph.get_collection("variables")])
        session.run(
            list(stage.fetches),
            {"x:0": ONES.columns["x"][:4]},
            options=tf1.RunOptions(
                output_partition_graphs=True, trace_level=tf1.RunOptions.FULL_TRACE
            ),
            run_metadata=metadata,
        )
    remain = {node.name for graph in metadata.partition_graphs for node in graph.node}
    devices = metadata.step_stats.dev_stats
    return remain, {stats.node_name for device in devices for stats in device.node_stats}


def test_the_nodes_that_did_not_run_are_those_without_a_row(stages):
    placed = stages[-1]
    remain, ran = rows_of_a_step(placed)
    assert {node.name for node in placed.nodes} == remain
    assert set(placed.not_run) == remain - ran
    parts = {part.removesuffix("_0") for name in placed.not_run for part in name.split("/")}
    assert parts >= {"exp", "tanh"}
    assert "sin" not in parts
    assert len(placed.not_run) == len(set(placed.not_run))
    assert f"{len(placed.not_run)} nodes" in {
        fact.value for fact in view.facts(placed) if fact.label == "did not run"
    }


@needs.LOG_IS_SET
def test_of_an_incomplete_trace_it_is_unknown_what_did_not_run(stages, monkeypatch):
    _, derived, placed = stages
    monkeypatch.setattr(trace, "MOST_OP_RUNS", 10)
    cut = placement.place(derived, Options(batch_size=4))
    assert (cut.not_run, cut.notes) == ((), (placement.UNKNOWN,))
    assert cut.ledger == placed.ledger
    with pytest.raises(TflabError, match="trace of a step is incomplete"):
        execution.execute(cut, Options(batch_size=4, steps=1, warmup=0))
