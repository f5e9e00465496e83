"""The view of the frontend: every sentence and every cell, of graphs made by hand."""

from types import SimpleNamespace

from tests.records_by_hand import read, source
from tflab.records.blocks import in_full
from tflab.records.graph import Call, Function, Node, Tensor
from tflab.records.stages import Frontend
from tflab.views import frontend, stages

DRAWING = ("", "node", "op", "output", "line", "code")
SCOPES = ("scope", "nodes", "types", "first line")

LINE_23 = source(23, "out = x * y")
X = Node("x", "Placeholder", outputs=(Tensor("float32", (None, 10)),), source=source(20, "x = 1"))
Y = Node("y", "VarHandleOp", outputs=(Tensor("resource", ()),), source=source(21, "y = 2"))
READ = Node("mul/Read", "ReadVariableOp", ("y",), (), "", (Tensor("float32", ()),), LINE_23)
MUL = Node("mul", "Mul", ("x", "mul/Read"), (), "", (Tensor("float32", None),), LINE_23)
SPLIT = Node(
    "split", "Split", ("mul",), outputs=(Tensor("float32", (None, 4)), Tensor("int32", (None, 6)))
)
INIT = Node("init", "NoOp", control_inputs=("y",), source=source(20, "init()", "start.py"))
NODES = (INIT, X, Y, READ, MUL, SPLIT)
PROGRAM = SimpleNamespace(ends=("split",))

COUNTS = "6 nodes, 5 edges, made by 4 lines of the program. Nothing is computed yet."
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
        Node("i", "_Arg", source=source(40)),
        Node("next/one", "Const", source=source(41)),
        Node("next", "AddV2", ("i", "next/one"), source=source(42)),
    ),
    returns=("next", "i"),
)
GONE = Function("gone_3")
FUNCTIONS = (THEN, BODY, GONE)

FUNCTION_SENTENCE = "3 functions with 5 nodes of their own; 1 of them are never called."
FUNCTION_TABLE = [
    "Functions (--full shows their bodies)",
    ("function", "called by", "nodes", "types", "first line"),
    ("then_1", "then_branch of cond", "2", "_Arg, Neg", "model.py:31"),
    ("body_2", "inner in then_1 and 2 more", "3", "_Arg, Const, AddV2", "model.py:41"),
    ("gone_3", "nothing", "0", "(not in the graph's library)", ""),
    "",
]


def shown(stage: Frontend, full: bool = False) -> list:
    return list(map(read, stages.blocks(stage, full)))


def test_a_small_graph_is_drawn_whole_what_leads_to_its_ends_first():
    stage = Frontend(PROGRAM, NODES, notes=("A loss was made up.",))
    assert shown(stage) == [
        COUNTS,
        "A loss was made up.",
        [
            "The graph, data flowing down",
            DRAWING,
            ("●    ", "x", "Placeholder", "float32 [?, 10]", "model.py:20", "x = 1"),
            ("│ ●  ", "y", "VarHandleOp", "resource []", "model.py:21", "y = 2"),
            ("│ ├─●", "mul/Read", "ReadVariableOp", "float32 []", "model.py:23", "out = x * y"),
            ("●─│─╯", "mul", "Mul", "float32 [...]", "model.py:23", "out = x * y"),
            ("● │  ", "split", "Split", "float32 [?, 4], int32 [?, 6]", "", ""),
            ("  ●  ", "init", "NoOp", "", "start.py:20", "init()"),
            "",
        ],
    ]


def test_without_a_program_the_nodes_are_drawn_in_their_own_order():
    _, drawn = shown(Frontend(None, NODES))
    assert [row[:2] for row in drawn[2:-1]] == [
        ("●    ", "y"),
        ("├─●  ", "init"),
        ("│   ●", "x"),
        ("●   │", "mul/Read"),
        ("●───╯", "mul"),
        ("●    ", "split"),
    ]


def test_a_graph_is_drawn_whole_up_to_forty_nodes():
    nodes = (
        Node("in", "Placeholder", source=source(3)),
        Node("layer/kernel", "VarHandleOp", source=source(5)),
        Node("layer/kernel/Assign", "AssignVariableOp", ("layer/kernel",), source=source(6)),
        Node("layer/add", "AddV2", ("in", "layer/kernel"), source=source(7)),
        *(Node(f"rest/c{n}", "Const", source=source(9, file="rest.py")) for n in range(36)),
    )
    _, drawn = shown(Frontend(PROGRAM, nodes))
    assert (drawn[1], len(drawn)) == (DRAWING, 43)  # with title, headers and what was left out
    counts, tree = shown(Frontend(PROGRAM, (*nodes, Node("rest/last", "Exp", ("rest/c0",)))))
    assert counts == "41 nodes, 4 edges, made by 5 lines of the program. Nothing is computed yet."
    assert tree == [
        "Name scopes (--full opens all)",
        SCOPES,
        ("├─ in", "1", "Placeholder", "model.py:3"),
        ("├─ layer", "3", "VarHandleOp, AssignVariableOp, AddV2", "model.py:5"),
        ("╰─ rest", "37", "36 Const, Exp", "rest.py:9"),
        "",
    ]
    whole = in_full(stages.blocks(Frontend(PROGRAM, nodes[:3] * 14))[1])
    assert read(whole)[2:-1] == [
        ("├─ in", "1", "Placeholder", "model.py:3"),
        ("╰─ layer", "2", "VarHandleOp, AssignVariableOp", "model.py:5"),
        ("   ╰─ kernel", "2", "VarHandleOp, AssignVariableOp", "model.py:5"),
        ("      ╰─ Assign", "1", "AssignVariableOp", "model.py:6"),
    ]


