"""Recorded step: one step under the runtime's debugger, in a session of its own.

It is the first step after initialisation, on the first batch, in the graph that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import not_finite, values
from tflab.analysis.not_finite import Bad
from tflab.records.graph import Node, output_name
from tflab.records.options import Options, Program
from tflab.records.placed import Transfer
from tflab.records.stages import Placement
from tflab.records.values import PathPoint, Value
from tflab.runtime import debugger, nodes, session
from tflab.runtime.debugger import Dumped

WHICH = "the first step after initialisation, on the first batch"
SMALL = 2**10  # bytes of an array that stays in memory; larger ones are read from their files again
PATH_STEPS = 10  # further steps, if the goal of the variables is known

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Ran:
    """The records of one step."""

    nodes: tuple[Node, ...]  # of the graph that ran, without those of the debugger
    transfers: tuple[Transfer, ...]  # between its devices
    fed: Arrays  # tensor -> its feed
    places: Mapping[str, str]  # node -> the tensor that is fed in its place
    fetched: Arrays
    before: Arrays  # variable -> its value before the step
    after: Arrays
    files: Mapping[str, Sequence[str]]  # tensor -> its files, one for each time it was computed
    us: Mapping[str, int]  # node -> when its first tensor was written
    bads: Mapping[str, Bad]  # tensor -> its first non-finite value
    path: tuple[PathPoint, ...] = ()
    hidden: Arrays = field(default_factory=dict)  # tensors that were fetched only for their values
    small: Mapping[str, Dumped] = field(default_factory=dict, repr=False)  # of SMALL bytes

    def dumped(self, path: str) -> Dumped:
        """The content of a file."""
        return self.small.get(path) or debugger.read_file(path)

    def array(self, tensor: str, call: int = -1) -> np.ndarray | None:
        """The value of a tensor in this call (from 0), or the last one before it."""
        paths = self.files.get(tensor, ())
        if not paths:
            return None
        return self.dumped(paths[min(call, len(paths) - 1)]).array


def run(folder: str, placement: Placement, options: Options) -> Ran:
    """Run the step in a session of its own."""
    program = placement.program
    step = session.step_of(program, placement.fetches)
    batches = session.feed_batches(program, options.batch_size)
    readers = session.variable_readers(program.graph, [node.name for node in placement.nodes])
    with session.fresh(program.graph, options) as live:
        session.begin(live, session.start_of(program))
        ran = run_once(live, step, next(batches), readers, folder)
        if program.model.answer and program.train_op in placement.fetches:
            path = tuple(follow(live, program, step, batches, ran))
            return replace(ran, path=path)
    return ran


def run_once(
    live: tf1.Session,
    step: session.Step,
    batch: Sequence[np.ndarray],
    readers: Mapping[str, str],
    folder: str,
) -> Ran:
    """One step of an initialised session, under the debugger."""
    metadata = tf1.RunMetadata()
    recorded = step.callable(
        live, output_partition_graphs=True, debug_options=debugger.options(live.graph, folder)
    )
    before = session.variable_values(live, readers)
    fetched = recorded(*batch, run_metadata=metadata)
    after = session.variable_values(live, readers)
    graphs = metadata.partition_graphs
    return read(
        folder,
        graphs,
        fed=dict(zip(step.feeds, batch, strict=True)),
        places={
            node_def.name: step.feeds[node_def.attr["index"].i]
            for part in graphs
            for node_def in part.node
            if node_def.op == "_Arg"
        },
        fetched=dict(zip(step.fetches, fetched, strict=True)),
        before=before,
        after=after,
    )


def read(folder: str, graphs: Sequence[Any], **known: Any) -> Ran:
    """What the debugger wrote into a folder in a step of these graphs; `known` are the fields that
    are not read from there."""
    graph = debugger.without_debug_nodes(graphs)
    ops = {node.name: node.op for node in graph}
    files: dict[str, list[str]] = {}
    bads: dict[str, Bad] = {}
    us: dict[str, int] = {}
    small: dict[str, Dumped] = {}
    for dumped in debugger.read(folder):
        us.setdefault(dumped.node, dumped.us)
        scratch = debugger.is_scratch(ops.get(dumped.node, ""), dumped.output)
        if dumped.array is None or scratch:
            continue
        tensor = output_name(dumped.node, dumped.output)
        files.setdefault(tensor, []).append(dumped.path)
        if dumped.array.nbytes <= SMALL and dumped.array.dtype != object:  # text of any length
            small[dumped.path] = dumped
        bad = None if tensor in bads else not_finite.record_of(dumped.array, len(files[tensor]) - 1)
        if bad:
            bads[tensor] = bad
    return Ran(
        nodes=graph,
        transfers=tuple(nodes.transfers(graphs, {}, {})),
        files=files,
        us=us,
        bads=bads,
        small=small,
        **known,
    )


def follow(
    live: tf1.Session,
    program: Program,
    step: session.Step,
    batches: Iterator[Sequence[np.ndarray]],
    ran: Ran,
) -> Iterator[PathPoint]:
    """The values of the variables in the next steps, which are not recorded."""
    readers = session.variable_readers(program.graph, program.model.answer)
    losses = [number for number, name in enumerate(step.fetches) if name == program.loss.name]
    run_next = step.callable(live)
    fetched: Sequence[Any] = tuple(ran.fetched.values())
    for number in range(PATH_STEPS + 1):
        if number > 1:
            fetched = run_next(*next(batches))
        known = (ran.before, ran.after)
        at = known[number] if number < 2 else session.variable_values(live, readers)
        loss = float(fetched[losses[0]]) if number and losses else None
        yield PathPoint(number, loss, {name: float(at[name]) for name in readers if name in at})


def value_of(array: np.ndarray, calls: int = 1, **known: Any) -> Value:
    """A row of a tensor; its type is that of the array, unless `known` has it."""
    statistics = vars(values.statistics(array))
    known.setdefault("dtype", tf.dtypes.as_dtype(array.dtype).name)
    return Value(**statistics, **known, shape=array.shape, calls=calls, after=None, moved=None)
