"""Graphs as strangers have them: with savers and queues, with inputs in the middle, and without the
shapes that they need."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

SPEC = {
    "x": tf.io.FixedLenFeature([4], tf.float32),
    "id": tf.io.FixedLenFeature([], tf.int64),
    "words": tf.io.VarLenFeature(tf.string),
}


def with_saver() -> None:
    """A variable, and nothing that nobody takes but the nodes that save and restore it."""
    tf1.get_variable("w", [4, 3], use_resource=False)
    tf1.train.Saver()


def with_saver_and_summary() -> None:
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    weights = tf1.get_variable("w", [4, 3], use_resource=False)
    out = tf.identity(tf.matmul(x, weights), name="out")
    tf1.summary.scalar("mean", tf.reduce_mean(out, name="mean_of_out"))
    tf1.report_uninitialized_variables()
    tf1.train.Saver()


def only_constants() -> None:
    tf.constant(1.0, name="one")


def parsed() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Serialised examples in, a class out; and what lies between, `x` in the middle."""
    serialised = tf1.placeholder(tf.string, [None], name="examples")
    features = tf1.parse_example(serialised, SPEC)
    table = tf1.get_variable("table", [20, 4], use_resource=True)
    x = tf.identity(features["x"], name="x")
    rows = tf.gather(table, features["id"], name="rows")
    scores = tf.nn.softmax(x + rows, name="scores")
    return serialised, x, scores


def v1_saved_model(folder: Path) -> str:
    """A SavedModel whose signatures classify, regress, and predict from the middle of the graph."""
    with tf.Graph().as_default(), tf1.Session() as session:
        serialised, x, scores = parsed()
        classes = tf.constant([["a", "b", "c", "d"]], name="classes")
        value = tf.reduce_sum(scores, 1, name="value")
        session.run(tf1.global_variables_initializer())
        util = tf1.saved_model.signature_def_utils
        info = tf1.saved_model.utils.build_tensor_info
        middle = util.build_signature_def({"x": info(x)}, {"y": info(tf.square(x, name="y"))}, "p")
        builder = tf1.saved_model.builder.SavedModelBuilder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "classify": util.classification_signature_def(serialised, classes, scores),
                "regress": util.regression_signature_def(serialised, value),
                "middle": middle,
            },
        )
        builder.save()
    return str(folder)


def batches() -> list[tf.Tensor]:
    """What a queue gives that a thread of another program filled."""
    queue = tf1.FIFOQueue(30, [tf.float32, tf.int32], [[4], []], name="batches")
    return queue.dequeue_many(16, name="dequeue")


def queued() -> None:
    """Such a queue, and the model behind it."""
    x, label = batches()
    weights = tf1.get_variable("w", [4, 3], use_resource=True)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label, tf.matmul(x, weights))
    tf.reduce_mean(loss, name="loss")


def old_loop(body: Callable[..., tuple[Any, ...]], first: list[Any]) -> list[tf.Tensor]:
    """Three iterations of a loop as TensorFlow 1 makes it, with the number of each as its first
    value."""
    new = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        return tf1.while_loop(lambda number, _: number < 3, body, first)
    finally:
        if new:
            tf1.enable_control_flow_v2()


def queued_in_a_loop() -> None:
    queue = tf1.FIFOQueue(30, [tf.float32], [[4]], name="batches")
    _, total = old_loop(
        lambda number, total: (number + 1, total + tf.reduce_sum(queue.dequeue())), [0, 0.0]
    )
    tf.identity(total, name="y")


def filled_within() -> None:
    queue = tf1.FIFOQueue(3, [tf.float32], shapes=[[]])
    with tf.control_dependencies([queue.enqueue(1.0)]):
        tf.identity(queue.dequeue() * 2, name="y")


def iterated(fed: bool = False) -> None:
    """An iterator of tf.data that its program began by itself, from what it was fed perhaps."""
    rows = tf1.placeholder(tf.float32, [None, 4], name="rows") if fed else tf.ones([40, 4])
    data = tf1.data.Dataset.from_tensor_slices(rows).repeat().batch(8, drop_remainder=True)
    iterator = tf1.data.make_initializable_iterator(data)
    tf.square(iterator.get_next(name="next"), name="y")


def staged() -> None:
    area = tf.raw_ops.Unstage(dtypes=[tf.float32], name="taken", shared_name="area")
    tf.square(area[0], name="y")


# Shapes and values that only the rest of the graph says


def unsaid_width() -> None:
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    tf.matmul(x, tf1.get_variable("w", [784, 10], use_resource=True), name="y")


def unsaid_image() -> None:
    """No rank, three channels, and a dense layer that fits 28 pixels a side."""
    x = tf1.placeholder(tf.float32, name="x")
    filters = tf1.get_variable("f", [5, 5, 3, 6], use_resource=True)
    maps = tf.nn.conv2d(x / 255.0, filters, 2, "SAME", name="conv")
    flat = tf.reshape(maps, [-1, 14 * 14 * 6], name="flat")
    tf.matmul(flat, tf1.get_variable("w", [14 * 14 * 6, 10], use_resource=True), name="y")


