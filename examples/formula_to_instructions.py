"""A compiler takes a formula as a whole: several nodes become one loop of vector instructions.

Without a compiler, the runtime calls a ready-made kernel for each node. XLA turns the nodes into
HLO operations, fuses them, and writes a loop for each fusion; LLVM turns that into instructions of
this processor. Look at how three nodes become one loop, at what one iteration does and to how many
elements at once, and at how the times compare for short and for long arrays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.records.blocks import Table
from tflab.records.options import Model, Options
from tflab.records.placed import Generated
from tflab.records.stages import Placement
from tflab.runtime import session
from tflab.views import placement

SIZES = (1_024, 1_048_576)
ROUNDS = 100
FREQUENT = 5  # words that are listed
LLVM = re.compile(r"%[\w.]+ = |store |br |ret |tail call |call ")


def build() -> Model:
    x = tf1.placeholder(tf.float32, [None], name="x")
    y = tf1.get_variable("y", initializer=3.0, use_resource=True)
    z = tf1.get_variable("z", initializer=2.0, use_resource=True)
    output = tf.nn.relu(x * y + z, name="relu")
    return Model(output, feeds={x: "x"}, data=noise)


def noise(split: str, data_dir: str | None = None) -> Dataset:
    x = np.random.default_rng(2).normal(size=max(SIZES)).astype(np.float32)
    return Dataset("noise", split, {"x": x})


def levels(code: Generated, placed: Placement) -> Iterator[tuple[str, int, str]]:
    """How many words the formula takes in each language, and the most frequent ones."""
    run = {fate.name for fate in placed.ledger if fate.fate == "executed"}
    nodes = [node for node in placed.user_nodes if node.name in run and node.inputs]
    yield "graph", *count_words(node.op for node in nodes)
    kernels = code.kernels
    yield "HLO, fused", *count_words(opcode for kernel in kernels for opcode in kernel.opcodes)
    lines = [line.strip() for kernel in kernels for line in kernel.llvm]
    statements = (line.rpartition(" = ")[2] for line in lines if LLVM.match(line))
    yield "LLVM IR", *count_words(statement.split()[0] for statement in statements)
    machine = (line.split() for kernel in kernels for line in kernel.machine)
    yield "machine code", *count_words(words[2] for words in machine if len(words) > 2)


def count_words(words: Iterable[str]) -> tuple[int, str]:
    counts = Counter(words)
    return counts.total(), ", ".join(f"{n} {word}" for word, n in counts.most_common(FREQUENT))


def main() -> None:
    *_, placed = lifecycle.walk("__main__:build", stop="placement")
    assert isinstance(placed, Placement)
    if not placed.generated:
        raise TflabError(" ".join(placed.notes))
    (code,) = placed.generated
    step = session.step_of(placed.program, placed.fetches)
    rows = []
    for size in SIZES:
        ways = (Options(batch_size=size), Options(batch_size=size, xla=True))
        usual_ns, xla_ns = lesson.in_rotation(placed.program, step, ways, ROUNDS)
        rows += [
            (size, "node by node", *lesson.spread(usual_ns), ""),
            (size, "XLA", *lesson.spread(xla_ns), lesson.against(usual_ns, xla_ns)),
        ]
    lesson.show(
        lesson.table(
            "The same formula, from language to language",
            ("language", "words", "most frequent"),
            levels(code, placed),
        ),
        *(block for block in placement.code_of_cluster(code, placed) if isinstance(block, Table)),
        lesson.table(
            f"A step, {ROUNDS} of each in turn",
            ("elements", "way", "median", "p10", "p90", "against node by node"),
            rows,
        ),
    )


if __name__ == "__main__":
    lesson.give(main)
