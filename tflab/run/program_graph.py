"""Program graph: the graphs of the program, and what became of the nodes of the most expensive one.

While the program runs, this keeps the lines that make nodes, and the runtime's dumps of the passes.
At its end, it writes the graph of the group that took longest, the fates of its nodes, and some of
its steps for TensorBoard.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tflab.errors import TflabError
from tflab.records.graph import Node, Tensor
from tflab.run.groups import DATA_OPS, FEW, RunGroup, without_longest
from tflab.run.sampler import MODULE, MOST_CODE, place
from tflab.runtime import dumps, private

# Not before the end: to import what shows the graph takes a while
if TYPE_CHECKING:
    from tflab.records.placed import Fate, Origin, Pass
    from tflab.records.timed import OpRun
    from tflab.records.watched import Recorded, RecordedValues

MOST_GRAPHS = 16  # graphs that are kept until the end
MOST_NODES = 50_000  # limit for a graph whose ops are recorded
MOST_SAVED_NODES = 10_000  # limit for a graph that is saved
LARGE_GRAPH = 1_000  # graphs with more nodes are read only once, at the end
LEAST_RISES = 5  # of a graph that is said to grow
MOST_CODES = 10_000  # pieces of code that are kept
NAME, VALUES = "graph", "values"  # files of the largest group
Note = Callable[[str], None]  # receives a sentence about what cannot be known
GraphLine = tuple[str, str, tuple[str, int, str] | None, str]  # name, phase, line, op


class Growth:
    """The nodes of a graph when its runs began."""

    def __init__(self, size: int) -> None:
        self.first = self.last = size  # at the first run and at the last one
        self.runs = self.rises = 0  # runs, and those before which it grew
        self.rose_at = 0  # the last of these


class ProgramGraphs:
    """What is known of the graphs so far."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.graphs: list[Any] = []
        self.nodes: dict[int, tuple[Node, ...]] = {}  # by the graph's id
        self.codes: dict[int, object] = {}  # code that makes ops, by its id
        self.grown: dict[int, Growth] = {}  # by the graph's id

    def add(self, graph: Any) -> bool:
        """Keep a graph, and return whether it is kept."""
        if graph in self.graphs:
            return True
        if len(self.graphs) >= MOST_GRAPHS or len(graph.get_operations()) > MOST_NODES:
            return False
        self.graphs.append(graph)
        return True

    def look(self, graph: Any) -> None:
        """A run of a graph begins: note if it has grown since the last one."""
        size, known = graph.version, self.grown.get(id(graph))
        if known is None or size < known.first:  # a graph that is gone may have had this id
            known = self.grown[id(graph)] = Growth(size)
        known.runs += 1
        if size > known.last:
            known.rises, known.rose_at, known.last = known.rises + 1, known.runs, size

    def grown_segment(self) -> list[dict[str, object]]:
        """Return the fields of `GrownGraph`, for the graphs that grew again and again, and did so
        until the end."""
        grown: list[dict[str, object]] = []
        for at, graph in enumerate(self.graphs, 1):
            growth = self.grown.get(id(graph))
            if growth and growth.rises >= LEAST_RISES and 2 * growth.rose_at > growth.runs:
                new = (node.source for node in self.nodes.get(id(graph), ())[growth.first :])
                made = Counter(place(made.file, made.line, MODULE) for made in new if made)
                known = {name: getattr(growth, name) for name in ("first", "last", "runs", "rises")}
                grown.append({"graph": at, **known, "made": dict(made.most_common())})
        return grown

    def keep_stack(self) -> None:
        """An op is made. TensorFlow stores the code on its stack but lets Python free it, and the
        line of the op is read later."""
        codes = self.codes
        if len(codes) < MOST_CODES:
            frame: FrameType | None = sys._getframe(1)
            while frame:
                code = frame.f_code
                codes[id(code)] = code
                frame = frame.f_back

    def nodes_of(self, graph: Any, final: bool = True) -> tuple[Node, ...]:
        """Return the nodes of a graph with their lines; before the end those known before, if the
        graph is large or the program is changing it."""
        known = self.nodes.get(id(graph), ())
        count = len(graph.get_operations())
        if count in (0, len(known)) or (not final and count > LARGE_GRAPH):
            return known
        if len(self.codes) >= MOST_CODES:
            self.note("Too many pieces of code make nodes; their lines were not recorded.")
            return known
        from tflab.runtime import nodes

        try:
            self.nodes[id(graph)] = nodes.from_graph(graph)
        except Exception:
            if final:
                raise
            return known
        return self.nodes[id(graph)]

    def nodes_that_ran(
        self, graph: Any, groups: Sequence[RunGroup], final: bool
    ) -> tuple[Node, ...]:
        """Return the nodes of a graph, and at the end those of its functions, branches and loops
        that ran in these groups."""
        nodes = self.nodes_of(graph, final)
        names = {name for group in groups if group.graph is graph for name in group.ops}
        return (*nodes, *inlined(graph, nodes, names)) if final and nodes and names else nodes

    def segment(self, groups: Sequence[RunGroup], final: bool) -> list[list[GraphLine]]:
        return [
            [graph_line(node) for node in self.nodes_that_ran(graph, groups, final)]
            for graph in self.graphs
        ]


