"""Values: one run of each group is recorded by the runtime's debugger, on request.

The run before it is traced, which shows how much the debugger will write. The fetched values of all
runs are looked at. If one has NaN or Inf for the first time in a later run, the run after it is
recorded instead, unless the user chose one. The files are read at the end of the program, and only
for the largest group.
"""

from __future__ import annotations

import json
import os
import shutil
from _thread import allocate_lock
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from tflab.records.codec import encoded
from tflab.records.graph import Node, node_of
from tflab.records.placed import Fate
from tflab.records.values import Value
from tflab.records.watched import RecordedValues
from tflab.run import largest
from tflab.run.groups import RunGroup, WatchedRun
from tflab.runtime import private, trace

MOST_GROUPS = 8  # groups with recorded values
USUAL = 3  # the run to be recorded: the first after one that shows how much will be written
ERROR = 2  # level of the runtime's log: the program has seen the warnings of its graph before
# DataType of text; assumed bytes of an element, which a trace does not have
TEXT, TEXT_BYTES = 7, 2**16


@dataclass
class RecordingState:
    """The state of the recording of a group."""

    sizes: tuple[int, int] | None = None  # bytes and files that the debugger will write
    tried: bool = False
    # An earlier run that was recorded
    before: RecordingState | None = field(default=None, repr=False)
    run: int = 0  # the recorded one, from 1
    ns: int = 0
    graphs: bytes = b""  # the RunMetadata of that run, with the graphs that ran
    feeds: tuple[str, ...] = ()
    # Why there are no values
    reason: str = "the group ended before the run to be recorded, or tflab may not trace its runs"
    folder: str = field(default="", repr=False)


class Values:
    """The values of a run of each group. `recorder` is the Recorder of these runs."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.at = recorder.watcher.values or USUAL
        self.plans: dict[int, RecordingState] = {}  # by the number of the group
        self.turn = allocate_lock()  # the step that is traced or recorded holds it
        self.bytes = 0  # written so far

    def begin(self, step: WatchedRun, session: Any) -> bool:
        """Let a step be traced or recorded if it is the right run of its group."""
        group, recorder = step.group, self.recorder
        if group.function or session.sess_str or not (group.executed or self.at == 1):
            return False
        if group.number not in self.plans and len(self.plans) >= MOST_GROUPS:
            return False
        plan = self.plans.setdefault(group.number, RecordingState())
        sizes_wanted = plan.sizes is None and self.at >= USUAL
        if plan.tried or group.calls + 1 < self.at - sizes_wanted or not self.turn.acquire(False):
            return False
        plan.tried = True
        options = recorder.traced_options if sizes_wanted else self.options(group, plan)
        if options is None:
            self.turn.release()
            return False
        step.values, step.timed = plan, False
        step.trace = options, recorder.tracer.metadata()
        recorder.log.quiet(ERROR)
        return True

    def options(self, group: RunGroup, plan: RecordingState) -> Any:
        """The options for recording a step; None, with the reason, if it is not recorded."""
        from tflab.runtime import debugger, nodes

        recorder, folder = self.recorder, self.recorder.watcher.folder
        assert group.graph is not None
        bytes_, files = plan.sizes or (0, 0)  # unknown before the first runs
        ran = recorder.tracer.parsed(group.executed or b"").partition_graphs
        names = {node.name for part in ran for node in nodes.from_graph_def(part, {}, {})}
        names |= {*debugger.names_of(group.graph.as_graph_def())}
        plan.reason = debugger.refusal(names, self.bytes + bytes_, files, folder)
        if plan.reason:
            return None
        self.bytes += bytes_
        plan.folder = os.path.join(folder, f"{largest.VALUES}-{group.number}-{group.calls}")
        os.mkdir(plan.folder)
        if debugger.LIMIT not in os.environ:  # which the program does not see
            os.putenv(debugger.LIMIT, str(2 * debugger.MOST_BYTES))
        return recorder.tracer.options(
            output_partition_graphs=True,
            debug_options=private.debug_options(group.graph, plan.folder),
        )

    def take(self, step: WatchedRun, content: bytes) -> None:
        """Read the results of a traced or recorded step that has ended or failed."""
        from tflab.runtime import debugger

        plan, group = step.values, step.group
        if debugger.LIMIT not in os.environ:
            os.unsetenv(debugger.LIMIT)
        self.turn.release()
        plan.reason = "the run that was to be recorded failed"
        if not content:
            return
        if not plan.folder:
            plan.sizes = sizes_of(self.recorder.tracer.parsed(content).step_stats)
            plan.tried = False
            return
        plan.run, plan.graphs, plan.reason = group.calls + 1, content, ""
        plan.ns = perf_counter_ns() - step.call.start_ns
        plan.feeds = tuple(sorted(group.feeds))

    def look(self, step: WatchedRun, fetched: Sequence[Any]) -> None:
        """Note the fetched values that are not finite for the first time."""
        group, seen = step.group, step.group.not_finite
        if seen is None:
            seen = group.not_finite = {}
        fresh = [
            name
            for name, value in zip(group.fetches, fetched, strict=False)
            if name not in seen and not is_finite(value)
        ]
        if not fresh:
            return
        plan = self.plans.get(group.number)
        if plan and plan.graphs and not seen and not self.recorder.watcher.values:
            self.plans[group.number] = RecordingState(sizes=plan.sizes, before=plan)
        seen |= dict.fromkeys(fresh, group.calls + 1)

    def write(self, group: RunGroup, user_nodes: Sequence[Node], ledger: Sequence[Fate]) -> None:
        """Write the values of a group; a note gives the reason if there are none."""
        plan = self.plans.get(group.number, RecordingState())
        if plan.before and not plan.graphs:
            plan = plan.before
        if not plan.graphs:
            self.recorder.note(f"No values of group {group.number} were recorded: {plan.reason}.")
            return
        graphs = self.recorder.tracer.parsed(plan.graphs).partition_graphs
        seen = of_run(plan, group, graphs, user_nodes, ledger)
        text = json.dumps(encoded(seen))
        Path(self.recorder.watcher.folder, largest.VALUES).write_text(text, encoding="utf-8")
        shutil.rmtree(plan.folder)


def is_finite(value: Any) -> bool:
    """Whether a fetched value has no NaN and no Inf; text and numbers without them have none."""
    try:
        return bool(np.isfinite(value).all())
    except TypeError:
        return True


def sizes_of(step_stats: Any) -> tuple[int, int]:
    """The bytes and files that the debugger will write for a step like this one."""
    bytes_ = files = 0
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            for output in stats.output:
                tensor = output.tensor_description
                elements = prod(dim.size for dim in tensor.shape.dim)
                of_one = TEXT_BYTES if tensor.dtype == TEXT else trace.ITEM_BYTES.get(tensor.dtype)
                bytes_ += elements * (of_one or 0)
                files += 1
    return bytes_, files


def of_run(
    plan: RecordingState,
    group: RunGroup,
    graphs: Sequence[Any],
    user_nodes: Sequence[Node],
    ledger: Sequence[Fate],
) -> RecordedValues:
    """The debugger's files, as one row for each tensor, and the origins of NaN and Inf."""
    from tflab.analysis import values as analysis
    from tflab.lifecycle import not_finite, recorded_step, values

    ran = recorded_step.read(
        plan.folder, graphs, fed={}, places={}, fetched={}, before={}, after={}
    )
    ran = replace(ran, **found_in(ran, plan.feeds, group.fetches))
    rows = values.rows_of(
        analysis.in_order(ran.nodes, ran.transfers, ran.us), ran, values.read(ran)
    )
    about = not_finite.knowledge(group.graph, user_nodes)
    lines = values.sources(user_nodes, ledger, ran.nodes)
    updates = tuple(not_finite.updates_of(ran))
    return RecordedValues(
        group=group.number,
        run=plan.run,
        ns=plan.ns,
        values=tuple(map(as_json, rows)),
        origins=not_finite.origins(ran, about, optimised=True, sources=lines),
        not_finite=not_finite.results(ran),
        updated=tuple(dict.fromkeys(variable for variable, _ in updates)),
        spoiled=tuple(dict.fromkeys(variable for variable, spoils in updates if spoils)),
    )


