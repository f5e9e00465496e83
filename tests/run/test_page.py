"""A watched program as a page and as a file: all rows worked out by hand."""

import json
import re
from dataclasses import replace

import pytest

from tests.run.test_summary import GROUPS, WATCHED
from tests.shown import grid, layout
from tflab.cli import saved_files
from tflab.errors import UsageError
from tflab.follow import node_history, recorded
from tflab.records.blocks import Table
from tflab.records.graph import Node, Source
from tflab.records.placed import Fate, Pass, Takeover
from tflab.records.values import Entered, NotFinite, Value
from tflab.records.watched import OpTimes, Recorded, RecordedValues, Tracing, WatchedLine
from tflab.report import html
from tflab.report.contents import Annotated, ScriptLine
from tflab.run import line_table, page, view

CODE = """import tensorflow as tf
x = tf.placeholder(tf.float32)
m = tf.matmul(x, w)
y = tf.nn.relu(m + 2 * 3)
init = tf.zeros([])
loss = y </script>
"""


def graph_of(file):
    """`m` is fused into `y`, `six` is folded, `init` is not needed, `g` is the gradient of `y`."""
    lines = dict(enumerate(CODE.splitlines(), 1))

    def made(number):
        return Source(file, number, "<module>", lines[number])

    def node(name, line, *inputs, phase="forward"):
        return Node(name, "Op", inputs, source=made(line), phase=phase)

    nodes = (
        node("x", 2),
        node("m", 3, "x"),
        node("six", 4),
        node("y", 4, "m", "six"),
        node("init", 5),
        node("g", 4, "y", phase="backward"),
    )
    gone = (Takeover("m", "fused", "y"), Takeover("init", "removed", None))
    step = Pass("remapper", 0, 6, 4, removed=("m", "init"), taken=gone)
    fates = ("executed", "fused", "folded", "executed", "unreached", "executed")
    into = {"m": "y"}
    ledger = tuple(
        Fate(node.name, fate, None, into.get(node.name))
        for node, fate in zip(nodes, fates, strict=True)
    )
    return Recorded(
        group=2,
        nodes=nodes,
        derived={"g": "y"},
        variables=1,
        fetches=("g:0",),
        executed=(Node("x", "Op"), Node("six", "Const"), Node("y", "_Fused", ("x", "six"))),
        passes=(step,),
        ledger=ledger,
        origins=(),
        assignments=(),
        kernels=(),
        traced=2,
        ops={"y": OpTimes(2, 1_000), "x": OpTimes(4, 30)},
    )


NOTHING = dict.fromkeys(("mean", "min", "max"))
VALUES = RecordedValues(
    group=2,
    run=3,
    ns=900,
    values=(
        Value(
            **{**NOTHING, "mean": -2.0, "min": -3e38, "max": -1.5},
            values=(-3e38, -1.5, "NaN"),
            not_finite=1,
            tensor="y:0",
            node="y",
            op="_Fused",
            kind="computed",
            dtype="float32",
            shape=(3,),
            after=None,
            moved=None,
        ),
        Value(
            **NOTHING,
            values=("text", True, 7),
            not_finite=0,
            tensor="six:0",
            node="six",
            op="Const",
            kind="constant",
            dtype="string",
            shape=(3,),
            after=None,
            moved=None,
        ),
    ),
    origins=(
        NotFinite(
            *("y:0", "y", "_Fused", "computed", "float32", 1, 0, 3),
            source=None,
            derives=None,
            overflow=False,
            entered=(Entered("x", 2, 2, 0, 1, -4.0, 1e300),),
        ),
    )
    * 3,
    not_finite=("g:0",),
)


