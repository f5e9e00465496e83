"""XLA: the code that was generated for a cluster: HLO, LLVM IR, machine code.

XLA takes a cluster of nodes out of the graph and compiles it for the given shapes. Nodes become HLO
operations, these are fused, each fusion becomes a loop in LLVM IR, and the loop becomes a function
of machine instructions. All of it is read from XLA's own dump.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tflab.errors import TflabError
from tflab.xla import listings
from tflab.xla.listings import Hlo, HloOperation, LlvmFunction, ObjectCode

# Operations that compute nothing
PASSIVE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
# Operations that change no element
MOVES = {"broadcast", "reshape", "bitcast", "copy", "transpose"}

# TensorFlow 2.18 omits the types of arguments and the % of names by default.
DUMPED = "--xla_dump_hlo_as_text --xla_dump_hlo_as_long_text --xla_dump_hlo_as_proto"


def environment(folder: str | Path) -> dict[str, str]:
    """The environment variables with which XLA compiles and dumps; set them before TensorFlow is
    imported.

    The session also needs `global_jit_level = ON_2`. TF_XLA_FLAGS must have only this flag: with a
    second one, Grappler's remapper still fuses convolutions and dense layers into kernels of its
    own, which XLA then cannot compile (seen with TensorFlow 2.21).
    """
    if '"' in str(folder):
        raise TflabError(f"XLA cannot write to {folder}: its name contains a quotation mark.")
    return {
        "TF_XLA_FLAGS": "--tf_xla_cpu_global_jit",
        "XLA_FLAGS": f'--xla_dump_to="{folder}" {DUMPED}',
    }


@dataclass(frozen=True)
class XlaKernel:
    """One step of a compiled cluster: a generated function, or a call of a library.

    Equal fusions share one function: `function` is named after the first of them. If it is "", the
    runtime does the work itself, such as a convolution with a library.
    """

    name: str  # of the HLO operation
    function: str  # in LLVM IR and in the object file
    opcode: str
    kind: str  # of a fusion: kLoop, kCustom, ...
    operations: tuple[HloOperation, ...]  # the fused ones, or the operation itself
    nodes: tuple[str, ...]  # the graph nodes that it computes
    llvm: LlvmFunction | None = field(default=None, repr=False)  # after optimisation
    code: ObjectCode | None = field(default=None, repr=False)

    @property
    def opcodes(self) -> tuple[str, ...]:
        return tuple(op.opcode for op in self.operations if op.opcode not in PASSIVE)


@dataclass(frozen=True)
class Module:
    """A compiled cluster. The same cluster with other shapes is another module."""

    number: int
    name: str  # as in "cluster_0"
    hlo_before: str = field(repr=False)
    hlo_after: str = field(repr=False)
    kernels: tuple[XlaKernel, ...]


BEFORE = re.compile(r"(module_(\d+)\.(.+)\.)before_optimizations\.txt")


def read(folder: str | Path) -> tuple[Module, ...]:
    """The clusters that XLA compiled, in the order of their file names.

    Raises TflabError if there are none, or if the files are not in the format of TensorFlow 2.18 to
    2.21.
    """
    names = sorted(path.name for path in Path(folder).glob("module_*") if path.is_file())
    modules = tuple(
        read_module(Path(folder), match, [name for name in names if name.startswith(match[1])])
        for match in filter(None, map(BEFORE.fullmatch, names))
    )
    if not modules:
        raise TflabError("XLA compiled nothing in this step.")
    kernels = [kernel for module in modules for kernel in module.kernels]
    if any(kernel.kind == "kLoop" for kernel in kernels) and not any(k.code for k in kernels):
        raise TflabError(
            f"The dump of XLA in {folder} has fusions, but no machine code for them; "
            f"{listings.READ}"
        )
    return modules


def read_module(folder: Path, match: re.Match[str], names: list[str]) -> Module:
    prefix, number, name = match.groups()
    after = f"{prefix}cpu_after_optimizations.txt"
    if after not in names:
        raise TflabError(f"The dump of XLA has no {after}; {listings.READ}")
    hlo_after = text(folder / after)
    functions: dict[str, LlvmFunction] = {}
    codes: dict[str, ObjectCode] = {}
    for file in names:
        if file.endswith(".ir-with-opt.ll"):
            functions |= listings.llvm(text(folder / file))
        elif file.endswith(".o"):
            codes |= listings.machine_code((folder / file).read_bytes(), file)
    return Module(
        number=int(number),
        name=name.partition("__XlaCompiledKernel")[0],  # the rest describes the call
        hlo_before=text(folder / match[0]),
        hlo_after=hlo_after,
        kernels=tuple(kernels_of(listings.hlo(hlo_after), functions, codes)),
    )


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def kernels_of(
    hlo: Hlo, functions: Mapping[str, LlvmFunction], codes: Mapping[str, ObjectCode]
) -> Iterator[XlaKernel]:
    generated: dict[tuple[object, ...], str] = {}
    for op in hlo.entry:
        if op.opcode in PASSIVE:
            continue
        operations = hlo.computations.get(op.calls, (op,))
        work = fingerprint(operations, hlo)
        if op.name in codes:
            generated.setdefault(work, op.name)
        name = op.name if op.name in codes else generated.get(work, "")
        yield XlaKernel(
            name=op.name,
            function=name,
            opcode=op.opcode,
            kind=op.kind,
            operations=operations,
            nodes=nodes_of((*operations, op)),
            llvm=functions.get(name),
            code=codes.get(name),
        )


def nodes_of(operations: Iterable[HloOperation]) -> tuple[str, ...]:
    """The graph nodes of these operations.

    Constants do not count, because XLA keeps only one of several equal constants, of any node.
    """
    fixed: set[str] = set()
    nodes: dict[str, None] = {}  # an ordered set
    for op in operations:
        if op.opcode == "constant" or (op.opcode in MOVES and fixed.issuperset(op.operands)):
            fixed.add(op.name)
        elif op.node:
            nodes[op.node] = None
    return tuple(nodes)


def fingerprint(operations: tuple[HloOperation, ...], hlo: Hlo) -> tuple[object, ...]:
    """A computation without its names and nodes; equal if two computations do the same."""
    places = {op.name: index for index, op in enumerate(operations)}

    def meaning(match: re.Match[str]) -> str:
        if match[1] in hlo.computations:
            return str(fingerprint(hlo.computations[match[1]], hlo))
        return str(places.get(match[1], match[1]))

    lines = (op.text.partition(", metadata=")[0] for op in operations)
    return tuple(re.sub(r"%([\w.\-]+)", meaning, line) for line in lines)


def listing_files(module: Module) -> dict[str, str]:
    """The listings of a module, by safe file names."""
    listing_of_file = {"hlo-before.txt": module.hlo_before, "hlo-after.txt": module.hlo_after}
    for number, kernel in enumerate(module.kernels):
        name = re.sub(r"[^\w\-]", "_", kernel.name)[:80]
        if kernel.function != kernel.name:
            continue
        if kernel.llvm:
            listing_of_file[f"{number:03}-{name}.ll"] = kernel.llvm.text + "\n"
        if kernel.code:
            lines = (
                f"{i.address:6x}  {i.bytes:24}  {i.mnemonic} {i.operands}".rstrip() + "\n"
                for i in kernel.code.instructions
            )
            listing_of_file[f"{number:03}-{name}.s"] = "".join(lines)
    return listing_of_file
