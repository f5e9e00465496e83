"""Configurations: the same untraced step under several configurations that take turns, with a
verdict for each.

Settings of a process (graph passes, XLA, threads) take turns with `default` step by step. Settings
that are read when TensorFlow is imported need a separate process, which runs next to that of
`default`: a dozen steps here, then a dozen there. Steps of one process are not independent of one
another, so a process, or a pair of them, is one observation. Within it, new sessions are created a
few times, because the place of a session in memory makes all of its steps faster or slower.

The control is `default` once more: as a second session in the same process, or, for a configuration
in a process of its own, as another process.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from statistics import geometric_mean, median
from typing import NamedTuple

from tflab import datasets
from tflab.analysis import verdicts
from tflab.cli import terminal
from tflab.compare import DEFAULT, setting_of
from tflab.compare.prepare import Prepared
from tflab.errors import TflabError, UsageError
from tflab.records.measured import ConfigTimes
from tflab.runtime import devices, measure, session
from tflab.runtime.private import graphs

OBSERVATIONS = 28  # of each configuration, if there is time
TURNS = 32  # turns of a process in an observation
OBSERVATION_S = 7.0  # after which no further turn of it starts
A_SESSION = 8  # turns, after which new sessions are created
ROUNDS = 12  # steps of each configuration at each batch size in a turn
LEAST_ROUNDS = 3  # if these already take long
CONTROL = "control"
OF_ITS_OWN = {"TFLAB_CONTROL": "1"}  # means nothing to TensorFlow

Times = Mapping[int, Sequence[int]]  # batch size -> ns of its steps
Jobs = Mapping[str, measure.Job]  # by configuration
Place = tuple[int, str]  # a process of an observation, and a configuration in it
Observed = Mapping[Place, Times]
Opponents = tuple[Place, Place, Place]  # of a configuration, of its `default` and of its control


class Process(NamedTuple):
    """The environment of a process, and the configurations that share it."""

    environment: Mapping[str, str]
    names: Sequence[str]


def changing(configs: Sequence[str]) -> tuple[str, ...]:
    """Return the configurations that change something here. Raise UsageError if there is no GPU."""
    if "gpu" in configs and not devices.gpus():
        raise UsageError("This machine has no GPU; remove `gpu` from --configs.")
    affinity = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    same: dict[str, str] = {}
    with suppress(TflabError):  # this TensorFlow does not say whether oneDNN is on
        if not graphs.onednn_is_on():
            same["no-onednn"] = "oneDNN is off here"
    if len(affinity(0)) == 1:
        same["one-thread"] = "there is one processor"
    for config in configs:
        if config in same:
            note = f"tflab: `{config}` is not measured, because {same[config]} anyway."
            terminal.say(note, sys.stderr)
    return tuple(config for config in configs if config not in same)


def observe(prepared: Prepared, step_ns: float) -> Iterator[Observed]:
    """Yield observations: the untraced steps of every configuration at every batch size. The
    default's steps at all batch sizes together take `step_ns`."""
    configs, budget_s = prepared.chosen.configs, prepared.chosen.race_s
    program, batch_sizes = prepared.program, prepared.batch_sizes
    columns = session.feed_columns(program, prepared.split).values()
    rows = [datasets.first_rows(column, ROUNDS * max(batch_sizes)) for column in columns]
    options = {of: replace(prepared.options, **setting_of(of).options) for of in configs}
    jobs = {of: measure.job_of(program, prepared.step, options[of]) for of in configs}
    jobs[CONTROL] = jobs[DEFAULT]
    numbers = measure.observations(verdicts.LEAST, budget_s, OBSERVATIONS)
    plan = terminal.track("configurations", numbers, OBSERVATIONS, budget_s=budget_s)
    most_s = min(OBSERVATION_S, budget_s / OBSERVATIONS)
    affordable = int(most_s * 1e9 / (len(jobs) * step_ns)) - measure.WARMUP_STEPS
    rounds = max(LEAST_ROUNDS, min(ROUNDS, affordable))
    yield from observations(jobs, processes_of(configs), rows, batch_sizes, plan, most_s, rounds)


