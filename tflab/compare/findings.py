"""Findings: sentences about a comparison, each computed from its tables, and why a step is slow.

Each rule of the diagnosis says which part of a step it is about, which measurement shows it, and
what to try. The cost of an op is its median call times its calls, as a share of that of all ops,
applied to the time in which ops ran: tracing makes small ops slower, so times of traced ops are
never compared with an untraced step. Time before the first op and after the last belongs to Python
and the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

from tflab import units
from tflab.analysis import batch_fit, verdicts
from tflab.compare import setting_of
from tflab.records.measured import Compared, ConfigTimes, StepTimes
from tflab.records.verdicts import Diagnosis
from tflab.units import percent, plural, time
from tflab.views.words import ends_text

TOP = 3  # rows that have sentences of their own
GREW = 0.05  # a smaller change of a share has no sentence
FIXED = 0.5  # a larger share of fixed cost has a sentence
# A line that misses a measured time by more than a tenth does not describe these times, and its
# value at batch 0, which was not measured, means nothing.
FITS = 0.1
HELPS = 1.1  # the least factor by which a batch size or a configuration has to help


def sentences(
    rows: Sequence[Compared], steps: Mapping[int, StepTimes], by: str = "op", unit: str = "image"
) -> tuple[str, ...]:
    """Return the findings, in the order of a reader's questions."""
    sizes = sorted(steps)
    rows = sorted(rows, key=lambda row: -sum(cell.total_ns for cell in row.cells.values()))
    return (
        *growth(rows, sizes),
        *longer(rows, steps, sizes, by),
        *fixed_costs(rows, sizes, by, unit),
        *throughput(steps, sizes, unit),
        *overhead(steps, sizes),
    )


def growth(rows: Sequence[Compared], sizes: Sequence[int]) -> Iterator[str]:
    """Yield the shares of the row whose share grows most from the smallest batch to the largest,
    and of the one whose share shrinks most."""
    everywhere = [row for row in rows if all(size in row.cells for size in sizes)]
    if len(sizes) < 2 or not everywhere:
        return

    def change(row: Compared) -> float:
        return row.cells[sizes[-1]].share - row.cells[sizes[0]].share

    grows, shrinks = max(everywhere, key=change), min(everywhere, key=change)
    for row, by in ((grows, change(grows)), (shrinks, -change(shrinks))):
        if by >= GREW:
            shares = ", ".join(percent(row.cells[size].share) for size in sizes)
            at = ", ".join(map(str, sizes))
            yield f"{row.key}: {shares} of the time of all ops at batch {at}."


def longer(
    rows: Sequence[Compared], steps: Mapping[int, StepTimes], sizes: Sequence[int], by: str
) -> Iterator[str]:
    """Yield `X: a call takes 2.30 x as long at batch 16 as at 1, ...` for the largest rows."""
    for row in rows[:TOP]:
        times = {size: batch_fit.unit_ns(cell, steps[size], by) for size, cell in row.cells.items()}
        parts = [
            f"{times[large] / times[small]:.2f} x as long at batch {large} as at {small}"
            for small, large in pairwise(sizes)
            if large in times and times.get(small)
        ]
        if parts:
            yield f"{row.key}: a {batch_fit.unit(by)} takes {', '.join(parts)}."


def fixed_costs(
    rows: Sequence[Compared], sizes: Sequence[int], by: str, unit: str = "image"
) -> Iterator[str]:
    """Yield the rows whose time at the smallest batch is mostly fixed cost, by their fit."""
    size = sizes[0]
    for row in rows[:TOP]:
        if row.fit and row.fit.error <= FITS and size in row.cells:
            at_size = row.fit.fixed_ns + row.fit.per_image_ns * size
            share = row.fit.fixed_ns / at_size if at_size > 0 else 0
            if share > FIXED and row.fit.per_image_ns > 0:
                yield (
                    f"{row.key}: a {batch_fit.unit(by)} takes {time(row.fit.fixed_ns)} + "
                    f"{time(row.fit.per_image_ns)} per {unit}, within {percent(row.fit.error)}, "
                    f"so about {100 * min(share, 1):.0f} % of it is fixed cost at batch {size}."
                )


