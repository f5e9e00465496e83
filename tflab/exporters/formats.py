"""Formats: blocks on standard output, in the format that a command's --format names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tflab.exporters import markdown, text
from tflab.records.blocks import Block


def show(
    name: str,
    title: str,
    about: Mapping[str, Any],
    blocks: Iterable[Block],
    **others: Callable[[], str],
) -> None:
    """Print blocks as text or as a page of Markdown; `others` make the formats that no blocks are
    needed for, such as JSON. `about` describes the machine."""
    if name in others:
        print(others[name]().removesuffix("\n"))
    elif name == "markdown":
        print(markdown.page(title, dict(about), blocks), end="")
    else:
        text.show_blocks(blocks)
