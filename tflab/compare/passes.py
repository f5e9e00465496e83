"""Passes: the graph passes that changed this graph, for a race in which each is switched off in
turn.

Only what is measured is said of a pass: without it another pass may do its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflab.analysis.passes import BETWEEN
from tflab.compare import PASSES, WITHOUT
from tflab.compare.prepare import Prepared
from tflab.lifecycle import first_run
from tflab.records.measured import ChangingPass
from tflab.records.options import SWITCHES
from tflab.records.placed import FirstRun, Pass
from tflab.runtime import measure, session


def prepared(one: Prepared) -> Prepared:
    """Return the sweep with a configuration without each pass that changed the graph and has a
    switch, in place of PASSES among its configurations."""
    configs = one.chosen.configs
    if PASSES not in configs:
        return one
    job = measure.job_of(one.program, one.step, one.options)
    values = next(session.feed_batches(one.program, one.batch_sizes[0], one.split))
    try:
        first = first_run.measured(job, values)
    except first_run.UnknownError:
        first = FirstRun(0, ())
    found = changing(one.placed[one.batch_sizes[0]].passes, first)
    raced = [f"{WITHOUT}{each.name}" for each in found if each.has_switch]
    kept = [config for config in configs if config != PASSES]
    chosen = replace(one.chosen, configs=(*kept, *raced))
    return replace(one, chosen=chosen, passes=found)


def changing(log: Sequence[Pass], first: FirstRun) -> tuple[ChangingPass, ...]:
    """Return the passes of a log that changed the graph, in the order of their first change."""
    changed: dict[str, set[str]] = {}
    for step in log:
        if step.changed and step.name not in BETWEEN:
            changed.setdefault(step.name, set()).update(step.changed)
    return tuple(
        ChangingPass(
            name=name,
            changed_nodes=len(nodes),
            first_run_ns=first.of_pass(name),
            has_switch=name in SWITCHES,
        )
        for name, nodes in changed.items()
    )
