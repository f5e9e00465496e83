"""Slow steps: the reasons why a step of a compared model or of a watched program is slow.

Each rule says which part of a step it is about, which measurement shows it, and what to try.
Tracing makes small ops slower, so the times of traced ops are never compared with an untraced step:
the cost of an op is its share of the time of all ops, times the part of the step in which ops ran.
Time before the first op and after the last belongs to Python and the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from tflab import units
from tflab.records.graph import VARIABLES, Node, Shape, grouped, node_of
from tflab.records.measured import Diagnosis
from tflab.units import percent, plural, time

LEAST_STEPS = 5  # traced; with fewer there is no diagnosis
MOVEMENT = 0.1  # of a step: from this share on, ops that compute nothing have a sentence
SMALL = 0.2  # of a step, spent on small ops
MANY = 50  # calls of small ops per step; every graph has a few
OVERHEAD = 3  # times as long as the quickest op that only passes a value on: still a small op
COPIES = 0.1  # of a step outside all ops, with feeds that are copied
ALIGNMENT = 64  # bytes: EIGEN_MAX_ALIGN_BYTES of TensorFlow 2.21
SESSION = 0.3  # of a step outside all ops
LARGE_FEED = 2**20  # bytes a step: reading them takes about as long as an empty session.run
ONE = 0.5  # of a step, spent on one op; the critical path almost certainly contains such an op

TRY = {
    "movement": "They compute nothing: try to avoid them, or to use fewer and larger ones",
    "small ops": "Each call has this overhead: try fewer, larger ops (one op on a whole tensor), "
    "or XLA (compare --configs xla measures whether it helps a model)",
    "one op": "Try less work, or another shape, data format or dtype for it",
    "feeds": "Reading feeds takes time: try to feed only what the step uses, in a smaller dtype, "
    "and keep constant data in a variable",
    "copies": "Try to keep the data in aligned arrays (the documentation of run shows how)",
    "tables": "Try an optimiser that updates only these rows, such as gradient descent or, in "
    "TensorFlow 1, Adagrad",
    "session": "Each call takes this time once: try a larger batch, or several steps per call",
}


@dataclass(frozen=True)
class Work:
    """The runs of a node in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program; empty if unknown
    calls: float  # per step
    call_ns: float  # median
    moves: bool  # copies, fills or converts data, and computes nothing
    hands_on: bool  # passes a buffer on: its time is the overhead of an op, or waiting for data

    @property
    def ns(self) -> float:
        return self.calls * self.call_ns


@dataclass(frozen=True)
class WholeTable:
    """A variable of which a step uses some rows but updates all."""

    variable: str
    line: str
    rows: int
    used: int  # at most, of a step
    nodes: frozenset[str]  # that work on all rows


READ = ("Identity", "ReadVariableOp")
LOOKED_UP = ("Gather", "GatherV2", "ResourceGather")
# Parts of the types of ops that update a variable, that update some of its rows, or take a shape
WRITING, OF_ROWS = ("Assign", "Apply"), ("Scatter", "Sparse", "Shape", "Size", "Rank")
HOLDING = (*READ, *VARIABLES, "Const", "Placeholder", "_Arg")
MANY_ROWS = 10  # times as many as a step uses


def whole_tables_of(nodes: Sequence[Node], lines: Mapping[str, str]) -> tuple[WholeTable, ...]:
    """Return the variables of which a step looks up some rows but updates all. An op that makes
    something else from all rows uses them all. `nodes` have the shapes of their first outputs."""
    by_name = {node.name: node for node in nodes}
    shapes = {node.name: node.outputs[0].shape for node in nodes if node.outputs}

    def variable(tensor: str) -> str:
        name = node_of(tensor)
        while name in by_name and by_name[name].op in READ and by_name[name].inputs:
            name = node_of(by_name[name].inputs[0])
        return name

    used: Counter[str] = Counter()  # rows, by variable
    whole: dict[str, Shape] = {}  # shapes of variables, by what is read of them or written
    for node in (node for node in nodes if node.inputs):
        holder, shape = variable(node.inputs[0]), shapes.get(node.name)
        if node.op in LOOKED_UP and shape and None not in shape:
            used[holder] += prod(shape[:-1])  # type: ignore[arg-type]
        elif node.op in READ:
            whole.setdefault(holder, shape)
        elif any(word in node.op for word in WRITING):
            whole.setdefault(holder, shapes.get(node_of(node.inputs[-1])))
    tables = []
    for name, shape in ((name, shape) for name, shape in whole.items() if name in used):
        rows = (shape or (0,))[0] or 0
        taking = [
            node for node in nodes if any(shapes.get(node_of(t)) == shape for t in node.inputs)
        ]
        working = {node.name for node in taking if any(word in node.op for word in WRITING)}
        working |= {n.name for n in nodes if shapes.get(n.name) == shape and n.op not in HOLDING}
        uses = any(
            node.name not in working
            and node.op not in (*READ, *LOOKED_UP)
            and not any(word in node.op for word in OF_ROWS)
            for node in taking
        )
        if rows >= MANY_ROWS * used[name] and working and not uses:
            line = lines.get(name, "")
            tables.append(WholeTable(name, line, rows, used[name], frozenset(working)))
    return tuple(tables)


