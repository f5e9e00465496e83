"""Diagnosis: why a step is slow, in at most three sentences.

They are ranked by the share of the step that they cost. RULES has the rules, which use the
measurements of `step_work`. The sentence of a rule says which part of a step it is about, which
measurement shows it, and what to try.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflab.compare.configurations import CONFIGURATIONS
from tflab.compare.step_work import Evidence, Work
from tflab.records.measured import ConfigTimes
from tflab.records.verdicts import Diagnosis, Experiments
from tflab.units import percent, plural, size, time

MOST = 3  # sentences
LEAST_STEPS = 5  # traced; with fewer there is no diagnosis


def diagnose(
    evidence: Sequence[Evidence],
    configs: Sequence[ConfigTimes] = (),
    experiments: Mapping[int, Experiments] | None = None,
) -> tuple[Diagnosis, ...]:
    """The most expensive reasons, or that there is none.

    A reason that holds at several batch sizes is given for the one at which it costs most. If its
    ops were run once more, it includes what that added.
    """
    evidence = [batch for batch in evidence if batch.steps >= LEAST_STEPS]
    ranked = [reason for batch in evidence for rule in RULES for reason in rule(batch)]
    ranked += configurations(configs)
    ranked.sort(key=lambda reason: -reason.diagnosis.share)
    distinct: list[Reason] = []
    for reason in ranked:
        if not any(
            reason.subject == other.subject or reason.nodes & other.nodes for other in distinct
        ):
            distinct.append(reason)
    if distinct:
        return tuple(confirmed(reason, experiments or {}) for reason in distinct[:MOST])
    return tuple(nothing(max(evidence, key=lambda batch: batch.batch_size)) for _ in evidence[:1])


def confirmed(reason: Reason, experiments: Mapping[int, Experiments]) -> Diagnosis:
    """The diagnosis, with what its largest op added to a step when it was run once more."""
    diagnosis = reason.diagnosis
    of_size = experiments.get(diagnosis.batch_size)
    for row in of_size.ops if of_size else ():
        if row.name in reason.nodes:
            added = f"{time(row.once_more_ns)} [{time(row.low_ns)}, {time(row.high_ns)}]"
            sentence = f"{diagnosis.sentence} Run a second time, {row.name} adds {added} to a step."
            return replace(diagnosis, sentence=sentence)
    return diagnosis


def nothing(batch: Evidence) -> Diagnosis:
    """A diagnosis that no rule applies, with the numbers closest to one."""
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


SEEN = 0.005  # of a step: a smaller lower bound of the time outside of ops says nothing
MOVEMENT = 0.1  # of a step: from this share on, ops that compute nothing have a sentence
NAMED = 3  # lines of a program in a sentence
SMALL = 0.2  # of a step, spent on small ops
MANY = 50  # calls of small ops per step; every graph has a few
OVERHEAD = 3  # times as long as the quickest op that only passes a value on: still a small op
SESSION = 0.3  # of a step outside all ops
LARGE_FEED = 2**20  # bytes a step: reading them takes about as long as an empty session.run
ONE = 0.5  # of the time of all ops; the critical path almost certainly contains such an op
FASTER = 1.1  # the least speed-up of a configuration


@dataclass(frozen=True)
class Reason:
    """A diagnosis, and its nodes: each node is blamed only once."""

    diagnosis: Diagnosis
    subject: str  # the same at every batch size
    nodes: frozenset[str] = frozenset()


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
    """`34.0 % of a median step at batch 16 (123 us of 362 us)`"""
    return (
        f"{percent(cost_ns / batch.step_ns)} of a median step at batch {batch.batch_size} "
        f"({time(cost_ns)} of {time(batch.step_ns)})"
    )


# Ops that compute nothing


def format_changes(batch: Evidence) -> Iterator[Reason]:
    """Images are converted between channels last and channels first."""
    nodes = [node for node in batch.nodes if node.moves_channels]
    cost_ns = batch.cost_ns(nodes)
    if len(nodes) > 1 and cost_ns > MOVEMENT * batch.step_ns:
        yield reason(
            batch,
            "format",
            cost_ns,
            f"{part(batch, cost_ns)} is {counted(nodes)} at {places(nodes)} that only move the "
            "channels of images to another axis, where neighbouring ops use them: "
            f"{a_call(nodes)}. Try to keep the whole network in the data format of the input.",
            nodes,
        )


def movement(batch: Evidence) -> Iterator[Reason]:
    """A line of the program, or a type of op if lines are unknown, that only moves data."""
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
                f"{part(batch, cost_ns)} is {where} that only move or convert data: "
                f"{a_call(nodes)}. Try to avoid them, or to use fewer and larger ones.",
                nodes,
                subject,
            )


def counted(nodes: Sequence[Work]) -> str:
    """`10 ops of type Transpose`, and how often they run, if not once each."""
    types = ", ".join(sorted({node.op for node in nodes}))
    calls = sum(node.calls for node in nodes)
    often = "" if round(calls) == len(nodes) else f", {calls:,.0f} calls"
    return f"{plural(len(nodes), 'op')} of type {types}{often}"


def places(nodes: Sequence[Work]) -> str:
    """The lines of some nodes, in the order of the program."""
    lines = sorted({node.line for node in nodes}, key=line_key)
    first = ", ".join(line or "(no line)" for line in lines[:NAMED])
    return (
        first if len(lines) <= NAMED else f"{first} and {plural(len(lines) - NAMED, 'other line')}"
    )


def line_key(line: str) -> tuple[bool, str, int]:
    """Sorting key: `mine.py:9` before `mine.py:10`, and ops without a line last."""
    file, _, number = line.rpartition(":")
    return not line, file, int(number or 0)


def a_call(nodes: Sequence[Work]) -> str:
    """`12.0 us a call for 4.00 KB read and written, 0.34 GB/s`; with bytes only if all are
    known."""
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
    """Many calls that take little longer than the overhead of an op."""
    least = min((node.call_ns for node in batch.nodes if node.hands_on), default=0)
    nodes = [node for node in batch.nodes if node.call_ns <= OVERHEAD * least]
    calls, cost_ns = sum(node.calls for node in nodes), batch.cost_ns(nodes)
    if calls < MANY or cost_ns <= SMALL * batch.step_ns:
        return
    looped = [node for node in nodes if node.calls > 1]
    loop = sum(node.calls for node in looped) > calls / 2
    blamed = looped if loop else nodes
    turns = max(round(node.calls) for node in blamed)
    where = f", mostly in a loop, where a node runs up to {turns:,} times" if loop else ""
    line = largest_line(blamed)
    yield reason(
        batch,
        "small ops",
        cost_ns,
        f"{part(batch, cost_ns)} is {calls:,.0f} calls of small "
        f"ops{where}{f', mostly {line}' if line else ''}: "
        f"{time(sum(node.ns for node in nodes) / calls)} a call, while an op that only passes a "
        f"value on takes {time(least)}. Try fewer, larger ops (one op on a whole tensor); "
        "--configs xla measures whether XLA helps.",
        nodes,
    )


def largest_line(nodes: Sequence[Work]) -> str:
    """The line whose nodes take most; empty if lines are unknown."""
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
    yield reason(
        batch,
        "one op",
        cost_ns,
        f"{part(batch, cost_ns)} is one op, {node.name} ({node.op}){line}{calls}: it takes "
        "longer than all other ops together. Try to reduce its work, or another shape, data format "
        "or dtype for it; optimising other ops gains less.",
        [node],
        node.name,
    )


# Outside of all ops


def time_outside_ops(batch: Evidence) -> Iterator[Reason]:
    """The time before the first op and after the last: feeds, if they are large, or the call
    itself."""
    cost_ns = batch.outside_ns
    if cost_ns <= SESSION * batch.step_ns:
        return
    if batch.fed_bytes > LARGE_FEED:
        yield reason(
            batch,
            "feeds",
            cost_ns,
            f"{part(batch, cost_ns)} is spent before the first op or after the last. Each step is "
            f"fed {size(batch.fed_bytes)}. Try to feed less: feed only what the step uses, in a "
            "smaller dtype, and keep constant data in a variable.",
        )
        return
    ratio = (
        f"the session takes {cost_ns / (batch.step_ns - cost_ns):.1f} x as long as its ops, "
        if cost_ns < batch.step_ns
        else ""
    )
    yield reason(
        batch,
        "session",
        cost_ns,
        f"{part(batch, cost_ns)} is spent before the first op or after the last: {ratio}with "
        f"{size(batch.fed_bytes)} fed to each step. Try a larger batch, or several steps per call.",
    )


# Configurations


def configurations(configs: Sequence[ConfigTimes]) -> Iterator[Reason]:
    """Settings under which the step is faster, by their verdicts."""
    for row in configs:
        verdict, default = row.verdict, row.default_ns
        if verdict is None or verdict.word != "faster" or verdict.ratio * FASTER > 1:
            continue
        saved = default * (1 - verdict.ratio)
        sentence = (
            f"{row.config} is {1 / verdict.ratio:.2f} x as fast as default on this machine, at "
            f"batch {row.batch_size} [{1 / verdict.high:.2f}, {1 / verdict.low:.2f}] "
            f"({time(row.step_ns)} against {time(default)}). Try "
            f"{CONFIGURATIONS[row.config].setting}."
        )
        diagnosis = Diagnosis(sentence, saved, saved / default, row.batch_size, "configuration")
        yield Reason(diagnosis, f"configuration {row.config}")


# Each rule is applied to the evidence of every batch size.
RULES = (format_changes, movement, small_ops, one_op, time_outside_ops)