@pytest.fixture
def seen(tmp_path):
    file = str(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(CODE)
    lines = (
        WatchedLine(file, 4, "y = tf.nn.relu(m + 2 * 3)", ("y", "six", "g"), 500, 250, 0, 0, 8),
        WatchedLine(file, 1, "import tensorflow as tf", (), 0, 0, 0, 150, 0, 0, 5),
        WatchedLine(file, 3, "m = tf.matmul(x, w)", ("m",), 0, 0, 0, 0, 0),
    )
    return replace(WATCHED, program=(file,), lines=lines, graph=graph_of(file))


def annotated(seen):
    (part,) = [part for part in page.report(seen).chapters[1].parts if isinstance(part, Annotated)]
    return part


def test_each_line_has_its_times_its_nodes_and_what_became_of_them(seen):
    """No line has updates or calls TensorFlow outside of runs: these columns are omitted."""
    (script,) = annotated(seen).scripts
    assert annotated(seen).headers == ("forward", "backward", "waiting", "Python", "op runs")
    nothing = ("",) * 5
    python = ("", "", "5 ns", "150 ns", "")
    assert script.lines == (
        ScriptLine(1, "import tensorflow as tf", python, 155 / 750, "", ()),
        ScriptLine(2, "x = tf.placeholder(tf.float32)", nothing, None, "", ("x",)),
        ScriptLine(3, "m = tf.matmul(x, w)", nothing, None, "fused into line 4", ("m",)),
        ScriptLine(
            4,
            "y = tf.nn.relu(m + 2 * 3)",
            ("500 ns", "250 ns", "", "", "8"),
            1.0,
            "1 of 3 nodes folded",
            ("six", "y", "g"),
        ),
        ScriptLine(5, "init = tf.zeros([])", nothing, None, "not needed by this group", ("init",)),
        ScriptLine(6, "loss = y </script>", nothing, None, "", ()),
    )


def test_the_groups_of_runs_are_a_table(seen):
    (table,) = page.groups(seen)
    numbers = ("group", "runs", "first", "median", "all others", "traced")
    texts = ("fetches gives way to 16", "fed gives way to 16")
    assert layout(table) == [*(f"{name} right" for name in numbers), *texts]
    assert grid(table) == [
        "Runs of the same graph, fetches and fed shapes",
        (*numbers, "fetches", "fed"),
        ("1", "1", "500 ns", "", "", "0", "init", ""),
        ("2", "5", "900 ns", "900 ns", "4.00 us", "2", "loss:0, train", "x:0 (8, 4)"),
        0,
    ]
    assert [*page.groups(replace(seen, groups=()))] == []


def test_the_process_has_its_groups_its_functions_and_its_values(seen):
    traced = (Tracing("step", "train.py:3", False, (), 500_000),)
    whole, _ = page.report(replace(seen, tracings=traced, values=VALUES)).chapters
    titles = [part.title for part in whole.parts if isinstance(part, Table)]
    assert titles[:3] == [
        "Where the time went",
        "Runs of the same graph, fetches and fed shapes",
        "Functions that were traced",
    ]
    assert len(titles) == 4


def test_the_files_of_a_program_begin_with_its_own_then_the_costliest(seen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    others = [
        WatchedLine(str(file), 1, "pass", (), ns, 0, 0, 0, 0)
        for file, ns in ((tmp_path / "b.py", 7), (tmp_path / "a.py", 7), ("/lib/c.py", 5_000))
    ]
    named = [script.name for script in page.scripts(replace(seen, lines=(*others, *seen.lines)))]
    assert named == ["train.py", "/lib/c.py", "a.py", "b.py"]


def test_the_columns_are_explained_above_the_lines(seen):
    columns = (
        "Forward, backward and updates are the time of the nodes that a line made, with their "
        "gradients, and waiting is the time in which they waited for data, in all runs except the "
        "first ones, estimated from the traced runs. Python is the time of the line itself, and "
        "TensorFlow is the time of its calls to TensorFlow and Keras. Both are sampled outside of "
        "runs. The times of ops are estimates from few traced runs: 2 of the 4 of group 2."
    )
    assert page.explained(replace(seen, graph=None)) == columns
    assert page.explained(seen).startswith(f"{columns} The drawing and the notes behind the lines")


def test_a_line_is_free_only_where_no_time_was_measured():
    six = Fate("six", "folded", None, None)
    assert [*line_table.notes(("a.py", 1), [six], {}, 0)] == ["folded: free"]
    assert [*line_table.notes(("a.py", 1), [six], {}, 7)] == ["folded"]


def test_nodes_of_a_line_that_other_lines_took_over():
    """Merged nodes are counted; a node that was fused into one without a line has no place."""
    made = {
        name: Node(name, "Op", source=Source(file, line, "<module>", ""))
        for name, file, line in (("a", "a.py", 2), ("b", "/code/b.py", 7), ("own", "a.py", 1))
    }
    made["bare"] = Node("bare", "Op")
    fates = [
        Fate("n1", "merged", None, "a"),
        Fate("n2", "merged", None, "own"),
        Fate("n3", "fused", None, "b"),
        Fate("n4", "fused", None, "bare"),
        Fate("n5", "folded", None, None),
        Fate("n6", "unreached", None, None),
    ]
    assert [*line_table.notes(("a.py", 1), fates, made, 0)] == [
        "1 of 5 nodes fused into b.py line 7",
        "1 of 5 nodes merged with line 2",
        "1 of 5 nodes folded",
    ]


def test_a_line_is_free_only_if_none_of_its_times_was_measured(seen):
    """The parts of a time are added, and the notes of a line are told in one go."""
    folded = replace(seen.graph, ledger=tuple(Fate(n, "folded", None, None) for n in "xmy"))
    file, code = seen.program[0], CODE.splitlines()
    lines = [
        WatchedLine(file, n, code[n - 1], (), *ns, 0, 0)
        for n, ns in ((2, (4, 3, 7)), (3, (3, 4, 1)))
    ]
    noted = line_table.by_line(folded, lines)
    assert [noted[file, n] for n in (2, 3, 4)] == ["folded", "folded", "folded: free"]
    both = (Fate("six", "folded", None, None), Fate("y", "fused", None, "m"))
    noted = line_table.by_line(replace(seen.graph, ledger=both), lines)
    assert noted[file, 4] == "1 of 2 nodes fused into line 3; 1 of 2 nodes folded"


def test_the_costliest_lines_say_what_became_of_their_nodes(seen):
    """Lines without time follow, if their nodes ran as parts of others or not in the steps."""
    code = CODE.splitlines()
    table = line_table.table(seen)
    assert layout(table)[-2:] == ["its nodes gives way to 22 goes 1", "code gives way to 16"]
    assert grid(table)[1:] == [
        ("line", "forward", "backward", "waiting", "Python", "its nodes", "code"),
        ("train.py:4", "500 ns", "250 ns", "", "", "1 of 3 nodes folded", code[3]),
        ("train.py:1", "", "", "5 ns", "150 ns", "", code[0]),
        ("train.py:3", "", "", "", "", "fused into line 4", code[2]),
        0,
    ]


def test_a_file_that_is_no_longer_what_ran_shows_only_what_was_seen(seen, tmp_path):
    (tmp_path / "train.py").write_text(f"\n{CODE}")
    (script,) = annotated(seen).scripts
    assert script.about == "the file has changed; only the recorded lines are shown"
    assert [line.number for line in script.lines] == [1, 3, 4]
    assert script.lines[1].code == "m = tf.matmul(x, w)"


def test_the_drawing_ends_with_what_ran_and_has_no_node_that_is_not_needed(seen):
    graph = page.drawn_graph(seen.graph)
    titles = [state.title for state in graph.drawing.states]
    assert titles == ["Written", "With gradients", "remapper", "Ran"]
    assert graph.start == 3
    assert graph.ns == {"y": 500, "x": 15}
    assert "init" not in graph.histories
    assert graph.histories["m"].carrier == "y"
    assert graph.histories["g"].derived_from == "y"


def test_a_function_is_drawn_as_it_was_traced(seen):
    traced = replace(seen.graph, executed=(), passes=(), ledger=(), derived={})
    graph = page.drawn_graph(traced)
    (written,) = graph.drawing.states
    assert [node.name for node in written.defined] == ["x", "m", "six", "y", "init", "g"]
    assert graph.start == 0
    assert line_table.by_line(traced, seen.lines)[seen.program[0], 3] == ""


def test_the_page_numbers_the_nodes_of_each_line(seen):
    text = html.page(page.report(seen))
    data = json.loads(re.search(r'id="annotated-\d+-data">(.*?)</script>', text)[1])
    names = list(page.drawn_graph(seen.graph).histories)
    assert [[names[node] for node in line] for line in data] == [
        *([], ["x"], ["m"], ["six", "y", "g"], [], []),
    ]
    assert "<code>loss = y &lt;/script&gt;</code>" in text
    assert '<tr data-line="3" class="made"><th scope="row" class="heat-6">4</th>' in text


def test_a_program_without_a_graph_has_its_lines_alone(seen):
    alone = replace(seen, graph=None)
    assert annotated(alone).graph is None
    assert 'class="annotated alone"' in html.page(page.report(alone))


def test_the_end_says_where_nan_comes_from(seen):
    assert [*view.values_of(VALUES)] == [
        "Values of run 3 of group 2: 1 of 2 tensors have NaN or Inf.",
        *[
            "NaN came from y (_Fused), whose inputs were all finite. Of its 3 elements, 1 is NaN. "
            "Its inputs: x: 2 elements, 1 negative, from -4 to 1e+300."] * 2,
        "1 other node produced NaN or Inf independently.",
    ]  # fmt: skip
    two = replace(VALUES, origins=VALUES.origins[:2])
    assert len([*view.values_of(two)]) == 3
    finite = replace(VALUES, values=VALUES.values[1:], origins=())
    assert [*view.values_of(finite)] == ["Values of run 3 of group 2: 1 tensor, all finite."]
    shown = " ".join((*view.values_of(VALUES), "Of 4 other runs, nothing was checked."))
    assert shown in view.blocks(replace(seen, values=VALUES), False)


def test_the_end_says_which_runs_were_checked_for_nan(seen):
    def said(group, number=2, run=3):
        at = replace(VALUES, group=number, run=run)
        return [*view.fetched(replace(seen, values=at, groups=(GROUPS[0], group)))]

    found = replace(GROUPS[1], not_finite={"loss:0": 7, "mean:0": 4})
    first = "Run 4 of group 2 was the first to fetch NaN or Inf: mean:0."
    again = "Run the program again with --values 4 to see that run."
    assert (said(found), said(found, run=4), said(found, number=1)) == (
        [first, again],
        [first],
        [first],
    )
    assert said(replace(GROUPS[1], not_finite={})) == [
        "Of 4 other runs, only the fetched values were checked; they are finite."
    ]
    assert said(replace(GROUPS[1], not_finite={}, fetches=("train",))) == [
        "Of 4 other runs, nothing was checked."
    ]


def test_the_next_run_to_record_is_one_that_can_have_made_nan():
    """A variable that had NaN before the recorded run got it earlier. That a run fetched none
    does not mean that it made none: its update may have."""
    w = replace(VALUES.origins[0], tensor="w", node="w", kind="variable")
    held = replace(VALUES, origins=(w,), updated=("w",))
    made = replace(VALUES, updated=("w",))
    before = "w had NaN or Inf before run {}: an earlier run made it."
    again = "Run the program again with --values {} to see that run."

    def said(recorded, run, first):
        return " ".join(view.advice(replace(recorded, run=run), first))

    assert said(held, 3, 2) == again.format(2)
    assert said(held, 2, 2) == f"{before.format(2)} {again.format(1)}"
    assert said(held, 5, 0) == f"{before.format(5)} {again.format(4)}"
    assert said(held, 5, 9) == f"{before.format(5)} {again.format(4)}"
    assert said(held, 1, 1) == "w was not finite before the first run of group 2."
    assert said(replace(held, updated=("v",)), 3, 2) == (
        "Group 2 does not update w: other runs made it not finite."
    )
    assert said(made, 2, 2) == said(made, 2, 0) == ""
    assert said(made, 3, 2) == said(made, 1, 2) == again.format(2)


def test_a_node_of_a_recorded_graph_has_its_values(seen):
    histories = recorded.histories(seen.graph, recorded.stages(seen.graph), VALUES)
    assert histories["y"].values == VALUES.values[:1]
    assert page.drawn_graph(seen.graph).histories["y"].values == ()


def test_a_node_of_a_recorded_graph_has_its_times(seen):
    histories = node_history.histories(recorded.stages(seen.graph))
    assert [*recorded.times(seen.graph, histories["m"])] == [
        "In 2 traced runs of the program, y ran 2 times. It took 500 ns of each run on average."
    ]
    assert [*recorded.times(seen.graph, histories["y"])] == [
        "In 2 traced runs of the program, it ran 2 times. It took 500 ns of each run on average."
    ]
    assert [*recorded.times(seen.graph, histories["init"])] == []


def test_a_run_that_was_kept_is_read_as_it_was(seen, tmp_path):
    ended = replace(seen, exit_status=-9, values=VALUES)
    (tmp_path / "kept.json").write_text(saved_files.run_text(ended))
    assert saved_files.read_run(str(tmp_path / "kept.json")) == ended


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "other"}, "is not a watched run; give a file that"),
        ({"format": 99}, "is of format 99; this tflab reads format 1."),
        ({"groups": 3}, "is not in the format that tflab writes: groups is not a list."),
    ],
)
def test_another_file_is_refused(seen, tmp_path, change, sentence):
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(json.loads(saved_files.run_text(seen)) | change))
    with pytest.raises(UsageError, match=re.escape(sentence)):
        saved_files.read_run(str(file))


def test_a_recorded_graph_knows_the_branches_that_no_traced_run_took(seen):
    graph = replace(
        seen.graph,
        executed=(
            Node("x", "Switch", ("six", "p")),
            Node("y", "_Fused", ("x:1",)),
            Node("m_", "Merge", ("x", "y")),
        ),
        ops={"x": OpTimes(2, 30), "m_": OpTimes(2, 30)},
    )

    def not_run(graph):
        histories = recorded.histories(graph, recorded.stages(graph), None)
        return {name: history.not_run for name, history in histories.items()}

    told = dict.fromkeys(("x", "m", "six", "y", "init", "g", "m_"), False)
    assert not_run(graph) == {**told, "m": True, "y": True}
    unknown = replace(graph, traced=0, ops={})
    assert not_run(unknown) == {**told, "m": None, "y": None, "m_": None}
    assert page.life(replace(seen, graph=graph))["numbers"]["nodes that ran"] == 2
    assert page.drawn_graph(graph).drawing.states[-1].lines == (
        "2 of 3 nodes; times are means of 2 traced runs of the program",
    )
    history = recorded.histories(graph, recorded.stages(graph), None)["y"]
    assert [*recorded.times(graph, history)] == []