def inlined(graph: Any, nodes: Sequence[Node], names: Iterable[str]) -> Iterator[Node]:
    """Yield the nodes of functions that ran as parts of a graph under these names."""
    from tflab.runtime import functions

    known = {node.name for node in nodes}
    if bodies := functions.of_graph(graph):
        for name, node in functions.origins(names, nodes, bodies):
            if name not in known:
                yield replace(node, name=name)


def graph_line(node: Node) -> GraphLine:
    made = node.line
    line = (made.file, made.line, made.code[:MOST_CODE]) if made else None
    return node.name, node.phase, line, node.op


# The runtime's dumps of the graphs of its passes

GRAPPLER = ("meta_optimizer", 4)  # the file, and the log level from which it dumps
NAMES = ("TF_DUMP_GRAPH_NAME_FILTER", "TF_DUMP_GRAPH_GROUPS", "TF_DUMP_GRAPH_FMT")
OF_USERS = (dumps.DUMP_FOLDER, *NAMES, "TF_CPP_VMODULE")
# Bytes of constants in a graph to dump, because each pass writes all of them
MOST_CONSTANTS = 2 * 2**20
SMALL = 2**16  # bytes of a constant up to which its shape gives its size
MOST_BYTES = 100 * 2**20  # of dumps that are kept until the end

UNKNOWN = (
    "The fates of the nodes are not shown: the runtime's dumps of its passes were not written, are "
    "too large, take longer than --overhead allows, are used by the program itself, or do not "
    "explain each node that ran."
)


class Dumps:
    """The runtime's dumps of graphs, with a folder for each step that it built."""

    def __init__(self, folder: str, log: private.Log) -> None:
        self.fresh, self.log = Path(folder, "dumps"), log
        self.kept_bytes = 0
        self.folders: dict[Hashable, Path | None] = {}  # of each step that was built; None: nothing
        # Graph -> ops so far, bytes of their constants
        self.constants: dict[int, tuple[int, int]] = {}
        # In a notebook tflab itself may have prepared its process for dumps.
        given = {name: os.environ[name] for name in OF_USERS if name in os.environ}
        self.prepared = bool(given) and given.items() <= dumps.DUMP_ENVIRONMENT.items()
        # Dumps that the user of the program requested are left alone.
        self.wanted = self.prepared or not given
        if self.wanted:
            self.fresh.mkdir()

    def may_begin(self, group: RunGroup) -> bool:
        """Return whether the step of a group has no dumps yet, and may have some."""
        known = not self.wanted or step_of(group) in self.folders
        return not known and self.size_of_constants(group.graph) <= MOST_CONSTANTS

    def size_of_constants(self, graph: Any) -> int:
        """Return the bytes of the constants in a graph, which may have grown since the last
        call."""
        count, size = self.constants.get(id(graph), (0, 0))
        ops = graph.get_operations()
        for op in ops[count:]:
            if op.type == "Const":
                value = op.outputs[0]
                by_shape = (value.shape.num_elements() or 0) * value.dtype.size
                # A constant that repeats a number is smaller than its shape says
                size += by_shape if by_shape <= SMALL else op.node_def.ByteSize()
        self.constants[id(graph)] = len(ops), size
        return size

    def begin(self) -> None:
        """From now on the runtime writes dumps. The program's Python does not see the variables."""
        for file in self.fresh.iterdir():  # left over
            file.unlink(missing_ok=True)
        os.putenv(dumps.DUMP_FOLDER, str(self.fresh))
        if self.prepared:
            return
        for name in NAMES:
            os.putenv(name, dumps.DUMP_ENVIRONMENT[name])
        private.read_dump_settings()
        self.log.detail(*GRAPPLER)

    def end(self, group: RunGroup) -> None:
        """Keep the files written since `begin` for the step of this group."""
        if self.prepared:
            os.unsetenv(dumps.DUMP_FOLDER)
        else:
            self.log.detail(GRAPPLER[0], 0)
            for name in NAMES:  # child processes of the program should write nothing
                os.unsetenv(name)
            private.read_dump_settings()
        files = [*self.fresh.iterdir()]
        size = self.kept_bytes + sum(file.stat().st_size for file in files)
        self.folders[step_of(group)] = None
        if files and size <= MOST_BYTES:
            self.kept_bytes = size
            folder = self.folders[step_of(group)] = self.fresh.with_name(f"dumps-{group.number}")
            folder.mkdir()
            for file in files:
                file.rename(folder / file.name)


