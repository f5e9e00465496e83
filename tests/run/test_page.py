"""A watched program as a page and as a file, as approved."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests import graph_notation as notation
from tests.approval import approve, refused
from tests.examples.watched import CODE, OTHER, STEP, VALUES, line, with_graph
from tests.shown import grid, layout, unlike, whole
from tflab.exporters import json as written
from tflab.follow import recorded
from tflab.records import watched
from tflab.records.watched import OpTimes
from tflab.report import html
from tflab.report.contents import Annotated, Script, ScriptLine
from tflab.run import page, program_graph, summary, view
from tflab.run.groups import RunGroup
from tflab.run.program_graph import Largest


@pytest.fixture
def seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(CODE)
    return with_graph("train.py")


def annotated(part):
    yield " | ".join(("line", "times", "share", "nodes", "code"))
    for script in part.scripts:
        yield f"{script.name} {script.about}"
        for row in script.lines:
            share = "" if row.share is None else f"{row.share:.3f}"
            cells = (str(row.number), ", ".join(map(" ".join, row.times)), share)
            yield " | ".join((*cells, ", ".join(row.nodes), row.code))


def said(seen):
    """All that a page says, and of its drawing what comes from the recorded graph."""
    report = page.report(seen, "python -m tflab.run train.py")
    told = [report.title, report.about, report.command]
    for chapter in report.chapters:
        told += ["", f"# {chapter.title}"]
        for part in chapter.parts:
            told += annotated(part) if isinstance(part, Annotated) else whole([part])
    told += ["", f"# TensorBoard: {page.life(seen)['stage']}"]
    drawn = page.drawn_graph(seen.graph, seen.values)
    told += ["", f"# {drawn.name}, from state {drawn.start}"]
    for state in drawn.drawing.states:
        defined = " ".join(node.name for node in state.defined)
        told.append(f"{state.title}: {' / '.join(state.lines)}: {defined}")
    for name, history in drawn.histories.items():
        became = (history.carrier, history.derived_from, history.not_run, drawn.ns.get(name))
        told.append(f"{name}: {became} {len(history.values)} values")
        told.append(recorded.time(seen.graph, history))
    return told


def test_everything_that_a_page_says(seen):
    usual = said(replace(seen, functions=(STEP, OTHER), values=VALUES))
    # Branches that no traced run took: `y`, and `m`, which it carries
    ran = notation.graph("x=Switch(six,p); y=_Fused(x:1); m_=Merge(x,y)")
    ops = {"x": OpTimes(2, 30), "m_": OpTimes(2, 30)}
    branches = replace(seen.graph, executed=ran, ops=ops)
    traced = replace(seen.graph, executed=(), passes=(), ledger=(), derived={})
    cases = {
        "Branches": branches,
        "Branches of which nothing was traced": replace(branches, traced=0, ops={}),
        "A function, as it was traced": traced,
    }
    shown = list(usual)
    for name, graph in cases.items():
        of_graph = said(replace(seen, functions=(STEP, OTHER), values=VALUES, graph=graph))
        shown += ["", f"## {name}", *unlike(usual, of_graph)]
    assert "before the runtime rewrote it" in page.drawn_graph(traced).drawing.states[-1].about
    alone = replace(seen, graph=None)
    assert page.life(alone) is None
    assert 'class="annotated alone"' in html.page(page.report(alone, ""))
    assert "The drawing" not in str(page.report(alone, "").chapters[0])
    approve("run-page.txt", "\n".join(shown))


def test_what_only_waits_has_no_colour(seen):
    graph = replace(seen.graph, ops={"IteratorGetNext": OpTimes(2, 9_000), "y": OpTimes(2, 1_000)})
    assert page.drawn_graph(graph).ns == {"y": 500}


@pytest.mark.tensorflow
def test_the_drawing_has_the_times_of_the_lines(tmp_path, monkeypatch):
    """Of three traced runs of 300 ns, one was interrupted; untraced ones took half as long."""
    ops = {"y": (3, 1_600, 3, 1_400)}
    group = RunGroup(1, SimpleNamespace(get_operations=list), ("y",), {}, "step", ops=ops)
    group.calls, group.traced, group.total_ns, group.covered = 11, 3, 500, (1_600, 1_400)
    nodes = tuple(notation.graph("y"))
    monkeypatch.setattr("tflab.runtime.devices.chosen_kernels", lambda parts: ())
    group.graph.get_collection = lambda name: ()
    Largest(group, nodes).save(str(tmp_path))
    graph, _ = program_graph.read(tmp_path)
    assert page.drawn_graph(graph).ns["y"] == pytest.approx(50, abs=0.5)
    (row,) = summary.op_times(group.segment([group.graph]), [[("y", "forward", None, "Op")]])
    assert row.ns == 500  # in ten runs


def test_the_page_numbers_the_nodes_of_each_line(seen):
    text = html.page(page.report(seen, ""))
    data = json.loads(re.search(r'id="annotated-\d+-data">(.*?)</script>', text)[1])
    names = list(page.drawn_graph(seen.graph).histories)
    assert [[names[node] for node in line] for line in data] == [
        *([], ["x"], ["m"], ["six", "y", "g"], [], [])
    ]
    assert "<code>loss = y &lt;/script&gt;</code>" in text
    assert 'data-line="3" class="made"><th scope="row" class="heat-6">4</th>' in text
    assert re.findall(r'<li><a class="heat-(.)" href="#annotated-\d+-(\d)">(.*?)</a>', text) == [
        *(("6", "3", "train.py:4"), ("3", "0", "train.py:1"))
    ]


def test_lines_that_took_no_time_are_folded_except_next_to_others():
    made = {4: {"times": (("forward", "7 ns"),)}, 12: {"nodes": ("n",)}}
    usual = {"times": (), "nodes": ()}
    lines = tuple(
        ScriptLine(number, "", share=None, **(usual | made.get(number, {})))
        for number in range(1, 20)
    )
    parts = Script("a.py", "", lines).parts
    assert [(folded, [line.number for line in part]) for folded, part in parts] == [
        *((False, [1, 2]), (False, [3, 4, 5]), (True, [6, 7, 8, 9, 10]), (False, [11, 12, 13])),
        (True, [14, 15, 16, 17, 18, 19]),
    ]


def test_a_file_that_is_no_longer_what_ran_shows_only_what_was_seen(seen, tmp_path):
    (tmp_path / "train.py").write_text(f"\n{CODE}")
    (script,) = page.scripts(seen)
    assert script.about == "the file has changed; only the recorded lines are shown"
    assert [line.number for line in script.lines] == [1, 3, 4]
    assert script.lines[1].code == "m = tf.matmul(x, w)"


def test_the_files_of_a_program_begin_with_its_own_then_the_costliest(seen, tmp_path):
    others = [
        line(str(file), 1, "pass", forward_ns=ns)
        for file, ns in ((tmp_path / "b.py", 7), (tmp_path / "a.py", 7), ("/lib/c.py", 5_000))
    ]
    named = [script.name for script in page.scripts(replace(seen, lines=(*others, *seen.lines)))]
    assert named == ["train.py", "/lib/c.py", "a.py", "b.py"]


def test_the_costliest_lines_have_their_times(seen):
    code = CODE.splitlines()
    table, note = view.of_lines(seen)
    assert layout(table)[-1:] == ["code gives way to 12 goes 1"]
    assert grid(table)[1:] == [
        ("line", "forward", "backward", "waiting", "Python", "code"),
        ("4", "500 ns*", "200 ns*", "", "", code[3]),
        ("1", "", "", "5 ns", "90 to 210 ns", code[0]),
        0,
    ]
    assert note == "* from one traced run"


def test_what_a_run_is_for_other_programs(seen, tmp_path):
    ended = replace(seen, exit_status=-9, values=VALUES, functions=(STEP, OTHER))
    approve("run.json", written.document(**written.plain(ended)))
    (tmp_path / "kept.json").write_text(watched.as_text(ended))
    assert watched.read(str(tmp_path / "kept.json")) == ended


def test_another_file_is_refused(seen, tmp_path):
    file = tmp_path / "kept.json"
    for change, sentence in (
        ({"kind": "other"}, "is not a watched run of this version of tflab; give a file that"),
        ({"format": 99}, "is not a watched run of this version of tflab; give a file that"),
        ({"groups": 3}, "is damaged, or another version of tflab wrote it."),
    ):
        file.write_text(json.dumps(json.loads(watched.as_text(seen)) | change))
        assert sentence in refused(watched.read, str(file))
