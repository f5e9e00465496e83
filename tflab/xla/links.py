"""Links: from an arithmetic operation of the graph to the machine instructions that compute it.

Equal expressions, of what an operation computes in terms of the arguments of its kernel, link an
operation in HLO to instructions in LLVM IR. The links become records of the generated code.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tflab.records.placed import Generated, Machined
from tflab.xla import MOVES, PASSIVE, Module, XlaKernel, listing_files, listings
from tflab.xla.listings import (
    VALUE,
    HloOperation,
    Instruction,
    LlvmFunction,
    LlvmInstruction,
    ObjectCode,
)

ARITHMETIC = {"multiply": "fmul", "add": "fadd", "subtract": "fsub", "divide": "fdiv"}


class ExpressionIds:
    """A number for each expression: equal operations on equal operands get the same number."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], int] = {}

    def number(self, opcode: str, *operands: object) -> int:
        if opcode in ("fmul", "fadd"):
            operands = tuple(sorted(operands, key=str))  # a * b is b * a
        return self.known.setdefault((opcode, *operands), len(self.known))


def hlo_expressions(operations: Iterable[HloOperation], numbers: ExpressionIds) -> dict[str, int]:
    """The expression that each operation of a fusion computes for an element."""
    ids: dict[str, int] = {}
    for op in operations:
        ids[op.name] = numbers.number("HLO", op.name)  # equal to no other
        operands = [ids.get(name, ids[op.name]) for name in op.operands]
        if op.opcode == "parameter":
            ids[op.name] = numbers.number("argument", *op.operands)
        elif op.opcode == "constant" and (value := float32_bits("".join(op.operands))) is not None:
            ids[op.name] = numbers.number("constant", value)
        elif op.opcode in MOVES and len(operands) == 1:
            ids[op.name] = operands[0]
        elif op.opcode in ARITHMETIC:
            ids[op.name] = numbers.number(ARITHMETIC[op.opcode], *operands)
    return ids


GET_POINTER = re.compile(rf"getelementptr .*?ptr ({VALUE}), i64 (\S+)")
LOAD = re.compile(rf"load (.+?), ptr ({VALUE})")
SPLAT = re.compile(  # one scalar for all lanes, in two steps
    rf"insertelement <.*?> poison, \w+ ({VALUE}), i64 0$|"
    rf"shufflevector <.*?> ({VALUE}), .* zeroinitializer$"
)