@dataclass(frozen=True)
class Evidence:
    """The steps of one batch size, or of a watched program, as the rules see them."""

    batch_size: int  # 0 in a watched program
    steps: int  # traced
    step_ns: float  # untraced, median
    quick_ns: float  # untraced, p10
    ops_span_ns: float  # in a traced step, from the first op to the end of the last, median
    traced_outside_ns: float  # in a traced step, before the first op and after the last, median
    fed_bytes: int
    copied_bytes: int  # of the feeds: copied because of where they begin, as far as that was seen
    tables: tuple[WholeTable, ...]
    nodes: tuple[Work, ...]
    runs: str = ""  # of a watched program: `run of group 2`

    def outside_ns(self, step_ns: float) -> float:
        """Return the least time that an untraced step of this length spends outside of its ops,
        before the first and after the last. Tracing lengthens both this time and the ops. So it is
        at least what the traced ops leave of an untraced step, and at most what they leave of a
        traced one, unless the machine was disturbed."""
        return max(0.0, min(step_ns - self.ops_span_ns, self.traced_outside_ns))

    def cost_ns(self, nodes: Iterable[Work]) -> float:
        """Return what these nodes cost an untraced step; an upper bound if ops run in parallel."""
        ops_ns = sum(node.ns for node in self.nodes)
        if not ops_ns:
            return 0.0
        in_ops_ns = min(self.step_ns - self.outside_ns(self.step_ns), self.ops_span_ns)
        return sum(node.ns for node in nodes) / ops_ns * in_ops_ns


# The kind of a reason, what a part of the step is, its nodes, and its subject. Each subject is the
# same at every batch size. A reason costs the time of its nodes; without, the time outside of ops.
Reason = tuple[str, str, Sequence[Work], str]


def movement(batch: Evidence) -> Iterator[Reason]:
    """Yield the lines of the program (or types of op, without lines) that only move data."""
    groups = grouped((node.line or node.op, node) for node in batch.nodes if node.moves)
    for subject, nodes in groups.items():
        if batch.cost_ns(nodes) > MOVEMENT * batch.step_ns:
            where = f" at {subject}" if nodes[0].line else ""
            about = f"moving or converting data{where}: {counted(nodes)}, {a_call(nodes)}"
            yield "movement", about, nodes, subject


def counted(nodes: Sequence[Work]) -> str:
    """Return `10 ops (Transpose)`, with the number of calls if it differs from that."""
    types = ", ".join(sorted({node.op for node in nodes}))
    calls = sum(node.calls for node in nodes)
    often = "" if round(calls) == len(nodes) else f", {calls:,.0f} calls"
    return f"{plural(len(nodes), 'op')} ({types}){often}"


def a_call(nodes: Sequence[Work]) -> str:
    """Return `12.0 us a call`."""
    return f"{time(sum(node.ns for node in nodes) / sum(node.calls for node in nodes))} a call"


def small_ops(batch: Evidence) -> Iterator[Reason]:
    """Yield many calls that take little longer than the overhead of an op."""
    least = min((node.call_ns for node in batch.nodes if node.hands_on), default=0)
    nodes = [node for node in batch.nodes if node.call_ns <= OVERHEAD * least]
    calls = sum(node.calls for node in nodes)
    if calls < MANY or batch.cost_ns(nodes) <= SMALL * batch.step_ns:
        return
    lines = {node.line: sum(own.ns for own in nodes if own.line == node.line) for node in nodes}
    line = max(lines, key=lines.__getitem__)
    mostly = f", mostly {line}" if line and 2 * lines[line] > sum(lines.values()) else ""
    about = (
        f"{calls:,.0f} calls of small ops{mostly}: {a_call(nodes)}, "
        f"while an op that only passes a value on takes {time(least)}"
    )
    yield "small ops", about, nodes, ""


