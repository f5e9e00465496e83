"""Generated code: what XLA compiled for a cluster, as HLO, LLVM IR and machine instructions.

Nodes become HLO operations, these are fused, each fusion becomes a loop in LLVM IR, and the loop
becomes a function of machine instructions. All of it is read from XLA's own dump, whose format is
that of TensorFlow 2.18 to 2.21.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tflab.cli import environment as package_environment
from tflab.errors import TflabError
from tflab.records.placed import CompiledKernel, Generated

# TensorFlow 2.18 omits the types of arguments and the % of names by default.
DUMPED = "--xla_dump_hlo_as_text --xla_dump_hlo_as_long_text"
READ = "tflab reads the dumps of TensorFlow 2.18 to 2.21."
PASSIVE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}  # compute nothing

BEFORE = re.compile(r"(module_\d+\.(.+)\.)before_optimizations\.txt")
COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
OPERATION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = (?:\(.*?\)|\S+) ([\w\-]+)\(")
CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
# Not of constants: XLA keeps only one of several equal ones, of any node
OP_NAME = re.compile(r'metadata=\{op_type="(?!Const")[^"]*" op_name="((?:[^"\\]|\\.)*)"')
DEFINE = re.compile(r'define [^@]*@(?:"([^"]+)"|([\w.$\-]+))\(')
FUNCTION = re.compile(r"^define .*?^\}", re.MULTILINE | re.DOTALL)  # of LLVM IR
LLVM_METADATA = re.compile(r"(?:, ![\w.]+ ![\w.]+)+$")  # for the optimiser


def environment(folder: str | Path) -> dict[str, str]:
    """Return the environment variables with which XLA compiles and dumps, to be set before
    TensorFlow is imported. The session also needs `global_jit_level = ON_2`. TF_XLA_FLAGS must have
    only this flag: with a second one, Grappler's remapper still fuses convolutions and dense layers
    into kernels of its own, which XLA then cannot compile (seen with TensorFlow 2.21)."""
    if '"' in str(folder):
        raise TflabError(f"XLA cannot write to {folder}: its name contains a quotation mark.")
    return {
        "TF_XLA_FLAGS": "--tf_xla_cpu_global_jit",
        "XLA_FLAGS": f'--xla_dump_to="{folder}" {DUMPED}',
    }


def read(folder: str | Path, fetches: tuple[str, ...], batch_size: int) -> tuple[Generated, ...]:
    """Return the code of each cluster that XLA compiled, in the order of their file names. Raises
    TflabError if there is none, or if the files are in another format."""
    names = sorted(path.name for path in Path(folder).glob("module_*") if path.is_file())
    generated = []
    for match in filter(None, map(BEFORE.fullmatch, names)):
        own = [name for name in names if name.startswith(match[1])]
        after = f"{match[1]}cpu_after_optimizations.txt"
        if after not in own:
            raise TflabError(f"The dump of XLA has no {after}; {READ}")
        llvm: dict[str, list[str]] = {}
        code: dict[str, tuple[int, list[str]]] = {}
        for name in own:
            if name.endswith(".ir-with-opt.ll"):
                for part in FUNCTION.findall(text(Path(folder, name))):
                    lines = [LLVM_METADATA.sub("", line) for line in part.splitlines()]
                    if header := DEFINE.match(lines[0]):
                        llvm[header[1] or header[2]] = lines
            elif name.endswith(".o"):
                code |= machine_code(Path(folder, name).read_bytes())
        hlo = text(Path(folder, after))
        kernels = tuple(kernels_of(hlo, llvm, code))
        listings = {"hlo-before.txt": text(Path(folder, match[0])), "hlo-after.txt": hlo}
        for number, kernel in enumerate(kernels):
            safe = re.sub(r"[^\w\-]", "_", kernel.name)[:80]
            for suffix, code_lines in (("ll", kernel.llvm), ("s", kernel.machine)):
                if code_lines:
                    listings[f"{number:03}-{safe}.{suffix}"] = "\n".join(code_lines) + "\n"
        generated.append(
            Generated(
                cluster=match[2].partition("__XlaCompiledKernel")[0],  # the rest describes the call
                fetches=fetches,
                batch_size=batch_size,
                kernels=kernels,
                listings=listings,
            )
        )
    if not generated:
        raise TflabError("XLA compiled nothing in this step.")
    return tuple(generated)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def kernels_of(
    hlo: str, llvm: dict[str, list[str]], code: dict[str, tuple[int, list[str]]]
) -> Iterator[CompiledKernel]:
    """Yield a kernel for each operation of the entry computation that computes something. A kernel
    has the fused operations, and the LLVM IR and machine code of the function of its name."""
    # Of each computation the names, opcodes and lines of its operations
    computations: dict[str, list[tuple[str, str, str]]] = {}
    entry, current = None, None
    for line in hlo.splitlines():
        if header := COMPUTATION.match(line):
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif current is not None and (match := OPERATION.match(line)):
            current.append((match[1], match[2], line.strip()))
    if entry is None:
        raise TflabError(f"The dump of XLA has an HLO module without an entry; {READ}")
    for name, opcode, line in computations[entry]:
        if opcode in PASSIVE:
            continue
        calls = CALLS.search(line)
        fused = computations.get(calls[1], []) if calls else [(name, opcode, line)]
        work = [(kind, one) for _, kind, one in fused if kind not in PASSIVE]
        lines = [one for _, one in work]
        nodes = [found[1] for found in map(OP_NAME.search, (*lines, line)) if found]
        size, instructions = code.get(name, (0, []))
        yield CompiledKernel(
            name=name,
            opcodes=tuple(kind for kind, _ in work),
            nodes=tuple(dict.fromkeys(nodes)),
            bytes=size,
            hlo=tuple(one.partition(", metadata=")[0] for one in lines),
            llvm=tuple(llvm.get(name, ())),
            machine=tuple(instructions),
        )


def machine_code(data: bytes) -> dict[str, tuple[int, list[str]]]:
    """Return the size and the disassembled instructions of each function of an ELF object file for
    x86-64 or AArch64; nothing for other processors, or without the packages of the extra."""
    if package_environment.missing(*package_environment.EXTRAS["code"]):
        return {}
    import capstone
    from elftools.elf.elffile import ELFFile

    processors = {
        "EM_X86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "EM_AARCH64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }
    elf: Any = ELFFile(io.BytesIO(data)) if data.startswith(b"\x7fELF") else None
    processor = elf["e_machine"] if elf else None
    if processor not in processors:
        return {}
    disassembler = capstone.Cs(*processors[processor])
    disassembler.skipdata = True  # data between instructions are listed as bytes
    functions = {}
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(symbol["st_shndx"], int):
            start, size = symbol["st_value"], symbol["st_size"]
            code = bytes(elf.get_section(symbol["st_shndx"]).data()[start : start + size])
            instructions = [
                f"{i.address:6x}  {i.bytes.hex():24}  {i.mnemonic} {i.op_str}".rstrip()
                for i in disassembler.disasm(code, start)
            ]
            functions[symbol.name] = len(code), instructions
    return functions
