"""Own process: steps that are measured in a separate process, in which nothing ran before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.records.options import Options, Start
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import child, measure, refusals, session, trace


@dataclass(frozen=True)
class Packed:
    """A job in a form that can be sent to another process."""

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


Times = list[dict[int, list[int]]]  # of every job: batch size -> ns of its untraced steps


@contextmanager
def untraced(
    jobs: Sequence[measure.Job],
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rounds: int,
    turns: int,
    environment: Mapping[str, str],
) -> Iterator[Iterator[Times]]:
    """A process that measures untraced steps whenever the next turn is requested, so that
    several such processes can take turns: each turn has this many rounds of all jobs at every
    batch size. After `turns` turns the sessions are created anew."""
    ready = list(map(packed, jobs))
    with child.stream(
        "tflab.runtime.own_process:untraced_here",
        *(ready, columns, tuple(batch_sizes), rounds, turns),
        environment=environment,
    ) as stream:
        yield stream


def untraced_here(
    jobs: Sequence[Packed],
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rounds: int,
    turns: int,
) -> Iterator[Times]:
    """The times of one turn after the other; the first item, when everything is ready, has no
    times."""
    ready = list(map(unpacked, jobs))
    yield [{size: [] for size in batch_sizes} for _ in jobs]
    for seed in count():
        places = measure.shuffled(len(ready), seed)
        in_turn = [ready[place] for place in places]
        with measure.sessions(in_turn, traced=False) as runners:
            for _ in range(turns):
                plan = measure.several_rotations(columns, batch_sizes, len(ready), rounds)
                yield run_plan(plan, runners, in_turn, places)


def run_plan(
    plan: measure.Plan,
    runners: Sequence[measure.Runner],
    jobs: Sequence[measure.Job],
    places: Sequence[int],
) -> Times:
    times: Times = [defaultdict(list) for _ in places]
    try:
        for turn in chain.from_iterable(plan.rounds):
            timed, _ = runners[turn.job].take(turn)
            if not turn.warmup:
                times[places[turn.job]][turn.batch_size].append(timed.wall_ns)
    except tf.errors.OpError as error:
        job = jobs[turn.job]
        raise refusals.refused(error, job.options) from None
    return times


def cold(job: measure.Job, values: measure.Values, batch_size: int) -> tuple[int, list[OpRun]]:
    """The first step of a process: its wall time in ns, and its op runs.

    In this process everything has run before. The job has the options of the warm steps: otherwise
    other ops would run, and could not be compared.
    """
    return child.call("tflab.runtime.own_process:cold_here", packed(job), values, batch_size)


def cold_here(job: Packed, values: measure.Values, batch_size: int) -> tuple[int, list[OpRun]]:
    observed: list[tuple[StepTime, Any]] = []
    plan = measure.Plan("steps", [[measure.Turn(values, batch_size, traced=True)]], 1)
    ending = measure.run(
        [unpacked(job)], plan, lambda turn, timed, recorded: observed.append((timed, recorded))
    )
    ending.check(kept=False)
    timed, recorded = observed[0]
    return timed.wall_ns, list(trace.op_runs(0, recorded.parsed().step_stats, {}))
