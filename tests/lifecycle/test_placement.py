"""Placement: the graph shown is the graph that runs, and each of its nodes is on one device."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import needs, walks
from tests.approval import approve, refused
from tests.examples.models import model_of, numbers, ones, placed
from tflab import datasets
from tflab.lifecycle import placement
from tflab.records.options import SWITCHES, Model, Options
from tflab.views import placement as view

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)
HOST = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture(scope="module", params=walks.WHOLE)
def two_devices(request, walked):
    return walked(request.param, devices=2)["placement"]


def fetch(walked, name, *fetches):
    return placement.place(walked(name)["backward"], Options(fetches=fetches))


# One device


@every_model
def test_on_one_device_the_nodes_are_those_that_session_run_reports_with_their_lines(name, walked):
    """A NodeDef has the inputs that only control among the others."""
    stage = walked(name)["placement"]
    program, metadata = stage.program, tf1.RunMetadata()
    assert stage.fetches == (program.model.loss.name, program.train_op)
    assert stage.transfers == ()
    lines = {node.name: node.source for node in stage.user_nodes}
    assert all(node.source == lines.get(node.name) for node in stage.nodes)
    batch = next(datasets.batches(program.dataset("train"), 16))
    with tf1.Session(graph=program.graph) as session:
        session.run([v.initializer for v in program.graph.get_collection("variables")])
        session.run(
            list(stage.fetches),
            {feed: batch[column] for feed, column in program.model.feeds.items()},
            options=tf1.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
    (graph,) = metadata.partition_graphs
    assert {(n.name, n.op, tuple(n.input), n.device) for n in graph.node} == {
        (n.name, n.op, (*n.inputs, *(f"^{control}" for control in n.control_inputs)), n.device)
        for n in stage.nodes
    }
    assert {node.device for node in stage.nodes} == {f"{HOST}CPU:0"}


def test_the_shapes_are_those_of_a_real_batch(walked):
    outputs = {node.name: node.outputs for node in walked("toy")["placement"].nodes}
    assert [output.shape for output in outputs["mul"]] == [(16,)]


# The first run


@needs.LOG_HAS_PASSES
@every_model
def test_the_first_run_has_grapplers_passes_of_the_log_and_every_nanosecond_one_owner(name, walked):
    stage = walked(name)["placement"]
    first = stage.first_run
    assert sum(part.ns for part in first.parts) == first.wall_ns
    assert all(part.ns > 0 for part in first.parts)
    timed = {(part.owner, part.iteration) for part in first.parts if part.iteration is not None}
    logged = {(step.name, step.iteration) for step in stage.passes if step.iteration is not None}
    assert timed <= logged
    assert {("model_pruner", 0), ("remapper", 0), ("remapper", 1)} <= timed
    assert {"placer", "kernels", "first run of the ops"} <= {part.owner for part in first.parts}


@needs.LOG_IS_SET
def test_a_pass_that_is_switched_off_is_not_in_the_log_and_takes_no_time(walked):
    switches = tuple(name for name in SWITCHES if name != "grappler")
    stage = placement.place(walked("toy")["backward"], Options(without=switches))
    assert not {step.name for step in stage.passes} & {*switches}
    # A switch may leave what Grappler does to functions
    assert not {part.owner for part in stage.first_run.parts} & {*switches}


def test_the_first_run_of_a_graph_that_is_too_large_is_not_broken_down(walked, monkeypatch):
    monkeypatch.setattr(placement, "MOST_NODES", 9)
    stage = placement.place(walked("toy")["backward"], Options())
    assert stage.first_run is None
    assert stage.notes[0].startswith("The first run is not broken down. The graph has 73 nodes")


# Two devices


def test_partitions_together_are_all_nodes_exactly_once(two_devices):
    placed = {part.device: part.nodes for part in two_devices.partitions}
    assert set(placed) == {f"{HOST}CPU:0", f"{HOST}CPU:1"}
    names = Counter(name for names in placed.values() for name in names)
    assert names == Counter(node.name for node in two_devices.nodes)
    for node in two_devices.nodes:
        assert node.name in placed[node.device]


def test_a_transfer_has_both_its_ends_the_tensor_that_its_send_takes_and_its_size(two_devices):
    nodes = {node.name: node for node in two_devices.nodes}
    for end in ("send", "recv"):
        names = Counter(getattr(transfer, end) for transfer in two_devices.transfers)
        assert names == {node.name: 1 for node in nodes.values() if node.op == f"_{end.title()}"}
    assert two_devices.transfers
    for transfer in two_devices.transfers:
        send, recv = nodes[transfer.send], nodes[transfer.recv]
        assert transfer.from_device == send.device != recv.device == transfer.to_device
        assert send.inputs == (transfer.tensor,)
        assert transfer.bytes == np.zeros(transfer.shape, transfer.dtype).nbytes


def test_text_is_transferred_too_and_its_size_does_not_follow_from_its_shape():
    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        with tf.device("CPU:0"):
            text = tf.strings.as_string(x, name="text")
        with tf.device("CPU:1"):
            return Model(tf.strings.length(text), {x: "x"}, ones)

    stage = placed(build, Options(batch_size=4, devices=2))
    (sent,) = [transfer for transfer in stage.transfers if transfer.tensor == "text"]
    assert (sent.dtype, sent.shape, sent.bytes) == ("string", (4,), None)
    ops = {node.name: node.op for node in stage.nodes}
    assert (ops[sent.send], ops[sent.recv]) == ("_HostSend", "_HostRecv")
    assert any("without 1 transfer of unknown size" in fact.text for fact in view.facts(stage))


def test_two_devices_share_a_loop_of_version_1_whose_gradient_is_tied_to_both():
    def loss_of(x, w):
        rows = tf.TensorArray(tf.float32, 4).unstack(x)

        def body(i, h):
            return i + 1, tf.tanh(w * rows.read(i) + h)

        return tf.reduce_sum(tf.while_loop(lambda i, _: i < 4, body, (0, tf.zeros([4])))[1])

    tf1.disable_control_flow_v2()
    try:
        model = model_of(loss_of, {"w": np.ones(4, np.float32)}, numbers, shape=(4, 4))
        stage = placed(model, Options(batch_size=4, devices=2))
    finally:
        tf1.enable_control_flow_v2()
    assert {node.device for node in stage.nodes} == {f"{HOST}CPU:0", f"{HOST}CPU:1"}


def test_what_a_pass_composed_of_one_line_has_that_line_and_its_phase():
    """The derivative of GELU contains exp(-x * x), of which Grappler makes one op."""

    def loss_of(x, w):
        y = tf.nn.gelu(x @ w)
        return tf.reduce_mean(y**2)

    start = np.ones((4, 8), np.float32)
    stage = placed(model_of(loss_of, {"w": start}, numbers, shape=(None, 4)))
    (composed,) = (node for node in stage.nodes if node.op == "_UnaryOpsComposition")
    fused = [fate.name for fate in stage.ledger if fate.into == composed.name]
    assert [name.rpartition("/")[2] for name in fused] == ["Neg", "Exp"]
    user = next(node for node in stage.user_nodes if node.name == fused[0])
    assert (composed.source, composed.phase) == (user.source, "backward")
    assert composed.source.code.startswith("y = tf.nn.gelu(")


# Fetches


def test_only_what_a_fetch_needs_is_placed(walked):
    stage = fetch(walked, "toy", "mul")
    kinds = Counter(node.op for node in stage.nodes)
    assert kinds == {"VarHandleOp": 1, "ReadVariableOp": 1, "_Arg": 1, "Mul": 1, "_Retval": 1}
    # A node is fetched by its first output, and run where it has none
    graph = walked("toy")["backward"].program.graph
    names = [placement.resolve(graph, name) for name in ("mul", "mul:0", "train")]
    assert names == ["mul:0", "mul:0", "train"]


def test_a_fetch_that_is_not_in_the_graph_is_refused(walked):
    names = ("mull", "qqqqqqqq", "add:1", "add:x", "x")
    said = "\n".join(refused(fetch, walked, "toy", name) for name in names)
    approve("fetches-refused.txt", said)
