"""Report: each benchmark runs in a separate process, and its result is shown as blocks.

A benchmark is a module with `measure(quick)`, which returns plain data, and `blocks(result)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from tflab.exporters import text
from tflab.records.blocks import Block
from tflab.runtime import processes


def blocks(name: str, quick: bool = False) -> Iterator[Block]:
    result = processes.call(f"benchmarks.{name}:measure", quick)
    yield from importlib.import_module(f"benchmarks.{name}").blocks(result)


def show(name: str) -> None:
    text.show_blocks(blocks(name))
