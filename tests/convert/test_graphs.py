"""Graphs of traces in every form that --model takes, and event files that TensorFlow wrote."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs as made
from tflab.convert import read as reading
from tflab.errors import TflabError, UsageError

pytestmark = pytest.mark.tensorflow


def names(name):
    (graph,) = reading.graphs_of(str(name))
    return {node.name for node in graph.node}


FORMS = {
    "GraphDef": lambda folder: made.write(folder / "g", made.graph_def(made.dense)),
    "text": lambda folder: made.write(folder / "g", made.graph_def(made.dense), text=True),
    "SavedModel of TensorFlow 1": lambda folder: made.saved_model_v1(folder / "v1"),
    "a bare saved_model.pb": lambda folder: made.saved_model_v1(folder / "v1") + "/saved_model.pb",
    "MetaGraphDef": lambda folder: made.meta_graph(folder / "meta"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_is_read_from_every_kind_of_file(form, tmp_path):
    assert {"x", "w", "MatMul", "y"} <= names(FORMS[form](tmp_path))


def test_a_registered_model_has_its_training_step():
    found = names("toy")
    assert {"mul", "gradients/mul_grad/Mul", "train"} <= found


def test_a_model_function_is_built():
    with pytest.raises(TflabError):
        reading.graphs_of("tests.graphs:nothing")
    assert reading.graphs_of("tflab.models.toy:build")


@pytest.mark.parametrize(
    ("name", "message"),
    [("tooy", "No model named 'tooy'. Did you mean 'toy'"), ("no/where.pb", "There is no file")],
)
def test_what_is_no_graph_says_what_would_be(name, message):
    with pytest.raises(UsageError, match=message):
        reading.graphs_of(name)


def test_a_file_of_something_else_is_no_graph(tmp_path):
    (tmp_path / "g").write_text("nothing")
    with pytest.raises(UsageError, match="is not a graph, or is damaged"):
        reading.graphs_of(str(tmp_path / "g"))


def test_an_event_file_that_tensorflow_wrote_is_read_with_its_graph(tmp_path):
    with tf.Graph().as_default() as graph, tf1.Session() as live:
        x, y = made.dense()
        live.run(tf1.global_variables_initializer())
        writer = tf1.summary.FileWriter(str(tmp_path), graph)
        for step in (1, 2):
            metadata = tf1.RunMetadata()
            options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
            live.run(y, {x: [[1.0] * 4]}, options=options, run_metadata=metadata)
            writer.add_run_metadata(metadata, f"step_{step}", step)
        writer.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    found = reading.read([str(file)])
    assert found.labels == ("step_1", "step_2")
    assert {run.step for run in found.runs} == {0, 1}
    assert {"x", "w", "MatMul", "y"} <= {node.name for node in found.nodes}
