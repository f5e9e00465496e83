"""Experiments: what an op costs a step, measured by running it once more in place.

For each of the largest ops there is a step in which that op runs twice. All of these take turns
with the unchanged step, and with a copy of it under another name, the control: its apparent cost is
the error of the method. Every observation has new sessions, because the place of a session in
memory makes all of its steps faster or slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import tensorflow as tf

from tflab.analysis import verdicts
from tflab.cli import terminal
from tflab.errors import TflabError
from tflab.lifecycle import once_more
from tflab.records.measured import OpStats
from tflab.records.options import Options
from tflab.records.stages import Placement
from tflab.records.verdicts import Experiment, Experiments, Untried
from tflab.runtime import measure, session

LARGEST = 10  # ops that are tried
ROUNDS = 20  # steps of each variant in an observation
LEAST = 6  # observations, whatever the budget: fewer give no interval
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Variant:
    """A step that runs one op twice."""

    name: str
    op: str
    job: measure.Job


def run(
    placement: Placement, top_ops: Sequence[OpStats], options: Options, split: str = "train"
) -> Experiments | None:
    """Run each of the largest ops once more, and measure what that adds to an untraced step.

    It takes about `options.experiments` seconds; `split` is that of the fed data. None if Ctrl-C
    came before LEAST observations. Raises TflabError if a step fails.
    """
    variants, untried = ways(placement, top_ops, options)
    if not variants:
        return Experiments((), None, tuple(untried))
    step = session.step_of(placement.program, placement.fetches)
    usual = measure.job_of(placement.program, step, options)
    in_order = replace(usual, options=replace(options, one_by_one=True))
    jobs = [usual, usual, in_order, *(variant.job for variant in variants)]
    added_ns = observe(jobs, placement, options, split)
    if len(added_ns) < LEAST:
        return None
    control, ordered, *costs = zip(*added_ns, strict=True)
    return Experiments(
        ops=tuple(
            summary(variant.name, variant.op, cost)
            for variant, cost in zip(variants, costs, strict=True)
        ),
        control=summary("control", "", control),
        untried=tuple(untried),
        one_by_one=summary("ops one by one", "", ordered),
    )


def observe(
    jobs: Sequence[measure.Job], placement: Placement, options: Options, split: str
) -> list[list[float]]:
    """By how many ns the step of each other job exceeds that of the first job: a list of medians
    per observation, until the time is over or Ctrl-C."""
    size = options.batch_size
    added_ns: list[list[float]] = []
    for number in measure.observations(LEAST, options.experiments):
        batches = session.feed_batches(placement.program, size, split)
        label = f"experiments, part {number + 1}"
        plan = replace(measure.rotation(batches, size, len(jobs), ROUNDS), label=label)
        times = measure.in_rotation(jobs, plan, seed=number)
        if len(times[0]) < ROUNDS:
            break  # Ctrl-C
        added_ns.append(
            [
                median(now - then for now, then in zip(other, times[0], strict=True))
                for other in times[1:]
            ]
        )
    return added_ns


def summary(name: str, op: str, added_ns: Sequence[float]) -> Experiment:
    low, high = verdicts.median_interval(added_ns, CONFIDENCE)
    return Experiment(name, op, median(added_ns), low, high, len(added_ns))


def ways(
    placement: Placement, top_ops: Sequence[OpStats], options: Options
) -> tuple[list[Variant], list[Untried]]:
    """For each of the largest ops the step that runs it twice, or why there is none."""
    largest = top_ops[:LARGEST]
    variants, untried = [], []
    for row in terminal.track("experiments, preparing", largest, len(largest)):
        names = once_more.parts(row.key, placement.ledger)
        reason = once_more.refusal(names, placement)
        job = None if reason else same_kernels(placement, names, options)
        if job:
            variants.append(Variant(row.key, row.ops[0], job))
        else:
            reason = reason or "the runtime would fuse it or its neighbours differently"
            untried.append(Untried(row.key, row.ops[0], reason))
    return variants, untried


def same_kernels(
    placement: Placement, names: Sequence[str], options: Options
) -> measure.Job | None:
    """The step in which the copy runs with the original's kernel, and all other ops with theirs,
    judged by the partition graphs. None if no way of copying achieves that."""
    graph_def = placement.program.graph.as_graph_def()
    types = {node.name: node.op for node in placement.nodes}
    for way in once_more.WAYS:
        free: frozenset[str] = frozenset()
        for _ in range(2):  # if a node that uses the op changed, it does not wait
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
