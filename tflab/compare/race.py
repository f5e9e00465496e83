"""Race: the same untraced step under several configurations, measured in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflab import datasets
from tflab.analysis import significance
from tflab.cli import progress
from tflab.compare.configurations import CONFIGURATIONS
from tflab.errors import UsageError
from tflab.records import ConfigTimes, Options, Program
from tflab.runtime import devices, measure, session

ROUNDS = 3
STEPS = 40  # of each batch size in a round


def check(configs: Sequence[str]) -> None:
    """Raise UsageError for a configuration that this machine cannot have."""
    if "gpu" in configs and not devices.gpus():
        raise UsageError("There is no GPU here to compare with; leave `gpu` out of --configs.")


def run(
    program: Program,
    step: session.Step,
    configs: Sequence[str],
    batch_sizes: Sequence[int],
    options: Options,
    split: str,
) -> tuple[ConfigTimes, ...]:
    """Untraced steps of every configuration at every batch size, round after round.

    Each configuration has a new process in each round: what ran before in one would change times.
    """
    columns = list(session.feed_columns(program, split).values())
    rows = [datasets.head(column, STEPS * max(batch_sizes)) for column in columns]
    times: dict[tuple[str, int], list[int]] = {}
    plan = [(turn, config) for turn in range(ROUNDS) for config in configs]
    for _, config in progress.track("configurations", plan, len(plan), about):
        chosen = CONFIGURATIONS[config]
        by_size = measure.untraced_elsewhere(
            *(program, step, rows, batch_sizes, STEPS),
            replace(options, **chosen.options),
            chosen.environment,
        )
        for size, new in by_size.items():
            times.setdefault((config, size), []).extend(new)
    return tuple(
        config_times(config, size, times["default", size], times[config, size])
        for size in batch_sizes
        for config in configs
    )


def about(part: tuple[int, str]) -> str:
    """`xla, round 2 of 3`"""
    turn, config = part
    return f"{config}, round {turn + 1} of {ROUNDS}"


def config_times(
    config: str, size: int, usual_ns: Sequence[int], other_ns: Sequence[int]
) -> ConfigTimes:
    """Against `default`, step by step in the order in which they were measured."""
    race = significance.race(usual_ns, other_ns)
    return ConfigTimes(
        config=config,
        batch_size=size,
        untraced_ns=race.without_step_ns,
        images_per_second=1e9 * size / race.without_step_ns.median,
        ratio=race.ratio,
        significant=race.significant and config != "default",
    )
