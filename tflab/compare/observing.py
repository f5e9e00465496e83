"""Observing: what a saved measurement has besides: the step in several processes, and the place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path

import tflab
from tflab import datasets, models
from tflab.analysis import verdicts
from tflab.analysis.accumulator import Accumulator
from tflab.cli import ending as signals
from tflab.cli import environment, terminal
from tflab.compare import sweep
from tflab.compare.preparation import Prepared
from tflab.compare.sweep import Tables
from tflab.errors import RefusedError, TflabError
from tflab.records.measured import Comparison, Observed, ObservedProcess
from tflab.records.measurements import Measurement
from tflab.records.options import Options
from tflab.runtime import child, devices, fingerprint, measure, own_process, session, trace

# Variables that affect a measurement and are read by TensorFlow or its libraries
VARIABLES = (
    *("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    *("TF_OVERRIDE_GLOBAL_THREADPOOL", "TF_XLA_FLAGS", "TF_DETERMINISTIC_OPS"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "OMP_NUM_THREADS", "KMP_AFFINITY"),
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "TF_FORCE_GPU_ALLOW_GROWTH"),
)


def observe(
    prepared: Prepared,
    batches: Mapping[int, sweep.MeasuredBatch],
    tables: Tables,
    budget_s: float,
) -> tuple[Observed, measure.Outcome]:
    """The step in several processes, together with the measurements so far; and how that ended.
    Ctrl-C and a process that fails keep those that have ended."""
    program, step, split = prepared.program, prepared.step, prepared.split
    trace_every = prepared.chosen.trace_every
    columns = list(session.feed_columns(program, split).values())
    keys = {size: {row.key: row.nodes for row in tables[size]} for size in batches}
    ended: list[ObservedProcess] = []
    ending = measure.Outcome()
    try:
        job = measure.job_of(program, step, prepared.options)
        with signals.released():
            ended.extend(run_processes(job, columns, keys, budget_s))
    except KeyboardInterrupt:
        ending = measure.Outcome(interrupted=True)
    except TflabError as error:
        ending = measure.Outcome(failure=RefusedError(str(error)))
    observed = Observed(
        fingerprint=fingerprint.of_step(program, step, split),
        untraced_ns={size: batch.untraced_rounds() for size, batch in batches.items()},
        traced_ns={
            size: sweep.in_rounds(
                batch.traced_ns,
                (sum(number % trace_every == 0 for number in steps) for steps in batch.rounds),
            )
            for size, batch in batches.items()
        },
        processes=tuple(ended),
    )
    return observed, ending


def measurement(comparison: Comparison, options: Options) -> Measurement:
    """A comparison with its observations, place and time."""
    assert comparison.observed is not None
    machine = dict(devices.inspected())
    set_here = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return Measurement(
        tflab=tflab.__version__,
        when=environment.now(),
        environment=machine | set_here,
        options=chosen(options),
        comparison=replace(comparison, observed=None),
        observed=comparison.observed,
    )


def chosen(options: Options) -> dict[str, str]:
    """The options of a run, in words, without names of folders and files."""
    saved = options.saved
    words = {
        "devices": str(options.devices),
        "graph passes off": ", ".join(options.without) or "none",
        "warm-up steps": str(options.warmup),
        "signature": saved.signature or "",
        "derived tensor": saved.loss or "",
        "fed from files": ", ".join(name for name, _ in saved.feeds),
        "shapes": ", ".join(f"{name}={shape}" for name, shape in saved.shapes),
    }
    return {what: value for what, value in words.items() if value}


def without_folders(model: str) -> str:
    """The name of a model, without its folder."""
    return Path(model).name if models.is_file(model) else model


# Processes: the same step in several successive processes, for comparisons with other places or
# times.
#
# Steps of one process are not independent of one another (see `race`), so a process is one
# observation, however many steps it runs. In each, turns of untraced and of traced steps go from
# batch size to batch size, in a few sessions one after the other.

MOST = 10  # processes, if there is time
A_PROCESS_S = 4.0  # of turns, after which no further turn starts
TURNS = 40  # per session at most: more steps of a quick model tell no more, and enlarge the file
# per process: the place of a session in memory makes all of its steps faster or slower
SESSIONS = 3
UNTRACED, TRACED = 12, 4  # steps of a turn at each batch size

Keys = Mapping[int, Mapping[str, Sequence[str]]]  # by batch size: key of a row -> its nodes


def run_processes(
    job: measure.Job, columns: Sequence[datasets.Column], keys: Keys, budget_s: float
) -> Iterator[ObservedProcess]:
    """The processes, each as it ends. After `budget_s` none starts, except those that a verdict
    requires. Raises TflabError if a step fails."""
    packed = own_process.packed(job)
    rows = [datasets.first_rows(column, UNTRACED * max(keys)) for column in columns]
    numbers = measure.observations(verdicts.LEAST, budget_s, MOST)
    for _ in terminal.track("processes", numbers, MOST):
        yield child.call("tflab.compare.observing:observed_here", packed, rows, keys, A_PROCESS_S)


@dataclass
class SizeObservations:
    """The measurements of one process at a batch size."""

    untraced_ns: list[tuple[int, ...]] = field(default_factory=list)
    traced_ns: list[tuple[int, ...]] = field(default_factory=list)
    accumulator: Accumulator = field(default_factory=Accumulator)

    def turn(self, runner: measure.Runner, batches: Iterator[measure.Values], size: int) -> None:
        """Run a turn of steps; the first of each kind are warm-ups, because kernels inspect shapes
        again."""
        untraced = [measure.Turn(values, size) for values in islice(batches, UNTRACED)]
        traced = [measure.Turn(values, size, traced=True) for values in islice(batches, TRACED)]
        for turn in (*untraced[: measure.WARMUP_STEPS], traced[0]):
            runner.take(turn)
        self.untraced_ns.append(tuple(runner.take(turn)[0].wall_ns for turn in untraced))
        traced_steps = [runner.take(turn) for turn in traced]
        self.traced_ns.append(tuple(step.wall_ns for step, _ in traced_steps))
        for step, recorded in traced_steps:
            assert recorded is not None
            serialized = recorded.serialized
            times = trace.op_times(serialized, step.start_ns, recorded.parsed)
            self.accumulator.add(*times)

    def row_ns(self, nodes: Sequence[str]) -> float:
        """What a step spends in these nodes: the median; of very many nodes, the mean."""
        median = self.accumulator.step_median_ns(nodes)
        if median is not None:
            return median
        stats = self.accumulator.stats(dict.fromkeys(nodes, ""), {}, {})
        return sum(node.total_ns for node in stats) / self.accumulator.steps


def observed_here(
    job: own_process.Packed, columns: Sequence[datasets.Column], keys: Keys, seconds: float
) -> ObservedProcess:
    """All turns of this process, in each session at least one and at most TURNS."""
    ready = own_process.unpacked(job)
    observations = {size: SizeObservations() for size in keys}
    batches = {size: endless(columns, size) for size in keys}
    start = time.monotonic()
    for number in range(1, SESSIONS + 1):
        with measure.sessions([ready]) as (runner,):
            for _ in range(TURNS):
                for size, of_size in observations.items():
                    of_size.turn(runner, batches[size], size)
                if time.monotonic() - start > seconds * number / SESSIONS:
                    break
    return ObservedProcess(
        untraced_ns={size: tuple(of_size.untraced_ns) for size, of_size in observations.items()},
        traced_ns={size: tuple(of_size.traced_ns) for size, of_size in observations.items()},
        rows_ns={
            size: {key: of_size.row_ns(nodes) for key, nodes in keys[size].items()}
            for size, of_size in observations.items()
        },
    )


def endless(columns: Sequence[datasets.Column], size: int) -> Iterator[measure.Values]:
    """Whole batches of the columns, repeated endlessly."""
    rows = len(columns[0]) // size * size if columns else size
    return cycle(datasets.slices(columns, 0, rows, size))
