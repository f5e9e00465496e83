"""View of generated code: the kernels of a cluster as HLO, LLVM IR and machine instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tflab.cli import environment
from tflab.records.blocks import Block, Column, Frame, Strip, numbers, table
from tflab.records.placed import CompiledKernel, Generated
from tflab.records.stages import Placement
from tflab.units import plural
from tflab.views.words import counted

SHOWN = 4  # kernels; the listings have the rest
LARGEST = 12  # kernels of the table
LINES = 4  # of a language
INSTRUCTIONS = "A listing of machine instructions"
BYTES = numbers("bytes of code", lambda kernel: f"{kernel.bytes:,}")
# Instructions of LLVM IR, x86-64 and AArch64 that compute with floating-point numbers
ARITHMETIC = re.compile(
    r"\b(?:f(?:mul|add|sub|div|ml[as]|n?madd|n?msub)"
    r"|v?(?:fn?m)?(?:mul|add|sub|div)(?:132|213|231)?[ps][sd])\b"
)


def blocks(code: Generated, stage: Placement) -> Iterable[Block]:
    size = sum(kernel.bytes for kernel in code.kernels)
    opcodes = counted(opcode for kernel in code.kernels for opcode in kernel.opcodes)
    yield (
        f"XLA compiled {code.cluster} to compute {', '.join(code.fetches)} for a batch of "
        f"{code.batch_size}: {plural(len(code.kernels), 'kernel')} of {opcodes}{bytes_of(size)}."
    )
    if not size and (sentence := environment.lack(INSTRUCTIONS, *environment.EXTRAS["code"])):
        yield sentence
    ran = any(fate.fate == "compiled" for fate in stage.ledger)
    not_run = "" if ran else ", in code that XLA would generate (not run here)"
    larger = sorted(code.kernels, key=lambda kernel: -kernel.bytes)
    own = [kernel for kernel in larger if kernel.bytes or (not size and kernel.llvm)]
    for kernel in own[:SHOWN]:
        yield Strip(f"{kernel.name}: {', '.join(kernel.nodes)}{not_run}", tuple(listings(kernel)))
    yield (
        f"The complete listings are in the logdir, under code/{code.cluster}, if the command runs "
        "all stages or has --logdir DIR."
    )
    if len(code.kernels) > 1:
        yield table(
            "Kernels of the cluster; one without code shares the code of another kernel, or is "
            "done by the runtime",
            larger,
            Column("kernel", lambda kernel: kernel.name),
            Column("fuses", lambda kernel: counted(kernel.opcodes), elastic=True),
            *([BYTES] if size else []),
            most=LARGEST,
        )


def bytes_of(size: int) -> str:
    """Return `, 1,234 bytes of machine code`; "" for a function that has no code of its own."""
    return f", {size:,} bytes of machine code" if size else ""


def listings(kernel: CompiledKernel) -> Iterable[Frame]:
    """Yield the kernel in each language by its first lines, but only those instructions that
    compute with floating-point numbers."""
    languages = {"HLO": kernel.hlo, "LLVM IR": kernel.llvm, "machine code": kernel.machine}
    for language, lines in languages.items():
        chosen = [line for line in lines if ARITHMETIC.search(line)] or lines
        shown = [" ".join(line.split()) for line in chosen[:LINES]]
        about = plural(len(lines), "line")
        if len(chosen) < len(lines):
            about += f", {len(chosen):,} of floating-point arithmetic"
        if (more := len(chosen) - LINES) > 0:
            shown.append(f"... and {more:,} more")
        if lines:
            yield Frame(language, about, tuple(shown))


def lines_of(kernel: CompiledKernel) -> Iterable[str]:
    """Yield the kernel as lines of text."""
    yield f"{kernel.name}: {counted(kernel.opcodes)}{bytes_of(kernel.bytes)}"
    for part in listings(kernel):
        for number, line in enumerate(part.lines):
            yield f"{'' if number else part.heading:13}{line}"
