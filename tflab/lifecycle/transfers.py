"""Transfers: tensors that are sent from one device to another, in the graphs that run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tflab.records.graph import Shape, Tensor
from tflab.records.placed import Transfer
from tflab.runtime import costs

SENDS, RECVS = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")  # the second ones: from host memory


def of_graphs(
    graphs: Iterable[Any], shapes: Mapping[str, Shape], received: Mapping[str, int] | None = None
) -> Iterator[Transfer]:
    """One Transfer for each `_Send`; the `_Recv` with the same rendezvous name is its other end.

    `received` are the bytes that tasks recorded, by edge, for tensors whose size does not follow
    from a shape: of unknown shape, or of text.
    """
    node_defs = [node_def for graph in graphs for node_def in graph.node]
    receivers = {
        rendezvous(node_def): node_def.name for node_def in node_defs if node_def.op in RECVS
    }
    for node_def in node_defs:
        if node_def.op not in SENDS or node_def.attr["client_terminated"].b:
            continue  # or a fetch from a cluster
        dtype = tf.dtypes.as_dtype(node_def.attr["T"].type)
        shape = shapes.get(node_def.input[0])
        edge = node_def.attr["tensor_name"].s.decode()
        size = costs.tensor_bytes(Tensor(dtype.name, shape))
        yield Transfer(
            tensor=node_def.input[0],
            send=node_def.name,
            recv=receivers.get(rendezvous(node_def), ""),
            from_device=node_def.attr["send_device"].s.decode(),
            to_device=node_def.attr["recv_device"].s.decode(),
            dtype=dtype.name,
            shape=shape,
            bytes=(received or {}).get(edge) if size is None else size,
            edge=edge,
        )


def rendezvous(node_def: Any) -> tuple[bytes, ...]:
    """What a `_Send` and its `_Recv` have in common (rendezvous.h, `CreateKey`)."""
    return tuple(node_def.attr[key].s for key in ("send_device", "recv_device", "tensor_name"))