def step_of(group: RunGroup) -> Hashable:
    """Return what a session builds one step for: the shapes of feeds do not matter."""
    return id(group.graph), group.fetches, frozenset(group.feeds)


# The largest group, at the end of the program


@dataclass(frozen=True)
class Account:
    """The fate of each node of a graph, pass by pass."""

    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]


NOT_SEEN = Account((), (), ())


def account_of(
    group: RunGroup, written: Dumps, user_nodes: tuple[Node, ...], executed: tuple[Node, ...]
) -> Account:
    """Return the fate of each node in the runs of the group; NOT_SEEN if they are unknown."""
    from tflab.analysis import fates, passes

    folder = written.folders.get(step_of(group))
    if folder is None:
        return NOT_SEEN
    steps = passes.compare(user_nodes, dumps.read(folder), executed)
    ledger = fates.fates(user_nodes, steps, executed, group.fetches, group.feeds)
    origins = tuple(fates.origins(ledger, steps, executed))
    unknown = any(origin.origin == "unknown" for origin in origins)
    return NOT_SEEN if unknown else Account(steps, ledger, origins)


def fates_of(group: RunGroup, account: Account, executed: Sequence[Node]) -> dict[str, object]:
    """Return the number of nodes with each fate, and how many of the program's nodes are in a
    branch that no traced run took."""
    from tflab.analysis import fates

    ran = {fate.name for fate in account.ledger if fate.fate == "executed"}
    not_run = ran.intersection(fates.not_taken(executed, group.ops)) if group.traced else ()
    counts = Counter(fate.fate for fate in account.ledger)
    return {"counts": dict(counts), "not_run": len(not_run)}


def without_order(group: RunGroup, user_nodes: tuple[Node, ...]) -> Iterator[str]:
    """Yield the reads and writes of the runs of a group that nothing puts in an order."""
    from tflab.analysis import access_order
    from tflab.runtime import functions
    from tflab.views import access_order as view

    step = access_order.Step(user_nodes, group.fetches, group.feeds)
    rows = access_order.unordered(step, functions.of_graph(group.graph))
    yield from (f"{fact.label.capitalize()}: {fact.text}." for fact in view.facts(rows))


# Why its runs are slow

MOST_FINDINGS = 3


def findings(
    group: RunGroup,
    user_nodes: Sequence[Node],
    executed: Sequence[Node] = (),
    stats: Sequence[Any] = (),
    ledger: Sequence[Fate] = (),
) -> list[str]:
    """Return why the runs of a group are slow, as sentences.

    `stats` are the StepStats of one of its runs, with the shapes of tensors; a function has none,
    and its nodes are those that ran.
    """
    import numpy as np

    from tflab.analysis import row_labels, slow_steps
    from tflab.runtime import costs, trace

    if not (group.times and group.traced and group.spans):
        return []
    shapes = trace.output_shapes(stats[0]) if stats else {}
    ran = [
        replace(node, outputs=(Tensor("", shapes[node.name]),)) if node.name in shapes else node
        for node in executed
    ]
    lines = row_labels.line_labels({node.name: node.line for node in user_nodes})
    types = {node.name: node.op for node in (*user_nodes, *executed)}
    types |= {name: op for name, op in group.types.items() if name in types or not group.function}
    if group.function:
        moving = costs.NO_ARITHMETIC - costs.HAND_ON
        movers = {name for name, op in types.items() if costs.plain_type(op) in moving}
    else:
        movers = costs.data_movers(executed, user_nodes, ledger) if ledger else set()
    size = int(np.median(group.copied)) if group.copied else 0
    evidence = slow_steps.Evidence(
        runs=f"call of {group.function}" if group.function else f"run of group {group.number}",
        batch_size=0,
        steps=group.traced,
        step_ns=float(np.median(group.times)),
        ops_span_ns=float(np.median([span for span, _ in group.spans])),
        traced_outside_ns=float(np.median([outside for _, outside in group.spans])),
        fed_bytes=group.fed_bytes,
        copied_bytes=size,
        tables=slow_steps.whole_tables_of(ran or user_nodes, lines),
        nodes=tuple(
            slow_steps.Work(
                name=name,
                op=types.get(name, ""),
                line=lines.get(name, ""),
                calls=runs / group.traced,
                call_ns=without_longest(traced_runs, ns, most_ns) / runs,
                bytes=None,
                moves=name in movers,
                hands_on=types.get(name, "") in costs.HAND_ON
                or types.get(name, "").startswith(DATA_OPS),
            )
            for name, (runs, ns, traced_runs, most_ns) in group.ops.items()
            # A profile also has the ops of tf.data, which run meanwhile
            if name != trace.EXECUTOR and (name in types or not group.function)
        ),
    )
    reasons = slow_steps.costliest(slow_steps.reasons([evidence], FEW), MOST_FINDINGS)
    return [reason.sentence for reason in reasons]


