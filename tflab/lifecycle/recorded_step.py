"""Recorded step: one step under the runtime's debugger, in a session of its own.

It is the first step after the initialisation, on the first batch, in the graph that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab.records import Node, Options, PathPoint, Placement, Program
from tflab.runtime import debugger, nodes, session, variables

WHICH = "the first step after the initialisation, on the first batch"
PATH_STEPS = 10  # that are followed where it is known where the variables should get to

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Ran:
    """What one recorded step left behind."""

    nodes: tuple[Node, ...]  # of the graph that ran, without those of the debugger
    fed: Arrays  # tensor -> what was fed
    places: Mapping[str, str]  # node -> the tensor that is fed there
    before: Arrays  # variable -> its value
    after: Arrays
    path: tuple[PathPoint, ...]


def run(folder: str, placement: Placement, options: Options) -> Ran:
    """Run the step in a session of its own."""
    program = placement.program
    step = session.step_of(program, placement.fetches)
    batches = session.feed_batches(program, options.batch_size)
    batch = next(batches)
    readers = variables.readers(program.graph, [node.name for node in placement.nodes])
    metadata = tf1.RunMetadata()
    with session.fresh(program.graph, options) as live:
        recorded = step.callable(
            live,
            output_partition_graphs=True,
            debug_options=debugger.options(program.graph, folder),
        )
        session.begin(live, session.start_of(program))
        before = variables.read(live, readers)
        fetched = recorded(*batch, run_metadata=metadata)
        after = variables.read(live, readers)
        path: tuple[PathPoint, ...] = ()
        if program.model.answer and program.train_op in placement.fetches:
            path = tuple(follow(live, program, step, batches, (before, after), fetched))
    graphs = metadata.partition_graphs
    return Ran(
        nodes=debugger.without_debug_nodes(
            [node for graph in graphs for node in nodes.from_graph_def(graph, {}, {})]
        ),
        fed=dict(zip(step.feeds, batch, strict=True)),
        places={
            node_def.name: step.feeds[node_def.attr["index"].i]
            for graph in graphs
            for node_def in graph.node
            if node_def.op == "_Arg"
        },
        before=before,
        after=after,
        path=path,
    )


def follow(
    live: tf1.Session,
    program: Program,
    step: session.Step,
    batches: Iterator[Sequence[np.ndarray]],
    known: tuple[Arrays, Arrays],
    fetched: Sequence[Any],
) -> Iterator[PathPoint]:
    """Where the variables get to in the next steps, which are not recorded, after the first."""
    readers = variables.readers(program.graph, program.model.answer)
    losses = [number for number, name in enumerate(step.fetches) if name == program.loss.name]
    run_next = step.callable(live)
    for number in range(PATH_STEPS + 1):
        if number > 1:
            fetched = run_next(*next(batches))
        at = known[number] if number < 2 else variables.read(live, readers)
        loss = float(fetched[losses[0]]) if number and losses else None
        yield PathPoint(number, loss, {name: float(at[name]) for name in readers if name in at})
