"""Markdown for reports. Drawings keep their columns in a code block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tflab.escaping import visible
from tflab.records.blocks import Block, Table

Environment = Mapping[str, Any]  # what `cli.environment.describe` returns, or names and values


def page(
    heading: str,
    environment: Environment,
    titled: Mapping[str, Iterable[Block]],
    error: str | None = None,
) -> str:
    """Return a page: the machine, blocks without a title (""), then each numbered title."""
    parts = [f"# {escape(heading)}", escape(machine(environment))]
    for number, (title, blocks) in enumerate(titled.items(), 0 if "" in titled else 1):
        parts += [f"## {number}. {escape(title)}"] if title else []
        parts += map(rendered, blocks)
    if error:
        parts.append(f"**Stopped here:** {escape(error)}")
    return "\n\n".join(parts) + "\n"


def rendered(block: Block) -> str:
    return paragraph(block) if isinstance(block, str) else table(block)


def machine(environment: Environment) -> str:
    if "packages" not in environment:  # of a measurement from a file: names and values
        return f"{'; '.join(f'{what}: {value}' for what, value in environment.items())}."
    packages = ", ".join(f"{name} {v}" for name, v in environment["packages"].items() if v)
    return (
        f"{environment['cpus']} CPUs ({environment['processor']}), {environment['os']}, "
        f"Python {environment['python']}, {packages}."
    )


def table(block: Table) -> str:
    lines = [f"**{escape(block.title)}**", ""] if block.title else []
    header = [column.header for column in block.columns]
    if block.drawing:
        drawn = [list(map(visible, cells)) for cells in (header, *block.cells())]
        widths = [max(map(len, column)) for column in zip(*drawn, strict=True)]
        padded = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in drawn)
        lines.append(fenced("\n".join(padded)))
    elif len(header) == 1 and not header[0]:  # sentences
        lines += [f"- {paragraph(cell)}" for (cell,) in block.cells()]
    else:
        rules = ["---:" if column.right else "---" for column in block.columns]
        rows = [map(escape, header), rules, *(map(escape, cells) for cells in block.cells())]
        lines += [f"| {' | '.join(cells)} |" for cells in rows]
    if block.more:
        lines += ["", block.rest()]
    return "\n".join(lines)


def fenced(text: str) -> str:
    """Return a code block. Its fences are longer than any fence in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


# What is Markdown anywhere, at the start of a line, and what GitHub makes an address of
MARKUP = re.compile(r"([\\`*_~\[\]<>|$])")
OPENING = re.compile(r"^(\d{0,9})(?=[-+#.)]([-#\s]|$))")
ADDRESS = re.compile(r"(?<=[a-zA-Z])(?=://)|(?<=www)(?=\.)")


def escape(text: str) -> str:
    """Return text that cannot become Markdown, HTML or an address, whatever it contains."""
    text = " ".join(visible(text).split()).replace("&", "&amp;")
    return ADDRESS.sub(r"\\", MARKUP.sub(r"\\\1", text))


def paragraph(text: str) -> str:
    """Return a text escaped so that its beginning is neither a heading nor an item of a list."""
    return OPENING.sub(r"\1\\", escape(text))
