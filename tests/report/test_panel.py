"""The panel beside a drawing: the parts of a history, as links that the page can follow."""

import json

from tests.approval import approve
from tests.examples.histories import FUSED, KNOWN, PLAIN
from tflab.report import viewer_data
from tflab.report.contents import State

INDEX = {"conv": 0, "relu": 1, "split": 2, "bias": 3, "x": 4}
STATES = tuple(
    State(stage, title, "", (), (), (), place=place)
    for stage, title, place in (
        ("frontend", "Frontend", None),
        ("backward", "With gradients", None),
        ("placement", "layout", 1),
        ("placement", "MklLayoutRewritePass", 4),
        ("placement", "remapper", 6),
        ("execution", "Execution", None),
    )
)


def lines(history, states=STATES) -> str:
    """The sections of a history, a line of JSON for each of its lines."""
    parts = []
    for section in viewer_data.sections(history, states, INDEX):
        parts.append(f"{section['title']}: {section['about']} (state {section['state']})")
        parts += (f"  {json.dumps(line)}" for line in section["lines"])
    return "\n".join(parts)


def test_links_go_to_nodes_and_states_by_their_numbers():
    parts = {
        "a convolution that was fused": lines(FUSED),
        "only the program is drawn": lines(PLAIN, STATES[:1]),
        "nothing is drawn": lines(PLAIN, ()),
        "bookkeeping of gradients": lines(KNOWN["gate"]),
        "a product, with its values": lines(KNOWN["mul"]),
    }
    texts = (f"==== {title}\n{text}\n" for title, text in parts.items())
    approve("report-panel.txt", "\n".join(texts))