def found_in(ran: Any, feeds: Sequence[str], fetches: Sequence[str]) -> dict[str, Any]:
    """The feeds and fetches, and the variables as they were read, from the files of the
    corresponding nodes."""
    from tflab.runtime.session import HANDLES, REFERENCES

    by_name = {node.name: node for node in ran.nodes}
    args = {
        f"_arg_{node_of(feed)}_{feed.rpartition(':')[2]}_{at}": feed
        for at, feed in enumerate(feeds)
    }
    places = {name: feed for name, feed in args.items() if name in ran.files}
    before = {}
    for node in ran.nodes:
        if node.op in REFERENCES and node.name in ran.files:
            before[node.name] = ran.array(node.name, 0)
        elif node.op == "ReadVariableOp" and node.name in ran.files and not node.control_inputs:
            handle = by_name.get(node_of(node.inputs[0]))
            if handle and handle.op in HANDLES:
                before.setdefault(handle.name, ran.array(node.name, 0))
    fetched = {
        fetch: ran.array(name)
        for fetch in fetches
        if (name := fetch.removesuffix(":0")) in ran.files
    }
    return {
        "fed": {feed: ran.array(name) for name, feed in places.items()},
        "places": places,
        "before": before,
        "fetched": fetched,
    }


def as_json(value: Value) -> Value:
    """The value, with NaN and Inf as text, because JSON has no such numbers."""
    if value.values is None:
        return value
    return replace(value, values=tuple(map(as_text, value.values)))


def as_text(element: Any) -> Any:
    if not isinstance(element, float) or isfinite(element):
        return element
    return "NaN" if element != element else "Inf" if element > 0 else "-Inf"
