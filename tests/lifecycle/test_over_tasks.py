"""Over tasks: a graph on a cluster computes the same, and every node and nanosecond is accounted
for there as well."""

import numpy as np
import pytest
import tensorflow as tf

from tests.examples import accounts
from tflab import models
from tflab.analysis import timeline, wires
from tflab.lifecycle import backward, execution, frontend
from tflab.records.graph import node_of
from tflab.records.options import Options
from tflab.runtime import session
from tflab.units import task_of

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

CLIENT = "/job:client/replica:0/task:0"
TASKS = ("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
STEPS = 5


@pytest.fixture
def lenet(walked_over_tasks):
    return walked_over_tasks("lenet")


def trained(options):
    """The variables of LeNet after some steps."""
    built = frontend.build(("lenet", models.find("lenet")), options)
    program = backward.differentiate(built, options).program
    step = session.step_of(program, session.default_fetches(program))
    if options.cluster:
        frontend.ask(program.graph, program.places)
    batches = session.feed_batches(program, options.batch_size)
    variables = program.graph.get_collection("variables")
    with session.fresh(program.graph, options) as live:
        session.begin(live, session.start_of(program))
        train, *_ = session.shared_steps(live, step, session.FULL_TRACE)
        for _ in range(STEPS):
            train(*next(batches))
        reads = [f"{variable.op.name}/Read/ReadVariableOp:0" for variable in variables]
        return dict(zip(reads, live.run(reads), strict=True))


def test_the_weights_are_those_of_one_machine(two_tasks):
    alone, together = (trained(Options(batch_size=17, cluster=tasks)) for tasks in ((), two_tasks))
    assert alone.keys() == together.keys()
    for name, values in alone.items():
        np.testing.assert_allclose(together[name], values, rtol=1e-4, atol=1e-5, err_msg=name)


def test_every_node_and_transfer_over_tasks_is_accounted_for(lenet):
    stage = lenet["placement"]
    accounts.check(stage)
    parts = {part.device for part in stage.partitions}
    assert parts == {f"{task}/device:CPU:0" for task in (CLIENT, *TASKS)}
    assert not [origin for origin in stage.origins if origin.origin == "unknown"]
    for op in stage.program.graph.get_operations():  # every one has a task, or follows another
        inputs = {tensor.dtype.base_dtype for tensor in op.inputs}
        assert "/job:" in op.device or frontend.mates(op) or tf.resource in inputs
    ops = {node.name: node.op for node in stage.nodes}
    assert stage.transfers
    for transfer in stage.transfers:
        assert (ops[transfer.send], ops[transfer.recv]) == ("_Send", "_Recv")
        assert transfer.from_device != transfer.to_device
        # Of what is fed nobody knows the shape, and the runtime may have left it out
        assert transfer.bytes is not None or transfer.tensor.startswith("_recv_")
    # Layers send activations one way, and their gradients back
    sent = [t for t in stage.transfers if t.bytes]
    crossed = {(task_of(t.from_device), task_of(t.to_device)): t.bytes for t in sent}
    assert crossed[TASKS] == crossed[TASKS[::-1]] == 16 * 400 * 4  # before dense1


def test_every_transfer_is_received_but_where_the_runtime_did_not_record_it(lenet):
    stage = lenet["execution"]
    fed = ("_recv_images_0", "_recv_labels_0")
    ends = {node.name for node in stage.nodes if node.op == "_Recv" and node.name not in fed}
    assert {run.name for run in stage.network.wires} == ends
    assert len(stage.network.wires) + stage.network.unrecorded == len(ends) * STEPS
    # It leaves one out now and then, on a busy machine more
    assert stage.network.unrecorded < len(stage.network.wires)


def test_every_nanosecond_has_one_owner_and_the_network_is_one(lenet):
    stage = lenet["execution"]
    owners = {owner.owner: owner.ns for owner in stage.time_ledger}
    assert sum(owners.values()) == stage.wall_ns
    assert owners[timeline.WIRE] > 0
    offsets = stage.network.offsets  # clocks of one machine are not corrected
    assert [(offset.clock, offset.applied_ns) for offset in offsets] == [(at, 0) for at in TASKS]


def shifted(metadata, shift_ns):
    """A trace as task 1 would have made it with a clock that is so far ahead."""
    for device in metadata.step_stats.dev_stats:
        if device.device.startswith(TASKS[1]):
            for stats in device.node_stats:
                stats.all_start_micros += shift_ns // 1000
                if stats.all_start_nanos:
                    stats.all_start_nanos += shift_ns
    return metadata


@pytest.mark.parametrize("shift_ns", [3_000_000_000, -3_000_000_000])
def test_a_clock_that_is_shifted_on_purpose_is_found_and_corrected(
    shift_ns, walked_over_tasks, two_tasks, monkeypatch
):
    whole = session.Unparsed.parsed
    monkeypatch.setattr(
        session.Unparsed, "parsed", lambda recorded: shifted(whole(recorded), shift_ns)
    )
    options = Options(steps=STEPS, cluster=two_tasks)
    stage = execution.execute(walked_over_tasks("lenet")["placement"], options)
    first, second = stage.network.offsets
    assert abs(first.ahead_ns) <= first.uncertainty_ns
    assert abs(second.ahead_ns - shift_ns) <= second.uncertainty_ns < abs(shift_ns) / 10
    for step in stage.step_times:
        runs = [run for run in (*stage.runs, *stage.network.wires) if run.step == step.step]
        assert min(run.start_ns for run in runs) >= step.start_ns
        assert max(run.start_ns + run.duration_ns for run in runs) <= step.start_ns + step.wall_ns
    made = wires.ends(stage.runs)
    tensors = {t.recv: node_of(t.tensor) for t in walked_over_tasks("lenet")["placement"].transfers}
    pairs = [(run, made.get((run.step, tensors.get(run.name)))) for run in stage.network.wires]
    assert sum(end is not None for _, end in pairs) >= STEPS
    # Receives are timed in microseconds, and offsets are rounded to nanoseconds
    late = [end - run.start_ns - run.duration_ns for run, end in pairs if end is not None]
    assert max(late) <= wires.US + 2