def throughput(
    steps: Mapping[int, StepTimes], sizes: Sequence[int], unit: str = "image"
) -> Iterator[str]:
    """Yield the gain in images per second from each batch size to the next, and whether a larger
    batch still helps, or is slower; the latter only if the rounds of the sweep prove it, also
    against their control."""
    for small, large in pairwise(sizes):
        gain = steps[large].mean_images_per_second / steps[small].mean_images_per_second
        gains = by_round(steps[small], steps[large])
        low, high = verdicts.interval(gains) if gains else (0.0, inf)
        drifts = [*from_round_to_round(steps[small]), *from_round_to_round(steps[large])]
        if gain >= HELPS:
            conclusion = ""
        elif high < min(1, verdicts.interval(drifts)[0] if drifts else 1):
            conclusion = ": a larger batch is slower here"
        elif high < HELPS:
            conclusion = ": a larger batch no longer helps here"
        else:
            conclusion = ": the measurement does not show whether a larger batch helps here"
        rounds = f" {ends_text(low, high)}" if conclusion and isfinite(high) else ""
        yield (
            f"Batch {large} processes {gain:.2f} x{rounds} as many {unit}s per second as batch "
            f"{small}{conclusion}."
        )


def by_round(small: StepTimes, large: StepTimes) -> list[float]:
    """Return the ratio of the images per second, larger batch to smaller one, in each round."""
    rates = zip(small.round_rates, large.round_rates, strict=False)
    return [after / before for before, after in rates]


def from_round_to_round(steps: StepTimes) -> Iterator[float]:
    """Yield the ratio of each round's images per second to the round before: the control of a
    comparison of batch sizes, which should be 1."""
    return (after / before for before, after in pairwise(steps.round_rates))


def overhead(steps: Mapping[int, StepTimes], sizes: Sequence[int]) -> Iterator[str]:
    """Yield the batch sizes at which a step takes much longer than all of its ops together."""
    for size in sizes:
        wall, ops = steps[size].untraced_ns.median, steps[size].ops_ns
        if wall > 2 * ops:
            yield (
                f"At batch {size} an untraced step takes {time(wall)}, but its ops take only "
                f"{time(ops)}: no op runs for more than half of the step."
            )


# Why a step is slow

MOST = 3  # sentences
LEAST_STEPS = 5  # traced; with fewer there is no diagnosis
SEEN = 0.005  # of a step: a smaller lower bound of the time outside of ops says nothing
MOVEMENT = 0.1  # of a step: from this share on, ops that compute nothing have a sentence
NAMED = 3  # lines of a program in a sentence
SMALL = 0.2  # of a step, spent on small ops
MANY = 50  # calls of small ops per step; every graph has a few
OVERHEAD = 3  # times as long as the quickest op that only passes a value on: still a small op
SESSION = 0.3  # of a step outside all ops
LARGE_FEED = 2**20  # bytes a step: reading them takes about as long as an empty session.run
ONE = 0.5  # of a step, spent on one op; the critical path almost certainly contains such an op

TRY = {
    "format": "to keep the whole network in the data format of the input",
    "movement": "to avoid them, or to use fewer and larger ones",
    "small ops": "fewer, larger ops (one op on a whole tensor); --configs xla measures whether XLA "
    "helps",
    "one op": "to reduce its work, or another shape, data format or dtype for it; optimising other "
    "ops gains less",
    "feeds": "to feed less: feed only what the step uses, in a smaller dtype, and keep constant "
    "data in a variable",
    "session": "a larger batch, or several steps per call",
}