def processes_of(configs: Sequence[str]) -> list[Process]:
    """Return the processes of an observation. A configuration in a process of its own is compared
    with a `default` and a control in theirs: sessions of one process slow each other down."""
    shared: dict[tuple, list[str]] = {}
    alone: list[Process] = []
    for config in configs:
        setting = setting_of(config)
        if setting.environment and not setting.options:
            alone.append(Process(setting.environment, [config]))
        elif config != DEFAULT:
            key = tuple(setting.environment.items())
            shared.setdefault(key, [DEFAULT, CONTROL]).append(config)
    if alone:
        alone = [Process({}, [DEFAULT]), Process(OF_ITS_OWN, [CONTROL]), *alone]
    return [*alone, *(Process(dict(key), names) for key, names in shared.items())]


def opponents(processes: Sequence[Process]) -> dict[str, Opponents]:
    """Return the places of each configuration, of its default and of its control."""
    alone = {names[0]: (at, names[0]) for at, (_, names) in enumerate(processes) if not names[1:]}
    found: dict[str, Opponents] = {}
    for at, (_, names) in enumerate(processes):
        places = alone | {name: (at, name) for name in names}
        for name in names:
            if name != CONTROL:
                found.setdefault(name, (places[name], places[DEFAULT], places[CONTROL]))
    return found


def observations(
    jobs: Jobs,
    processes: Sequence[Process],
    rows: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    numbers: Iterable[int],
    most_s: float = OBSERVATION_S,
    rounds: int = ROUNDS,
) -> Iterator[Observed]:
    """Yield times of every configuration, in processes in turns, for at most `most_s` seconds."""
    for number in numbers:
        with ExitStack() as stack:
            started = []
            for process in processes:
                # No configuration is always the first whose session is created.
                shuffled = random.Random(number).sample(process.names, len(process.names))
                stream = measure.untraced(
                    process.environment,
                    *([jobs[name] for name in shuffled], rows, batch_sizes, rounds, A_SESSION),
                )
                started.append((shuffled, stack.enter_context(stream)))
            measured = [next(stream) for _, stream in started]  # all are ready before one starts
            draw, start = random.Random(number), time.monotonic()
            for turn in range(TURNS):
                if turn and time.monotonic() - start > most_s:
                    break
                for place in draw.sample(range(len(started)), len(started)):
                    for of_job, added in zip(measured[place], next(started[place][1]), strict=True):
                        for size, times in added.items():
                            of_job[size] += times
        yield {
            (at, name): times
            for at, ((names, _), of_jobs) in enumerate(zip(started, measured, strict=True))
            for name, times in zip(names, of_jobs, strict=True)
        }


def judged(
    observed: Sequence[Observed], against: Mapping[str, Opponents], batch_sizes: Sequence[int]
) -> tuple[ConfigTimes, ...]:
    """Return every configuration with its verdict; all verdicts are made together."""
    pairs = [(size, config) for size in batch_sizes for config in against]

    def ratios(size: int, itself: Place, usual: Place) -> list[float]:
        """Return, for each observation, the median ratio of the step's time to the default's, over
        its rounds. A disturbance of one step moves it less than a ratio of two medians."""
        both = [(each[itself][size], each[usual][size]) for each in observed]
        return [median(a / b for a, b in zip(*times, strict=False)) for times in both]

    others = [pair for pair in pairs if pair[1] != DEFAULT]
    groups = []
    for size, config in others:
        itself, default, control = against[config]
        groups.append((ratios(size, itself, default), ratios(size, control, default)))
    made = dict(zip(others, verdicts.of_race(groups), strict=True))

    def row(size: int, config: str) -> ConfigTimes:
        itself, default, _ = against[config]
        usual = [each[default][size] for each in observed]
        default_ns = geometric_mean(
            median(median(ns[at : at + ROUNDS]) for at in range(0, len(ns), ROUNDS)) for ns in usual
        )
        verdict = made.get((size, config))
        return ConfigTimes(
            config=config,
            batch_size=size,
            untraced_ns=measure.spread([ns for each in observed for ns in each[itself][size]]),
            default_ns=default_ns,
            step_ns=default_ns * verdict.ratio if verdict else default_ns,
            verdict=verdict,
        )

    return tuple(row(*pair) for pair in pairs)
