"""View of generated code: one operation, from its line to the vector instruction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab.records.blocks import Block, Column, Frame, Strip, shortened
from tflab.records.placed import Generated, Machined
from tflab.records.stages import Placement
from tflab.units import plural
from tflab.views.words import counted, place

FOLLOWED = 4  # operations; the listings have the rest
LARGEST = 12  # kernels
SHOWN = 2  # instructions of one unrolled operation
OWNERS = 6  # operations that an instruction may belong to


def blocks(code: Generated, stage: Placement) -> Iterable[Block]:
    size = sum(kernel[2] for kernel in code.kernels)
    opcodes = counted(opcode for _, opcodes, _ in code.kernels for opcode in opcodes)
    yield (
        f"XLA compiled {code.cluster} to compute {', '.join(code.fetches)} for a batch of "
        f"{code.batch_size}: {plural(len(code.kernels), 'kernel')} of {opcodes}, "
        f"{size:,} bytes of machine code."
    )
    lines = {node.name: place(node.source) for node in stage.user_nodes}
    sources = {node.name: node.source.code for node in stage.user_nodes if node.source}
    frames = [
        Frame(
            f"{operation.node} {lines.get(operation.node, '')}".rstrip(),
            sources.get(operation.node, ""),
            tuple(steps(operation)),
        )
        for operation in code.path[:FOLLOWED]
    ]
    if frames:
        more = len(code.path) - len(frames)
        rest = f" ({plural(more, 'more operation')} in the listings)" if more else ""
        note = "" if clusters_ran(stage) else ", in code that XLA would generate (not run here)"
        yield Strip(f"From source line to machine instruction{note}{rest}", tuple(frames))
    yield (
        f"The complete listings are in the logdir, under code/{code.cluster}, if the command runs "
        "all stages or has --logdir DIR."
    )
    inferred = sorted({why for operation in code.path for why in operation.inferred})
    if code.fusions_inside:
        unfollowed = "" if frames else " No line can be followed to its instructions here."
        yield (
            f"XLA wrote the code of {plural(code.fusions_inside, 'fusion')} into one function for "
            "the whole cluster, as it does in TensorFlow 2.18, so it cannot be separated. 2.21 "
            f"writes a function for each fusion.{unfollowed}"
        )
    if inferred:
        yield f"Inferred, not read: {'; '.join(inferred)}."
    larger = sorted(code.kernels, key=lambda kernel: -kernel[2])
    if len(code.kernels) > 1:
        yield shortened(
            "Kernels of the cluster; a kernel without code uses the code of an equal kernel, "
            f"{lies_in(code)}or is done by the runtime",
            (
                Column("kernel", lambda kernel: kernel[0]),
                Column("fuses", lambda kernel: counted(kernel[1]), elastic=True),
                Column("bytes of code", lambda kernel: f"{kernel[2]:,}", right=True),
            ),
            larger,
            LARGEST,
        )


def lies_in(code: Generated) -> str:
    return "is in the function of the whole cluster, " if code.fusions_inside else ""


def clusters_ran(stage: Placement) -> bool:
    """Whether XLA's clusters were part of the graph that ran, or were compiled only for display."""
    return any(fate.fate == "compiled" for fate in stage.ledger)


def steps(operation: Machined) -> Iterable[str]:
    """One operation as HLO, LLVM and instructions, with the number of elements that these process
    at once.

    Inferred steps are marked below their lines.
    """
    of_llvm, of_machine = several(operation.llvm_owners), several(operation.machine_owners)
    yield f"HLO      {operation.hlo}"
    yield from marks(operation, "-> function")
    yield from first_of("LLVM", operation.llvm)
    yield from marks(operation, "-> LLVM", of_llvm)
    yield from first_of("machine", operation.machine)
    of_both = (
        ("belong to one or more of the same") if of_llvm and of_machine == of_llvm else of_machine
    )
    yield from marks(operation, "-> machine", of_both)
    if operation.llvm:
        yield f"         {width(operation)}"


def width(operation: Machined) -> str:
    """How many elements an instruction processes; the remainder of an unrolled loop has fewer."""
    lanes = operation.lanes
    words = f"up to {lanes} elements at once" if lanes > 1 else "one element at a time"
    if not operation.fused:
        return words
    whose = "some may be" if several(operation.llvm_owners) else "inferred:"
    return f"{words}; {whose} fused multiply-adds, one instruction for two"


def several(owners: Sequence[str]) -> str:
    """The operations that instructions may belong to, if there are several."""
    if len(owners) < 2:
        return ""
    more = f" and {len(owners) - OWNERS} more" if len(owners) > OWNERS else ""
    return f"belong to one or more of {', '.join(owners[:OWNERS])}{more}"


def marks(operation: Machined, arrow: str, owners: str = "") -> Iterable[str]:
    """`inferred: LLVM -> machine by kind`, and the operations that the instructions may belong
    to."""
    for why in operation.inferred:
        how = why.partition(":")[0]
        if arrow in how:
            yield f"         inferred: {how}"
            if owners:
                yield f"         {owners}"


def first_of(label: str, instructions: tuple[str, ...]) -> Iterable[str]:
    for index, text in enumerate(instructions[:SHOWN]):
        more = len(instructions) - SHOWN
        last = f"   ({more} more like it)" if index == SHOWN - 1 and more > 0 else ""
        yield f"{label if index == 0 else '':<8} {text}{last}"
