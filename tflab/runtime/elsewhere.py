"""Elsewhere: steps that are measured in a process of their own, which has run nothing before."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.records import OpRun, Options, Start, StepTime
from tflab.runtime import child, measure, plans, session, trace


@dataclass(frozen=True)
class Packed:
    """A job as it travels to another process."""

    graph_def: bytes
    start: Start
    step: session.Step
    options: Options


def packed(job: measure.Job) -> Packed:
    return Packed(job.graph.as_graph_def().SerializeToString(), job.start, job.step, job.options)


def unpacked(job: Packed) -> measure.Job:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(job.graph_def), name="")
    return measure.Job(graph, job.start, job.step, job.options)


def untraced(
    jobs: Sequence[measure.Job],
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rounds: int,
    sessions: int,
    environment: Mapping[str, str],
) -> list[dict[int, list[int]]]:
    """For each job its times of untraced steps by batch size, in ns: the jobs take turns, in
    sessions that are made anew so many times, with so many rounds in each."""
    return child.call(
        "tflab.runtime.elsewhere:untraced_here",
        *(list(map(packed, jobs)), columns, tuple(batch_sizes), rounds, sessions),
        environment=environment,
    )


def untraced_here(
    jobs: Sequence[Packed],
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rounds: int,
    sessions: int,
) -> list[dict[int, list[int]]]:
    ready = list(map(unpacked, jobs))
    times: list[dict[int, list[int]]] = [{size: [] for size in batch_sizes} for _ in jobs]
    for seed in range(sessions):
        places = random.Random(seed).sample(range(len(jobs)), len(jobs))

        def observe(
            turn: measure.Turn, timed: StepTime, _: Any, places: Sequence[int] = places
        ) -> None:
            times[places[turn.job]][turn.batch_size].append(timed.wall_ns)

        plan = plans.several_rotations(columns, batch_sizes, len(jobs), rounds)
        measure.run([ready[place] for place in places], plan, observe).check(kept=False)
    return times


def cold(job: measure.Job, values: measure.Values, batch_size: int) -> tuple[int, list[OpRun]]:
    """The very first step of a process: its wall time in ns, and its op runs.

    In this process everything has run before. The job has the options of the warm steps: otherwise
    other ops would run, and not be comparable.
    """
    return child.call("tflab.runtime.elsewhere:cold_here", packed(job), values, batch_size)


def cold_here(job: Packed, values: measure.Values, batch_size: int) -> tuple[int, list[OpRun]]:
    observed: list[tuple[StepTime, Any]] = []
    plan = measure.Plan("steps", [[measure.Turn(values, batch_size, traced=True)]], 1)
    ending = measure.run(
        [unpacked(job)], plan, lambda turn, timed, recorded: observed.append((timed, recorded))
    )
    ending.check(kept=False)
    timed, recorded = observed[0]
    return timed.wall_ns, list(trace.op_runs(0, recorded.parsed().step_stats, {}))
