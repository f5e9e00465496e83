"""Panel: the history of one node as it stands beside a drawing, every name in it a link.

What there is to say comes from `follow.view`; here a node becomes its
number in the page, and a stage or a pass the number of its state in the drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflab.follow import view
from tflab.follow.view import Aside, Code, NodeLink, Part, PassLink
from tflab.records import NodeHistory
from tflab.report.drawn import State


def sections(
    history: NodeHistory, states: Sequence[State], index: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The sections of a history as viewer.js shows them; `index` numbers the nodes."""
    first = {state.stage: number for number, state in reversed(list(enumerate(states)))}
    of_pass = {state.place: number for number, state in enumerate(states)}

    def linked(part: Part) -> Any:
        """A part of a line, as a link where there is something to go to."""
        if isinstance(part, Code):
            return {"code": part.text}
        if isinstance(part, Aside):
            return {"aside": part.text}
        if isinstance(part, NodeLink) and part.node in index:
            return {"node": index[part.node], "text": part.text}
        if isinstance(part, PassLink) and part.place in of_pass:
            return {"state": of_pass[part.place], "text": part.text}
        return part if isinstance(part, str) else part.text

    return [
        {
            "title": section.title,
            "about": section.about,
            "state": first.get(section.stage),
            "lines": [[linked(part) for part in line] for line in section.lines],
        }
        for section in view.sections(history)
    ]