def llvm_expressions(function: LlvmFunction, numbers: ExpressionIds) -> dict[str, int]:
    """The expression that each value of a kernel computes.

    XLA calls a kernel with a frame. Byte 24 of the frame contains the address of the arguments.
    Each argument takes 16 bytes and begins with the address of its elements.
    """
    ids: dict[str, int] = {}
    pointers = {function.argument: ("frame", 0)}

    def value(operand: str) -> int:
        literal = float32_bits(operand.removeprefix("splat (").rstrip(")").rpartition(" ")[2])
        return ids.get(operand, numbers.number("constant", operand if literal is None else literal))

    for line in function.body:
        ids[line.name] = numbers.number("LLVM", line.name)  # equal to no other
        if line.operands:
            ids[line.name] = numbers.number(line.opcode, *map(value, line.operands))
        elif match := SPLAT.match(line.text):
            ids[line.name] = value(match[1] or match[2])
        elif match := GET_POINTER.match(line.text):
            base, offset = pointers.get(match[1], ("", 0))
            if base == "argument":  # any element of it
                pointers[line.name] = (base, offset)
            elif match[2].isdecimal() and " i8, ptr" in line.text:
                pointers[line.name] = (base, offset + int(match[2]))
        elif match := LOAD.match(line.text):
            base, offset = pointers.get(match[2], ("", 0))
            if match[1] == "ptr" and (base, offset) == ("frame", 24):
                pointers[line.name] = ("arguments", 0)
            elif match[1] == "ptr" and base == "arguments" and offset % 16 == 0:
                pointers[line.name] = ("argument", offset // 16)
            elif match[1] != "ptr" and base == "argument":
                ids[line.name] = numbers.number("argument", str(offset))
    return ids


def float32_bits(literal: str) -> bytes | None:
    """The float32 bits of a literal of HLO or LLVM; LLVM may write those of a double."""
    try:
        if literal.startswith("0x"):
            return struct.pack(">f", *struct.unpack(">d", bytes.fromhex(literal[2:].zfill(16))))
        return struct.pack(">f", float(literal))
    except (ValueError, OverflowError, struct.error):
        return None


@dataclass(frozen=True)
class CodeLink:
    """One arithmetic operation, from the graph node to the machine instructions.

    `inferred` lists the connections that the dump does not state, and how they were inferred. If
    several operations of the kernel may have produced the instructions, all of them are owners.
    """

    node: str
    operation: HloOperation
    kernel: str
    llvm: tuple[LlvmInstruction, ...]  # several if a loop was unrolled
    lanes: int  # elements per instruction: 1 is scalar
    code: tuple[Instruction, ...]  # all instructions of its kind in the kernel
    fused: bool  # one machine instruction multiplies and adds
    inferred: tuple[str, ...]
    llvm_owners: tuple[HloOperation, ...]  # this operation, and those that look the same
    code_owners: tuple[HloOperation, ...]


BY_KIND = "HLO -> LLVM by kind of operation: no expression of the same form was found"
SHARED = "fusion -> function: the dump has only the function of an equal fusion"
GONE = "HLO -> LLVM, no instruction of its kind is left: it was folded or replaced"
BY_WIDTH = "LLVM -> machine by kind and vector width: the object file has no line table"

# These need no float arithmetic. Any other operation may: an exponential is a polynomial.
NO_ARITHMETIC = (
    PASSIVE
    | MOVES
    | {"compare", "select", "and", "or", "xor", "not", "maximum", "minimum", "clamp"}
    | {"abs", "negate", "sign", "is-finite", "iota", "convert", "bitcast-convert"}
    | {"slice", "dynamic-slice", "dynamic-update-slice", "pad", "concatenate", "reverse", "gather"}
)


def arithmetic_links(module: Module) -> tuple[CodeLink, ...]:
    """Each float multiply, add, subtract and divide of the cluster, with its instructions.

    An HLO operation and an LLVM instruction are linked when both compute the same expression of the
    kernel's arguments, such as `a1 * a0 + a2`.
    """
    return tuple(
        link
        for kernel in module.kernels
        if kernel.llvm and kernel.code
        for link in links_of_kernel(kernel, kernel.llvm, kernel.code)
    )


def links_of_kernel(
    kernel: XlaKernel, function: LlvmFunction, code: ObjectCode
) -> Iterator[CodeLink]:
    numbers = ExpressionIds()
    hlo_ids = hlo_expressions(kernel.operations, numbers)
    llvm_ids = llvm_expressions(function, numbers)
    machine = [(machine_kind(i), i) for i in code.instructions]
    can_fuse = any(kind and kind[0] == "fma" for kind, _ in machine)
    fusable = multiply_adds(function) if can_fuse else set()
    shared = (SHARED,) if kernel.function != kernel.name else ()
    same = {
        op.name: [i for i in function.body if i.lanes and llvm_ids[i.name] == hlo_ids[op.name]]
        for op in kernel.operations
        if op.opcode in ARITHMETIC
    }
    unlinked = [i for i in function.body if i.lanes and llvm_ids[i.name] not in hlo_ids.values()]
    unlinked_ops = tuple(
        op for op in kernel.operations if op.opcode not in NO_ARITHMETIC and not same.get(op.name)
    )

    def kinds(instructions: Iterable[LlvmInstruction]) -> set[tuple[str, int]]:
        return {("fma" if i.name in fusable else i.opcode, i.lanes) for i in instructions}

    for op in kernel.operations:
        if op.opcode not in ARITHMETIC or not op.shape.startswith(("f", "bf")):
            continue
        exact = same[op.name]
        chosen = exact or [i for i in unlinked if i.opcode == ARITHMETIC[op.opcode]]
        of_chosen = kinds(chosen)
        rivals = unlinked_ops if of_chosen & kinds(unlinked) else ()
        yield CodeLink(
            node=op.node,
            operation=op,
            kernel=kernel.name,
            llvm=tuple(chosen),
            lanes=max((i.lanes for i in chosen), default=0),
            code=tuple(i for kind, i in machine if kind in of_chosen),
            fused="fma" in {kind for kind, _ in of_chosen},
            inferred=shared
            + ((BY_WIDTH,) if exact else (BY_KIND, BY_WIDTH) if chosen else (GONE,)),
            llvm_owners=unlinked_ops if chosen and not exact else (op,),
            code_owners=tuple(
                other
                for other in kernel.operations
                if other == op or other in rivals or of_chosen & kinds(same.get(other.name, ()))
            ),
        )


def multiply_adds(function: LlvmFunction) -> set[str]:
    """Products that are used by one sum only, and that sum: one instruction can compute both."""
    uses = Counter(re.findall(listings.VALUE, function.text))  # the definition counts as a use
    products = {line.name for line in function.body if line.opcode == "fmul"}
    fused: set[str] = set()
    for line in function.body:
        if line.opcode in ("fadd", "fsub"):
            for operand in line.operands:
                if operand in products and uses[operand] == 2:
                    fused |= {operand, line.name}
                    break
    return fused


X86 = re.compile(r"v?(?:(mul|add|sub|div)|fn?m(?:add|sub)(?:132|213|231))([ps])([sd])$")
ARM = re.compile(r"f(?:(mul|add|sub|div)|ml[as]|n?m(?:add|sub))$")


def machine_kind(instruction: Instruction) -> tuple[str, int] | None:
    """What a float instruction does and on how many elements: ("fma", 8), ("fadd", 1)."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    if match := X86.match(mnemonic):
        bits = 512 if "zmm" in operands else 256 if "ymm" in operands else 128
        lanes = 1 if match[2] == "s" else bits // (32 if match[3] == "s" else 64)
    elif match := ARM.match(mnemonic):
        vector = re.search(r"\.(\d+)[hsd]", operands)
        lanes = int(vector[1]) if vector else 1
    else:
        return None
    return (f"f{match[1]}" if match[1] else "fma", lanes)


# The records of generated code


def generated(
    modules: Iterable[Module], fetches: tuple[str, ...], batch_size: int
) -> Iterator[Generated]:
    """The code of these modules as records, for a step that computes these fetches."""
    for module in modules:
        yield Generated(
            cluster=module.name,
            fetches=fetches,
            batch_size=batch_size,
            kernels=tuple(
                (kernel.name, kernel.opcodes, own_bytes(kernel)) for kernel in module.kernels
            ),
            fusions_inside=sum(
                kernel.kind == "kLoop" and not kernel.code for kernel in module.kernels
            ),
            path=tuple(map(machined, arithmetic_links(module))),
            listings=listing_files(module),
        )


def own_bytes(kernel: XlaKernel) -> int:
    """The bytes of a function that several kernels share, counted for the first of them."""
    return kernel.code.size_bytes if kernel.code and kernel.function == kernel.name else 0


def machined(link: CodeLink) -> Machined:
    return Machined(
        node=link.node,
        hlo=f"{link.operation.opcode} in {link.kernel}",
        llvm=tuple(instruction.text for instruction in link.llvm),
        machine=tuple(f"{code.address:#x} {code.mnemonic} {code.operands}" for code in link.code),
        lanes=link.lanes,
        fused=link.fused,
        inferred=link.inferred,
        llvm_owners=operation_names(link.llvm_owners),
        machine_owners=operation_names(link.code_owners),
    )


def operation_names(operations: Iterable[HloOperation]) -> tuple[str, ...]:
    """`add of dense/BiasAdd`, each name once; XLA also makes operations of its own."""
    return tuple(dict.fromkeys(f"{op.opcode} of {op.node or 'XLA itself'}" for op in operations))