@dataclass(frozen=True)
class Work:
    """The runs of a node in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program; empty if unknown
    calls: float  # per step
    call_ns: float  # median
    bytes: int | None  # of inputs and outputs of a call
    moves: bool  # copies, fills or converts data, and computes nothing
    # moves the channels of images to another axis, next to an op that depends on the axis
    moves_channels: bool
    hands_on: bool  # passes a buffer on: its time is the overhead of an op

    @property
    def ns(self) -> float:
        return self.calls * self.call_ns


@dataclass(frozen=True)
class Evidence:
    """Measurements of a step at one batch size."""

    batch_size: int
    steps: int  # traced
    step_ns: float  # untraced, median
    ops_span_ns: float  # in a traced step, from the first op to the end of the last, median
    traced_outside_ns: float  # in a traced step, before the first op and after the last, median
    fed_bytes: int
    nodes: tuple[Work, ...]

    @property
    def ops_ns(self) -> float:
        return sum(node.ns for node in self.nodes)

    @property
    def outside_ns(self) -> float:
        """Return the least time of an untraced step before the first op and after the last.

        Tracing makes both the ops and the time outside of them longer, so the true time is at least
        the remainder of an untraced step and at most that of a traced one, unless the machine was
        disturbed.
        """
        return max(0.0, min(self.step_ns - self.ops_span_ns, self.traced_outside_ns))

    def cost_ns(self, nodes: Iterable[Work]) -> float:
        """Return what these nodes cost an untraced step; an upper bound if ops run in parallel."""
        if not self.ops_ns:
            return 0.0
        return sum(node.ns for node in nodes) / self.ops_ns * (self.step_ns - self.outside_ns)


@dataclass(frozen=True)
class Reason:
    """A diagnosis, and its nodes: each node is blamed only once."""

    diagnosis: Diagnosis
    subject: str  # the same at every batch size
    nodes: frozenset[str] = frozenset()


def reason(
    batch: Evidence, kind: str, about: str, nodes: Sequence[Work] = (), subject: str = ""
) -> Reason:
    """Return the reason `34.0 % of a median step at batch 16 (123 us of 362 us) is ...`, whose
    cost is that of its nodes or, without nodes, the time outside of ops."""
    cost_ns = batch.cost_ns(nodes) if nodes else batch.outside_ns
    share = cost_ns / batch.step_ns
    sentence = (
        f"{percent(share)} of a median step at batch {batch.batch_size} "
        f"({time(cost_ns)} of {time(batch.step_ns)}) is {about}. Try {TRY[kind]}."
    )
    diagnosis = Diagnosis(sentence, cost_ns, share, batch.batch_size, kind)
    return Reason(diagnosis, f"{kind} {subject}", frozenset(node.name for node in nodes))


def format_changes(batch: Evidence) -> Iterator[Reason]:
    """Images are converted between channels last and channels first."""
    nodes = [node for node in batch.nodes if node.moves_channels]
    if len(nodes) > 1 and batch.cost_ns(nodes) > MOVEMENT * batch.step_ns:
        about = (
            f"{counted(nodes)} at {places(nodes)} that only move the channels of images to another "
            f"axis, where neighbouring ops use them: {a_call(nodes)}"
        )
        yield reason(batch, "format", about, nodes)


def movement(batch: Evidence) -> Iterator[Reason]:
    """A line of the program, or a type of op if lines are unknown, that only moves data."""
    groups: dict[str, list[Work]] = {}
    for node in batch.nodes:
        if node.moves:
            groups.setdefault(node.line or node.op, []).append(node)
    for subject, nodes in groups.items():
        if batch.cost_ns(nodes) > MOVEMENT * batch.step_ns:
            where = f"{subject}, " if nodes[0].line else ""
            about = f"{where}{counted(nodes)} that only move or convert data: {a_call(nodes)}"
            yield reason(batch, "movement", about, nodes, subject)


def counted(nodes: Sequence[Work]) -> str:
    """Return `10 ops of type Transpose`, and how often they run, if not once each."""
    types = ", ".join(sorted({node.op for node in nodes}))
    calls = sum(node.calls for node in nodes)
    often = "" if round(calls) == len(nodes) else f", {calls:,.0f} calls"
    return f"{plural(len(nodes), 'op')} of type {types}{often}"


def places(nodes: Sequence[Work]) -> str:
    """Return the lines of some nodes, in the order of the program."""
    lines = sorted({node.line for node in nodes}, key=line_key)
    first = ", ".join(line or "(no line)" for line in lines[:NAMED])
    return (
        first if len(lines) <= NAMED else f"{first} and {plural(len(lines) - NAMED, 'other line')}"
    )


def line_key(line: str) -> tuple[bool, str, int]:
    """Return a sorting key: `mine.py:9` before `mine.py:10`, and ops without a line last."""
    file, _, number = line.rpartition(":")
    return not line, file, int(number or 0)


def a_call(nodes: Sequence[Work]) -> str:
    """Return `12.0 us a call for 4.00 KB read and written, 0.34 GB/s`; with bytes only if all are
    known."""
    calls = sum(node.calls for node in nodes)
    ns = sum(node.ns for node in nodes)
    sizes = [node.calls * node.bytes for node in nodes if node.bytes is not None]
    text = f"{time(ns / calls)} a call"
    if len(sizes) == len(nodes) and ns:
        moved = sum(sizes)
        text += f" for {units.size(moved / calls)} read and written, {moved / ns:.2f} GB/s"
    return text


def small_ops(batch: Evidence) -> Iterator[Reason]:
    """Many calls that take little longer than the overhead of an op."""
    least = min((node.call_ns for node in batch.nodes if node.hands_on), default=0)
    nodes = [node for node in batch.nodes if node.call_ns <= OVERHEAD * least]
    calls = sum(node.calls for node in nodes)
    if calls < MANY or batch.cost_ns(nodes) <= SMALL * batch.step_ns:
        return
    line, turns = main_line(nodes), max(round(node.calls) for node in nodes)
    often = f"; a node runs up to {turns:,} times a step" if turns > 1 else ""
    about = (
        f"{calls:,.0f} calls of small ops{f', mostly {line}' if line else ''}: "
        f"{time(sum(node.ns for node in nodes) / calls)} a call, while an op that only passes a "
        f"value on takes {time(least)}{often}"
    )
    yield reason(batch, "small ops", about, nodes)


def main_line(nodes: Sequence[Work]) -> str:
    """Return the line whose nodes take more than half of the time; empty if there is none."""
    totals: dict[str, float] = {}
    for node in nodes:
        totals[node.line] = totals.get(node.line, 0) + node.ns
    line = max(totals, key=totals.__getitem__)
    return line if 2 * totals[line] > sum(totals.values()) else ""


def one_op(batch: Evidence) -> Iterator[Reason]:
    """An op that takes more than all others together."""
    node = max(batch.nodes, key=lambda node: node.ns, default=None)
    if node is None or batch.cost_ns([node]) <= ONE * batch.step_ns:
        return
    line = f" at {node.line}" if node.line else ""
    calls = "" if round(node.calls) == 1 else f" in {node.calls:,.0f} calls"
    about = (
        f"one op, {node.name} ({node.op}){line}{calls}: it takes longer than all other ops together"
    )
    yield reason(batch, "one op", about, [node], node.name)


def time_outside_ops(batch: Evidence) -> Iterator[Reason]:
    """The time before the first op and after the last: feeds, if they are large, or the call
    itself."""
    if batch.outside_ns > SESSION * batch.step_ns:
        kind = "feeds" if batch.fed_bytes > LARGE_FEED else "session"
        fed = units.size(batch.fed_bytes)
        about = f"spent before the first op or after the last, with {fed} fed to each step"
        yield reason(batch, kind, about)


def faster(configs: Sequence[ConfigTimes]) -> Iterator[Reason]:
    """Yield the configurations under which the step is faster, by their verdicts."""
    for row in configs:
        verdict, default = row.verdict, row.default_ns
        if verdict is None or verdict.word != "faster" or verdict.ratio * HELPS > 1:
            continue
        saved = default * (1 - verdict.ratio)
        sentence = (
            f"{row.config} is {1 / verdict.ratio:.2f} x as fast as default on this machine, at "
            f"batch {row.batch_size} [{1 / verdict.high:.2f}, {1 / verdict.low:.2f}] "
            f"({time(row.step_ns)} against {time(default)}). Try "
            f"{setting_of(row.config).setting}."
        )
        diagnosis = Diagnosis(sentence, saved, saved / default, row.batch_size, "configuration")
        yield Reason(diagnosis, f"configuration {row.config}")


# Each rule is applied to the evidence of every batch size.
RULES = (format_changes, movement, small_ops, one_op, time_outside_ops)


def diagnose(
    evidence: Sequence[Evidence], configs: Sequence[ConfigTimes] = ()
) -> tuple[Diagnosis, ...]:
    """Return the most expensive reasons, by their share of a step, or that there is none.

    A reason that holds at several batch sizes is given for the one at which it costs most.
    """
    evidence = [batch for batch in evidence if batch.steps >= LEAST_STEPS]
    ranked = [reason for batch in evidence for rule in RULES for reason in rule(batch)]
    ranked += faster(configs)
    ranked.sort(key=lambda reason: -reason.diagnosis.share)
    distinct: list[Reason] = []
    for reason in ranked:
        if not any(
            reason.subject == other.subject or reason.nodes & other.nodes for other in distinct
        ):
            distinct.append(reason)
    if distinct:
        return tuple(reason.diagnosis for reason in distinct[:MOST])
    return tuple(nothing(max(evidence, key=lambda batch: batch.batch_size)) for _ in evidence[:1])


def nothing(batch: Evidence) -> Diagnosis:
    """Say that no rule applies, with the numbers closest to one."""
    node = max(batch.nodes, key=lambda node: node.ns, default=None)
    parts = []
    if node:
        share = percent(batch.cost_ns([node]) / batch.step_ns)
        parts.append(f"the most expensive op, {node.name} ({node.op}), takes at most {share}")
    if batch.outside_ns >= SEEN * batch.step_ns:
        share = percent(batch.outside_ns / batch.step_ns)
        parts.append(f"at least {share} is spent outside of ops")
    step = f"of a median step at batch {batch.batch_size} ({time(batch.step_ns)})"
    known = f": {step}, {', and '.join(parts)}" if parts else ""
    sentence = f"No single cause stands out{known}."
    return Diagnosis(sentence, 0, 0, batch.batch_size, "none")
