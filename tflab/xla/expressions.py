"""Expressions: what an operation computes, in terms of the arguments of its kernel.

Equal expressions link an operation in HLO to instructions in LLVM IR.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from tflab.xla.listings import VALUE, HloOperation, LlvmFunction

ARITHMETIC = {"multiply": "fmul", "add": "fadd", "subtract": "fsub", "divide": "fdiv"}
# Operations that change no element
MOVES = {"broadcast", "reshape", "bitcast", "copy", "transpose"}


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