def one_op(batch: Evidence) -> Iterator[Reason]:
    """Yield an op that takes more than all others together, and does not only wait."""
    computing = (node for node in batch.nodes if not node.hands_on)
    node = max(computing, key=lambda node: node.ns, default=None)
    if node is None or batch.cost_ns([node]) <= ONE * batch.step_ns:
        return
    line = f" at {node.line}" if node.line else ""
    about = f"one op, {node.name} ({node.op}){line}: it takes longer than all other ops together"
    yield "one op", about, [node], node.name


def time_outside_ops(batch: Evidence) -> Iterator[Reason]:
    """Yield the time before the first op and after the last, if it is a large part of a median step
    and of a quick one: a median between two peaks describes no step. The reason is unaligned feeds,
    which a session copies; without them large feeds; otherwise the call of the session itself."""
    copies = batch.copied_bytes > LARGE_FEED
    least = COPIES if copies else SESSION
    if all(batch.outside_ns(ns) > least * ns for ns in (batch.step_ns, batch.quick_ns)):
        kind = "copies" if copies else "feeds" if batch.fed_bytes > LARGE_FEED else "session"
        about = "spent before the first op or after the last"
        if batch.fed_bytes:  # what a function is given is not known
            about += f", with {units.size(batch.fed_bytes)} fed to each step"
        if copies:
            about += (
                f", of which {units.size(batch.copied_bytes)} are copied because their arrays do "
                f"not begin at a multiple of {ALIGNMENT} bytes"
            )
        yield kind, about, (), ""


def whole_tables(batch: Evidence) -> Iterator[Reason]:
    """Yield the variables whose rows are all updated although a step uses few of them."""
    for table in batch.tables:
        nodes = [node for node in batch.nodes if node.name in table.nodes]
        if batch.cost_ns(nodes) > MOVEMENT * batch.step_ns:
            line = f" ({table.line})" if table.line else ""
            about = (
                f"work on all {table.rows:,} rows of {table.variable}{line}, of which a step uses "
                f"at most {table.used:,}: {counted(nodes)}"
            )
            yield "tables", about, nodes, table.variable


# Each rule is applied to every evidence.
RULES = (movement, whole_tables, small_ops, one_op, time_outside_ops)


def costliest(
    evidence: Iterable[Evidence], most: int, least: int = LEAST_STEPS
) -> tuple[Diagnosis, ...]:
    """Return the `most` most expensive reasons, by their share of a step. Evidence with fewer than
    `least` traced steps does not count. Reasons about the same subject or node are listed once."""
    reasons: list[tuple[Diagnosis, set[str | tuple[str, str]]]] = []
    for step in (step for step in evidence if step.steps >= least):
        for kind, about, nodes, subject in chain.from_iterable(rule(step) for rule in RULES):
            cost_ns = step.cost_ns(nodes) if nodes else step.outside_ns(step.step_ns)
            share = cost_ns / step.step_ns
            of = step.runs or f"step at batch {step.batch_size}"
            part = f"{percent(share)} of a median {of} ({time(cost_ns)} of {time(step.step_ns)})"
            if not nodes:
                quick_ns = step.outside_ns(step.quick_ns)
                share = min(share, quick_ns / step.quick_ns)
                part = f"At least {10 * int(10 * share)} % of a {of} ({time(cost_ns)} of "
                part += f"{time(step.step_ns)} in the median, {time(quick_ns)} of "
                part += f"{time(step.quick_ns)} at p10)"
            sentence = f"{part} is {about}. {TRY[kind]}."
            diagnosis = Diagnosis(sentence, cost_ns, share, step.batch_size, kind)
            reasons.append((diagnosis, {(kind, subject), *(node.name for node in nodes)}))
    chosen = []
    blamed: set[str | tuple[str, str]] = set()
    for diagnosis, own in sorted(reasons, key=lambda reason: -reason[0].share):
        if not own & blamed:
            chosen.append(diagnosis)
            blamed |= own
    return tuple(chosen[:most])
