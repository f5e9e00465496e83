"""Notebook: the blocks of a story as HTML that stands in a cell. Everything in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jinja2

from tflab import story
from tflab.records import Comparison, Life
from tflab.story import comparison, life
from tflab.table import Block, Strip, Table

ROWS = 10  # of a comparison's tables
CELLS = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """
{% for block in blocks %}
{% if block is string %}
<p>{{ block }}</p>
{% elif block.frames is defined %}
<p><b>{{ block.title }}</b></p>
{% for frame in block.frames %}
{% if frame.heading %}<p>{{ frame.heading }} <i>{{ frame.about }}</i></p>{% endif %}
<ul>{% for line in frame.lines %}<li>{{ line }}</li>{% endfor %}</ul>
{% endfor %}
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


def render(shown: Any) -> str:
    """A stage, a comparison, a life or a table as HTML."""
    return CELLS.render(blocks=list(blocks(shown)))


def blocks(shown: Any) -> Iterable[Block]:
    if isinstance(shown, Table | Strip):
        return [shown]
    if isinstance(shown, Comparison):
        return comparison.tell(shown, ROWS)
    if isinstance(shown, Life):
        return life.tell(shown)
    return [f"{story.title(shown)}: {story.summary(shown)}.", *story.tell(shown)]
