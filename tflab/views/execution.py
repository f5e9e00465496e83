"""View of execution: how long a step took, where the time went, which ops took most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tflab.analysis.step_times import median_step
from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.graph import Node
from tflab.records.measured import OpStats
from tflab.records.stages import Execution
from tflab.records.timed import KernelTime, Memory, Race, StepTime
from tflab.records.verdicts import Experiments, Load
from tflab.units import percent, plural, short_device, size, time
from tflab.views import network, op_table, values
from tflab.views.abreast import control_text, ends_text

TOP = 10
HOLDERS = 3  # largest holders of memory at the peak that are named; JSON has the rest


def blocks(stage: Execution) -> Iterable[Block]:
    yield from values.not_finite(stage)
    yield from load_line(stage.load)
    yield from partial(stage.interrupted, stage.failure)
    yield from values.blocks(stage)
    yield (
        f"{plural(stage.steps, 'untraced step')} and as many traced ones, alternating, after "
        f"{plural(stage.warmup_steps, 'warm-up step')} of each, which are not counted. Batch size "
        f"{stage.batch_size}, data: {stage.data}."
    )
    yield lengths(stage)
    if stage.race:
        yield raced(stage.race)
    yield owners(stage)
    yield from network.blocks(stage)
    yield top_table("The most expensive op types", stage.top_types, stage, "op")
    yield top_table("The most expensive nodes", stage.top_ops, stage, "node")
    yield from kernels(stage.kernel_time)
    yield from costs(stage)
    yield from parallel(stage)
    yield from remembered(stage.memory, stage.nodes)


def load_line(load: Load | None) -> Iterable[str]:
    """The line on what else kept the machine busy."""
    if load is None:
        return
    parts = []
    if load.before is not None:
        parts.append(f"{load.before:.1f} processes in the minute before")
    if load.during is not None:
        parts.append(
            f"{load.during:.1f} of {plural(load.processors, 'processor')} busy with others"
        )
    if parts:
        yield f"Load: {', '.join(parts)}."


def partial(interrupted: bool, failure: str | None) -> Iterable[str]:
    """Why measurements are not complete."""
    if interrupted:
        yield "Partial: these are the measurements before the interruption."
    if failure:
        yield f"Partial: these are the measurements before this error: {failure}"


def lengths(stage: Execution) -> Table:
    return Table(
        "Time of a step",
        (
            Column("step", lambda row: row[0]),
            Column("median", lambda row: time(row[1].median), right=True),
            Column("p10", lambda row: time(row[1].p10), right=True),
            Column("p90", lambda row: time(row[1].p90), right=True),
        ),
        (("untraced", stage.untraced_step_ns), ("traced", stage.traced_step_ns)),
    )


def owners(stage: Execution) -> Table:
    """The owners of every nanosecond of the traced steps."""
    return Table(
        "Where the wall time of the traced steps went",
        (
            Column("owner", lambda owner: owner.owner),
            Column("a step, mean", lambda owner: time(owner.ns / stage.steps), right=True),
            Column("share", lambda owner: percent(owner.ns / stage.wall_ns), right=True),
        ),
        stage.time_ledger,
    )


def kernels(taken: KernelTime | None) -> Iterable[str]:
    """How much of the time of ops their kernels took."""
    if taken:
        yield (
            f"In the step of median length, the time of all ops adds up to "
            f"{time(taken.op_runs_ns)}. Their kernels took {time(taken.kernels_ns)} of it "
            f"({percent(taken.share)}). In the rest, the executor prepared their inputs and "
            "handed their outputs on to the ops that wait for them."
        )


def costs(stage: Execution) -> Iterable[Block]:
    """What the largest ops cost a step, measured by running each of them once more."""
    self_ns = {row.key: row.self_ns / stage.steps for row in stage.top_ops}
    return op_costs(stage.experiments, self_ns) if stage.experiments else ()


NO_CHAIN = (
    "No critical path is shown: in this trace an op began before an op that it depends on had "
    "ended."
)


def parallel(stage: Execution) -> Iterable[Block]:
    """How much ran at once, and the critical path."""
    path = stage.critical_path
    chain = (
        f"The critical path, the longest chain of ops that wait for one another, has "
        f"{plural(len(path.nodes), 'op run')}. In a traced step these took {time(path.ns)}."
    )
    if not path.nodes:
        chain = NO_CHAIN
    if stage.step_times:
        yield from shaped(median_step(stage.step_times))
    if not path.nodes:
        yield chain
        return
    yield (
        f"{chain} All ops together took {path.parallelism:.2f} x as long. While any of them ran, "
        f"{path.achieved_parallelism:.2f} ran at once on average."
    )


def shaped(step: StepTime) -> Iterable[Block]:
    """How many ops ran at once, and how long no op of a device ran."""
    if step.shape and step.shape.devices:
        none = (
            f"{percent(device.idle_share)} of it on {short_device(device.device)}"
            for device in step.shape.devices
        )
        yield (
            f"In the step of median length at most {plural(step.shape.most_at_once, 'op')} ran at "
            f"once, {step.shape.mean_at_once:.2f} on average. No op ran for "
            f"{', '.join(none)}: the runtime itself may have been working, so this is not idle "
            f"time."
        )


def compiled(nodes: Iterable[Node]) -> bool:
    """Whether code compiled by XLA ran. The runtime does not record the memory that it requests."""
    return any(node.op == "_XlaRun" for node in nodes)


def remembered(memory: Memory, nodes: Iterable[Node] = ()) -> Iterable[Block]:
    """How much memory was alive at most, and which ops had allocated it."""
    if compiled(nodes):
        yield "The runtime did not record the memory of the code that XLA compiled."
        return
    if not memory.peak_bytes:
        return
    most, curve = memory.per_op[0], memory.curve
    text = (
        f"The ops had at most {size(memory.peak_bytes)} alive at once; {most.name} requested "
        f"most, {size(most.requested_bytes)} a step."
    )
    if curve and curve.holders:
        memory_text = (
            f"{holder.name} ({size(holder.bytes)}{', still running' if holder.running else ''})"
            for holder in curve.holders[:HOLDERS]
        )
        text += (
            f" The step of median length peaked after {time(curve.peak_ns)}: "
            f"{size(curve.peak_bytes)}, allocated by {plural(len(curve.holders), 'op')}, "
            f"{'all of it' if len(curve.holders) == 1 else 'the largest parts'} by "
            f"{', '.join(memory_text)}."
        )
    yield text


def raced(race: Race) -> str:
    """The effect of the switched-off passes, with its interval and its control."""
    verdict = race.verdict
    return (
        f"{time(race.without_step_ns)} without these passes, {time(race.usual_step_ns)} with all "
        f"passes: {verdict.ratio:.2f} x as long {ends_text(verdict.low, verdict.high)}, "
        f"{verdict.word}. Control, all passes compared with themselves: {control_text(verdict)}. "
        f"{plural(race.steps, 'untraced step')} each, in turn, in "
        f"{plural(verdict.observations, 'observation')} from separate sessions."
    )


def top_table(heading: str, rows: Sequence[OpStats], stage: Execution, by: str) -> Table:
    """The first rows by node or by type; a row of a type has no separate name."""
    if by == "node":
        columns = (op_table.key(by), *op_table.columns(op_table.NODES_MOST_EXPENSIVE))
    else:
        kind, *rest = op_table.columns(op_table.MOST_EXPENSIVE)
        columns = (replace(kind, spare=0), *rest)  # the type is never omitted: it names the row
    return shortened(
        f"{heading} (self time, {plural(stage.steps, 'traced step')})",
        columns,
        rows,
        TOP,
    )


# What an op costs a step


def op_costs(
    experiments: Experiments,
    self_ns: Mapping[str, float],
    at: str = "",
) -> Iterable[Block]:
    """The experiments, and the ops without one. `self_ns` has the self time per step of nodes, if
    known; `at` is the batch size, if there are several."""
    own = Column(
        "self a step, mean",
        lambda row: op_table.text_or_blank(self_ns.get(row.name), time),
        right=True,
        spare=2,
    )
    if experiments.control:
        yield Table(
            f"What an op costs a step{at}: time added by running it a second time in place",
            (
                Column("node", lambda row: row.name, elastic=True, name=True),
                Column("type that ran", lambda row: row.op, spare=3),
                Column("adds", lambda row: time(row.once_more_ns), right=True),
                Column("from", lambda row: time(row.low_ns), right=True),
                Column("to", lambda row: time(row.high_ns), right=True),
                *([own] if self_ns else []),
            ),
            (*filter(None, (experiments.control, experiments.one_by_one)), *experiments.ops),
        )
        observations = experiments.control.observations
        yield (
            f"Each value is the median of {plural(observations, 'observation')}. An observation "
            "has new sessions, in which all of these steps alternate, untraced. From and to are "
            "the ends of the interval that contains the true median in 95 of 100 experiments. "
            "The control compares the unchanged step with itself: an op whose interval overlaps "
            "it may add nothing."
        )
    if experiments.one_by_one:
        yield (
            "Ops one by one is the unchanged step with a single thread that starts ops, each on "
            "all processors. If this is negative, running ops in parallel does not pay."
        )
    for row in experiments.untried:
        yield f"Not repeated{at}: {row.name} ({row.op}): {row.reason}."
