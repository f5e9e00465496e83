"""Values: all tensors of one run of the program, fetched together with what the program fetches.

A loss is usually computed before the update that makes the variables NaN, so the run before the
wanted one is kept as well. A call of a tf.function has no fetches: it runs op by op, and the first
op that makes NaN or Inf is noted.
"""

from __future__ import annotations

import json
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.records.codec import encoded
from tflab.records.graph import Node, Source, graph_def_name
from tflab.records.values import COMPUTED, FED, VARIABLE, NotFinite, Value
from tflab.records.watched import RecordedValues
from tflab.run import program_graph
from tflab.run.groups import DATA_OPS, Plan, Run, RunGroup
from tflab.run.sampler import Line, outwards
from tflab.runtime.private import sessions, watched_functions

if TYPE_CHECKING:
    from tflab.runtime.session import tf, tf1

    Feeds = Mapping[tf.Tensor, np.ndarray]

Fetched = Sequence[np.ndarray]
LineOf = Callable[[Iterable[FrameType]], Line | None]
WORDS = {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}


class Values:
    """The values of run number `run` of each group, and the ops of that call of each function.
    `numbers` counts the calls of each function so far. `broke` is called with errors."""

    def __init__(
        self,
        run: int,
        note: program_graph.Note,
        line_of: LineOf,
        numbers: Counter[str],
        broke: Callable[[Exception], None],
    ) -> None:
        self.run, self.note, self.line_of = run, note, line_of
        self.numbers, self.broke = numbers, broke
        # By number of the group; None: a note says why there are none
        self.seen: dict[int, RecordedValues | None] = {}
        self.before: dict[int, RecordedValues] = {}  # the run before, if that made NaN or Inf
        self.call: tuple[str, int] = ("", 0)  # the function that ran op by op, and its call
        self.calling = False  # whether it runs now
        # The first op of eager code that made NaN, or the op that made the Inf behind that NaN
        self.origins: tuple[NotFinite, ...] = ()
        # Inf alone counts only if it reaches a variable or a single number in such a function
        self.infinite: NotFinite | None = None
        # Of tensors, by their ids, which are used again: the line, and the op that made them Inf
        self.lines: dict[int, Line | None] = {}
        self.sources: dict[int, NotFinite] = {}

    def begin(
        self, run: Run, session: tf1.Session, feeds: Feeds, fetches: Sequence[tf.Tensor]
    ) -> None:
        """Extend the fetches of a run if it is the one whose values are wanted."""
        group, graph, began_ns = run.group, run.group.graph, perf_counter_ns()
        if session.sess_str or group.calls + 1 not in (self.run - 1, self.run):
            return
        from tflab.lifecycle import values
        from tflab.runtime import nodes

        fed = {sessions.tensor_name(tensor): value for tensor, value in feeds.items()}
        needed = analysis.needed(nodes.from_graph(graph), group.fetches, fed)
        rows = max((value.shape[0] for value in fed.values() if np.ndim(value)), default=1)
        try:
            names = values.selected(graph, analysis.fetchable(needed, fed), rows)
        except TflabError as error:
            self.note(str(error))
            self.seen[group.number] = None
            return
        run.values = Plan(names, len(fetches), fed, variables(session, graph))
        run.fetches = [*fetches, *sessions.tensor_outputs(graph, names)]
        run.timed = False
        run.own_ns += perf_counter_ns() - began_ns

    def take(
        self, run: Run, session: tf1.Session, fetched: Fetched, graphs: program_graph.ProgramGraphs
    ) -> None:
        """Keep the values of the wanted run, or of the run before if it made a variable NaN or
        Inf."""
        began_ns = perf_counter_ns()
        try:
            recorded = self.recorded(run, session, fetched, graphs.nodes_of(run.group.graph))
            held = any(origin.kind == VARIABLE for origin in recorded.origins)
            number = recorded.group
            if recorded.run == self.run:
                self.seen[number] = self.before.get(number, recorded) if held else recorded
            elif recorded.origins:
                self.before[number] = recorded
        except Exception as error:
            self.broke(error)
        run.own_ns += perf_counter_ns() - began_ns

    def recorded(
        self, run: Run, session: tf1.Session, fetched: Fetched, listed: Sequence[Node]
    ) -> RecordedValues:
        from tflab.lifecycle import values

        plan, group, took_ns = run.values, run.group, perf_counter_ns() - run.start_ns
        assert plan
        own, others = map(np.asarray, fetched[: plan.own]), map(np.asarray, fetched[plan.own :])
        computed = dict(zip(map(graph_def_name, plan.names), others, strict=True))
        tensors = [name for name in group.fetches if ":" in name]
        step_values = values.Fetched(
            fed=plan.feeds,
            computed=values.with_references(group.graph, computed, plan.before),
            fetched=dict(zip(tensors, own, strict=False)),
            before=plan.before,
            after=variables(session, group.graph),
        )
        graph = analysis.needed(listed, group.fetches, plan.feeds)
        rows = tuple(values.rows(graph, step_values))
        return RecordedValues(
            group=group.number,
            function="",
            run=group.calls + 1,
            ns=took_ns,
            values=tuple(map(as_json, rows)),
            origins=values.origins(graph, step_values, rows, group.graph),
            not_finite=values.results(step_values),
        )

    def enter_function(self, name: str) -> bool:
        """Run a tf.function op by op if its call is the wanted one or the one before."""
        number = self.numbers[name] + 1
        wanted = number in (self.run - 1, self.run) and not self.origins
        if not (wanted and watched_functions.is_eager()):
            return False
        self.numbers[name] = number
        self.call, self.calling = (name, number), True
        watched_functions.run_op_by_op(True)
        return True

    def leave_function(self, entered: bool) -> None:
        if entered:
            watched_functions.run_op_by_op(False)
            self.end()

    def end(self) -> None:
        """Note that a function has ended."""
        self.calling = False
        if self.infinite and not self.origins:
            self.origins = (self.infinite,)

    def look(self, op: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Look for NaN or Inf in the outputs of an op that eager code has run."""
        try:
            if self.origins:
                return
            frame = sys._getframe(1)
            line = self.line_of(outwards(frame))
            known = [self.sources[id(given)] for given in inputs if id(given) in self.sources]
            for output in outputs:
                self.sources.pop(id(output), None)
                self.lines[id(output)] = line
                array = output.numpy() if output.dtype.is_floating else np.zeros(0)
                bad = analysis.bad_elements(array)
                if bad is None:
                    continue
                origin = known[0] if known else self.origin(op, inputs, bad, line, frame)
                if bad.nan:  # where it is made of Inf, that is the origin
                    self.origins = (origin,)
                    return
                self.sources[id(output)] = origin
                if self.calling and array.ndim == 0:
                    self.infinite = self.infinite or origin
            if self.calling and known and "Assign" in op:
                self.infinite = self.infinite or known[0]
        except Exception as error:
            self.broke(error)

    def origin(
        self, op: str, inputs: Sequence[Any], bad: analysis.Bad, line: Line | None, frame: FrameType
    ) -> NotFinite:
        """Return the record of an op with a result that is not finite."""
        arrays = [given.numpy() for given in inputs if given.dtype.is_floating]
        fed = op.startswith(DATA_OPS) or any(np.isnan(array).any() for array in arrays)
        reading = watched_functions.locals_of(watched_functions.READS, frame)
        read = None if arrays else reading.get("self")
        forward = watched_functions.locals_of(watched_functions.DIFFERENTIATES, frame)
        made = [self.lines.get(id(output)) for output in forward.get("outputs") or ()]
        line = next(filter(None, made), line)
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
        )

    def write(self, largest: RunGroup | None, folder: str) -> None:
        """Write the values of the largest group, or what made NaN or Inf, or note why not."""
        seen = None
        if self.call[0] or self.origins:
            seen = RecordedValues(0, *self.call, 0, (), self.origins, ())
        known = largest is None or largest.number in self.seen
        if largest and largest.function:
            known = bool(self.call[0])
        elif largest:
            seen = self.seen.get(largest.number) or seen
        if not known:
            why = "it did not happen, failed or is not kept"
            self.note(f"There are no values of run {self.run:,}: {why}.")
        if seen:
            text = json.dumps(encoded(seen))
            Path(folder, program_graph.VALUES).write_text(text, encoding="utf-8")


def variables(session: tf1.Session, graph: tf.Graph) -> dict[str, np.ndarray]:
    """Return the initialised variables of a graph."""
    from tflab.runtime.session import variable_readers

    readers = variable_readers(graph)
    outputs = sessions.tensor_outputs(graph, readers.values())
    arrays = (sessions.fetch_alone(session, output) for output in outputs)
    return {name: a for name, a in zip(readers, arrays, strict=True) if a is not None}


def as_json(value: Value) -> Value:
    """Return the value with NaN and Inf as text, because JSON has no such numbers."""
    after = value.after and replace(value.after, values=as_texts(value.after.values))
    return replace(value, values=as_texts(value.values), after=after)


def as_texts(elements: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return elements and tuple(
        WORDS.get(str(element), element) if isinstance(element, float) else element
        for element in elements
    )