def test_drawings_and_trees_keep_their_lines_together():
    long = tuple(Node(f"n{number}", "Exp") for number in range(41))
    blocks = [
        *stages.blocks(Frontend(PROGRAM, NODES)),
        *stages.blocks(Frontend(PROGRAM, long)),
    ]
    assert [block.drawing for block in blocks if not isinstance(block, str)] == [True, True]


def test_a_graph_from_a_file_has_no_lines():
    nodes = (Node("a", "Const"), Node("b", "Exp", ("a",)), Node("c", "Add", ("a", "b"), ("b",)))
    assert shown(Frontend(None, nodes)) == [
        "3 nodes, 4 edges, read from a file without lines. Nothing is computed yet.",
        [
            "The graph, data flowing down",
            DRAWING,
            ("●  ", "a", "Const", "", "", ""),
            ("├─●", "b", "Exp", "", "", ""),
            ("●─╯", "c", "Add", "", "", ""),
            "",
        ],
    ]


def test_functions_are_listed_with_who_calls_them():
    _, _, *blocks = shown(Frontend(PROGRAM, NODES, functions=FUNCTIONS))
    assert blocks == [FUNCTION_SENTENCE, FUNCTION_TABLE]


def test_in_full_the_body_of_each_function_is_drawn():
    functions = (THEN, BODY)
    _, _, *blocks = shown(Frontend(PROGRAM, NODES, functions=functions), full=True)
    assert blocks[2:] == [
        "'then_1' returns neg:0; its arguments are nodes of the type _Arg.",
        [
            "The function then_1",
            DRAWING,
            ("●", "t", "_Arg", "float32 [3]", "model.py:30", "def f(t):"),
            ("●", "neg", "Neg", "float32 [3]", "model.py:31", "return -t"),
            "",
        ],
        "'body_2' returns next, i; its arguments are nodes of the type _Arg.",
        [
            "The function body_2",
            DRAWING,
            ("●  ", "i", "_Arg", "", "model.py:40", ""),
            ("│ ●", "next/one", "Const", "", "model.py:41", ""),
            ("●─╯", "next", "AddV2", "", "model.py:42", ""),
            "",
        ],
    ]


def test_what_leads_to_a_functions_results_is_drawn_first():
    nodes = (Node("print", "Print"), Node("one", "Const"), Node("two", "Exp", ("one",)))
    function = Function("f", nodes=nodes, returns=("two:1",))
    _, drawn = map(read, frontend.body(function))
    assert [row[1] for row in drawn[2:-1]] == ["one", "two", "print"]


def test_a_function_of_more_than_forty_nodes_is_a_tree():
    function = Function("f", nodes=tuple(Node(f"s/{n}", "Const") for n in range(41)))
    sentence, tree = map(read, frontend.body(function))
    assert sentence == "'f' returns nothing; its arguments are nodes of the type _Arg."
    assert tree == [
        "Name scopes of f",
        SCOPES,
        ("╰─ s", "41", "41 Const", ""),
        "",
    ]


def test_functions_that_are_all_called_and_have_no_lines():
    functions = (
        Function("f", (Call("a", "f"),), (Node("p", "Exp"), Node("q", "Exp"), Node("r", "Log"))),
    )
    assert list(map(read, frontend.functions(Frontend(None, (), functions=functions), False))) == [
        "1 function with 3 nodes of its own.",
        [
            "Functions (--full shows their bodies)",
            ("function", "called by", "nodes", "types"),
            ("f", "f of a", "3", "2 Exp, Log"),
            "",
        ],
    ]


def test_one_function_that_nobody_calls():
    stage = Frontend(None, (), functions=(Function("f", (), (Node("p", "Exp"),)),))
    first, _ = frontend.functions(stage, False)
    assert first == "1 function with 1 node of its own; it is never called."


def test_forty_functions_are_listed_and_the_others_counted():
    functions = [
        Function(f"f{n}", (Call(f"call{n}", ""),), (Node("a", "Exp"),) * (n + 2)) for n in range(43)
    ]
    assert read(frontend.function_table("Functions", functions)) == [
        "Functions",
        ("function", "called by", "nodes", "types"),
        *((f"f{n}", f"call{n}", f"{n + 2}", f"{n + 2} Exp") for n in range(40)),
        "... and 3 more",
    ]
