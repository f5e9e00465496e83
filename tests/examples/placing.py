"""A step of a small graph, traced, as the placement that costs are counted of."""

import tensorflow.compat.v1 as tf1

from tflab.records.stages import Placement
from tflab.runtime import nodes, trace


def placed(fetches, feeds=None, ledger=(), **more):
    """The placement of a step of the default graph, and what the step returned."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf1.Session() as session:
        if tf1.global_variables():
            session.run(tf1.global_variables_initializer())
        values = session.run(fetches, feeds, options, metadata)
    shapes = trace.output_shapes(metadata.step_stats)
    return (
        Placement(
            program=None,
            nodes=tuple(
                node
                for graph in metadata.partition_graphs
                for node in nodes.from_graph_def(graph, {}, shapes)
            ),
            ledger=ledger,
            partition_graphs=tuple(metadata.partition_graphs),
            **more,
        ),
        values,
    )
