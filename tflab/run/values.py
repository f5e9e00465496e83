"""Values: all tensors of one run of the program, which are fetched beside its own fetches.

The program gets what it asked for, and the additional time is tflab's. The fetched values of all
other runs are looked at, so that the first run with NaN or Inf is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from tflab.errors import TflabError
from tflab.records.codec import encoded
from tflab.records.graph import Node, graph_def_name
from tflab.records.values import Value
from tflab.records.watched import RecordedValues
from tflab.run import program_graph
from tflab.run.groups import RunGroup, WatchedRun
from tflab.runtime import private

MOST_GROUPS = 8  # groups with recorded values
EARLY = "the group ended before that run"


@dataclass
class Plan:
    """The run of a group whose tensors are fetched."""

    names: tuple[str, ...]  # `mul:0`
    own: int  # the number of the program's own fetches, which come first
    feeds: Mapping[str, Any]
    before: Mapping[str, np.ndarray]  # variables


class Values:
    """The values of one run of each group, `run`."""

    def __init__(self, run: int, note: program_graph.Note) -> None:
        self.run, self.note = run, note
        self.reasons: dict[int, str] = {}  # number of a group -> why it has no values
        self.seen: dict[int, RecordedValues] = {}

    def begin(
        self, step: WatchedRun, session: Any, feeds: Mapping[Any, Any], fetches: Sequence[Any]
    ) -> None:
        """Extend the fetches of a run if it is the one whose values are wanted."""
        group = step.group
        full = len(self.reasons) >= MOST_GROUPS
        if session.sess_str or full or group.calls + 1 != self.run:
            return
        from tflab.analysis import values as analysis
        from tflab.runtime import nodes, values

        graph = group.graph
        fed = {private.tensor_name(tensor): value for tensor, value in feeds.items()}
        needed = analysis.needed(nodes.from_graph(graph), group.fetches, fed)
        names = analysis.fetchable(needed, fed)
        rows = max((value.shape[0] for value in fed.values() if np.ndim(value)), default=1)
        try:
            names = values.selected(graph, names, rows)
        except TflabError as error:
            self.reasons[group.number] = str(error)
            return
        self.reasons[group.number] = "that run failed"
        before = variables(session, graph)
        step.values = Plan(tuple(names), len(fetches), fed, before)
        step.fetches = [*fetches, *private.tensor_outputs(graph, names)]
        step.timed = False

    def take(
        self, step: WatchedRun, session: Any, fetched: Sequence[Any], listed: Sequence[Node]
    ) -> None:
        """Keep the values of a run. `listed` are the nodes of its graph, with their lines."""
        from tflab.analysis import values as analysis
        from tflab.lifecycle import values as lifecycle
        from tflab.runtime import values

        plan, group = step.values, step.group
        own, others = fetched[: plan.own], fetched[plan.own :]
        arrays = {
            graph_def_name(name): np.asarray(array)
            for name, array in zip(plan.names, others, strict=True)
        }
        tensors = [name for name in group.fetches if ":" in name]
        step_values = values.Fetched(
            fed=plan.feeds,
            computed=values.with_references(group.graph, arrays, plan.before),
            fetched=dict(zip(tensors, map(np.asarray, own), strict=False)),
            before=plan.before,
            after=variables(session, group.graph),
        )
        graph = analysis.needed(listed, group.fetches, plan.feeds)
        updated = dict(lifecycle.updates(graph, plan.before))
        self.seen[group.number] = RecordedValues(
            group=group.number,
            run=group.calls + 1,
            ns=perf_counter_ns() - step.call.start_ns,
            values=tuple(map(as_json, lifecycle.rows(graph, step_values))),
            origins=lifecycle.origins(graph, step_values, group.graph),
            not_finite=lifecycle.results(step_values),
            updated=tuple(dict.fromkeys(updated.values())),
        )

    def look(self, step: WatchedRun, fetched: Sequence[Any]) -> None:
        """Note the fetched values that are not finite for the first time."""
        group, seen = step.group, step.group.not_finite
        if seen is None:
            seen = group.not_finite = {}
        for name, value in zip(group.fetches, fetched, strict=False):
            if name not in seen and not is_finite(value):
                seen[name] = group.calls + 1

    def write(self, group: RunGroup, folder: str) -> None:
        """Write the values of a group; a note gives the reason if there are none."""
        seen = self.seen.get(group.number)
        if seen is None:
            reason = self.reasons.get(group.number, EARLY)
            self.note(f"No values of run {self.run:,} of group {group.number}: {reason}.")
            return
        text = json.dumps(encoded(seen))
        Path(folder, program_graph.VALUES).write_text(text, encoding="utf-8")


def variables(session: Any, graph: Any) -> dict[str, np.ndarray]:
    """Return the variables of a graph; none of those that are not initialised."""
    from tflab.runtime.session import variable_readers

    readers = variable_readers(graph, [op.name for op in graph.get_operations()])
    known = {}
    for name, tensor in readers.items():
        array = private.fetch_alone(session, private.tensor_outputs(graph, [tensor])[0])
        if array is not None:
            known[name] = array
    return known


def is_finite(value: Any) -> bool:
    """Return whether a fetched value has no NaN and no Inf; text and whole numbers have none."""
    try:
        return bool(np.isfinite(value).all())
    except TypeError:
        return True


def as_json(value: Value) -> Value:
    """Return the value with NaN and Inf as text, because JSON has no such numbers."""
    if value.values is None:
        return value
    after = value.after
    if after is not None and after.values is not None:
        after = replace(after, values=tuple(map(as_text, after.values)))
    return replace(value, values=tuple(map(as_text, value.values)), after=after)


def as_text(element: Any) -> Any:
    if not isinstance(element, float) or isfinite(element):
        return element
    return "NaN" if element != element else "Inf" if element > 0 else "-Inf"
