"""What the runtime does to a graph: passes, fates, devices, kernels, generated code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.graph import Node, Shape


@dataclass(frozen=True)
class Rewrite:
    """A node that kept its name and changed its type."""

    name: str
    old: str = field(metadata={"json": "from"})
    new: str = field(metadata={"json": "to"})


@dataclass(frozen=True)
class Taken:
    """A node that a pass took out of the graph, or out of computing."""

    name: str
    fate: str  # folded, merged, fused, compiled or removed
    into: str | None  # the node that stands in for it after that pass
    # Of a node with several outputs: its tensor, and the one that its users take in its place
    outputs: tuple[tuple[str, str], ...] = field(default=(), metadata={"json": None})


@dataclass(frozen=True)
class Pass:
    """What one pass of the runtime did to the graph, by its own dumps."""

    name: str
    iteration: int | None  # of Grappler, which goes through its passes more than once
    before: int  # nodes
    after: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rewritten: tuple[Rewrite, ...] = ()
    rewired: tuple[str, ...] = ()  # inputs or control inputs changed
    moved: tuple[str, ...] = ()  # the device changed
    taken: tuple[Taken, ...] = ()
    # The nodes that other tasks were given, by task
    sent: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), metadata={"json": None})
    # Each node that was added or changed, as it was after the pass
    definitions: tuple[Node, ...] = field(default=(), repr=False, metadata={"json": None})


@dataclass(frozen=True)
class Snapshot:
    """A graph at one moment of its way through the runtime."""

    moment: str  # "before" or "after"
    group: str  # "grappler", or the phase of the runtime's own passes
    name: str | None  # of the pass; None at the beginning and at the end of a group
    iteration: int | None  # of Grappler
    partition: str | None  # once there are several graphs, one for each device
    nodes: tuple[Node, ...]
    clusters: dict[str, str]  # node -> the XLA cluster that it was marked for


@dataclass(frozen=True)
class Fate:
    """What became of a node of the user's graph. Exactly one of `views.words.FATES`."""

    name: str
    fate: str
    by: str | None  # the pass responsible
    # The executed node that took it over; of a merged one whose twin vanished, the last that did
    into: str | None
    # Of a node with several outputs that is gone: its tensor, and the one that holds the same now
    outputs: tuple[tuple[str, str], ...] = field(default=(), metadata={"json": None})


@dataclass(frozen=True)
class Origin:
    """Where an executed node comes from that the user did not write."""

    name: str
    origin: str  # feed, fetch, transfer, or the pass that made it


@dataclass(frozen=True)
class Assignment:
    """The device of an executed node, and why it is that one."""

    name: str
    device: str
    reason: str


@dataclass(frozen=True)
class Kernel:
    """The implementation of a node on its device, by the runtime's registry of kernels."""

    name: str
    op: str  # the type that runs
    device: str
    types: str
    registrations: int  # that fit device, types and label; 0 where the executor needs no kernel
    constraints: str  # of the registration with the highest priority
    on_gpu: str | None  # the registration a GPU would use for the type as written; not run here


@dataclass(frozen=True)
class Machined:
    """One operation of a graph node on its way to the processor's instructions."""

    node: str
    hlo: str  # `multiply in multiply_add_fusion`
    llvm: tuple[str, ...]  # instructions, after optimisation
    machine: tuple[str, ...]  # `0x47 vfmadd213ps ymm2, ymm0, ymm1`
    lanes: int  # elements an instruction works on; 1 is no vector
    fused: bool  # one machine instruction does this and another operation
    inferred: tuple[str, ...]  # which arrows were concluded, and from what
    # `add of dense/BiasAdd`: the operations that the instructions may be of. More than one where
    # nothing in the dump tells them apart.
    llvm_owners: tuple[str, ...]
    machine_owners: tuple[str, ...]


@dataclass(frozen=True)
class Generated:
    """The code that XLA generated for one cluster of nodes."""

    cluster: str
    fetches: tuple[str, ...]
    batch_size: int
    kernels: tuple[tuple[str, tuple[str, ...], int], ...]  # name, HLO opcodes, bytes of code
    fusions_inside: int  # whose code is part of the one function of the whole cluster
    path: tuple[Machined, ...]
    # File name -> HLO, LLVM IR or machine code; they go to files
    listings: Mapping[str, str] = field(repr=False, metadata={"json": None})


@dataclass(frozen=True)
class Partition:
    """The part of the graph that one device runs."""

    device: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Transfer:
    """A tensor that leaves one device for another, through a `_Send` and a `_Recv`."""

    tensor: str
    send: str  # the `_Send` node
    recv: str  # the `_Recv` node
    from_device: str = field(metadata={"json": "from"})
    to_device: str = field(metadata={"json": "to"})
    dtype: str
    shape: Shape
    bytes: int | None  # per step; None where the shape is not known, or does not tell
    # What both ends call it, and the trace of several tasks: `edge_26_flatten/Reshape`
    edge: str = field(default="", metadata={"json": None})


@dataclass(frozen=True)
class FateChange:
    """A node of the user's graph whose fate is another when passes are switched off."""

    name: str
    usual: str
    now: str


@dataclass(frozen=True)
class Toggle:
    """What switching graph passes off changed in the ledger."""

    without: tuple[str, ...]
    usual_node_count: int  # that run with all passes on
    node_count: int
    changes: tuple[FateChange, ...]
