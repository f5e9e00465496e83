"""Diagnosis: why a step is slow, in three sentences at most. No TensorFlow in here.

Each sentence says how much of a step it is about, what was measured that shows it, and what to try.
They are ranked by the share of the step that they cost. What an op costs is its median call times
its calls, as a share of the same of all ops, of the time in which ops ran: tracing makes small ops
slower, so times of traced ops are never held against an untraced step. What is neither in an op nor
between ops is that of Python and the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflab.records import ConfigTimes, Diagnosis, Experiments
from tflab.units import percent, plural, size, time

MOST = 3  # sentences
LEAST_STEPS = 5  # traced; of fewer, nothing is said
MOVEMENT = 0.1  # of a step: what computes nothing is worth a sentence from here on
SMALL = 0.2  # of a step that is spent on small ops
MANY = 50  # calls of small ops a step; a few are in every graph
OVERHEAD = 3  # times as long as the quickest op that only hands a value on: a small op
SESSION = 0.3  # of a step outside all ops
READING = 0.1  # of that time, that reading the fed bytes once would take: feeds are a part of it
ONE = 0.5  # of the time of all ops; the longest chain of ops cannot be without such an op
FAR = 0.25  # of the roof: below, the op is far from what the machine can do
FASTER = 1.1  # a configuration has to be faster by this factor

SETTINGS = {  # configuration -> how to have it without tflab
    "xla": "tf.config.optimizer.set_jit(True)",
    "no-onednn": "TF_ENABLE_ONEDNN_OPTS=0 in the environment before TensorFlow is imported",
    "no-grappler": "disable_meta_optimizer among the optimizer's experimental options",
    "one-thread": "one thread within an op and one between ops, as tf.config.threading sets them",
    "gpu": "the GPU",
}


@dataclass(frozen=True)
class Work:
    """A node as it ran in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program that made it; empty where nobody knows
    calls: float  # a step
    call_ns: float  # median
    bytes: int | None  # of inputs and outputs of a call
    roof_share: float | None  # of what this machine can do at most
    moves: bool  # copies, fills or converts data, and computes nothing
    turns: bool  # moves the channels of images to another axis, beside an op that knows the axis
    hands_on: bool  # passes a buffer on: that is what running any op costs

    @property
    def ns(self) -> float:
        return self.calls * self.call_ns


@dataclass(frozen=True)
class Evidence:
    """What was measured of a step at one batch size."""

    batch_size: int
    steps: int  # traced
    step_ns: float  # untraced, median
    ops_span_ns: float  # from the first op to the end of the last in a traced step, median
    traced_outside_ns: float  # of a traced step before and after its ops, median
    fed_bytes: int
    reading_ns: float  # that reading those once from memory takes, at this machine's best
    nodes: tuple[Work, ...]

    @property
    def ops_ns(self) -> float:
        return sum(node.ns for node in self.nodes)

    @property
    def outside_ns(self) -> float:
        """Of an untraced step, what is before the first op or after the last; at least.

        Tracing makes both the ops and what is outside of them longer, so neither what is left of an
        untraced step nor what a traced one has is less than that, unless the machine was disturbed.
        """
        return max(0.0, min(self.step_ns - self.ops_span_ns, self.traced_outside_ns))

    def cost_ns(self, nodes: Iterable[Work]) -> float:
        """Of an untraced step, what these nodes cost; where ops run at once, at most."""
        if not self.ops_ns:
            return 0.0
        return sum(node.ns for node in nodes) / self.ops_ns * (self.step_ns - self.outside_ns)


@dataclass(frozen=True)
class Reason:
    """A diagnosis, and what it is about: each node is blamed once."""

    diagnosis: Diagnosis
    subject: str  # the same at every batch size
    nodes: frozenset[str] = frozenset()


def diagnose(
    evidence: Sequence[Evidence],
    configs: Sequence[ConfigTimes] = (),
    experiments: Mapping[int, Experiments] | None = None,
) -> tuple[Diagnosis, ...]:
    """The reasons that cost most of a step, or that there is none.

    A reason that holds at several batch sizes is told of the one where it costs most. Where its ops
    were run once more, by batch size, it is told what that added.
    """
    evidence = [batch for batch in evidence if batch.steps >= LEAST_STEPS]
    rules = (format_changes, movement, small_ops, one_op, outside)
    reasons = [reason for batch in evidence for rule in rules for reason in rule(batch)]
    reasons += configurations(configs)
    reasons.sort(key=lambda reason: -reason.diagnosis.share)
    kept: list[Reason] = []
    for reason in reasons:
        if not any(reason.subject == other.subject or reason.nodes & other.nodes for other in kept):
            kept.append(reason)
    if kept:
        return tuple(confirmed(reason, experiments or {}) for reason in kept[:MOST])
    return tuple(nothing(max(evidence, key=lambda batch: batch.batch_size)) for _ in evidence[:1])


