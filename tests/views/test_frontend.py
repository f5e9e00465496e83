"""The view of the frontend, from graphs made by hand."""

from dataclasses import replace
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.printed import approve_view
from tests.records_by_hand import a_frontend, source
from tflab.records.blocks import in_full
from tflab.records.graph import Access, BranchInput, Call, Function, Node, Tensor, Unordered
from tflab.views import frontend, stages

LINE_23 = source(23, "out = x * y")
X = Node("x", "Placeholder", outputs=(Tensor("float32", (None, 10)),), source=source(20, "x = 1"))
Y = Node("y", "VarHandleOp", outputs=(Tensor("resource", ()),), source=source(21, "y = 2"))
READ = Node("mul/Read", "ReadVariableOp", ("y",), (), "", (Tensor("float32", ()),), LINE_23)
MUL = Node("mul", "Mul", ("x", "mul/Read"), (), "", (Tensor("float32", None),), LINE_23)
SPLIT = Node(
    "split", "Split", ("mul",), outputs=(Tensor("float32", (None, 4)), Tensor("int32", (0, 6)))
)
INIT = Node("init", "NoOp", control_inputs=("y",), source=source(20, "init()", "start.py"))
THEN = Function(
    "then_1",
    called_by=(Call("cond", "then_branch"),),
    nodes=(
        Node("t", "_Arg", outputs=(Tensor("float32", (3,)),), source=source(30, "def f(t):")),
        Node("neg", "Neg", ("t",), (), "", (Tensor("float32", (3,)),), source(31, "return -t")),
    ),
    returns=("neg:0",),
)
BODY = Function(
    "body_2",
    called_by=(Call("inner", "", "then_1"), Call("while", "body"), Call("other", "f")),
    nodes=(
        Node("print", "Print"),
        Node("i", "_Arg", source=source(40)),
        Node("next/one", "Const", source=source(41)),
        Node("next", "AddV2", ("i", "next/one"), source=source(42)),
    ),
    returns=("next:1", "i"),
)
GONE = Function("gone_3")
NODES = (INIT, X, Y, READ, MUL, SPLIT)
STAGE = a_frontend(
    SimpleNamespace(ends=("split",)),
    NODES,
    functions=(THEN, BODY, GONE),
    notes=("A loss was made up.",),
)

SMALL = (
    Node("in", "Placeholder", source=source(3)),
    Node("layer/kernel", "VarHandleOp", source=source(5)),
    Node("layer/kernel/Assign", "AssignVariableOp", ("layer/kernel",), source=source(6)),
    Node("layer/add", "AddV2", ("in", "layer/kernel"), source=source(7)),
    *(Node(f"rest/c{n}", "Const", source=source(9, file="rest.py")) for n in range(36)),
)
LARGE = (*SMALL, Node("rest/last", "Exp", ("rest/c0",)))
WITHOUT_LINES = (Node("a", "Const"), Node("b", "Exp", ("a",)), Node("c", "Add", ("a", "b"), ("b",)))
CALLED = Function("f", (Call("a", "f"),), (Node("p", "Exp"), Node("q", "Exp"), Node("r", "Log")))
MANY = tuple(
    Function(f"f{n}", (Call(f"call{n}", ""),), (Node("a", "Exp"),) * (n + 2)) for n in range(43)
)
MADE = {9: 2, 8: 1, 7: 3, 6: 2, 5: 2, 4: 1, 3: 2, 2: 1}  # line -> nodes
LONG = tuple(
    Node(f"n{line}.{place}", "Exp", source=source(line))
    for line, count in MADE.items()
    for place in range(count)
)

# Title -> what is different
VARIANTS = {
    "without a program": {"program": None},
    "a file without lines": {"program": None, "nodes": WITHOUT_LINES, "notes": ()},
    "one function that is called and has no lines": {"functions": (CALLED,)},
    "one function that nobody calls": {"functions": (replace(CALLED, called_by=()),)},
    "many functions": {"functions": MANY},
    "seven lines": {"nodes": LONG[:-1]},
    "eight lines": {"nodes": LONG},
    "forty nodes": {"nodes": SMALL},
    "forty-one nodes": {"nodes": LARGE},
}


def test_a_small_graph_is_drawn_whole_and_a_large_one_as_its_scopes():
    variants = {title: stages.blocks(replace(STAGE, **to)) for title, to in VARIANTS.items()}
    approve_view("views-frontend.txt", stages.blocks(STAGE), variants)


def test_scopes_are_opened_in_full():
    nodes = (*LARGE, Node("layer", "Identity"), Node("rest/c0/read", "Identity"))
    closed = stages.blocks(replace(STAGE, nodes=nodes))[3]
    approve_view("views-scopes.txt", [closed], {"in full": [in_full(closed)]})


def test_drawings_and_trees_keep_their_lines_together():
    drawn, tree = stages.blocks(STAGE)[3], stages.blocks(replace(STAGE, nodes=LARGE))[3]
    assert (drawn.drawing, tree.drawing) == (True, True)


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@settings(max_examples=30)
@given(st.lists(PATHS, unique=True))
def test_a_tree_of_scopes_has_every_node_once(names):
    nodes = [(name.split("/"), Node(name, "Op")) for name in names]
    lines = frontend.scopes(nodes)
    assert sorted(node.name for _, inside in lines for node in inside) == sorted(names)
    opened = [text.rpartition(" ")[2] for text, _ in frontend.scopes(nodes, opened=True)]
    paths = {name[: at + 1] for name in names for at in range(0, len(name), 2)}
    assert sorted(opened) == sorted(path.rpartition("/")[2] for path in paths)


# The order of reads and writes

READING = Access("mul/ReadVariableOp", "reads", source(12))
UPDATE = Access("train/update_weight", "writes", source(20))
BETA = Access("beta/Read", "reads", None)
SHOWN = ("shown:0", "loss:0", "a:0", "b:0")
ROWS = (
    Unordered("weight", READING, UPDATE, SHOWN[:1]),
    Unordered("weight", UPDATE, Access("assign", "writes", source(22)), ()),
    Unordered("beta", BETA, UPDATE, ()),
    Unordered("queue", Access("a", "takes", None), Access("b", "takes", None), SHOWN),
)
INPUTS = (BranchInput("z", "Mul", source(7), "then_branch of cond"),) * 5


def order(rows, inputs):
    facts = [*frontend.unordered(rows), *frontend.always_run(inputs)]
    return [f"{fact.label}: {fact.text}" for fact in facts]


def test_the_view_names_both_accesses_with_their_lines_and_what_is_computed_from_them():
    variants = {
        "nothing": order((), ()),
        "two writes": order(ROWS[1:2], INPUTS[:3]),
        "two takes": order(ROWS[3:], INPUTS[:4]),
    }
    approve_view("views-access-order.txt", order(ROWS, INPUTS), variants)
