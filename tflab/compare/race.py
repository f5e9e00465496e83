"""Race: the same untraced step under several configurations that take turns, with a verdict for
each.

Settings of a process (graph passes, XLA, threads) take turns with `default` step by step. Settings
that are read when TensorFlow is imported need a separate process, which runs next to that of
`default`: a dozen steps here, then a dozen there. Steps of one process are not independent of one
another, so a process, or a pair of them, is one observation, however many steps it runs. Within it,
new sessions are created a few times, because the place of a session in memory makes all of its
steps faster or slower.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median

from tflab import datasets
from tflab.analysis import step_times, verdicts
from tflab.cli import terminal
from tflab.compare.configurations import CONFIGURATIONS, DEFAULT
from tflab.compare.preparation import Prepared
from tflab.errors import UsageError
from tflab.records.measured import ConfigTimes
from tflab.records.verdicts import Verdict
from tflab.runtime import devices, measure, own_process, session

OBSERVATIONS = 10  # of each configuration, if there is time
BUDGET_S = 300.0  # after which no further observation starts
TURNS = 32  # turns of a process in an observation
OBSERVATION_S = 15.0  # after which no further turn of it starts
A_SESSION = 8  # turns, after which new sessions are created
ROUNDS = 12  # steps of each configuration at each batch size in a turn

Times = Mapping[int, Sequence[int]]  # batch size -> ns of its steps
Jobs = Mapping[str, measure.Job]  # by configuration
Groups = Sequence[tuple[Mapping[str, str], Sequence[str]]]  # an environment, its configurations


@dataclass(frozen=True)
class RaceOptions:
    """The configurations to race, and for how long: after `budget_s` seconds no further
    observation starts, except those that a verdict requires."""

    names: tuple[str, ...] = (DEFAULT,)  # `default` first
    budget_s: float = BUDGET_S


def check(configs: Sequence[str]) -> None:
    """Raise UsageError for a configuration that this machine does not support."""
    if "gpu" in configs and not devices.gpus():
        raise UsageError("This machine has no GPU; remove `gpu` from --configs.")


def run(prepared: Prepared, configs: Sequence[str], budget_s: float) -> tuple[ConfigTimes, ...]:
    """Untraced steps of every configuration at every batch size, each compared with `default`.

    After `budget_s` no further observation starts, except those that a verdict requires.
    """
    program, batch_sizes = prepared.program, prepared.batch_sizes
    columns = list(session.feed_columns(program, prepared.split).values())
    rows = [datasets.first_rows(column, ROUNDS * max(batch_sizes)) for column in columns]
    jobs = {}
    for config in configs:
        options = replace(prepared.options, **CONFIGURATIONS[config].options)
        jobs[config] = measure.job_of(program, prepared.step, options)
    groups = by_environment(configs)
    numbers = measure.observations(verdicts.LEAST, budget_s, OBSERVATIONS)
    plan = terminal.track("configurations", numbers, OBSERVATIONS)
    most_s = min(OBSERVATION_S, budget_s / OBSERVATIONS)
    observed = list(observations(jobs, groups, rows, batch_sizes, plan, most_s))
    return judged(observed, configs, batch_sizes)


def by_environment(configs: Sequence[str]) -> list[tuple[Mapping[str, str], list[str]]]:
    """The configurations that share a process, with its environment; `default` first."""
    groups: dict[tuple, list[str]] = {(): []}
    for config in configs:
        setting = CONFIGURATIONS[config]
        names = groups.setdefault(tuple(setting.environment.items()), [])
        names += [DEFAULT, config] if setting.beside_default else [config]
    return [(dict(environment), names) for environment, names in groups.items()]


def observations(
    jobs: Jobs,
    groups: Groups,
    rows: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    numbers: Iterable[int],
    most_s: float = OBSERVATION_S,
) -> Iterator[dict[str, Times]]:
    """The times of every configuration, from processes that run side by side and take turns, each
    observation for at most `most_s` seconds.

    The times of `default` next to another configuration are those of `default_beside` it.
    """
    for number in numbers:
        with ExitStack() as stack:
            processes = []
            for environment, names in groups:
                # No configuration is always the first whose session is created.
                shuffled = random.Random(number).sample(names, len(names))
                process = own_process.untraced(
                    [jobs[name] for name in shuffled],
                    *(rows, batch_sizes, ROUNDS, A_SESSION, environment),
                )
                processes.append((shuffled, stack.enter_context(process)))
            measured = in_turn([process for _, process in processes], number, most_s)
        times: dict[str, Times] = {}
        for (environment, _), (names, _), of_jobs in zip(groups, processes, measured, strict=True):
            by_name = dict(zip(names, of_jobs, strict=True))
            if DEFAULT in names and environment:
                usual = by_name.pop(DEFAULT)
                times |= {default_beside(name): usual for name in by_name}
            times |= by_name
        yield times


def in_turn(
    processes: Sequence[Iterator[own_process.Times]], seed: int, most_s: float
) -> list[own_process.Times]:
    """The times of the jobs of each process: turn after turn, in random order, for TURNS turns
    or until the time is over."""
    measured = [next(process) for process in processes]  # all are ready before the first starts
    draw = random.Random(seed)
    start = time.monotonic()
    for turn in range(TURNS):
        if turn and time.monotonic() - start > most_s:
            break
        for place in draw.sample(range(len(processes)), len(processes)):
            for of_job, added in zip(measured[place], next(processes[place]), strict=True):
                for size, times in added.items():
                    of_job[size] += times
    return measured


def default_beside(config: str) -> str:
    return f"{DEFAULT} beside {config}"


def judged(
    observed: Sequence[Mapping[str, Times]], configs: Sequence[str], batch_sizes: Sequence[int]
) -> tuple[ConfigTimes, ...]:
    """Every configuration with its verdict; all verdicts are made together."""
    default, *others = configs
    pairs = [(size, config) for size in batch_sizes for config in others]
    judgements = verdicts.verdicts(
        [
            [
                ratio(times[config][size], times.get(default_beside(config), times[default])[size])
                for times in observed
            ]
            for size, config in pairs
        ]
    )
    against = dict(zip(pairs, judgements, strict=True))
    rows = []
    for size in batch_sizes:
        for config in configs:
            of_processes = tuple(tuple(times[config][size]) for times in observed)
            spread = step_times.spread([ns for times in of_processes for ns in times])
            usual = step_times.spread([ns for times in observed for ns in times[default][size]])
            verdict = against.get((size, config))
            if verdict and not agrees(verdict, spread.median / usual.median):
                verdict = replace(verdict, word="cannot tell")
            rate = 1e9 * size / spread.median
            rows.append(ConfigTimes(config, size, spread, rate, verdict, of_processes))
    return tuple(rows)


def undecided(rows: Sequence[ConfigTimes]) -> tuple[ConfigTimes, ...]:
    """The same times without verdicts, because the machine was too busy."""
    return tuple(
        replace(row, verdict=replace(row.verdict, word="withheld")) if row.verdict else row
        for row in rows
    )


def agrees(verdict: Verdict, of_medians: float) -> bool:
    """Whether the displayed medians agree with the verdict."""
    return {"slower": of_medians > 1, "faster": of_medians < 1}.get(verdict.word, True)


def ratio(times: Sequence[int], usual: Sequence[int]) -> float:
    """One observation: how many times as long the median step takes, as the median over turns,
    which are not all disturbed equally."""
    return median(
        median(times[start : start + ROUNDS]) / median(usual[start : start + ROUNDS])
        for start in range(0, min(len(times), len(usual)), ROUNDS)
    )