def confirmed(reason: Reason, experiments: Mapping[int, Experiments]) -> Diagnosis:
    """The diagnosis with what its largest op added to a step when it was run once more."""
    diagnosis = reason.diagnosis
    made = experiments.get(diagnosis.batch_size)
    for row in made.ops if made else ():
        if row.name in reason.nodes:
            added = f"{time(row.once_more_ns)} [{time(row.low_ns)}, {time(row.high_ns)}]"
            sentence = f"{diagnosis.sentence} Once more, {row.name} adds {added} to a step."
            return replace(diagnosis, sentence=sentence)
    return diagnosis


def reason(
    batch: Evidence,
    kind: str,
    cost_ns: float,
    sentence: str,
    nodes: Sequence[Work] = (),
    subject: str = "",
) -> Reason:
    share = cost_ns / batch.step_ns
    diagnosis = Diagnosis(sentence, cost_ns, share, batch.batch_size, kind)
    return Reason(diagnosis, f"{kind} {subject}", frozenset(node.name for node in nodes))


def part(batch: Evidence, cost_ns: float) -> str:
    """`34.0 % of a step at batch 16 (123 us of 362 us)`"""
    return (
        f"{percent(cost_ns / batch.step_ns)} of a step at batch {batch.batch_size} "
        f"({time(cost_ns)} of {time(batch.step_ns)})"
    )


# Ops that compute nothing


def format_changes(batch: Evidence) -> Iterator[Reason]:
    """Images are turned between channels last and channels first."""
    nodes = [node for node in batch.nodes if node.turns]
    cost_ns = batch.cost_ns(nodes)
    if len(nodes) > 1 and cost_ns > MOVEMENT * batch.step_ns:
        yield reason(
            batch,
            "format",
            cost_ns,
            f"{part(batch, cost_ns)} is {counted(nodes)} at {places(nodes)} that move the channels "
            f"of images to another axis beside ops that take them there, and compute nothing: "
            f"{a_call(nodes)}. Try to keep all of it in one data format, that of the data.",
            nodes,
        )


def movement(batch: Evidence) -> Iterator[Reason]:
    """A line of the program, or a type of op where no line is known, that only moves data."""
    groups: dict[str, list[Work]] = {}
    for node in batch.nodes:
        if node.moves:
            groups.setdefault(node.line or node.op, []).append(node)
    for subject, nodes in groups.items():
        cost_ns = batch.cost_ns(nodes)
        if cost_ns > MOVEMENT * batch.step_ns:
            where = f"{subject}, {counted(nodes)}" if nodes[0].line else counted(nodes)
            yield reason(
                batch,
                "movement",
                cost_ns,
                f"{part(batch, cost_ns)} is {where} that move or convert data and compute nothing: "
                f"{a_call(nodes)}. Try to do without, or with fewer and larger ones.",
                nodes,
                subject,
            )


def counted(nodes: Sequence[Work]) -> str:
    """`10 ops of type Transpose`, and how often they run where that is not once each."""
    types = ", ".join(sorted({node.op for node in nodes}))
    calls = sum(node.calls for node in nodes)
    often = "" if round(calls) == len(nodes) else f", {calls:,.0f} calls"
    return f"{plural(len(nodes), 'op')} of type {types}{often}"


def places(nodes: Sequence[Work]) -> str:
    """The lines of some nodes, in the order of the program."""
    lines = sorted({node.line for node in nodes}, key=place)
    first = ", ".join(line or "(no line)" for line in lines[:MOST])
    return first if len(lines) <= MOST else f"{first} and {plural(len(lines) - MOST, 'other line')}"


def place(line: str) -> tuple[bool, str, int]:
    """`mine.py:9` before `mine.py:10`, and all lines before what has none."""
    file, _, number = line.rpartition(":")
    return not line, file, int(number or 0)


def a_call(nodes: Sequence[Work]) -> str:
    """`12.0 us a call for 4.00 KB read and written, 0.34 GB/s`; the bytes where all are known."""
    calls = sum(node.calls for node in nodes)
    ns = sum(node.ns for node in nodes)
    sizes = [node.calls * node.bytes for node in nodes if node.bytes is not None]
    text = f"{time(ns / calls)} a call"
    if len(sizes) == len(nodes) and ns:
        moved = sum(sizes)
        text += f" for {size(moved / calls)} read and written, {moved / ns:.2f} GB/s"
    return text


# Ops that are too small


