"""View of execution: how long a step took, where the time went, which ops took most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from tflab.records.blocks import Block, Column, Fact, Table, dearest, numbers, table
from tflab.records.graph import Node
from tflab.records.measured import Experiment, Experiments, Load
from tflab.records.stages import Execution
from tflab.records.timed import CriticalPath, Memory, Owner
from tflab.units import percent, plural, short_task, size, time
from tflab.views import op_table, values

TITLE = "Execution: ops run in the order of their dependencies"
TOP = 10
HOLDERS = 5  # largest holders of memory at the peak that have a row


def notes(stage: Execution, brief: bool = False) -> Iterator[str]:
    """Yield the findings about the values and of the experiments, the load (if `brief`, only that
    of a busy machine), and why measurements are incomplete."""
    yield from values.not_finite(stage)
    yield from most_added(stage.experiments)
    yield from load_line(stage.load, brief)
    yield from partial(stage.interrupted, stage.failure)


def facts(stage: Execution) -> Iterator[Fact]:
    yield from step_times(stage)
    yield from owners(stage.time_ledger, stage.wall_ns, stage.steps)
    if stage.wall_ns:
        parts = ((owner.ns / stage.wall_ns, owner.owner) for owner in stage.time_ledger)
        shares = (f"{percent(share)} {owner.split(' (')[0]}" for share, owner in parts)
        yield Fact("when traced", ", ".join(shares), brief=True)
    yield from parallel(stage.critical_path)
    yield from memory_facts(stage.memory, stage.nodes)
    if stage.network and stage.network.unrecorded > 0:
        missing = plural(stage.network.unrecorded, "transfer")
        yield Fact("not recorded", missing, "in other parts of the step, on no critical path")


def tables(stage: Execution) -> Iterator[Block]:
    """Yield what was asked for, the most expensive nodes, memory and values."""
    yield from costs(stage)
    yield from clocks(stage)
    yield most_expensive(stage)
    yield from holders(stage.memory, stage.nodes)
    yield from values.tables(stage)


def load_line(load: Load | None, brief: bool = False) -> Iterable[str]:
    """Yield how much of the machine other programs used; if `brief`, only if it was much."""
    if load and load.during is not None and (is_busy(load) or not brief):
        busy = ": times may be too long" * is_busy(load)
        of = plural(load.processors, "processor")
        yield f"Other programs used {load.during:.1f} of {of}{busy}."


def is_busy(load: Load | None) -> bool:
    return load is not None and 4 * (load.during or 0) > load.processors


def partial(interrupted: bool, failure: str | None) -> Iterable[str]:
    """Yield why measurements are not complete."""
    if interrupted:
        yield "Partial: these are the measurements before the interruption."
    if failure:
        yield f"Partial: this error prevented the rest: {failure}"


def step_times(stage: Execution) -> Iterator[Fact]:
    for name, step in (("untraced", stage.untraced_step_ns), ("traced", stage.traced_step_ns)):
        spread = f"p10 {time(step.p10)}, p90 {time(step.p90)}"
        median = f"{time(step.median)}, median of {stage.steps:,} at batch size {stage.batch_size}"
        yield Fact(f"{name} step", median, spread, detail=name == "traced")
    warm = f"after {plural(stage.warmup_steps, 'warm-up step')} of each, not counted"
    yield Fact("data", stage.data, f"untraced and traced steps alternate, {warm}", detail=True)


def owners(
    ledger: Iterable[Owner], wall_ns: int, steps: int, of: str = "a mean traced step"
) -> Iterator[Fact]:
    """Yield the parts of a step. Every nanosecond belongs to exactly one."""
    for owner in ledger if wall_ns else ():
        name, _, what = owner.owner.partition(" (")
        share = f"{percent(owner.ns / wall_ns)} of {of}"
        why = f"for {what.rstrip(')')}".replace("the trace", "tflab's own trace") if what else ""
        yield Fact(name, f"{time(owner.ns / steps)}, {share}", why, detail=True)


def parallel(path: CriticalPath) -> Iterator[Fact]:
    """Yield the critical path, with the time of all ops as a multiple of its length."""
    if path.nodes:
        runs = plural(len(path.nodes), "op run")
        longer = f"all op runs of that step take {path.parallelism:.2f} x as long"
        yield Fact("critical path", f"{time(path.ns)} in a traced step, {runs}", longer)
    else:
        yield Fact("critical path", "not shown", "an op began before its inputs were ready")


def compiled(nodes: Iterable[Node]) -> bool:
    """Return whether code compiled by XLA ran, whose memory the runtime does not record."""
    return any(node.op == "_XlaRun" for node in nodes)


def memory_facts(memory: Memory, nodes: Iterable[Node] = ()) -> Iterator[Fact]:
    """Yield how much memory was alive at most."""
    if compiled(nodes):
        yield Fact("memory", "not recorded", "code that XLA compiled ran")
    elif memory.peak_bytes:
        yield Fact("memory", size(memory.peak_bytes), "held at once at most in a traced step")


def holders(memory: Memory, nodes: Iterable[Node] = (), of: str = "the step") -> Iterator[Table]:
    """Yield a table of what held the memory at the peak."""
    curve = memory.curve
    if curve.holders and not compiled(nodes):
        yield table(
            f"What held the {size(curve.peak_bytes)}, {time(curve.peak_ns)} after {of} began",
            curve.holders,
            Column("allocated by", lambda holder: holder.name, elastic=True, name=True),
            Column("type that ran", lambda holder: holder.op, spare=1),
            numbers("bytes", lambda holder: size(holder.bytes)),
            Column("still running", lambda holder: "yes" if holder.running else "no"),
            most=HOLDERS,
        )


def most_expensive(stage: Execution) -> Table:
    spare = {"type": 4, "median": 3, "calls": 2, "mean": 2}
    star = Column("", lambda row: "*" * (row.mean_ns > 2 * row.median_ns))
    stars = "; *: the mean is over 2 x the median" * any(map(star.cell, stage.top_ops[:3]))
    return table(
        f"The most expensive nodes (total time of {plural(stage.steps, 'traced step')}{stars})",
        stage.top_ops,
        op_table.key("node"),
        *op_table.columns(op_table.NODES_MOST_EXPENSIVE, spare),
        *[star] * bool(stars),
        most=TOP,
        tone=dearest(stage.top_ops, lambda row: row.total_ns),
    )


NO_DIFFERENCE = "no difference"


def interval(row: Experiment) -> str:
    return f"{time(row.low_ns)} to {time(row.high_ns)}"


def adds(row: Experiment, control: Experiment) -> bool:
    """Return whether an op costs a step something: its interval is above that of the control."""
    return row.low_ns > control.high_ns


def most_added(experiments: Experiments | None) -> Iterator[str]:
    """Yield by how much a step gets longer if an op runs twice: the op that adds most, if any."""
    if experiments and (control := experiments.control):
        slower = [row for row in experiments.ops if adds(row, control)]
        most = max(slower, key=lambda row: row.once_more_ns, default=None)
        alike = sum(row.high_ns >= most.low_ns for row in experiments.ops) - 1 if most else 0
        overlap = f" Uncertain: {plural(alike, 'other interval')} overlap{'s' * (alike == 1)}."
        yield (
            f"With {most.name} run twice, a step takes {time(most.once_more_ns)} longer, the "
            f"largest median of {plural(len(slower), 'op')} with a difference "
            f"({len(experiments.ops)} tried): 95 % interval {interval(most)}, control (an "
            f"unchanged step) {interval(control)}.{overlap * (alike > 0)}"
            if most
            else f"Steps with an op run twice, a different op in each: {NO_DIFFERENCE} seen."
        )
    elif experiments:
        yield "Ops run twice: none."


def costs(stage: Execution) -> Iterator[Block]:
    """Yield what an op costs a step, and the ops without an experiment, if they were asked for."""
    experiments = stage.experiments
    if experiments and (control := experiments.control):
        yield table(
            "What an op adds to a step when it runs twice",
            sorted(experiments.ops, key=lambda row: (not adds(row, control), -row.once_more_ns)),
            Column("node", lambda row: row.name, elastic=True, name=True),
            Column("type that ran", lambda row: row.op, spare=1),
            numbers("adds", lambda row: time(row.once_more_ns)),
            Column("95 % interval", interval),
            Column("step", lambda row: "slower" if adds(row, control) else NO_DIFFERENCE),
        )
        yield (
            f"Medians of {plural(control.observations, 'observation')} in new sessions. An "
            f"interval that overlaps with the control's, {interval(control)}, shows no difference."
        )
    for row in experiments.untried if experiments else ():
        yield f"Not repeated: {row.name} ({row.op}): {row.reason}."


# The tasks of a cluster


def clocks(stage: Execution) -> Iterator[Block]:
    """Yield the clocks of the tasks; nothing for a graph that ran in one process."""
    network = stage.network
    if network is None:
        return
    yield table(
        "The tasks' clocks, compared with the client's through the messages of the steps",
        network.offsets,
        Column("clock", lambda offset: short_task(offset.clock)),
        numbers("ahead by", lambda o: "unknown" if o.uncertainty_ns == inf else time(o.ahead_ns)),
        numbers("+/-", lambda o: "unknown" if o.uncertainty_ns == inf else time(o.uncertainty_ns)),
        numbers("times shifted by", lambda offset: time(offset.applied_ns)),
    )
    yield from network.left_out
