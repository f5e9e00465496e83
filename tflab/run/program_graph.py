"""Program graph: the graphs of the program, and what became of the nodes of the most expensive one.

While the program runs, this keeps the lines that make nodes, and the runtime's dumps of the passes.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tflab.errors import TflabError
from tflab.records.graph import Node, Tensor
from tflab.run.groups import DATA_OPS, FEW, RunGroup, without_longest
from tflab.run.sampler import MODULE, MOST_CODE, place
from tflab.runtime import dumps
from tflab.runtime.private import sessions

# Not before the end: to import what shows the graph takes a while
if TYPE_CHECKING:
    from tflab.records.placed import Fate, Origin, Pass
    from tflab.records.watched import Recorded, RecordedValues
    from tflab.runtime.nodes import tf

MOST_GRAPHS = 16  # graphs that are kept until the end
MOST_NODES = 50_000  # limit for a graph whose ops are recorded
MOST_SAVED_NODES = 10_000  # limit for a graph that is saved
LARGE_GRAPH = 1_000  # graphs with more nodes are read only once, at the end
LEAST_RISES = 5  # of a graph that is said to grow
MOST_FINDINGS = 3
NAME, VALUES = "graph", "values"  # files of the largest group
Note = Callable[[str], None]  # receives a sentence about what cannot be known
GraphLine = tuple[str, str, tuple[str, int, str] | None, str]  # name, phase, line, op


class ProgramGraphs:
    """What is known of the graphs so far."""

    def __init__(self) -> None:
        self.graphs: list[tf.Graph] = []
        self.nodes: dict[int, tuple[Node, ...]] = {}  # by the graph's id
        self.codes: dict[int, object] = {}  # code that makes ops, by its id
        # By the id: the nodes at the `first` run and at the `last`, the `runs`, those before
        # which it grew (`rises`), and the last of these (`rose_at`)
        self.grown: dict[int, dict[str, int]] = {}

    def add(self, graph: tf.Graph) -> bool:
        """Keep a graph, and return whether it is kept."""
        if graph in self.graphs:
            return True
        if len(self.graphs) >= MOST_GRAPHS or len(graph.get_operations()) > MOST_NODES:
            return False
        self.graphs.append(graph)
        return True

    def look(self, graph: tf.Graph) -> None:
        """Note, as a run of a graph begins, whether the graph has grown since the last run."""
        size, known = graph.version, self.grown.get(id(graph))
        if known is None or size < known["first"]:  # a graph that is gone may have had this id
            known = dict.fromkeys(("runs", "rises", "rose_at"), 0) | {"first": size, "last": size}
            self.grown[id(graph)] = known
        known["runs"] += 1
        if size > known["last"]:
            known["rises"] += 1
            known |= {"rose_at": known["runs"], "last": size}

    def grown_segment(self) -> list[dict[str, object]]:
        """Return the fields of `GrownGraph` for each graph that kept growing until the end."""
        grown: list[dict[str, object]] = []
        for at, graph in enumerate(self.graphs, 1):
            known = {**self.grown.get(id(graph), {"rises": 0})}
            if known["rises"] >= LEAST_RISES and 2 * known.pop("rose_at") > known["runs"]:
                new = (node.source for node in self.nodes.get(id(graph), ())[known["first"] :])
                made = Counter(place(made.file, made.line, MODULE) for made in new if made)
                grown.append({"graph": at, **known, "made": dict(made.most_common())})
        return grown

    def keep_stack(self) -> None:
        """Keep the code objects of a new op's stack, as TensorFlow does not, for its lines."""
        codes = self.codes
        frame: FrameType | None = sys._getframe(1)
        while frame:
            code = frame.f_code
            codes[id(code)] = code
            frame = frame.f_back

    def nodes_of(self, graph: tf.Graph, final: bool = True) -> tuple[Node, ...]:
        """Return the nodes of a graph with their lines; before the end, some may be missing."""
        known = self.nodes.get(id(graph), ())
        count = len(graph.get_operations())
        if count in (0, len(known)) or (not final and count > LARGE_GRAPH):
            return known
        from tflab.runtime import nodes

        with suppress(*(() if final else (Exception,))):  # the program may be changing it
            known = self.nodes[id(graph)] = nodes.from_graph(graph)
        return known

    def nodes_that_ran(self, graph: tf.Graph, groups: Sequence[RunGroup]) -> tuple[Node, ...]:
        """Return the nodes of a graph, and those of its functions that ran in it."""
        nodes = self.nodes_of(graph)
        names = {name for group in groups if group.graph is graph for name in group.ops}
        if not names or not nodes:
            return nodes
        from tflab.runtime import functions

        bodies = functions.of_graph(graph)
        inlined = functions.origins(names.difference(node.name for node in nodes), nodes, bodies)
        return (*nodes, *(replace(node, name=name) for name, node in inlined if bodies))

    def segment(self, groups: Sequence[RunGroup], final: bool) -> list[list[GraphLine]]:
        rows: list[list[GraphLine]] = []
        for graph in self.graphs:
            nodes = self.nodes_that_ran(graph, groups) if final else self.nodes_of(graph, False)
            rows.append([*map(graph_line, nodes)])
        return rows


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

