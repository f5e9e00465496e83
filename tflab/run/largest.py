"""Largest: results about the most expensive group, at the end of the program.

These are the fates of its nodes and, on request, its graph, its values and its profile.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tflab.analysis import fates as node_fates
from tflab.analysis import passes
from tflab.errors import TflabError
from tflab.records.codec import WrongError, decoded, encoded
from tflab.records.graph import Node
from tflab.records.placed import Fate, Origin, Pass
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.records.watched import OpTimes, Recorded, RecordedValues
from tflab.run.groups import RunGroup
from tflab.run.program_graphs import OTHERS
from tflab.runtime import dumps, trace

NAME, VALUES = "graph", "values"
MOST_NODES = 10_000  # limit for a graph that is saved


def fates(recorder: Any) -> dict[str, Any]:
    """The number of nodes with each fate in the first run of the group. Its profile and graph are
    written on request. `recorder` is a Recorder."""
    groups = recorder.groups.values()
    group = max(groups, key=lambda group: (group.total_ns, group.cold_ns), default=None)
    if group is None or not (group.executed or group.function):
        return {}
    if group.function:
        if recorder.values:
            recorder.note("Values are only shown for runs of sessions, not inside of functions.")
        if group.graph is not None:
            user_nodes = recorder.nodes_of(group.graph, final=True)
            keep(recorder, group, user_nodes, (), NOT_SEEN, ())
        return {}
    from tflab.runtime import nodes  # not earlier: this may resume an interrupted import

    ran = recorder.tracer.parsed(group.executed or b"")
    if recorder.watcher.logdir:
        write_profile(
            recorder.watcher.logdir, group.graph, ran, group.samples, recorder.tracer.parsed
        )
    parts = ran.partition_graphs
    executed = tuple(node for part in parts for node in nodes.from_graph_def(part, {}, {}))
    user_nodes = recorder.lines.nodes_of(group.graph)
    account = account_of(recorder, group, user_nodes, executed)
    if recorder.values:
        recorder.values.write(group)
    if account is None:
        return {}
    keep(recorder, group, user_nodes, executed, account, parts)
    counts = dict(Counter(fate.fate for fate in account.ledger))
    not_run = branches_not_taken(group, executed, account.ledger)
    return {"group": group.number, "counts": counts, "not_run": not_run}


def branches_not_taken(
    group: RunGroup, executed: Sequence[Node], ledger: Sequence[Fate]
) -> int | None:
    """The number of the program's nodes whose branch no traced run took; None if that is unknown,
    because no run was traced."""
    if not group.traced:
        return None if node_fates.depending(executed) else 0
    stayed = {fate.name for fate in ledger if fate.fate == "executed"}
    return len(stayed.intersection(node_fates.not_taken(executed, group.ops)))


def account_of(
    recorder: Any, group: RunGroup, user_nodes: tuple[Node, ...], executed: tuple[Node, ...]
) -> Account | None:
    """The fate of each node in the first run of the group, by the runtime's dumps of it, or of the
    first run for other shapes of the feeds; None, with a note, if they are unknown."""
    if not executed:
        return None
    alike = filter(partial(is_built_as, group), recorder.groups.values())
    folders = (recorder.dumps.folder_of(other.number) for other in (group, *alike))
    folder = next(filter(Path.is_dir, folders), None)
    if folder is None:
        reason = recorder.dumps.missing.get(group.number, OTHERS)
        recorder.note(f"The fates of the nodes are not shown: {reason}.")
        return None
    try:
        steps = passes.compare(user_nodes, dumps.read(folder), executed)
        ledger = node_fates.fates(user_nodes, steps, executed, group.fetches, group.feeds)
        origins = tuple(node_fates.origins(ledger, steps, executed))
    except TflabError as error:
        recorder.note(str(error))
        return None
    unknown = [origin.name for origin in origins if origin.origin == "unknown"]
    if unknown:
        recorder.note(
            f"The fates of the nodes are not shown: the origin of {len(unknown)} executed nodes "
            f"is unknown; {unknown[0]} is one of them."
        )
        return None
    return Account(steps, ledger, origins)


def is_built_as(group: RunGroup, other: RunGroup) -> bool:
    """Whether a session builds one step for the runs of both: the shapes of feeds do not matter."""
    return (group.graph, group.fetches, {*group.feeds}) == (
        other.graph,
        other.fetches,
        {*other.feeds},
    )


def keep(
    recorder: Any,
    group: RunGroup,
    user_nodes: tuple[Node, ...],
    executed: tuple[Node, ...],
    account: Account,
    parts: Sequence[Any],
) -> None:
    """Write the graph of the group on request."""
    if not recorder.watcher.keeps:
        return
    try:
        write(recorder.watcher.folder, group, user_nodes, executed, account, parts)
    except TflabError as error:
        recorder.note(str(error))


# The graph of the group and some of its traced steps, for TensorBoard

Sample = tuple[int, int, int, bytes]  # number, start (epoch), duration and trace of a run


def write_profile(
    logdir: str, graph: Any, executed: Any, samples: Sequence[Sample], parsed: Callable[..., Any]
) -> None:
    """Write a graph as the program built it and as it ran, and some of its runs as a profile.

    `executed` is a RunMetadata with the graphs that ran; `parsed` makes one from a trace.
    """
    from tflab.exporters import tensorboard, xspace  # not earlier: they import Matplotlib

    types = {node.name: node.op for part in executed.partition_graphs for node in part.node}
    steps: list[StepTime] = []
    runs: list[OpRun] = []
    for number, start_ns, wall_ns, content in samples:
        stats = parsed(content).step_stats
        steps.append(StepTime(number, start_ns, wall_ns))
        runs += (run for run in trace.op_runs(number, stats, types) if run.name != trace.EXECUTOR)
    traces = [(f"run {number}", number, parsed(content)) for number, *_, content in samples[-1:]]
    tensorboard.write_graph(logdir, graph)
    tensorboard.write_executed(logdir, executed.partition_graphs, traces)
    if steps:
        xspace.write(logdir, [Capture("watched", tuple(steps), tuple(runs))])


# The graph of the group, and the runtime's versions of it. The program's process writes them at its
# end; the command reads them.


@dataclass(frozen=True)
class Account:
    """The fate of each node of a graph, pass by pass."""

    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]


NOT_SEEN = Account((), (), ())


def write(
    folder: str,
    group: RunGroup,
    nodes: tuple[Node, ...],
    executed: tuple[Node, ...],
    account: Account,
    parts: Any,
) -> None:
    """Save the graph of a group. `parts` are the GraphDefs that ran. Raises TflabError for a graph
    that is too large."""
    from tflab.runtime import devices

    if len(nodes) > MOST_NODES:
        raise TflabError(f"The graph has {len(nodes):,} nodes; at most {MOST_NODES:,} are kept.")
    origins, ledger = account.origins, account.ledger
    graph = Recorded(
        group=group.number,
        nodes=nodes,
        derived=derived(group.graph),
        variables=len(group.graph.get_collection("trainable_variables")),
        fetches=group.fetches,
        executed=executed,
        passes=account.passes,
        ledger=ledger,
        origins=origins,
        assignments=tuple(devices.assignments(group.graph, executed, origins, ledger)),
        kernels=tuple(devices.chosen_kernels(parts, group.graph)),
        traced=group.traced,
        ops={name: OpTimes(runs, ns) for name, (runs, ns, *_) in group.ops.items()},
    )
    Path(folder, NAME).write_text(json.dumps(encoded(graph)), encoding="utf-8")


def derived(graph: Any) -> dict[str, str]:
    """Each node of a gradient, with the node of the program from which it is derived."""
    from tflab.runtime import nodes

    names = (op.name for op in graph.get_operations())
    forward = ((name, nodes.forward_of(graph, name)) for name in names)
    return {name: origin for name, origin in forward if origin}


def read(folder: Path) -> tuple[Recorded | None, RecordedValues | None, tuple[str, ...]]:
    """The saved graph and values, or why they cannot be read; None if none were saved."""
    kept: list[Any] = []
    notes: list[str] = []
    for kind, name in ((Recorded, NAME), (RecordedValues, VALUES)):
        file, content = folder / name, None
        try:
            if file.exists():
                content = decoded(kind, json.loads(file.read_text(encoding="utf-8")))
        except (WrongError, ValueError, RecursionError) as error:
            notes.append(f"The {name} of the largest group cannot be read: {error}.")
        kept.append(content)
    return kept[0], kept[1], tuple(notes)
