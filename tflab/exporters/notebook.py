"""Notebook: the blocks of a view as HTML for a cell. All text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jinja2

from tflab.records.blocks import HTML, Block, Table, readable

CELLS = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """
{% for block in blocks %}
{% if block is string %}
<p>{{ block }}</p>
{% else %}
<table>
<caption>{{ block.title }}</caption>
<tr>{% for column in block.columns %}<th>{{ column.header }}</th>{% endfor %}</tr>
{% for cells in block.cells() %}
<tr>{% for cell in cells %}
<td style="{{ "text-align: right" if block.columns[loop.index0].right else "text-align: left" }}
{{- "; white-space: pre; font-family: monospace" if block.drawing else "" }}">{{ cell }}</td>
{% endfor %}</tr>
{% endfor %}
</table>
{% if block.more %}<p>... and {{ "{:,}".format(block.more) }} more</p>{% endif %}
{% endif %}
{% endfor %}
"""
)


def show_as(record: type, blocks: Callable[[Any], Iterable[Block]]) -> None:
    """Let a notebook show records of this type as the blocks that `blocks` makes of them."""
    HTML[record] = lambda shown: render(blocks(shown))


def render(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML."""
    return CELLS.render(blocks=list(map(readable, blocks)))


show_as(Table, lambda table: [table])
