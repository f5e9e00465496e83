"""Values: all tensors of one run of the program, which are fetched beside its own fetches.

The program gets what it asked for, and the additional time is tflab's. A loss is usually computed
before the update that spoils the variables, so the run before the wanted one is kept as well. A
call of a tf.function has nothing to fetch: it runs op by op, and the first ops with NaN or Inf are
noted.
"""

from __future__ import annotations

import json
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from tflab.analysis import not_finite
from tflab.errors import TflabError
from tflab.records.codec import MOST, encoded
from tflab.records.graph import Node, Source, graph_def_name
from tflab.records.values import COMPUTED, FED, VARIABLE, NotFinite, Value
from tflab.records.watched import RecordedValues
from tflab.run import program_graph
from tflab.run.groups import DATA_OPS, Run, RunGroup
from tflab.run.sampler import Line, outwards
from tflab.runtime import private

MOST_GROUPS = 8  # groups with recorded values


class Plan(NamedTuple):
    """The run of a group whose tensors are fetched."""

    names: Sequence[str]  # `mul:0`
    own: int  # the number of the program's own fetches, which come first
    feeds: Mapping[str, Any]
    before: Mapping[str, np.ndarray]  # variables


class Values:
    """The values of one run of each group, `run`, and the ops of one call of each function."""

    def __init__(
        self, run: int, note: program_graph.Note, line_of: Callable[[Any], Line | None]
    ) -> None:
        self.run, self.note = run, note
        self.begun: set[int] = set()  # numbers of groups
        self.told: set[int] = set()  # numbers of those without values, of which a note says why
        self.seen: dict[int, RecordedValues] = {}
        self.before: dict[int, RecordedValues] = {}  # the run before, if that made NaN or Inf
        self.ops = Ops(line_of)
        self.call: tuple[str, int] = ("", 0)  # the function that runs op by op, and its call

    def begin(
        self, run: Run, session: Any, feeds: Mapping[Any, Any], fetches: Sequence[Any]
    ) -> None:
        """Extend the fetches of a run if it is the one whose values are wanted."""
        group = run.group
        full = len(self.begun) >= MOST_GROUPS and group.number not in self.begun
        if session.sess_str or full or group.calls + 1 not in (self.run - 1, self.run):
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
            self.note(str(error))
            self.told.add(group.number)
            return
        self.begun.add(group.number)
        before = variables(session, graph)
        run.values = Plan(names, len(fetches), fed, before)
        run.fetches = [*fetches, *private.tensor_outputs(graph, names)]
        run.timed = False

    def take(self, run: Run, session: Any, fetched: Sequence[Any], listed: Sequence[Node]) -> None:
        """Keep the values of a run. `listed` are the nodes of its graph, with their lines."""
        from tflab.analysis import values as analysis
        from tflab.lifecycle import values as lifecycle
        from tflab.runtime import values

        plan, group = run.values, run.group
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
        recorded = RecordedValues(
            group=group.number,
            function="",
            run=group.calls + 1,
            ns=perf_counter_ns() - run.start_ns,
            values=tuple(map(as_json, lifecycle.rows(graph, step_values))),
            origins=lifecycle.origins(graph, step_values, group.graph),
            not_finite=lifecycle.results(step_values),
            updated=tuple(dict.fromkeys(updated.values())),
        )
        if recorded.run < self.run:
            if recorded.origins:
                self.before[group.number] = recorded
            return
        held = any(origin.kind == VARIABLE for origin in recorded.origins)
        self.seen[group.number] = self.before.get(group.number, recorded) if held else recorded

    def enter(self, name: str, calls: Counter[str]) -> AbstractContextManager[None] | None:
        """A function is called: run it op by op if its call is the wanted one or that before."""
        number = calls[name] + 1
        wanted = number in (self.run - 1, self.run) and not self.ops.origins
        if not (wanted and private.is_eager()):
            return None
        calls[name] = number
        self.call, self.ops.calling = (name, number), True
        entered = private.op_by_op()
        entered.__enter__()
        return entered

    def leave(self, entered: AbstractContextManager[None]) -> None:
        entered.__exit__(None, None, None)
        self.ops.end()

    def write_ops(self, folder: str) -> None:
        """Write what made NaN or Inf in a function that ran op by op, or in eager code."""
        if self.call[0] or self.ops.origins:
            write(RecordedValues(0, *self.call, 0, (), tuple(self.ops.origins), (), ()), folder)

    def write(self, group: RunGroup, folder: str) -> None:
        """Write the values of a group; a note gives the reason if there are none."""
        if seen := self.seen.get(group.number):
            write(seen, folder)
        elif group.number not in self.told:
            run = f"run {self.run:,} of group {group.number}"
            self.note(f"There are no values of {run}: it did not happen, failed or is not kept.")