NO_FATES = (
    "The graph is not kept: the runtime's dumps of its passes are missing or too large, or do not "
    "explain each node that ran."
)
NOT_TAKEN = "in a branch that no traced run took"
LATER = "made later"  # than the first run of the largest group, which cannot have needed them


class Dumps:
    """The runtime's dumps of graphs, with a folder for each step that it built."""

    def __init__(self, folder: str, log: sessions.Log) -> None:
        self.fresh, self.log = Path(folder, "dumps"), log
        self.fresh.mkdir()
        self.kept_bytes = 0
        self.level = 0  # from which Grappler dumped before
        # Of each step its folder, if any, and the nodes of the graph when it was built
        self.folders: dict[Hashable, tuple[Path | None, int | None]] = {}
        # Dumps that the user of the program requested are left alone. In a notebook tflab itself
        # may have prepared its process for dumps.
        given = {name: os.environ[name] for name in OF_USERS if name in os.environ}
        self.wanted = given.items() <= dumps.DUMP_ENVIRONMENT.items()

    def may_begin(self, group: RunGroup) -> bool:
        """Return whether the step of a group has no dumps yet, and may have some."""
        step = step_of(group)
        known = step in self.folders or not self.wanted
        if not known and size_of_constants(group.graph) > MOST_CONSTANTS:
            self.folders[step] = None, None
        return not known and step not in self.folders

    def begin(self) -> None:
        """Let the runtime write dumps from now on. The program does not see it in `os.environ`."""
        for file in self.fresh.iterdir():  # left over
            file.unlink(missing_ok=True)
        os.putenv(dumps.DUMP_FOLDER, str(self.fresh))
        for name in NAMES:
            os.putenv(name, dumps.DUMP_ENVIRONMENT[name])
        sessions.read_dump_settings()
        self.level = self.log.detail(*GRAPPLER)

    def end(self, group: RunGroup) -> None:
        """Keep the files written since `begin` for the step of this group."""
        self.log.detail(GRAPPLER[0], self.level)
        for name in (dumps.DUMP_FOLDER, *NAMES):  # child processes of the program write nothing
            os.putenv(name, os.environ[name]) if name in os.environ else os.unsetenv(name)
        sessions.read_dump_settings()
        assert group.graph is not None  # a session has one
        files = [*self.fresh.iterdir()]
        size = self.kept_bytes + sum(file.stat().st_size for file in files)
        folder = None
        if files and size <= MOST_BYTES:
            self.kept_bytes = size
            folder = self.fresh.rename(self.fresh.with_name(f"dumps-{group.number}"))
            self.fresh.mkdir()
        self.folders[step_of(group)] = folder, group.graph.version

    def of(self, group: RunGroup) -> tuple[Path | None, int | None]:
        """Return the folder of the dumps, if any, and the nodes of the graph at that time."""
        return self.folders.get(step_of(group), (None, None))


def step_of(group: RunGroup) -> Hashable:
    """Return a key of the step that a session builds. The shapes of feeds do not matter for it."""
    return id(group.graph), group.fetches, frozenset(group.feeds)


