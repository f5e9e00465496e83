"""Session: the trace of a step stays bytes until somebody reads it."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf1

from tflab.runtime import session

pytestmark = pytest.mark.tensorflow


def test_a_trace_is_kept_as_it_came_and_parsed_when_it_is_asked_for():
    graph = tf1.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf1.float32, [3], name="x")
        tf1.square(x, name="square")
    step = session.Step(("x:0",), ("square:0",), ())
    recorded = session.Unparsed()
    with tf1.Session(graph=graph) as live:
        traced = step.callable(live, trace_level=session.FULL_TRACE)
        traced(np.float32([1, 2, 3]), run_metadata=recorded)
    recorded.graphs = (tf1.GraphDef(node=[tf1.NodeDef(name="ran")]),)
    assert tf1.RunMetadata.FromString(recorded.serialized).step_stats.dev_stats
    assert recorded.parsed().step_stats.dev_stats
    assert recorded.parsed().partition_graphs[0].node[0].name == "ran"
