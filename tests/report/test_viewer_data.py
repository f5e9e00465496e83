"""What the boxes of a small drawing show of a recorded step, and the panel beside it of a node."""

import json
from dataclasses import replace

from tests.approval import approve
from tests.examples.histories import FUSED, KNOWN, ONE, PLAIN, PRODUCT
from tests.examples.walk import STAGES
from tests.records_by_hand import a_backward, a_frontend
from tflab.analysis.passes import Version
from tflab.follow import node_history
from tflab.records.graph import Node, Source, Tensor
from tflab.report import drawing, viewer_data
from tflab.report.contents import DrawnGraph, State

SHOWN = ("data", "grad", "missing", "meaning", "bookkeeping")


def shown(histories):
    """What the boxes of these nodes show besides their names."""
    nodes = tuple(Node(name, "Op") for name in histories)
    stages = (a_frontend(None, nodes[:4]), a_backward(None, nodes, added_nodes=("seed",)))
    drawn = DrawnGraph("g", drawing.draw(stages, histories), histories, {})
    return {
        node["name"]: {key: node[key] for key in SHOWN if key in node}
        for node in viewer_data.graph_data(drawn)["nodes"]
    }


def test_each_box_has_its_data_its_gradient_and_what_it_computes():
    many = replace(KNOWN["product"], values=(PRODUCT, ONE, PRODUCT))
    blank = {name: replace(history, values=(), gradient=None) for name, history in KNOWN.items()}
    cases = {
        "a recorded step": KNOWN,
        "a node with several outputs": {**KNOWN, "product": many},
        "no step was recorded": blank,
    }
    lines = []
    for title, histories in cases.items():
        lines += ["", title, *(f"  {name}: {box}" for name, box in shown(histories).items())]
    approve("report-boxes.txt", "\n".join(lines))


def test_the_shape_of_a_tensor_is_that_of_the_step_if_both_ran_else_as_its_maker_knew_it():
    def made(name, *shapes):
        return Node(name, "Op", outputs=tuple(Tensor("float32", shape) for shape in shapes))

    versions = {
        "x": [Version(0, 1, made("x", (None, 28, 6), ())), Version(2, 3, made("x", None))],
        "gone": [Version(0, 1, made("gone", (None,)))],
        "same": [Version(0, 3, made("same", None, (None, 28, 6)))],
    }
    ran = {"x": (Tensor("float32", (16, 28, 6)),), "gone": (Tensor("float32", (7,)),)}
    carriers = {"gone": "same"}  # another node ran for it
    histories = {
        name: replace(
            KNOWN["x"], name=name, carrier=carriers.get(name, name), ran_outputs=ran.get(name, ())
        )
        for name in versions
    }
    early, late = 1, 3  # the last states of users
    shapes = {
        ("x", early): "?x28x6",
        ("x", late): "16x28x6",
        ("gone", late): "?",
        ("x:1", early): "",
        ("x:2", early): "",  # a scalar, and no such output
        ("same:1", late): "?x28x6",
        ("same:1", early): "?x28x6",
        ("same", late): "",
    }
    for (tensor, used), shape in shapes.items():
        assert viewer_data.shape_of(tensor, used, 3, versions, histories) == shape


def test_the_lines_of_a_drawing_are_those_of_its_program_or_of_the_file_that_made_most_nodes():
    def line(name, file, number):
        source = Source(file, number, "f", "")
        return replace(KNOWN["x"], name=name, source=source, carries=())

    histories = {"a": line("a", "m.py", 3), "b": line("b", "m.py", 5), "c": line("c", "n.py", 9)}
    histories["d"] = replace(histories["a"], name="d", source=None, carries=("a", "b", "c"))
    histories["e"] = replace(histories["b"], name="e", derived_from="a")  # by `minimize` in line 5
    assert viewer_data.most_of(histories) == "m.py"
    assert viewer_data.lines(histories, "m.py") == [[3], [5], [], [3, 5], [3]]
    assert viewer_data.lines(histories, "n.py") == [[], [], [9], [9], []]
    assert viewer_data.most_of({}) is None


def test_a_closed_scope_has_the_values_of_the_node_of_its_name():
    def box(label, parent, node=None):
        return {"label": label, "parent": parent, "node": node}

    number = {name: place for place, name in enumerate(KNOWN)}
    boxes = [box("Forward", None), box("y", 0), box("y", 1, number["y"]), box("y", 0, number["x"])]
    viewer_data.show_values(KNOWN.values(), [{} for _ in KNOWN], boxes)
    assert boxes[:2] == [boxes[0], {**box("y", 0), "data": "0.5 → 2.25", "grad": "-3.5"}]
    assert boxes[0] == box("Forward", None)


def test_a_large_graph_shows_values_in_the_panel_only():
    def with_nodes(count):
        names = (f"n{number}" for number in range(count - len(KNOWN)))
        return shown({**KNOWN, **{name: replace(KNOWN["mul"], name=name) for name in names}})

    assert with_nodes(viewer_data.LARGE)["y"] == {"data": "0.5 → 2.25", "grad": "-3.5"}
    rows = with_nodes(viewer_data.LARGE + 1)
    assert rows["y"] == {}
    assert rows["product"] == {"meaning": "x * dL/d(mul) -> dL/dy"}


def test_the_values_are_shown_with_the_gradients_and_where_the_graph_ran():
    histories = node_history.histories(STAGES)
    drawn = DrawnGraph("g", drawing.draw(STAGES, histories), histories, {})
    states = viewer_data.graph_data(drawn)["states"]
    assert [state["stage"] for state in states if state["flowed"]] == ["backward", "execution"]


# The panel: the parts of a history, as links that the page can follow

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


def section_lines(history, states=STATES) -> str:
    """The sections of a history, a line of JSON for each of its lines."""
    parts = []
    for section in viewer_data.sections(history, states, INDEX):
        parts.append(f"{section['title']}: {section['about']} (state {section['state']})")
        parts += (f"  {json.dumps(line)}" for line in section["lines"])
    return "\n".join(parts)


def test_links_go_to_nodes_and_states_by_their_numbers():
    parts = {
        "a convolution that was fused": section_lines(FUSED),
        "only the program is drawn": section_lines(PLAIN, STATES[:1]),
        "nothing is drawn": section_lines(PLAIN, ()),
        "bookkeeping of gradients": section_lines(KNOWN["gate"]),
        "a product, with its values": section_lines(KNOWN["mul"]),
    }
    texts = (f"==== {title}\n{text}\n" for title, text in parts.items())
    approve("report-panel.txt", "\n".join(texts))
