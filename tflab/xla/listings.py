"""Listings: the HLO, LLVM IR and object files that XLA writes, as records.

They describe the same work in three languages, from the graph down to the processor.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tflab.errors import TflabError


@dataclass(frozen=True)
class HloOperation:
    """One instruction of HLO, the language of XLA: a function of whole tensors."""

    name: str
    opcode: str
    shape: str  # as in "f32[16]{0}"
    operands: tuple[str, ...]  # names; the number of a parameter, the value of a constant
    node: str = ""  # the graph node it was made for; "" for one that XLA added
    calls: str = ""  # of a fusion: the computation with the fused operations
    kind: str = ""  # of a fusion: kLoop, kCustom, ...
    text: str = ""


@dataclass(frozen=True)
class Hlo:
    """A module of HLO: the operations that run one after another, and the computations of
    fusions."""

    entry: tuple[HloOperation, ...]
    computations: dict[str, tuple[HloOperation, ...]]


@dataclass(frozen=True)
class LlvmInstruction:
    """One instruction of LLVM IR that produces a value: a function of scalars or short vectors."""

    name: str
    opcode: str
    lanes: int  # of a float operation: 8 for `<8 x float>`, 1 for `float`; else 0
    operands: tuple[str, ...]  # of a float operation
    text: str  # without the metadata for the optimiser


@dataclass(frozen=True)
class LlvmFunction:
    argument: str  # the name of its first argument
    body: tuple[LlvmInstruction, ...]
    text: str


@dataclass(frozen=True)
class Instruction:
    """One instruction of the processor."""

    address: int  # in the object file, before loading
    bytes: str  # hexadecimal
    mnemonic: str
    operands: str


@dataclass(frozen=True)
class ObjectCode:
    """A function in an object file."""

    machine: str  # x86-64 or AArch64
    size_bytes: int
    instructions: tuple[Instruction, ...]


READ = "tflab reads the dumps of TensorFlow 2.18 to 2.21."
COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
OPERATION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
OP_NAME = re.compile(r'metadata=\{op_type="[^"]*" op_name="((?:[^"\\]|\\.)*)"')


def hlo(text: str) -> Hlo:
    """Raises TflabError for a text that is no HLO module."""
    computations: dict[str, list[HloOperation]] = {}
    entry, current = None, None
    for line in text.splitlines():
        if header := COMPUTATION.match(line):
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif current is not None and (match := OPERATION.match(line)):
            current.append(operation(line.strip(), *match.groups()))
    if entry is None:
        raise TflabError(f"The dump of XLA has an HLO module without an entry; {READ}")
    computation_of_name = {name: tuple(operations) for name, operations in computations.items()}
    return Hlo(computation_of_name[entry], computation_of_name)


def operation(text: str, name: str, shape: str, opcode: str, rest: str) -> HloOperation:
    operands, attributes = split_at_closing(rest)
    node = OP_NAME.search(attributes)  # without an op_type it is one of XLA's own names
    calls = re.search(r"calls=%?([\w.\-]+)", attributes)
    kind = re.search(r"kind=(\w+)", attributes)
    return HloOperation(
        name=name,
        opcode=opcode,
        shape=shape,
        operands=tuple(re.findall(r"%([\w.\-]+)", operands)) or ((operands,) if operands else ()),
        node=node[1] if node else "",
        calls=calls[1] if calls else "",
        kind=kind[1] if kind else "",
        text=text,
    )


def split_at_closing(text: str) -> tuple[str, str]:
    """Split `a, f(b)), c` at the unmatched closing parenthesis: `a, f(b)` and `, c`."""
    depth = 1
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return text[:index], text[index + 1 :]
    return text, ""


DEFINE = re.compile(r'define [^@]*@(?:"([^"]+)"|([\w.$\-]+))\((?:.*?(%[\w.$\-]+))?')
VALUE = r'%(?:"[^"]+"|[\w.$\-]+)'
ASSIGNMENT = re.compile(rf"\s+({VALUE}) = ((?:tail )?(\w+).*?)(?:, ![\w.]+ ![\w.]+)*$")
OPERAND = rf"({VALUE}|splat \([^)]*\)|<[^>]*>|[^\s,]+)"
FLOAT = re.compile(
    r"(?:fmul|fadd|fsub|fdiv) (?:[a-z]+ )*?(?:<(\d+) x )?(?:float|double|half|bfloat)>? "
    rf"{OPERAND}, {OPERAND}"
)


def llvm(text: str) -> dict[str, LlvmFunction]:
    """The functions that a module of LLVM IR defines, by name."""
    functions = {}
    for part in re.findall(r"^define .*?^\}", text, re.MULTILINE | re.DOTALL):
        first, *lines = part.splitlines()
        if header := DEFINE.match(first):
            matches = filter(None, map(ASSIGNMENT.match, lines))
            body = tuple(llvm_instruction(*match.groups()) for match in matches)
            functions[header[1] or header[2]] = LlvmFunction(header[3] or "", body, part)
    return functions


def llvm_instruction(name: str, text: str, opcode: str) -> LlvmInstruction:
    match = FLOAT.match(text)
    if not match:
        return LlvmInstruction(name, opcode, 0, (), text)
    return LlvmInstruction(name, opcode, int(match[1] or 1), (match[2], match[3]), text)


def machine_code(data: bytes, file: str) -> dict[str, ObjectCode]:
    """The functions of an ELF object file, by symbol, disassembled.

    Raises TflabError for another format, and for processors other than x86-64 and AArch64.
    """
    import capstone
    from elftools.elf.elffile import ELFFile

    processors = {
        "EM_X86_64": ("x86-64", capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "EM_AARCH64": ("AArch64", capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }
    try:
        elf = ELFFile(io.BytesIO(data))
        processor = elf["e_machine"]
        functions = list(function_bytes(elf))
    except Exception as error:  # pyelftools raises many types for a damaged file
        raise TflabError(f"{file} is not an object file that tflab can read: {error}.") from error
    if processor not in processors:
        raise TflabError(
            f"The object file {file} is for {processor}; tflab disassembles x86-64 and AArch64."
        )
    machine, architecture, mode = processors[processor]
    disassembler = capstone.Cs(architecture, mode)
    disassembler.skipdata = True  # data between instructions are listed as bytes
    codes = {}
    for name, start, code in functions:
        instructions = disassembler.disasm(code, start)
        lines = (Instruction(i.address, i.bytes.hex(), i.mnemonic, i.op_str) for i in instructions)
        codes[name] = ObjectCode(machine, len(code), tuple(lines))
    return codes


def function_bytes(elf: Any) -> Iterator[tuple[str, int, bytes]]:
    """(symbol, address, bytes) of each function of an ELFFile."""
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(symbol["st_shndx"], int):
            start, size = symbol["st_value"], symbol["st_size"]
            code = elf.get_section(symbol["st_shndx"]).data()[start : start + size]
            yield symbol.name, start, bytes(code)