def size_of_constants(graph: tf.Graph) -> int:
    """Return the bytes of the constants in a graph."""
    size = 0
    for op in graph.get_operations():
        if op.type == "Const":
            value = op.outputs[0]
            by_shape = (value.shape.num_elements() or 0) * value.dtype.size
            # A constant that repeats a number is smaller than its shape says
            size += by_shape if by_shape <= SMALL else op.node_def.ByteSize()
    return size


# The largest group, at the end of the program


class Largest:
    """The group that took longest: the nodes of its graph, those that ran, and their fates.

    `parts` are the GraphDefs that ran, and `traces` some of its runs: number, start, duration and
    RunMetadata. A function has neither.
    """

    passes: tuple[Pass, ...] = ()
    ledger: tuple[Fate, ...] = ()  # empty if the fate of a node is not known
    origins: tuple[Origin, ...] = ()
    built: int | None = None  # nodes of the graph when the runtime built the step

    def __init__(
        self,
        group: RunGroup,
        nodes: tuple[Node, ...],
        parts: Sequence[Any] = (),
        traces: Sequence[tuple[int, int, int, Any]] = (),
    ) -> None:
        from tflab.runtime import nodes as of_runtime  # may resume an interrupted import

        self.group, self.nodes, self.parts, self.traces = group, nodes, parts, traces
        self.executed = tuple(
            node for part in parts for node in of_runtime.from_graph_def(part, {}, {})
        )

    def explain(self, dumped: Path | None, built: int | None) -> None:
        """Find the fate of each node in a folder of dumps of a graph that had `built` nodes."""
        from tflab.analysis import fates, passes

        self.built = built
        if dumped is None:
            return
        nodes, executed, group = self.nodes, self.executed, self.group
        steps = passes.compare(nodes, dumps.read(dumped), executed)
        ledger = fates.fates(nodes, steps, executed, group.fetches, group.feeds)
        origins = tuple(fates.origins(ledger, steps, executed))
        if all(origin.origin != "unknown" for origin in origins):
            self.passes, self.ledger, self.origins = steps, ledger, origins

    def segment(self) -> dict[str, object]:
        """Return the number of nodes with each fate, and what makes the runs slow."""
        from tflab.analysis import fates

        group = self.group
        untaken = {*fates.not_taken(self.executed, group.ops)} if group.traced else ()
        counts = Counter(
            NOT_TAKEN if fate.fate == "executed" and fate.name in untaken else fate.fate
            for fate in self.ledger[: self.built]
        )
        counts[LATER] = len(self.ledger) - counts.total()
        return {"findings": self.findings(), "counts": dict(+counts)}

    def notes(self) -> Iterator[str]:
        """Yield which reads and writes in a session have no order."""
        from tflab.analysis import access_order
        from tflab.runtime import functions
        from tflab.views import frontend as view

        if not self.group.function:
            step = access_order.Step(self.nodes, self.group.fetches, self.group.feeds)
            rows = access_order.unordered(step, functions.of_graph(self.group.graph))
            yield from (f"{fact.label.capitalize()}: {fact.text}." for fact in view.unordered(rows))

    def findings(self) -> list[str]:
        """Return why its runs are slow, as sentences."""
        import numpy as np

        from tflab.analysis import row_labels, slow_steps
        from tflab.runtime import costs, trace

        group = self.group
        if not (group.times and group.traced and group.spans):
            return []
        shapes = trace.output_shapes(self.traces[-1][-1].step_stats) if self.traces else {}
        ran = [
            replace(node, outputs=(Tensor("", shapes[node.name]),)) if node.name in shapes else node
            for node in self.executed
        ]
        lines = row_labels.line_labels({node.name: node.line for node in self.nodes})
        types = {node.name: node.op for node in self.nodes}
        # The profile of a function also has the ops of tf.data, which run meanwhile
        known = {*(types if group.function else group.ops)} - {trace.EXECUTOR}
        types |= {node.name: node.op for node in self.executed} | group.types

        def work(name: str, op: str) -> slow_steps.Work:
            runs, ns, traced_runs, most_ns = group.ops[name]
            return slow_steps.Work(
                name=name,
                op=op,
                line=lines.get(name, ""),
                calls=runs / group.traced,
                call_ns=without_longest(traced_runs, ns, most_ns) / runs,
                moves=costs.moves_data(op),
                hands_on=op in costs.HAND_ON or op.startswith(DATA_OPS),
            )

        evidence = slow_steps.Evidence(
            runs=f"{'call' if group.function else 'run'} of {', '.join(group.fetches)}",
            batch_size=0,
            steps=group.traced,
            step_ns=float(np.median(group.times)),
            quick_ns=float(np.quantile(group.times, 0.1)),
            ops_span_ns=float(np.median([span for span, _ in group.spans])),
            traced_outside_ns=float(np.median([outside for _, outside in group.spans])),
            fed_bytes=group.fed_bytes,
            copied_bytes=int(np.median(group.copied)) if group.copied else 0,
            tables=slow_steps.whole_tables_of(ran or self.nodes, lines),
            nodes=tuple(work(name, types.get(name, "")) for name in group.ops if name in known),
        )
        reasons = slow_steps.costliest([evidence], MOST_FINDINGS, FEW)
        return [reason.sentence for reason in reasons]

    def save(self, folder: str) -> None:
        """Save the graph. Raises TflabError if it is too large."""
        from tflab.records.codec import encoded
        from tflab.records.watched import OpTimes, Recorded
        from tflab.runtime import devices, nodes

        group, graph, size = self.group, self.group.graph, len(self.nodes)
        assert graph is not None
        # The estimate for all runs, as for the lines, as so many ns of the traced runs
        usual = group.scale() * group.traced / max(1, group.calls - 1)
        if size > MOST_SAVED_NODES:
            raise TflabError(
                f"The graph has {size:,} nodes; at most {MOST_SAVED_NODES:,} are kept."
            )
        derived = {op.name: nodes.forward_of(graph, op.name) for op in graph.get_operations()}
        recorded = Recorded(
            nodes=self.nodes,
            derived={name: origin for name, origin in derived.items() if origin},
            variables=len(graph.get_collection("trainable_variables")),
            fetches=group.fetches,
            executed=self.executed,
            passes=self.passes,
            ledger=self.ledger,
            origins=self.origins,
            kernels=tuple(devices.chosen_kernels(self.parts)),
            traced=group.traced,
            ops={
                name: OpTimes(runs, round(without_longest(traced, ns, most_ns) * usual))
                for name, (runs, ns, traced, most_ns) in group.ops.items()
            },
        )
        Path(folder, NAME).write_text(json.dumps(encoded(recorded)), encoding="utf-8")

    def write_profile(self, logdir: str) -> None:
        """Write the graph as built and as it ran, and some of its runs as a profile."""
        from tflab.exporters import tensorboard, xspace
        from tflab.records.timed import Capture, StepTime
        from tflab.runtime import trace

        tensorboard.write_graph(logdir, self.group.graph)
        last = [(f"run {number}", number, run) for number, *_, run in self.traces[-1:]]
        tensorboard.write_executed(logdir, self.parts, last)
        types = {node.name: node.op for node in self.executed}
        of_runs = (trace.op_runs(at, run.step_stats, types) for at, *_, run in self.traces)
        runs = tuple(run for run in chain(*of_runs) if run.name != trace.EXECUTOR)
        if steps := tuple(StepTime(*times) for *times, _ in self.traces):
            xspace.write(logdir, [Capture("watched", steps, runs)])


def read(folder: Path) -> tuple[Recorded | None, RecordedValues | None]:
    """Return the saved graph and values; None if they are missing or incomplete."""
    from tflab.records.codec import decoded
    from tflab.records.watched import Recorded, RecordedValues

    records: dict[str, Any] = {}
    for kind, name in ((Recorded, NAME), (RecordedValues, VALUES)):
        with suppress(OSError, ValueError):
            records[name] = decoded(kind, json.loads((folder / name).read_text(encoding="utf-8")))
    return records.get(NAME), records.get(VALUES)
