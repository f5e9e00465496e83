"""Generated code: XLA's code for the graph, from node to machine instruction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tflab import xla
from tflab.lifecycle import instrumented_step
from tflab.records import Generated, Machined, Options, Program
from tflab.runtime import session
from tflab.xla import links
from tflab.xla.listings import HloOperation

ROWS = 1024  # enough for XLA to write a loop over vectors; a small batch is unrolled to scalars


def of_output(program: Program, options: Options) -> Iterable[Generated]:
    """The code for the model's output alone, compiled for a batch that fills vectors."""
    rows = min(ROWS, program.dataset("train").size)
    options = replace(options, xla=True, batch_size=rows, devices=1, soft_placement=True)
    fetches = (program.model.output.name,)
    needed = session.step_of(program, fetches)
    observed = instrumented_step.run(program, needed, options)
    return of_modules(observed.modules, fetches, rows)


def of_modules(
    modules: Sequence[xla.Module], fetches: tuple[str, ...], batch_size: int
) -> Iterable[Generated]:
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
            path=tuple(map(code_of, links.arithmetic_links(module))),
            listings=xla.listing_files(module),
        )


def own_bytes(kernel: xla.XlaKernel) -> int:
    """The bytes of a function that several kernels share, counted for the first of them."""
    return kernel.code.size_bytes if kernel.code and kernel.function == kernel.name else 0


def code_of(link: links.CodeLink) -> Machined:
    return Machined(
        node=link.node,
        hlo=f"{link.operation.opcode} in {link.kernel}",
        llvm=tuple(instruction.text for instruction in link.llvm),
        machine=tuple(f"{code.address:#x} {code.mnemonic} {code.operands}" for code in link.code),
        lanes=link.lanes,
        fused=link.fused,
        inferred=link.inferred,
        llvm_owners=owners(link.llvm_owners),
        machine_owners=owners(link.code_owners),
    )


def owners(operations: Iterable[HloOperation]) -> tuple[str, ...]:
    """`add of dense/BiasAdd`, each name once; XLA also makes operations of its own."""
    return tuple(dict.fromkeys(f"{op.opcode} of {op.node or 'XLA itself'}" for op in operations))
