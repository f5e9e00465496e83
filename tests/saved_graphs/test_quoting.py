"""With leave a graph may read files, and no message says what is in them."""

import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tflab import lifecycle
from tflab.errors import TflabError, WithheldError
from tflab.records.options import Options, Saved
from tflab.runtime import refusals

pytestmark = pytest.mark.tensorflow

SECRET = "hunter2"
COMMANDS = """
import sys
from tflab.cli import confinement
from tflab.lifecycle import __main__ as lifecycle
from tflab.compare import __main__ as compare
from tflab.follow import __main__ as follow
confinement.ENABLED = False
for command, *node in ((lifecycle,), (compare,), (follow, "out")):
    assert command.main([*node, *sys.argv[1:]]) == 1
"""


def text(path):
    return tf.io.read_file(str(path))


def number(path):
    return tf.strings.to_number(text(path))


def json_example(path):
    return tf.io.decode_json_example(text(path))


def csv(path):
    return tf.io.decode_csv(text(path), [[0.0], [0.0]])[0]


def example(path):
    return tf.io.parse_single_example(text(path), {"x": tf.io.FixedLenFeature([], tf.float32)})["x"]


def proto(path):
    return tf.raw_ops.ParseTensor(serialized=text(path), out_type=tf.float32)


def asserted(path):
    with tf.control_dependencies([tf1.Assert(tf.equal(text(path), "other"), [text(path)])]):
        return tf.constant(1.0)


def number_of_a_table(path):
    """Its initialiser fails, before the step."""
    names = tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter=" ")
    table = tf.lookup.StaticHashTable(names, -1)
    return table.lookup(tf.constant(["a"]))


def index(path):
    """A byte of the file, of which a table has none."""
    return tf.gather([1.0, 2.0], tf.cast(tf.io.decode_raw(text(path), tf.uint8), tf.int32))


def another_file(path):
    return tf.io.read_file(tf.strings.join(["/nowhere/", text(path)]))


def record(path):
    return tf1.data.make_one_shot_iterator(tf.data.TFRecordDataset([str(path)])).get_next()


def in_a_data_set(path):
    lines = tf.data.TextLineDataset([str(path)]).map(tf.strings.to_number)
    return tf1.data.make_one_shot_iterator(lines).get_next()


def constant(path):
    return tf.raw_ops.ImmutableConst(
        dtype=tf.float32, shape=[1 << 20], memory_region_name=str(path)
    )


READERS = (
    *(number, json_example, csv, example, proto, asserted, index, another_file, record),
    *(in_a_data_set, constant),
)


def written(folder, build) -> str:
    (folder / "secret").write_text(f"{SECRET} and more\n")
    return graphs.write(
        folder / "g.pb",
        graphs.graph_def(lambda: tf.identity(build(folder / "secret"), name="out")),
    )


@pytest.mark.parametrize("build", READERS, ids=lambda build: build.__name__)
def test_what_a_file_holds_is_in_no_message(build, tmp_path):
    path = written(tmp_path, build)
    with pytest.raises(WithheldError) as error:
        list(lifecycle.walk(path, Options(steps=1, saved=Saved(side_effects=True))))
    assert SECRET not in str(error.value)
    assert not {str(byte) for byte in SECRET.encode()} & set(str(error.value).split())
    assert "Its message is not shown, because with --allow-side-effects" in str(error.value)


def test_the_node_and_the_kind_of_error_are_said(tmp_path):
    path = written(tmp_path, number)
    with pytest.raises(WithheldError) as error:
        list(lifecycle.walk(path, Options(steps=1, saved=Saved(side_effects=True))))
    assert str(error.value) == (
        "The runtime refused the step: 'StringToNumber' (StringToNumber) ended in "
        "InvalidArgumentError. Its message is not shown, because with --allow-side-effects it may "
        "quote a file. TensorFlow itself shows it."
    )


def test_neither_does_the_log_that_a_command_shows(tmp_path):
    path = written(tmp_path, number)
    given = ["--model", path, "--allow-side-effects", "--allow-read", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", COMMANDS, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert done.stderr.count("'StringToNumber' (StringToNumber) ended in InvalidArgumentError") == 3


def test_a_file_that_is_not_there_is_named_where_the_graph_itself_names_it(tmp_path):
    path = written(tmp_path, lambda secret: text(f"{secret}s"))
    with pytest.raises(TflabError, match=f"step: {tmp_path}/secrets; No such file or directory"):
        list(lifecycle.walk(path, Options(steps=1, saved=Saved(side_effects=True))))


def test_what_quotes_the_graph_alone_is_repeated():
    graph = tf.Graph()
    for message in (
        "End of sequence",
        "You must feed a value for placeholder tensor 'x' with dtype float and shape [?]",
        "Could not satisfy explicit device specification '/device:GPU:0'",
    ):
        assert refusals.is_harmless(message, graph)
    for message in ("End of sequence hunter2", "hunter2 End of sequence", "a; Is a directory"):
        assert not refusals.is_harmless(message, graph)


def test_without_leave_the_runtimes_words_stay():
    error = tf.errors.InvalidArgumentError(None, None, "indices[0] = 7 is not in [0, 5)")
    assert str(refusals.refused(error, Options(), tf.Graph())) == (
        "The runtime refused the step: indices[0] = 7 is not in [0, 5)."
    )


def test_an_import_that_reads_says_nothing_of_what_it_read(tmp_path):
    """A shape that follows from a file is evaluated at the import, and does not fit."""

    def build(secret):
        secret.write_bytes(bytes([2, 5]))
        shape = tf.cast(tf.io.decode_raw(text(secret), tf.uint8), tf.int32)[:2]
        x = tf1.placeholder(tf.float32, name="x")
        return tf.matmul(tf.reshape(x, shape), tf.ones([5, 5]))

    path = written(tmp_path, build)
    (tmp_path / "secret").write_text(SECRET)
    with pytest.raises(TflabError) as error:
        list(lifecycle.walk(path, Options(steps=1, saved=Saved(side_effects=True))))
    assert str(error.value) == (
        f"The graph '{path}' cannot be imported: to infer a shape, TensorFlow read a value that "
        "does not fit. To see the graph, omit the --allow options."
    )