def small_ops(batch: Evidence) -> Iterator[Reason]:
    """Many calls that take little longer than running any op at all."""
    least = min((node.call_ns for node in batch.nodes if node.hands_on), default=0)
    nodes = [node for node in batch.nodes if node.call_ns <= OVERHEAD * least]
    calls, cost_ns = sum(node.calls for node in nodes), batch.cost_ns(nodes)
    if calls < MANY or cost_ns <= SMALL * batch.step_ns:
        return
    looped = [node for node in nodes if node.calls > 1]
    loop = sum(node.calls for node in looped) > calls / 2
    blamed = looped if loop else nodes
    turns = max(round(node.calls) for node in blamed)
    where = f", most of them in a loop, where a node runs up to {turns:,} times" if loop else ""
    line = largest_line(blamed)
    yield reason(
        batch,
        "small ops",
        cost_ns,
        f"{part(batch, cost_ns)} is {calls:,.0f} calls of small ops{where}"
        f"{f', above all {line}' if line else ''}: {time(sum(node.ns for node in nodes) / calls)} "
        f"a call, and an op that only hands a value on takes {time(least)}. Try fewer and larger "
        "ops: the same for a whole tensor at once, or XLA (--configs xla).",
        nodes,
    )


def largest_line(nodes: Sequence[Work]) -> str:
    """The line whose nodes take most; empty where no line is known."""
    totals: dict[str, float] = {}
    for node in nodes:
        if node.line:
            totals[node.line] = totals.get(node.line, 0) + node.ns
    return max(totals, key=lambda line: totals[line], default="")


# One op


def one_op(batch: Evidence) -> Iterator[Reason]:
    """An op that takes more than all others together."""
    node = max(batch.nodes, key=lambda node: node.ns, default=None)
    if node is None or node.ns <= ONE * batch.ops_ns:
        return
    cost_ns = batch.cost_ns([node])
    if cost_ns <= ONE * batch.step_ns:
        return
    line = f" at {node.line}" if node.line else ""
    calls = "" if round(node.calls) == 1 else f" in {node.calls:,.0f} calls"
    roof = node.roof_share
    known = roof is not None and roof <= 1
    reach = f", at {percent(roof)} of what this machine can do" if roof and known else ""
    advice = (
        "Try another shape, data format or type for it, or another configuration (--configs)"
        if roof and roof < FAR
        else "Try to give it less to do: whatever is done about the others, this stays"
    )
    yield reason(
        batch,
        "one op",
        cost_ns,
        f"{part(batch, cost_ns)} is one op, {node.name} ({node.op}){line}{calls}{reach}: it takes "
        f"more than all others together. {advice}.",
        [node],
        node.name,
    )


# Outside of all ops


def outside(batch: Evidence) -> Iterator[Reason]:
    """What is neither in an op nor between ops: feeds, where they are large, or the call itself."""
    cost_ns = batch.outside_ns
    if cost_ns <= SESSION * batch.step_ns:
        return
    if batch.reading_ns > READING * cost_ns:
        yield reason(
            batch,
            "feeds",
            cost_ns,
            f"{part(batch, cost_ns)} is before the first op or after the last, and "
            f"{size(batch.fed_bytes)} are fed to each step: only to read them once takes "
            f"{time(batch.reading_ns)} at this machine's best. Try to feed less: only what is "
            "used, in a smaller type, and what never changes as a variable.",
        )
        return
    ratio = (
        f"the session takes {cost_ns / (batch.step_ns - cost_ns):.1f} x what its ops take, "
        if cost_ns < batch.step_ns
        else ""
    )
    yield reason(
        batch,
        "session",
        cost_ns,
        f"{part(batch, cost_ns)} is before the first op or after the last: {ratio}with "
        f"{size(batch.fed_bytes)} fed to it. Try a larger batch, or more than one step a call.",
    )


# Configurations


def configurations(configs: Sequence[ConfigTimes]) -> Iterator[Reason]:
    """Settings under which the step is faster, by their verdicts."""
    usual: Mapping[int, ConfigTimes] = {
        row.batch_size: row for row in configs if row.config == "default"
    }
    for row in configs:
        verdict, default = row.verdict, usual[row.batch_size].untraced_ns.median
        if verdict is None or verdict.word != "faster" or verdict.ratio * FASTER > 1:
            continue
        saved = default * (1 - verdict.ratio)
        sentence = (
            f"{row.config} is {1 / verdict.ratio:.2f} x as fast as default here, at batch "
            f"{row.batch_size} [{1 / verdict.high:.2f}, {1 / verdict.low:.2f}] "
            f"({time(row.untraced_ns.median)} against {time(default)}). Try "
            f"{SETTINGS[row.config]}."
        )
        diagnosis = Diagnosis(sentence, saved, saved / default, row.batch_size, "configuration")
        yield Reason(diagnosis, f"configuration {row.config}")


# Nothing


def nothing(batch: Evidence) -> Diagnosis:
    """That no rule applies, with the numbers closest to it."""
    node = max(batch.nodes, key=lambda node: node.ns, default=None)
    op = (
        f"the op that costs most, {node.name} ({node.op}), is "
        f"{percent(batch.cost_ns([node]) / batch.step_ns)} of it, and "
        if node
        else ""
    )
    sentence = (
        f"No single thing stands out: of a step at batch {batch.batch_size} "
        f"({time(batch.step_ns)}), {op}{percent(batch.outside_ns / batch.step_ns)} is outside of "
        "all ops."
    )
    return Diagnosis(sentence, 0, 0, batch.batch_size, "none")