def reshaped() -> None:
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    tf.square(tf.reshape(x, [-1, 28, 28, 1]), name="y")


def dropped() -> None:
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    keep = tf1.placeholder(tf.float32, name="keep_prob")
    tf.identity(tf1.nn.dropout(x, keep_prob=keep), name="y")


def switched() -> None:
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    training = tf1.placeholder(tf.bool, name="is_training")
    new = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        y = tf1.cond(training, lambda: x * 2.0, lambda: x + 1.0)
    finally:
        if new:
            tf1.enable_control_flow_v2()
    tf.identity(y, name="y")


def looked_up() -> None:
    """Ids below 7, of a variable, and labels below 3, of a loss."""
    ids = tf1.placeholder(tf.int32, [None], name="ids")
    labels = tf1.placeholder(tf.int64, [None], name="labels")
    table = tf1.get_variable("table", [7, 3], use_resource=True)
    logits = tf.nn.embedding_lookup(table, ids)
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="loss")


def hot() -> None:
    digits = tf1.placeholder(tf.int32, [None], name="digits")
    tf.one_hot(digits, 10, name="y")


def with_rate() -> None:
    rate = tf1.placeholder(tf.float32, name="rate")
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    weights = tf1.get_variable("w", [4, 3], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)), name="loss")
    tf1.train.GradientDescentOptimizer(rate).minimize(loss)


def with_default() -> None:
    given = tf1.placeholder_with_default(tf.constant([3.0]), [None], name="given")
    tf.square(given, name="y")


def in_a_function() -> None:
    """What is fed gets into a function, which alone says how wide it is."""
    x = tf1.placeholder(tf.float32, [None, None], name="x")

    @tf.function
    def layer(value: tf.Tensor) -> tf.Tensor:
        return tf.matmul(value, tf.ones([6, 2]))

    tf.identity(layer(x), name="y")


def hidden() -> None:
    """Nothing in the graph says before a run how wide it has to be."""
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    shapeless = tf1.placeholder_with_default(x, None)
    tf.matmul(shapeless, tf.ones([6, 2]), name="y")


def in_a_function_of_a_function() -> None:
    """Variables and rows of a table are handed in, two functions deep."""
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    ids = tf1.placeholder(tf.int32, [None], name="ids")
    weights = tf1.get_variable("w", [6, 2], use_resource=True)
    table = tf1.get_variable("table", [9, 2], use_resource=True)
    within = tf.function(lambda x, ids: tf.matmul(x, weights) + tf.gather(table, ids))
    tf.identity(tf.function(lambda x, ids: within(x, ids) * 2.0)(x, ids), name="y")


def in_a_branch() -> None:
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    training = tf1.placeholder(tf.bool, [], name="training")
    branches = lambda: tf.matmul(x, tf.ones([7, 2])), lambda: tf.zeros([1, 2])
    tf.identity(tf.cond(training, *branches), name="y")


def in_a_case() -> None:
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    branches = [lambda: tf.reduce_sum(x), lambda: tf.reduce_sum(tf.matmul(x, tf.ones([4, 2])))]
    tf.identity(tf.switch_case(tf.constant(1), branches), name="y")


def in_a_loop() -> None:
    x = tf1.placeholder(tf.float32, [None, None], name="x")
    body = lambda number, value: (number + 1, tf.matmul(value, tf.eye(5)))  # noqa: E731
    _, y = tf.while_loop(lambda number, _: number < 3, body, [0, x])
    tf.identity(y, name="y")


# Sparse


def sparse_features() -> None:
    """Of any width, by the placeholders; 300 wide, by the weights."""
    features = tf1.sparse_placeholder(tf.float32, name="features")
    tf.identity(tf.sparse.sparse_dense_matmul(features, tf.ones([300, 3])), name="y")


def sparse_ids() -> None:
    """Ids of a table, which has 40 rows, beside dense features and sparse ones of a known width."""
    ids = tf1.sparse_placeholder(tf.int64, name="ids")
    weights = tf1.sparse_placeholder(tf.float32, shape=[None, 30], name="weights")
    x = tf1.placeholder(tf.float32, [None, 8], name="x")
    table = tf1.get_variable("table", [40, 8], use_resource=False)
    rows = tf1.nn.safe_embedding_lookup_sparse([table], ids, combiner="mean")
    tf.add(rows + x, tf.sparse.sparse_dense_matmul(weights, tf.ones([30, 8])), name="y")


def sparse_words() -> None:
    """Under other names, and densified."""
    indices = tf1.placeholder(tf.int64, [None, 2], name="where")
    values = tf1.placeholder(tf.string, [None], name="what")
    shape = tf1.placeholder(tf.int64, [2], name="extent")
    dense = tf.sparse.to_dense(tf.SparseTensor(indices, values, shape), default_value="")
    tf.strings.to_hash_bucket_fast(dense, 100, name="y")
