"""The story of the execution: how long a step took, where it went, which ops cost most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab.records import Execution, OpTotal, Race
from tflab.table import Block, Column, Table, percent, plural, size, time

TOP = 10


def tell(stage: Execution) -> Iterable[Block]:
    if stage.interrupted:
        yield "Interrupted: what follows was measured until then."
    yield (
        f"{plural(stage.steps, 'untraced step')} and as many traced ones in turn, after "
        f"{plural(stage.warmup_steps, 'warm-up step')} of each that are not counted. Batch size "
        f"{stage.batch_size}, data: {stage.data}."
    )
    yield Table(
        "Time of a step",
        (
            Column("step", lambda row: row[0]),
            Column("median", lambda row: time(row[1].median), right=True),
            Column("p10", lambda row: time(row[1].p10), right=True),
            Column("p90", lambda row: time(row[1].p90), right=True),
        ),
        (("untraced", stage.untraced_step_ns), ("traced", stage.traced_step_ns)),
    )
    if stage.race:
        yield raced(stage.race)
    yield Table(
        "Who owned the wall time of the traced steps",
        (
            Column("owner", lambda owner: owner.owner),
            Column("a step", lambda owner: time(owner.ns / stage.steps), right=True),
            Column("share", lambda owner: percent(owner.ns / stage.wall_ns), right=True),
        ),
        stage.time_ledger,
    )
    yield top_table("The op types that cost most", stage.top_types, stage, ())
    name = Column("node", lambda row: row.name, elastic=True)
    yield top_table("The nodes that cost most", stage.top_ops, stage, (name,))
    path = stage.critical_path
    yield (
        f"The longest chain of dependent ops has {plural(len(path.nodes), 'node')} and takes "
        f"{time(path.ns)}. All ops together are {path.parallelism:.2f} x as much work: with any "
        f"number of processors they could run at most that much faster than one by one."
    )
    dearest = stage.memory.per_op[0] if stage.memory.per_op else None
    if dearest:
        yield (
            f"The ops had at most {size(stage.memory.peak_bytes)} alive at once; "
            f"{dearest.name} asked for most, {size(dearest.requested_bytes)} a step."
        )


def raced(race: Race) -> str:
    """What the switched-off passes are worth, or that nothing can be told."""
    usual, without = race.usual_step_ns, race.without_step_ns
    measured = (
        f"{race.pairs} untraced steps each, in turn: {time(without.median)} without (p10 "
        f"{time(without.p10)}, p90 {time(without.p90)}), {time(usual.median)} with all passes (p10 "
        f"{time(usual.p10)}, p90 {time(usual.p90)})"
    )
    if not race.significant:
        return f"{measured}: no significant difference (sign test, p = {race.p_value:.2g})."
    return f"{measured}: {race.ratio:.2f} x the time (sign test, p = {race.p_value:.2g})."


def top_table(
    heading: str, rows: Sequence[OpTotal], stage: Execution, first: tuple[Column, ...]
) -> Table:
    return Table(
        f"{heading} (self time, {plural(stage.steps, 'traced step')})",
        (
            *first,
            Column("type that ran", lambda row: row.op),
            Column("calls", lambda row: f"{row.calls:,}", right=True),
            Column("self", lambda row: time(row.self_ns), right=True),
            Column("a call", lambda row: time(row.mean_ns), right=True),
            Column("share", lambda row: percent(row.share), right=True),
        ),
        tuple(rows[:TOP]),
        more=max(0, len(rows) - TOP),
    )