def path_shares(
    group: RunGroup, executed: Sequence[Node], parsed: Callable[[bytes], Any]
) -> dict[str, float]:
    """Return the share of each node in the critical path of the kept traced runs. `parsed` makes a
    RunMetadata from a trace."""
    from tflab.analysis.critical_path import critical_path
    from tflab.runtime import trace

    types = {node.name: node.op for node in executed}
    runs: list[OpRun] = []
    for number, *_, content in group.samples:
        runs += trace.op_runs(number, parsed(content).step_stats, types)
    if not runs:
        return {}
    path = critical_path(executed, [run for run in runs if run.name != trace.EXECUTOR])
    spent: Counter[str] = Counter()
    for name, ns in zip(path.nodes, path.durations_ns, strict=True):
        spent[name] += ns
    return {name: ns / path.ns for name, ns in spent.items()}


def save(
    folder: str,
    group: RunGroup,
    nodes: tuple[Node, ...],
    executed: tuple[Node, ...] = (),
    account: Account = NOT_SEEN,
    parts: Sequence[Any] = (),
) -> None:
    """Save the graph of a group. `parts` are the GraphDefs that ran. Raises TflabError for a graph
    that is too large."""
    from tflab.records.codec import encoded
    from tflab.records.watched import OpTimes, Recorded
    from tflab.runtime import devices

    if len(nodes) > MOST_SAVED_NODES:
        raise TflabError(
            f"The graph has {len(nodes):,} nodes; at most {MOST_SAVED_NODES:,} are kept."
        )
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
    """Return the node of the program from which each node of a gradient is derived."""
    from tflab.runtime import nodes

    names = (op.name for op in graph.get_operations())
    forward = ((name, nodes.forward_of(graph, name)) for name in names)
    return {name: origin for name, origin in forward if origin}


def read(folder: Path) -> tuple[Recorded | None, RecordedValues | None]:
    """Return the saved graph and values; None where they are missing or incomplete."""
    from tflab.records.codec import WrongError, decoded
    from tflab.records.watched import Recorded, RecordedValues

    def read_record(kind: type, name: str) -> Any:
        try:
            return decoded(kind, json.loads((folder / name).read_text(encoding="utf-8")))
        except (OSError, WrongError, ValueError):
            return None

    return read_record(Recorded, NAME), read_record(RecordedValues, VALUES)


def write_profile(
    logdir: str, group: RunGroup, parts: Sequence[Any], parsed: Callable[[bytes], Any]
) -> None:
    """Write a graph as the program built it and as it ran, and some of its runs as a profile.

    `parts` are the GraphDefs that ran; `parsed` makes a RunMetadata from a trace.
    """
    from tflab.exporters import tensorboard, xspace
    from tflab.records.timed import Capture, StepTime
    from tflab.runtime import trace

    types = {node.name: node.op for part in parts for node in part.node}
    steps: list[StepTime] = []
    runs: list[OpRun] = []
    for number, start_ns, wall_ns, content in group.samples:
        stats = parsed(content).step_stats
        steps.append(StepTime(number, start_ns, wall_ns))
        runs += (run for run in trace.op_runs(number, stats, types) if run.name != trace.EXECUTOR)
    last = group.samples[-1:]
    traces = [(f"run {number}", number, parsed(content)) for number, *_, content in last]
    tensorboard.write_graph(logdir, group.graph)
    tensorboard.write_executed(logdir, parts, traces)
    if steps:
        xspace.write(logdir, [Capture("watched", tuple(steps), tuple(runs))])
