"""Execution: ops run in the order of their dependencies, and the runtime notes when.

Steps are warm: the first ones, which pay for kernel creation and cold caches, are thrown away.
Then untraced and traced steps take turns, so that both see the same machine. The untraced time
is the truth; the traced one explains it.
"""

from __future__ import annotations

from dataclasses import replace

from tflab.analysis import critical_path, lanes, memory, significance, step_times, tables, timeline
from tflab.records import Execution, Options, Placement, Program, Race
from tflab.runtime import nodes, session, trace

TRACED_BATCH_SIZES = (1, 16, 64)  # for TensorBoard: the sizes that the lab compares
ROUNDS = 50  # of a comparison: enough for the sign test to see a difference of a few percent


def execute(placement: Placement, options: Options) -> Execution:
    """Run real steps, warm, and account for their time.

    Raises TflabError when a step fails. On Ctrl-C the steps until then are kept.
    """
    program = placement.program
    step = session.step_of(program, placement.fetches)
    types = {node.name: node.op for node in placement.nodes}
    measured = session.measure(program, step, types, options, TRACED_BATCH_SIZES)
    executed = placement.nodes
    if measured.graphs:  # XLA numbers its clusters anew in every session
        sources = {node.name: node.source for node in placement.user_nodes}
        parts = (nodes.from_graph_def(graph, sources, {}) for graph in measured.graphs)
        executed = tuple(node for part in parts for node in part)
    of_nodes = [run for run in measured.runs if run.name != trace.EXECUTOR]
    return Execution(
        program=program,
        nodes=executed,
        batch_size=options.batch_size,
        data=program.dataset("train").name,
        warmup_steps=options.warmup,
        steps=len(measured.steps),
        untraced_step_ns=step_times.spread(measured.untraced_ns),
        traced_step_ns=step_times.spread([step.wall_ns for step in measured.steps]),
        runs=tuple(measured.runs),
        step_times=lanes.shaped(measured.runs, measured.steps),
        top_ops=tables.top_ops(of_nodes),
        top_types=tables.top_types(of_nodes),
        time_ledger=timeline.time_ledger(measured.runs, measured.steps),
        wall_ns=sum(step.wall_ns for step in measured.steps),
        critical_path=critical_path.critical_path(executed, measured.runs, placement.transfers),
        memory=memory.memory(of_nodes, measured.steps),
        race=raced(program, step, options),
        interrupted=measured.interrupted,
        traces=measured.traces,
        captures=tuple(measured.captures),
        hlo_protos=measured.hlo_protos,
    )


def raced(program: Program, step: session.Step, options: Options) -> Race | None:
    """With passes switched off: what they are worth in time, against all passes on."""
    if not options.without:
        return None
    variants = (replace(options, without=()), options)
    times = session.in_turn(program, step, variants, max(options.steps, ROUNDS))
    return significance.race(*times) if times else None
