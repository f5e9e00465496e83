"""Links: from an arithmetic operation of the graph to the machine instructions that compute it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tflab.xla import PASSIVE, Module, XlaKernel, expressions, listings
from tflab.xla.expressions import ARITHMETIC, MOVES
from tflab.xla.listings import HloOperation, Instruction, LlvmFunction, LlvmInstruction, ObjectCode


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
    numbers = expressions.ExpressionIds()
    hlo_ids = expressions.hlo_expressions(kernel.operations, numbers)
    llvm_ids = expressions.llvm_expressions(function, numbers)
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
