"""Parameters of real graphs: every optimiser, dense and sparse, resource and ref variables."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import parameters
from tflab.convert import decoded, protos

pytestmark = pytest.mark.tensorflow

ROWS, WIDTH, CLASSES = 50, 4, 3
TRAINED = ROWS * WIDTH + WIDTH * CLASSES + CLASSES

OPTIMISERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
    "adam": lambda: tf1.train.AdamOptimizer(0.1),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.1),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(0.1, momentum=0.9, centered=True),
}


def model(optimiser, resource, sparse=True, plain=False):
    """An embedding and a dense layer; unless plain, a moving average and a metric beside them."""
    graph = tf.Graph()
    with graph.as_default():
        ids = tf1.placeholder(tf.int32, [None, 2], "ids")
        y = tf1.placeholder(tf.int32, [None], "y")
        training = tf1.placeholder_with_default(True, [], "training")
        with tf1.variable_scope("m", use_resource=resource):
            table = tf1.get_variable("table", [ROWS, WIDTH])
            kernel = tf1.get_variable("kernel", [WIDTH, CLASSES])
            bias = tf1.get_variable("bias", [CLASSES], initializer=tf1.zeros_initializer())
            average = tf1.get_variable("average", [WIDTH], trainable=False)
        taken = tf.gather(table if sparse else table + 0.0, ids)
        hidden = tf.reduce_mean(taken, 1)
        mean = tf.reduce_mean(hidden, 0)
        if not plain:
            hidden = hidden - tf1.cond(training, lambda: mean, lambda: tf.identity(average))
        logits = tf.matmul(hidden, kernel) + bias
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss"
        )
        right = tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32)
        _, counted = tf1.metrics.mean(right)
        moved = tf1.assign_sub(average, (average - mean) * 0.1)
        step = tf1.train.get_or_create_global_step()
        with tf.control_dependencies([] if plain else [counted, moved]):
            train = optimiser().minimize(loss, step, name="train")
        tf1.train.Saver()
        tf1.global_variables_initializer()
    return graph, loss, train, {"ids:0": [[1, 2], [2, 3]], "y:0": [0, 2]}


def counted(graph_defs):
    messages = [
        protos.message("GraphDef").FromString(graph_def.SerializeToString())
        for graph_def in graph_defs
    ]
    names = decoded.NameTexts()
    return parameters.count(
        decoded.nodes(messages, names).values(),
        decoded.variables(messages, names).values(),
        decoded.transfers(messages, names),
    )


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("resource", [True, False], ids=["resource", "ref"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_what_any_update_trains_is_counted_and_slots_and_averages_are_not(name, resource, sparse):
    graph, *_ = model(OPTIMISERS[name], resource, sparse)
    found = counted([graph.as_graph_def()])
    assert (found.trained_variables, found.trained_elements) == (3, TRAINED)
    assert found.variables > 3


def ran(fetched, resource=True, plain=False):
    graph, loss, train, feeds = model(OPTIMISERS["adam"], resource, plain=plain)
    metadata = tf1.RunMetadata()
    with tf1.Session(graph=graph) as session:
        with graph.as_default():
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        session.run(
            {"both": [loss, train], "train": [train]}[fetched],
            feeds,
            tf1.RunOptions(output_partition_graphs=True),
            metadata,
        )
    return counted(metadata.partition_graphs)


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "ref"])
def test_the_graph_that_ran_says_the_same_where_the_loss_was_fetched(resource):
    found = ran("both", resource)
    assert (found.trained_variables, found.trained_elements, found.ran) == (3, TRAINED, True)


def test_without_the_loss_a_variable_that_is_assigned_may_be_a_slot():
    found = ran("train", plain=True)
    assert (found.trained_variables, found.trained_elements) == (2, None)
    assert found.undecided_variables == 1  # the table
    found = ran("both", plain=True)
    assert (found.trained_elements, found.undecided_variables) == (TRAINED, 0)


def test_variables_that_keras_updates_are_trained_and_its_state_is_not():
    import keras

    network = keras.Sequential(
        [
            keras.Input((2,), dtype="int32"),
            keras.layers.Embedding(ROWS, WIDTH),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(CLASSES),
        ]
    )
    rate, losses = keras.optimizers.Adam(0.1), keras.losses.SparseCategoricalCrossentropy(True)
    rate.build(network.trainable_variables)

    @tf.function
    def step(ids, y):
        with tf.GradientTape() as tape:
            loss = losses(y, network(ids, training=True))
        rate.apply(tape.gradient(loss, network.trainable_variables))
        return loss

    concrete = step.get_concrete_function(
        tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None], tf.int32)
    )
    graph_def = concrete.graph.as_graph_def()
    # A function takes its variables as arguments; here they become nodes.
    handles = {id(variable.handle): variable.shape for variable in concrete.variables}
    for outer, inner in concrete.graph.captures:
        node = next(node for node in graph_def.node if node.name == inner.op.name)
        if id(outer) in handles:
            node.Clear()
            node.name, node.op = inner.op.name, "VarHandleOp"
            node.attr["shape"].shape.CopyFrom(handles[id(outer)].as_proto())
    found = counted([graph_def])
    trained = sum(variable.shape.num_elements() for variable in network.trainable_variables)
    assert (found.trained_variables, found.trained_elements) == (5, trained)
    assert found.variables > 2 * 5
