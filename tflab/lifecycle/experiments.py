"""Experiments: what an op costs a step, measured by running it once more in place.

Steps in which one op runs twice take turns with the unchanged step, and with a copy of it, the
control: its apparent cost is the error of the method. Every observation has new sessions, because
the place of a session in memory makes all of its steps faster or slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from statistics import median

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import verdicts
from tflab.cli import terminal
from tflab.errors import TflabError
from tflab.records.graph import makers, node_of, reach, turned_around
from tflab.records.measured import Experiment, Experiments, OpStats, Untried
from tflab.records.options import Options
from tflab.records.placed import Fate
from tflab.records.stages import Placement
from tflab.runtime import measure, nodes, session
from tflab.runtime.private import graphs

LARGEST = 10  # ops that are tried
ROUNDS = 20  # steps of each variant in an observation
LEAST = 6  # observations, whatever the budget: fewer give no interval
CONFIDENCE = 0.95
SCOPE = "once_more"  # of the nodes that are added to a graph
OF_LOOPS = ("Enter", "Exit", "NextIteration", "Merge", "Switch", "LoopCond")
WAITING = ("last", "first", "all")  # which inputs of a copy wait for the original


def run(placement: Placement, top_ops: Sequence[OpStats], options: Options) -> Experiments:
    """Run each of the largest ops once more, and measure what that adds to an untraced step. This
    takes about `options.experiments` seconds. Raises TflabError if a step fails."""
    variants, untried = [], []
    largest = top_ops[:LARGEST]
    for row in terminal.track("experiments, preparing", largest, len(largest)):
        names = nodes_of(row.key, placement.ledger)
        reason = refusal(names, placement)
        if not reason and (job := same_kernels(placement, names, options)):
            variants.append((row, job))
        else:
            reason = reason or "the runtime would fuse it or its neighbours differently"
            untried.append(Untried(row.key, row.ops[0], reason))
    step = session.step_of(placement.program, placement.fetches)
    usual = measure.job_of(placement.program, step, options)
    jobs = [usual, usual, *(job for _, job in variants)]
    added_ns = observe(jobs, placement, options) if variants else []
    if len(added_ns) < LEAST:  # nothing can be tried, or Ctrl-C came
        untried += [Untried(row.key, row.ops[0], "interrupted") for row, _ in variants]
        return Experiments((), None, tuple(untried))
    ops_tried = [("control", ""), *((row.key, row.ops[0]) for row, _ in variants)]
    control, *ops = (
        Experiment(name, op, median(cost), *verdicts.median_interval(cost, CONFIDENCE), len(cost))
        for (name, op), cost in zip(ops_tried, zip(*added_ns, strict=True), strict=True)
    )
    return Experiments(tuple(ops), control, tuple(untried))


def observe(
    jobs: Sequence[measure.Job], placement: Placement, options: Options
) -> list[list[float]]:
    """Return, for each observation, by how many ns the step of each other job exceeds that of the
    first job, as a median. Observe until the time is over or Ctrl-C comes."""
    size, label = options.batch_size, f"experiments, for {options.experiments} s"
    columns = [*session.feed_columns(placement.program, "train").values()]
    observed = measure.untraced_here(jobs, columns, (size,), ROUNDS, turns=1)
    next(observed)
    added_ns: list[list[float]] = []
    numbers = measure.observations(LEAST, options.experiments)
    for _, times in zip(terminal.track(label, numbers, 0), observed, strict=False):
        usual, *others = (of_job[size] for of_job in times)
        pairs = (zip(other, usual, strict=True) for other in others)
        added_ns.append([median(now - then for now, then in steps) for steps in pairs])
    return added_ns


def same_kernels(
    placement: Placement, names: Sequence[str], options: Options
) -> measure.Job | None:
    """Return a job whose step runs the op twice, the copy with the original's kernel and all other
    ops with theirs, judged by the partition graphs. None if no way of copying achieves that."""
    types = {node.name: node.op for node in placement.nodes}
    for way in WAITING:
        free: frozenset[str] = frozenset()
        for _ in range(2):  # if a node that uses the op changed, it does not wait
            changed, target = with_copy(placement.program.graph, names, way, free)
            graph = tf.Graph()
            with graph.as_default():
                tf.import_graph_def(changed, name="")
            step = session.step_of(placement.program, placement.fetches)
            step = replace(step, targets=(*step.targets, target))
            job = measure.Job(graph, session.start_of(placement.program), step, options)
            ran = types_that_run(job, placement, options)
            others = {name for name, op in types.items() if ran.get(name) != op}
            alike = ran.get(f"{SCOPE}/{names[-1]}") == types[names[-1]]
            if alike and not others:
                return job
            if not alike:
                break
            free = frozenset(others)
    return None


def types_that_run(job: measure.Job, placement: Placement, options: Options) -> dict[str, str]:
    """Return the op type of each node of the graph that runs; {} if the graph cannot run."""
    values = next(session.feed_batches(placement.program, options.batch_size))
    metadata = tf1.RunMetadata()
    try:
        with session.fresh(job.graph, job.options) as live:
            run = job.step.callable(live, output_partition_graphs=True)
            session.begin(live, job.start)
            run(*values, run_metadata=metadata)
    except TflabError:
        return {}
    return {node.name: node.op for graph in metadata.partition_graphs for node in graph.node}


# The graph in which an op runs twice. The copy waits for the original, and everything that takes
# the original's output waits for the copy. The waiting is done by separate nodes and never by the
# op itself, because the runtime does not fuse ops with control edges; the one before the copy is a
# PlaceholderWithDefault, which no pass removes, because ops that share an input may also be merged.
# If several nodes of the program were fused into the op, all are copied.


def nodes_of(carrier: str, ledger: Iterable[Fate]) -> tuple[str, ...]:
    """Return the nodes of the program whose work an executed node does, including itself."""
    fused = (fate.name for fate in ledger if fate.fate == "fused" and fate.into == carrier)
    return (*fused, carrier)


def refusal(names: Sequence[str], placement: Placement) -> str | None:
    """Return why an op cannot be run once more; None if it can."""
    by_name = {node.name: node for node in placement.user_nodes}
    for name in names:
        node = by_name.get(name)
        if node is None:
            return "the runtime made it, so the program has no node to copy"
        definition = graphs.op_def(node.op)  # None for a call of a function of the graph
        stateful = definition is None or (definition.is_stateful and node.op != "ReadVariableOp")
        if stateful or node.op in OF_LOOPS:
            return f"a copy of {node.op} might not do the same work"
    edges = makers(placement.user_nodes)
    between = reach(names, edges) & reach(names, turned_around(edges)) - set(names)
    if between:  # the copy would wait for it, and it for the copy
        return "other nodes lie between the nodes whose work it does"
    return None


def with_copy(
    graph: tf.Graph, names: Sequence[str], way: str = "all", free: Set[str] = frozenset()
) -> tuple[tf1.GraphDef, str]:
    """Return the graph with the work of these nodes done once more, and the node to run for it.

    The last of the names is the op that the others were fused into. Some kernels are chosen only if
    an input comes directly from its maker. Therefore `way`, one of WAITING, says which inputs of
    the copy wait for the original, and the nodes in `free` take the original's output without
    waiting.
    """
    carrier, changed = names[-1], graph.as_graph_def()
    original, done = f"{SCOPE}/{carrier}/original", f"{SCOPE}/{carrier}/done"
    ops = [op for op in graph.get_operations() if op.name in names]
    kept = {*names, *free}
    for node in changed.node:
        for index, tensor in enumerate(node.input if node.name not in kept else ()):
            if node_of(tensor) in names and not tensor.startswith("^"):
                node.input[index] = gate_of(tensor)

    def add(name: str, tensor: tf.Tensor, *inputs: str) -> None:
        gate = changed.node.add(name=name, op="Identity", input=inputs)
        gate.attr["T"].type = tensor.dtype.base_dtype.as_datatype_enum

    for output in (output for op in ops for output in op.outputs):
        if output.consumers() or not output.value_index:
            tensor = nodes.tensor_name(output)
            add(gate_of(tensor), output, tensor, f"^{done}")
    outer = [*dict.fromkeys(t.ref() for op in ops for t in op.inputs if t.op.name not in names)]
    gates: dict[str, str] = {}
    for number, tensor in enumerate({"last": outer[-1:], "first": outer[:1], "all": outer}[way]):
        taken = tensor.deref()
        name, gate = nodes.tensor_name(taken), f"{SCOPE}/{carrier}/input_{number}"
        node = changed.node.add(name=gate, op="PlaceholderWithDefault")
        node.attr["dtype"].type = taken.dtype.base_dtype.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(taken.shape.as_proto())
        node.input.extend([name, f"^{original}"])
        gates[name] = gate
    for op in ops:
        copy = changed.node.add()
        copy.CopyFrom(op.node_def)
        copy.name = f"{SCOPE}/{op.name}"
        inputs = [nodes.tensor_name(tensor) for tensor in op.inputs]
        del copy.input[:]
        copy.input.extend(
            f"{SCOPE}/{name}" if node_of(name) in names else gates.get(name, name)
            for name in inputs
        )
    result = graph.get_operation_by_name(carrier).outputs[0]
    add(original, result, carrier)
    add(done, result, f"{SCOPE}/{carrier}")
    return changed, done


def gate_of(tensor: str) -> str:
    return f"{SCOPE}/gate/{tensor.replace(':', '_output_')}"
