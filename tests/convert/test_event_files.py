"""Event files: traces by tag, a graph beside them or in another file, and damaged ones."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs as made
from tests.examples.recordings import metadata, row
from tflab.convert import read as reading
from tflab.errors import TflabError, UsageError

pytestmark = pytest.mark.tensorflow

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def event(**fields) -> bytes:
    return tf1.Event(**fields).SerializeToString()


def trace(*rows: str) -> bytes:
    return metadata((CPU, [*rows]))


def tagged(tag: str, content: bytes) -> bytes:
    return event(tagged_run_metadata={"tag": tag, "run_metadata": content})


def graph(op: str = "Mine") -> bytes:
    return event(graph_def=tf1.GraphDef(node=[{"name": "a", "op": op}]).SerializeToString())


FIRST, SECOND = [row("a", 100, 7), row("b", 110, 5)], [row("a", 900, 3)]


@pytest.fixture
def written(tmp_path):
    """Write events into a file; return its path."""

    def write(*events: bytes, name: str = "events.out.tfevents.0"):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as file:
            for one in (event(file_version="brain.Event:2"), *events):
                file.write(one)
        return tmp_path / name

    return write


def test_each_tag_is_a_step_and_the_first_graph_is_that_of_the_steps(written):
    path = written(
        *(graph(), tagged("step 10", trace(*FIRST)), event(step=5), graph("Later")),
        tagged("b/20", trace(*SECOND)),
    )
    found = reading.read([str(path)])
    assert (found.labels, found.notes) == (("step 10", "b/20"), ())
    assert [(run.step, run.name, run.op) for run in found.runs] == [
        *((0, "a", "Mine"), (0, "b", "unknown"), (1, "a", "Mine"))
    ]
    assert [(step.start_ns, step.wall_ns) for step in found.steps] == [(100, 15), (900, 3)]
    assert [(node.name, node.op) for node in found.nodes] == [("a", "Mine")]


def test_event_files_and_run_metadata_may_be_given_together(written, tmp_path):
    alone = tmp_path / "alone"
    alone.write_bytes(trace(row("a", 500, 1)))
    events = written(tagged("step 10", trace(*FIRST)))
    assert reading.read([str(events), str(alone)]).labels == ("step 10", "alone")
    with_graph = written(graph(), name="graph")
    assert [run.op for run in reading.read([str(alone)], str(with_graph)).runs] == ["Mine"]


def test_an_event_that_is_still_being_written_is_not_there_yet(written):
    last = tagged("late", trace(*SECOND))
    path = written(tagged("step 10", trace(*FIRST)), last)
    whole = path.read_bytes()
    for missing in (1, 3, 4, 5, len(last) // 2, len(last) + 5, len(last) + 15):
        path.write_bytes(whole[:-missing])
        assert reading.read([str(path)]).labels == ("step 10",)


def test_a_file_without_traces_with_a_wrong_one_or_damaged_is_refused(written):
    with pytest.raises(UsageError, match="is an event file of TensorBoard without a complete trac"):
        reading.read([str(written(graph()))])
    with pytest.raises(TflabError, match="has a RunMetadata that cannot be read, under 'step'"):
        reading.read([str(written(tagged("step", b"not a trace")))])
    with pytest.raises(TflabError, match="has a GraphDef that cannot be read, under 'graph_def'"):
        reading.read([str(written(event(graph_def=b"no graph")))])
    with pytest.raises(UsageError, match=r"is an event file without a graph. FileWriter\(logdir, "):
        reading.graphs_of(str(written(tagged("step 10", trace(*FIRST)))))
    path = written(tagged("step 10", trace(*FIRST)), tagged("late", trace(*SECOND)))
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(TflabError, match="is damaged: corrupted record at"):
        reading.read([str(path)])


# What TensorFlow wrote

DENSE = {"x", "w", "MatMul", "y"}


def test_a_graph_is_also_read_from_other_files(tmp_path):
    (found,) = reading.graphs_of(made.saved_model_v1(tmp_path / "v1"))
    assert {node.name for node in found.node} >= DENSE


def test_an_event_file_that_tensorflow_wrote_is_read_with_its_graph(tmp_path):
    with tf.Graph().as_default() as own, tf1.Session() as live:
        x, y = made.dense()
        live.run(tf1.global_variables_initializer())
        writer = tf1.summary.FileWriter(str(tmp_path), own)
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
