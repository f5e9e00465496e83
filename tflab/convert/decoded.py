"""Decoded: names, op types and nodes from the bytes in the protos of `tflab.convert.protos`.

The bytes in a file may be arbitrary. A name that is not UTF-8 is shown with replacement characters;
if two names then look alike, they are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from tflab.analysis import tracks
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.runtime.trace import labelled_type

OP_TYPE = re.compile(r"[A-Za-z_]\w*")
RPC = "RecvTensor"  # a transfer between processes; its label has no op
SENDS, RECVS = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")


class NameTexts(dict[bytes, str]):
    """The text of each name. Different names have different texts."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __missing__(self, raw: bytes) -> str:
        plain = text = raw.decode(errors="replace")
        numbers = count(2)
        while text in self._taken:
            text = f"{plain} ({next(numbers)})"
        self._taken.add(text)
        self[raw] = text
        return text


class RowTypes(dict[tuple[bytes, bytes], tuple[str, str]]):
    """Node and op type by the name and the label of a row, for rows of one kind of `tracks`.

    The label has the type that ran. The graph may be from before fusion, which reuses names, so it
    is used only if the label has no type.
    """

    def __init__(self, kind: str, names: NameTexts, types: Mapping[str, str]) -> None:
        self._kind, self._names, self._types = kind, names, types

    def __missing__(self, row: tuple[bytes, bytes]) -> tuple[str, str]:
        name, label = self._names[row[0]], row[1].decode(errors="replace")
        if self._kind in (tracks.OPS, tracks.LAUNCHES):
            op = RPC if name == RPC else labelled_type(label)
            known = bool(label and OP_TYPE.fullmatch(op))
        else:
            name, op = tracks.node_and_op(name, label)
            known = op != "unknown"
        self[row] = name, op if known else self._types.get(name, "unknown")
        return self[row]


class Vocabulary:
    """The names in several files, and the known types of nodes."""

    def __init__(self) -> None:
        self.names = NameTexts()
        self.types: dict[str, str] = {}
        self._labels: dict[str, RowTypes] = {}

    def labels(self, device: str) -> RowTypes:
        """The types of the rows of a device; most rows recur in the next step."""
        if device not in self._labels:
            self._labels[device] = RowTypes(tracks.track_kind(device), self.names, self.types)
        return self._labels[device]


def nodes(graphs: Iterable[Any], names: NameTexts) -> dict[str, Node]:
    """The nodes of GraphDefs by name; if two have the same name, the first."""
    found: dict[str, Node] = {}
    for node_def in (node_def for graph in graphs for node_def in graph.node):
        name = names[node_def.name]
        inputs = list(node_def.input)
        found.setdefault(
            name,
            Node(
                name=name,
                op=names[node_def.op],
                inputs=tuple(tensor(raw, names) for raw in inputs if not raw.startswith(b"^")),
                control_inputs=tuple(names[raw[1:]] for raw in inputs if raw.startswith(b"^")),
                device=names[node_def.device],
            ),
        )
    return found


def tensor(raw: bytes, names: NameTexts) -> str:
    """The name of a tensor, such as `split:1`."""
    node, colon, index = raw.partition(b":")
    return names[node] + (colon + index).decode(errors="replace")


def transfers(graphs: Iterable[Any], names: NameTexts) -> Iterator[Transfer]:
    """The transfers between partitions: every send, with the receive of the same tensor.

    These graphs have neither dtypes nor shapes.
    """
    node_defs = [
        (node_def, {attr.key: attr.value.s for attr in node_def.attr})
        for graph in graphs
        for node_def in graph.node
        if node_def.op.decode(errors="replace") in (*SENDS, *RECVS)
    ]
    receivers = {
        rendezvous(attrs): names[node_def.name]
        for node_def, attrs in node_defs
        if names[node_def.op] in RECVS
    }
    for node_def, attrs in node_defs:
        if names[node_def.op] in SENDS and node_def.input:
            yield Transfer(
                tensor=tensor(node_def.input[0], names),
                send=names[node_def.name],
                recv=receivers.get(rendezvous(attrs), ""),
                from_device=names[attrs.get(b"send_device", b"")],
                to_device=names[attrs.get(b"recv_device", b"")],
                dtype="",
                shape=None,
                bytes=None,
            )


def rendezvous(attrs: Mapping[bytes, bytes]) -> tuple[bytes | None, ...]:
    """What a send and its receive have in common (rendezvous.h, `CreateKey`)."""
    return tuple(attrs.get(key) for key in (b"send_device", b"recv_device", b"tensor_name"))
