"""Graphs of traces in every kind of file, and event files that TensorFlow wrote."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs as made
from tflab.convert import read as reading
from tflab.errors import UsageError

pytestmark = pytest.mark.tensorflow

DENSE = {"x", "w", "MatMul", "y"}
FORMS = {
    "GraphDef": lambda folder: made.write(folder / "g", made.graph_def(made.dense)),
    "text": lambda folder: made.write(folder / "g", made.graph_def(made.dense), text=True),
    "SavedModel of TensorFlow 1": lambda folder: made.saved_model_v1(folder / "v1"),
    "a bare saved_model.pb": lambda folder: made.saved_model_v1(folder / "v1") + "/saved_model.pb",
    "MetaGraphDef": lambda folder: made.meta_graph(folder / "meta"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_is_read_from_every_kind_of_file(form, tmp_path):
    (graph,) = reading.graphs_of(str(FORMS[form](tmp_path)))
    assert {node.name for node in graph.node} >= DENSE


@pytest.mark.parametrize(
    ("name", "message"),
    [("no/where.pb", "There is no file"), ("diary", "is not a graph, or is damaged")],
)
def test_what_is_no_graph_says_what_would_be(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diary").write_text("nothing")
    with pytest.raises(UsageError, match=message):
        reading.graphs_of(name)


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
    assert {node.name for node in found.nodes} >= DENSE
