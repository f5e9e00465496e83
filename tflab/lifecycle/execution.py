"""Execution: ops run in the order of their dependencies, and the runtime records when.

The first steps, which pay for kernel creation and cold caches, are discarded. Then untraced and
traced steps take turns. The untraced time is the time of a step; the traced time explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import tensorflow.compat.v1 as tf1

from tflab.analysis import critical_path, memory, op_runs, op_table, timeline
from tflab.cli import interrupts
from tflab.lifecycle import values
from tflab.records.options import Options
from tflab.records.placed import Transfer
from tflab.records.stages import Execution, Placement
from tflab.records.timed import Network, OpRun, Received, StepTime
from tflab.runtime import machine_load, measure, nodes, session, trace


@dataclass
class Measured:
    """Complete steps, as they arrive; with XLA, whose names are new each time, their graphs."""

    types: Mapping[str, str]  # node -> op type, of the graph that runs
    untraced_ns: list[int] = field(default_factory=list)
    steps: list[StepTime] = field(default_factory=list)
    runs: list[OpRun] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)  # over the wire, on several tasks
    graphs: tuple[tf1.GraphDef, ...] = ()

    def observe(self, turn: measure.Turn, timed: StepTime, recorded: measure.Recorded) -> None:
        if recorded is None:
            self.untraced_ns.append(timed.wall_ns)
            return
        metadata = recorded.parsed()
        graphs = tuple(metadata.partition_graphs)
        types = {node.name: node.op for graph in graphs for node in graph.node} or self.types
        runs = list(trace.op_runs(timed.step, metadata.step_stats, types))
        arrived = list(trace.received(timed.step, metadata.step_stats))
        self.graphs = graphs  # Ctrl-C may come at any time: a step counts when it is complete
        self.runs += runs
        self.received += arrived
        self.steps.append(timed)


def execute(placement: Placement, options: Options) -> Execution:
    """Run real, warm steps, and account for their time. Raises TflabError if a step fails. Ctrl-C
    keeps the steps so far."""
    with interrupts.held():
        execution = measure_steps(placement, options)
        return replace(execution, interrupted=True) if interrupts.take() else execution


def measure_steps(placement: Placement, options: Options) -> Execution:
    program = placement.program
    step = session.step_of(program, placement.fetches)
    measured = Measured({node.name: node.op for node in placement.nodes})
    batches = session.feed_batches(program, options.batch_size)
    load = machine_load.begin()
    plan = measure.pairs(batches, options.batch_size, options.warmup, options.steps)
    ending = measure.run(measure.job_of(program, step, options), plan, measured.observe)
    ending.check(kept=bool(measured.steps) and (not ending.failure or bool(options.cluster)))
    makers = {node.name: node for node in (*placement.user_nodes, *placement.nodes)}
    parts = [nodes.from_graph_def(graph, makers, {}) for graph in measured.graphs]
    executed = tuple(node for part in parts for node in part) or placement.nodes
    sent: tuple[Transfer, ...] = placement.transfers
    network: Network | None = None
    if options.cluster:
        from tflab.analysis import wires

        sent = tuple(nodes.transfers(measured.graphs, {}))
        axis = wires.one_axis(measured.runs, measured.received, measured.steps, sent)
        measured.runs = axis.runs  # on one time axis
        network = Network(
            wires=tuple(axis.wires),
            offsets=axis.offsets,
            unrecorded=len(sent) * len(measured.steps) - len(axis.wires),
            left_out=("Values are not fetched over several tasks.",),
        )
    on_wire = network.wires if network else ()
    of_nodes = op_runs.of(run for run in measured.runs if run.name != trace.EXECUTOR)
    stats = op_table.fold(of_nodes)
    steps, images = len(measured.steps), len(measured.steps) * options.batch_size
    during = load()
    execution = Execution(
        program=program,
        nodes=executed,
        batch_size=options.batch_size,
        data=program.dataset("train").name,
        warmup_steps=options.warmup,
        steps=steps,
        untraced_step_ns=measure.spread(measured.untraced_ns),
        traced_step_ns=measure.spread([step.wall_ns for step in measured.steps]),
        runs=op_runs.of(measured.runs),
        step_times=tuple(measured.steps),
        top_ops=op_table.with_shares(op_table.rows(stats, "node", steps, images)),
        time_ledger=timeline.time_ledger(of_nodes, measured.steps, on_wire),
        wall_ns=sum(step.wall_ns for step in measured.steps),
        critical_path=critical_path.critical_path(executed, [*measured.runs, *on_wire], sent),
        memory=memory.memory(of_nodes, measured.steps),
        experiments=None,
        interrupted=ending.interrupted,
        # The tasks of a cluster on this machine are not other programs
        load=replace(during, during=None) if options.cluster else during,
        values=(),
        not_finite=(),
        values_step=None,
        maps=None,
        network=network,
        failure=str(ending.failure) if ending.failure else None,
    )
    if options.values and not (
        execution.interrupted or interrupts.current.waiting or options.cluster
    ):
        execution = values.record(execution, placement, options)
    if options.experiments and not (execution.interrupted or interrupts.current.waiting):
        from tflab.lifecycle import experiments  # few walks want them

        tried = experiments.run(placement, execution.top_ops, options)
        return replace(execution, experiments=tried)
    return execution
