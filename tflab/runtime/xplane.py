"""XPlane: the op runs in what TensorFlow's profiler recorded of a function."""

from __future__ import annotations

import re

from tflab.runtime import private

HOST = "/host:CPU"
OP = re.compile(r"(?P<node>[^\s:]+):(?P<op>\w+)")  # `StatefulPartitionedCall/MatMul:_MklMatMul`
# The profiler does not record the run of an op that returns later, but the wait of an iterator
DATA = "IteratorGetNext"
WAIT = re.compile(rf"(?P<node>{DATA})\w*Op::DoCompute")


def durations(content: bytes) -> tuple[list[str], list[int], list[int]]:
    """Node, start and duration in ns of every op run, as three lists. A run that waits for data of
    an iterator is that of `DATA`, whatever its node.

    The name of an event is that of its node and its type; all other events have none such. On a
    device other than the host the profiler names kernels, which are left out.
    """
    names: list[str] = []
    starts: list[int] = []
    spans: list[int] = []
    for plane in private.read_xspace(content).planes:
        if plane.name != HOST:
            continue
        matches = {
            key: OP.fullmatch(event.name) or WAIT.fullmatch(event.name)
            for key, event in plane.event_metadata.items()
        }
        nodes = {key: match["node"] for key, match in matches.items() if match}
        for line in plane.lines:
            for event in line.events:
                if event.metadata_id in nodes:
                    names.append(nodes[event.metadata_id])
                    starts.append(line.timestamp_ns + event.offset_ps // 1000)
                    spans.append(event.duration_ps // 1000)
    return names, starts, spans
