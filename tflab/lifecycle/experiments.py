"""Experiments: what an op costs a step, measured by running it once more in place.

For each of the largest ops there is a step in which that op runs twice. All of these take turns
with the step as it is, and with that step once more under another name, the control: what it seems
to cost is what the method cannot tell from nothing. Sessions are made anew for every observation,
because where one lies in memory makes it faster or slower than its twin for as long as it lives.

Beside what was measured stands what the simulation of the executor predicts. It knows how long an
op takes by itself from traced steps in which ops ran one by one, some in every observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import tensorflow as tf

from tflab.analysis import critical_path, simulation, verdicts
from tflab.cli import environment, progress
from tflab.errors import TflabError
from tflab.lifecycle import once_more
from tflab.records import (
    Experiment,
    Experiments,
    OpRun,
    OpStats,
    Options,
    Placement,
    Simulation,
    StepTime,
    Untried,
)
from tflab.runtime import measure, plans, session, trace

LARGEST = 10  # ops that are tried
ROUNDS = 20  # steps of each way in an observation
TRACED = 5  # steps of an observation in which ops run one by one
LEAST = 6  # observations, whatever the budget: of fewer there is no interval
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Variant:
    """A step that runs one op twice."""

    name: str
    op: str
    job: measure.Job


@dataclass
class Observed:
    """What was seen, observation by observation."""

    added_ns: list[list[float]] = field(default_factory=list)  # of each job but the first
    usual_ns: list[float] = field(default_factory=list)  # medians of the unchanged step
    one_by_one_ns: list[float] = field(default_factory=list)  # of the step with ops one by one
    before_ns: list[int] = field(default_factory=list)  # in its traced steps: before the first op
    runs: list[OpRun] = field(default_factory=list)  # of the traced steps


def run(
    placement: Placement, top_ops: Sequence[OpStats], options: Options, split: str = "train"
) -> Experiments | None:
    """Run each of the largest ops once more, and say what that added to an untraced step.

    It takes about `options.experiments` seconds; `split` is of the data that are fed. None where
    Ctrl-C came before there were LEAST observations. Raises TflabError when a step fails.
    """
    variants, untried = ways(placement, top_ops, options)
    if not variants:
        return Experiments((), None, tuple(untried))
    step = session.step_of(placement.program, placement.fetches)
    usual = measure.job_of(placement.program, step, options)
    in_order = replace(usual, options=replace(options, one_by_one=True))
    jobs = [usual, usual, in_order, *(variant.job for variant in variants)]
    observed = observe(jobs, placement, options, split)
    if len(observed.added_ns) < LEAST:
        return None
    control, ordered, *costs = zip(*observed.added_ns, strict=True)
    names = [variant.name for variant in variants]
    simulated, predicted = simulate(placement, observed, names)
    ops = (
        replace(summary(each.name, each.op, cost), predicted_ns=predicted.get(each.name))
        for each, cost in zip(variants, costs, strict=True)
    )
    return Experiments(
        ops=tuple(ops),
        control=summary("control", "", control),
        untried=tuple(untried),
        one_by_one=summary("ops one by one", "", ordered),
        simulation=simulated,
    )


def observe(
    jobs: Sequence[measure.Job], placement: Placement, options: Options, split: str
) -> Observed:
    """How much longer than the first job's each other's step takes, again and again until the time
    is over, and traces of the third, whose ops run one by one."""
    size = options.batch_size
    observed = Observed()
    for number in plans.observations(LEAST, options.experiments):
        batches = session.feed_batches(placement.program, size, split)
        label = f"experiments, part {number + 1}"
        plan = replace(plans.rotation(batches, size, len(jobs), ROUNDS), label=label)
        times = measure.in_rotation(jobs, plan, seed=number)
        if len(times[0]) < ROUNDS or not one_by_one(jobs[2], placement, batches, observed):
            return observed  # Ctrl-C
        observed.usual_ns.append(median(times[0]))
        observed.one_by_one_ns.append(median(times[2]))
        observed.added_ns.append(
            [
                median(now - then for now, then in zip(other, times[0], strict=True))
                for other in times[1:]
            ]
        )
    return observed


def one_by_one(
    job: measure.Job, placement: Placement, batches: Iterator[measure.Values], observed: Observed
) -> bool:
    """Add traced steps in which ops run one by one; False where Ctrl-C came."""
    types = {node.name: node.op for node in placement.nodes}
    done = len(observed.before_ns)

    def keep(turn: measure.Turn, timed: StepTime, recorded: measure.Recorded) -> None:
        if recorded is not None:
            number = len(observed.before_ns)
            runs = trace.op_runs(number, recorded.parsed().step_stats, types)
            of_nodes = [run for run in runs if run.name != trace.EXECUTOR]
            observed.runs += of_nodes
            first = min((run.start_ns for run in of_nodes), default=timed.start_ns)
            observed.before_ns.append(first - timed.start_ns)

    size = job.options.batch_size
    plan = plans.pairs(batches, size, plans.WARMUP_STEPS, TRACED)
    ending = measure.run([job], replace(plan, label="ops one by one"), keep)
    if ending.failure:
        raise ending.failure
    return len(observed.before_ns) == done + TRACED


def simulate(
    placement: Placement, observed: Observed, names: Sequence[str]
) -> tuple[Simulation | None, dict[str, float]]:
    """What the simulation says of the step, and of each op once more; of processors only.

    Tracing makes ops longer, so all that was traced is scaled until the ops one by one come to
    their untraced step.
    """
    if any("CPU" not in run.device for run in observed.runs):
        return None, {}
    before_ns, traced = median(observed.before_ns), simulation.profile(observed.runs)
    scale = median(observed.one_by_one_ns) / (before_ns + traced.total_ns)
    ops = traced.scaled(scale)
    processors = environment.describe()["cpus"]
    parents = critical_path.in_order(
        critical_path.dependencies(placement.nodes, placement.transfers)
    )
    step_ns = scale * before_ns + simulation.step_ns(parents, ops, processors)
    ran = [name for name in names if name in ops.cost and name in parents]
    predicted = simulation.once_more_ns(parents, ops, processors, ran)
    return Simulation(step_ns, median(observed.usual_ns), processors), predicted


def summary(name: str, op: str, added_ns: Sequence[float]) -> Experiment:
    low, high = verdicts.median_interval(added_ns, CONFIDENCE)
    return Experiment(name, op, median(added_ns), low, high, len(added_ns))


def ways(
    placement: Placement, top_ops: Sequence[OpStats], options: Options
) -> tuple[list[Variant], list[Untried]]:
    """For each of the largest ops the step that runs it twice, or why there is none."""
    largest = top_ops[:LARGEST]
    variants, untried = [], []
    for row in progress.track("experiments, preparing", largest, len(largest)):
        names = once_more.parts(row.key, placement.ledger)
        reason = once_more.refusal(names, placement)
        job = None if reason else same_kernels(placement, names, options)
        if job:
            variants.append(Variant(row.key, row.ops[0], job))
        else:
            reason = reason or "the runtime would fuse it, or its neighbours, in another way"
            untried.append(Untried(row.key, row.ops[0], reason))
    return variants, untried


def same_kernels(
    placement: Placement, names: Sequence[str], options: Options
) -> measure.Job | None:
    """The step in which the copy runs with the original's kernel and all others with theirs.

    It is told from the partition graphs; None where no way of copying comes to that.
    """
    graph_def = placement.program.graph.as_graph_def()
    types = {node.name: node.op for node in placement.nodes}
    for way in once_more.WAYS:
        free: frozenset[str] = frozenset()
        for _ in range(2):  # where a node that uses the op changed, it does not wait
            changed, target = once_more.copied(graph_def, names, way, free)
            job = job_of(placement, changed, target, options)
            ran = types_that_run(job, placement, options)
            others = {name for name, op in types.items() if ran.get(name) != op}
            copied = ran.get(once_more.copy_of(names[-1])) == types[names[-1]]
            if copied and not others:
                return job
            if not copied:
                break
            free = frozenset(others)
    return None


def job_of(placement: Placement, graph_def: Any, target: str, options: Options) -> measure.Job:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    step = session.step_of(placement.program, placement.fetches)
    step = replace(step, targets=(*step.targets, target))
    return measure.Job(graph, session.start_of(placement.program), step, options)


def types_that_run(job: measure.Job, placement: Placement, options: Options) -> dict[str, str]:
    """Node -> op type, of the graph that runs."""
    values = next(session.feed_batches(placement.program, options.batch_size))
    try:
        with session.fresh(job.graph, job.options) as live:
            return session.types_that_run(live, job.step, job.start, values)
    except TflabError:
        return {}
