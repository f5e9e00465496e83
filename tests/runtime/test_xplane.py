"""Op runs of a profile: those of the host, whose events bear a node and its type."""

import pytest

from tflab.runtime import trace

pytestmark = pytest.mark.tensorflow

EVENTS = {  # name -> (offset, duration) in ps
    "StatefulPartitionedCall/MatMul:_MklMatMul": (5_000_000, 17_000_999),
    "EagerLocalExecute: Fill": (0, 90_000_000),
    "ThreadpoolListener::Record": (0, 1_000),
    "Mean:Mean": (30_000_000, 2_000_000),
    "IteratorGetNextOp::DoCompute": (40_000_000, 9_000_000),
    "Iterator::Root::Prefetch": (40_000_000, 9_000_000),
}


def test_only_events_of_ops_are_read():
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    for plane_name in ("/host:CPU", "/device:GPU:0"):
        plane = space.planes.add(name=plane_name)
        for number, name in enumerate(EVENTS, 1):
            plane.event_metadata[number].name = name
        line = plane.lines.add(timestamp_ns=1_000)
        for number, (offset, duration) in enumerate(EVENTS.values(), 1):
            line.events.add(metadata_id=number, offset_ps=offset, duration_ps=duration)
    assert trace.profiled_durations(space.SerializeToString()) == (
        ["StatefulPartitionedCall/MatMul", "Mean", "IteratorGetNext"],
        [6_000, 31_000, 41_000],
        [17_000, 2_000, 9_000],
    )
