"""View of traced steps: the content of the files, the parts of the time, the costliest ops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflab.analysis import op_runs
from tflab.analysis.timeline import busy_ns
from tflab.convert.conversion import Conversion
from tflab.records.blocks import Block, Column, Fact, Table, fact_table, numbers, table
from tflab.runtime import trace
from tflab.units import percent, plural, time
from tflab.views import execution, op_table

TOP = 10


def blocks(conversion: Conversion) -> Iterable[Block]:
    recorded = conversion.recorded
    runs = op_runs.of(recorded.runs)
    starts = len(runs.of_kinds(lambda kind: kind[0] == trace.EXECUTOR))
    own = f", {starts:,} of them the executor's own ({trace.EXECUTOR})" if starts else ""
    yield (
        f"{plural(len(recorded.steps), 'step')} with {plural(len(runs), 'op run')}{own}. "
        "A RunMetadata does not contain the time of session.run, so a step is measured from the "
        "start of its first op to the end of its last."
    )
    yield from devices(conversion)
    yield steps(conversion)
    yield fact_table(facts(conversion))
    yield top_nodes(conversion)
    yield from path(conversion)
    yield from execution.holders(conversion.memory)


def facts(conversion: Conversion) -> Iterator[Fact]:
    """Yield the owners of the time, the critical path, and the memory."""
    owners = [owner for owner in conversion.time_ledger if owner.ns]
    yield from execution.owners(owners, conversion.wall_ns, len(conversion.recorded.steps))
    if conversion.critical_path:
        yield from execution.parallel(conversion.critical_path)
    yield from execution.memory_facts(conversion.memory)


def devices(conversion: Conversion) -> Iterable[Block]:
    """Yield all names that have rows, with the kind of the rows."""
    all_tracks = conversion.recorded.tracks
    yield table(
        "What was recorded",
        all_tracks,
        Column("device", lambda track: track.device, elastic=True, name=True),
        Column("its rows are", lambda track: track.kind, spare=1),
        numbers("op runs", lambda track: f"{track.op_runs:,}"),
        numbers("total", lambda track: time(track.total_ns)),
    )
    if len({track.kind for track in all_tracks}) > 1:
        yield (
            "Totals of different kinds overlap and must not be added: a launch ends before its "
            "kernel, and a thread waits for GPU work that is counted elsewhere."
        )


def steps(conversion: Conversion) -> Table:
    recorded = conversion.recorded
    runs = op_runs.of(recorded.runs).by_step()
    return table(
        "The steps",
        conversion.recorded.steps,
        numbers("step", lambda step: str(step.step)),
        Column("file", lambda step: recorded.labels[step.step], elastic=True, name=True),
        numbers("start to end", lambda step: time(step.wall_ns)),
        numbers("an op ran", lambda step: time(busy_ns(runs[step.step], step)), 1),
        numbers("op runs", lambda step: f"{len(runs[step.step]):,}", 2),
    )


def top_nodes(conversion: Conversion) -> Table:
    """Return the nodes of all kinds; if there are several kinds, with the kind, to which the share
    refers."""
    several = len({kind for kind, _ in conversion.top_ops}) > 1
    headers = {"share": "share of kind"} if several else {}
    node, op_type, *others = op_table.columns_of(
        (op_table.key("node"), *op_table.columns(op_table.MOST_EXPENSIVE, headers)),
        lambda item: item[1],
    )
    kind = (Column("kind", lambda item: item[0]),) if several else ()
    return table(
        "The most expensive nodes (self time)",
        conversion.top_ops,
        node,
        op_type,
        *kind,
        *others,
        most=TOP,
    )


def path(conversion: Conversion) -> Iterator[Block]:
    """Yield the critical path, without nodes that took no time on it, or why there is none."""
    critical = conversion.critical_path
    if critical is None:
        yield "The trace has no graph. With --graph, the critical path is shown too."
        return
    if not critical.nodes:
        yield "The graph may not be the one that ran, because passes change edges."
        return
    types = {name: op for name, op, _ in op_runs.of(conversion.recorded.runs).kinds}
    yield table(
        "The critical path (a node in a loop once for each iteration)",
        list(zip(critical.nodes, critical.durations_ns, strict=True)),
        Column("node", lambda link: link[0], elastic=True, name=True),
        Column("type that ran", lambda link: types[link[0]]),
        numbers("took", lambda link: time(link[1])),
        numbers("share", lambda link: percent(link[1] / critical.ns if critical.ns else 0)),
    )