def write(seen: RecordedValues, folder: str) -> None:
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


class Ops:
    """The first ops of eager code that made NaN, and the Inf from which they did.

    An infinite element is often intended, as in a mask. So Inf alone counts only if a variable or
    a single number, such as a loss, gets infinite in a function that runs op by op.
    """

    def __init__(self, line_of: Callable[[Any], Line | None]) -> None:
        self.line_of = line_of
        self.origins: list[NotFinite] = []
        self.calling = False  # whether a function runs op by op
        self.infinite: NotFinite | None = None  # the first that counts
        # Of tensors, by their ids, which are used again: the line, and the op that made them Inf
        self.lines: dict[int, Line | None] = {}
        self.sources: dict[int, NotFinite] = {}

    def end(self) -> None:
        """A function has ended."""
        self.calling = False
        if self.infinite and not self.origins:
            self.origins = [self.infinite]

    def look(self, op: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """An op has run."""
        frame = sys._getframe(1)
        line = None if self.origins else self.line_of(outwards(frame))
        known = [self.sources[id(given)] for given in inputs if id(given) in self.sources]
        for output in () if self.origins else outputs:
            self.sources.pop(id(output), None)
            self.lines[id(output)] = line
            array = output.numpy() if output.dtype.is_floating else np.zeros(0)
            bad = not_finite.record_of(array)
            if bad is None:
                continue
            origin = self.origin(op, inputs, bad, line, frame)
            if bad.nan:  # where it is made of Inf, that is the origin
                self.origins = [*known[:1]] or [origin]
                return
            self.sources[id(output)] = known[0] if known else origin
            if self.calling and array.ndim == 0:
                self.infinite = self.infinite or self.sources[id(output)]
        if self.calling and known and "Assign" in op:
            self.infinite = self.infinite or known[0]

    def origin(
        self,
        op: str,
        inputs: Sequence[Any],
        bad: not_finite.Bad,
        line: Line | None,
        frame: Any,
    ) -> NotFinite:
        """Return the record of an op with a result that is not finite."""
        floats = [given for given in inputs if given.dtype.is_floating]
        arrays = [(f"input {at}", given.numpy()) for at, given in enumerate(floats)]
        given = [found for _, value in arrays if (found := not_finite.record_of(value))]
        read = private.locals_of(private.READS, frame).get("self") if not arrays else None
        fed = op.startswith(DATA_OPS) or any(found.nan for found in given)
        forward = private.locals_of(private.DIFFERENTIATES, frame)
        made = [self.lines.get(id(output)) for output in forward.get("outputs") or ()]
        line = next(filter(None, made), line)
        entered = () if given else tuple(not_finite.entered(arrays))
        return NotFinite(
            tensor=str(read.name).partition(":")[0] if read is not None else op,
            node=op,
            op=op,
            kind=VARIABLE if read is not None else FED if fed else COMPUTED,
            nan=bad.nan,
            infinite=bad.infinite,
            size=bad.size,
            source=Source(*line, linecache.getline(*line[:2]).strip()) if line else None,
            derives=forward.get("op_name"),
            entered=entered,
        )


def as_json(value: Value) -> Value:
    """Return the value with NaN and Inf as text, because JSON has no such numbers."""
    moved = value.moved if value.moved is not None and value.moved <= MOST else None
    after = value.after and replace(value.after, values=as_texts(value.after.values))
    return replace(value, values=as_texts(value.values), after=after, moved=moved)


def as_texts(elements: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return elements and tuple(map(as_text, elements))


def as_text(element: Any) -> Any:
    if not isinstance(element, float) or isfinite(element):
        return element
    return "NaN" if element != element else "Inf" if element > 0 else "-Inf"
