"""The story of recorded steps: what was in the files, where the time went, which ops cost most."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tflab.analysis import critical_path, tracks
from tflab.analysis.timeline import busy_spans, by_step, covered
from tflab.convert.conversion import Conversion
from tflab.records import CriticalPath
from tflab.records.blocks import Block, Column, Table, shortened
from tflab.runtime import trace
from tflab.units import percent, plural, time
from tflab.views import execution
from tflab.views.words import LONGEST

TOP = 10


def tell(found: Conversion) -> Iterable[Block]:
    recorded = found.recorded
    starts = sum(run.name == trace.EXECUTOR for run in recorded.runs)
    own = f", {starts:,} of them the executor's own ({trace.EXECUTOR})" if starts else ""
    yield (
        f"{plural(len(recorded.steps), 'step')} with {plural(len(recorded.runs), 'op run')}"
        f"{own}. How long a session.run took is not in a RunMetadata: each step is taken from the "
        "start of its first op to the end of its last one."
    )
    yield from devices(found)
    yield steps(found)
    yield Table(
        "Who owned the time of the steps",
        (
            Column("owner", lambda owner: owner.owner),
            Column("a step", lambda owner: time(owner.ns / len(recorded.steps)), right=True),
            Column(
                "share",
                lambda owner: percent(owner.ns / found.wall_ns if found.wall_ns else 0),
                right=True,
            ),
        ),
        tuple(owner for owner in found.time_ledger if owner.ns),
    )
    yield top(found)
    if found.critical_path:
        yield from path(found, found.critical_path)
    else:
        yield "The trace comes without its graph; with --graph there is also the critical path."
    yield from execution.remembered(found.memory)


def devices(found: Conversion) -> Iterable[Block]:
    """Everything under which there are rows, and what the rows are."""
    all_tracks = found.recorded.tracks
    repeated = Column("left out", lambda track: f"{track.left_out:,}", right=True)
    yield Table(
        "What was recorded",
        (
            Column("device", lambda track: track.device, elastic=True, name=True),
            Column("its rows are", lambda track: track.kind),
            Column("op runs", lambda track: f"{track.op_runs:,}", right=True),
            Column("total", lambda track: time(track.total_ns), right=True),
            *([repeated] if any(track.left_out for track in all_tracks) else []),
        ),
        all_tracks,
    )
    if len({track.kind for track in all_tracks} - {tracks.REPEATS}) > 1:
        yield (
            "Totals of different kinds do not add up: a launch ends before its kernel does, and a "
            "thread that waits for a GPU waits for work that is counted there."
        )


def steps(found: Conversion) -> Table:
    runs = by_step(found.recorded.runs)
    busy = {step.step: covered(busy_spans(runs[step.step], step)) for step in found.step_times}
    return shortened(
        "The steps",
        (
            Column("step", lambda step: str(step.step), right=True),
            Column(
                "file",
                lambda step: Path(found.recorded.files[step.step]).name,
                elastic=True,
                name=True,
            ),
            Column("first start to last end", lambda step: time(step.wall_ns), right=True),
            Column("an op running", lambda step: time(busy[step.step]), right=True),
            Column("op runs", lambda step: f"{len(runs[step.step]):,}", right=True),
            Column("at most at once", lambda step: str(step.shape.most_at_once), right=True),
        ),
        found.step_times,
        LONGEST,
    )


def top(found: Conversion) -> Table:
    kinds = {dear.kind for dear in found.top_ops}
    kind = Column("kind", lambda dear: dear.kind)
    return shortened(
        "The nodes that cost most (self time)",
        (
            Column("node", lambda dear: dear.total.name, elastic=True, name=True),
            Column("type that ran", lambda dear: dear.total.op),
            *([kind] if len(kinds) > 1 else []),
            Column("calls", lambda dear: f"{dear.total.calls:,}", right=True),
            Column("self", lambda dear: time(dear.total.self_ns), right=True),
            Column("a call", lambda dear: time(dear.total.mean_ns), right=True),
            Column(
                "share of kind" if len(kinds) > 1 else "share",
                lambda dear: percent(dear.total.share),
                right=True,
            ),
        ),
        found.top_ops,
        TOP,
    )


def path(found: Conversion, critical: CriticalPath) -> Iterable[Block]:
    """The longest chain, without what took no time on it."""
    yield (
        f"The longest chain of dependent ops has {plural(len(critical.nodes), 'node')} and takes "
        f"{time(critical.ns)}. All ops together are {critical.parallelism:.2f} x as much work; "
        f"gaps aside, they ran {critical.achieved_parallelism:.2f} x as fast as one by one."
    )
    runs = tracks.work_runs(found.recorded.runs)
    cost = critical_path.median_per_step(runs)
    types = {run.name: run.op for run in runs}
    yield shortened(
        "The critical path",
        (
            Column("node", str, elastic=True, name=True),
            Column("type that ran", lambda name: types[name]),
            Column("a step", lambda name: time(cost[name]), right=True),
            Column(
                "share",
                lambda name: percent(cost[name] / critical.ns if critical.ns else 0),
                right=True,
            ),
        ),
        [name for name in critical.nodes if name in cost],
        LONGEST,
    )
