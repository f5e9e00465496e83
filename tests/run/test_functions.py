"""What is told of tf.functions: what a tracing differs in, and the op runs of a profile."""

from dataclasses import replace

from tests.run.test_summary import SEGMENT, WATCHED
from tests.shown import grid, layout
from tflab.records.watched import Tracing
from tflab.run import functions, summary, view

TRACINGS = (
    Tracing("step", "train.py:3", False, (), 500_000),
    Tracing("step", "train.py:9", True, (("x", "float32 (8, 4)", "float32 (7, 4)"),), 200_000),
    Tracing("other", "train.py:4", False, (), 900_000),
    Tracing("step", "train.py:7", True, (), 100_000),
)


def test_a_tracing_is_compared_with_the_earlier_one_that_is_most_alike():
    earlier = [{"x": "int32 (1,)", "n": "3"}, {"x": "float32 (8,)", "n": "3"}]
    assert functions.nearest({"x": "float32 (7,)", "n": "3"}, earlier[1:]) == [
        ("x", "float32 (8,)", "float32 (7,)")
    ]
    assert functions.nearest({"x": "float32 (8,)", "n": "4"}, earlier) == [("n", "3", "4")]
    assert functions.nearest({"x": "float32 (8,)"}, earlier) == [("n", "3", "nothing")]
    assert functions.nearest({"x": "float32 (8,)", "n": "3"}, earlier) == []
    assert functions.nearest({"x": "float32 (8,)"}, []) == []
    shapes = [{"x": "float32 (1, 3)"}, {"x": "float32 (2, 3)"}]
    assert functions.nearest({"x": "float64 (2, 3)"}, shapes) == [
        ("x", "float32 (2, 3)", "float64 (2, 3)")
    ]


def test_tracings_read_like_this():
    assert [*view.traced_again(TRACINGS)] == [
        "The function step was traced 3 times, in 800 us; the last time at train.py:7, with the "
        "same arguments."
    ]
    assert [*view.traced_again(TRACINGS[::2])] == []
    table = view.table_of_tracings(TRACINGS)
    assert layout(table) == ["function", "time right", "called at", "traced again gives way to 16"]
    assert grid(table) == [
        "Functions that were traced",
        ("function", "time", "called at", "traced again"),
        ("other", "900 us", "train.py:4", ""),
        ("step", "500 us", "train.py:3", ""),
        ("step", "200 us", "train.py:9", "because x was float32 (8, 4) and is float32 (7, 4)"),
        ("step", "100 us", "train.py:7", "with the same arguments"),
        0,
    ]
    shown = view.blocks(replace(WATCHED, tracings=TRACINGS), lines=True)
    assert grid(table) in [grid(block) for block in shown if not isinstance(block, str)]


def test_the_costliest_function_that_was_traced_again_is_named_with_all_that_changed():
    changes = (("x", "1", "2"), ("n", "3", "4"))
    again = (*TRACINGS[:2], Tracing("little", "a.py:1", True, changes, 5))
    assert [*view.traced_again(again)] == [
        "The function step was traced 2 times, in 700 us; the last time at train.py:9, because x "
        "was float32 (8, 4) and is float32 (7, 4)."
    ]
    assert view.reason(again[2]) == "because x was 1 and is 2, n was 3 and is 4"


def test_a_function_is_called_and_profiled_where_a_graph_runs_and_is_traced():
    group = {**SEGMENT["groups"][1], "function": "step", "fetches": ("step",)}
    traced = {
        "function": "step",
        "line": ("/code/train.py", 9, "main"),
        "changed": [("x", "3", "4")],
        "again": True,
        "ns": 70,
    }
    segment = {**SEGMENT, "groups": [group], "tracings": [traced], "more_tracings": 1_200}
    seen = summary.watched(("train.py",), segment, 10_000, 0)
    assert seen.groups[0].graph == "function step"
    assert seen.tracings == (Tracing("step", "train.py:9 main", True, (("x", "3", "4"),), 70),)
    assert seen.notes == ("1,200 later tracings of functions are not listed.",)
    assert view.about_group(seen.groups[0]) == "4 runs, median 900 ns, 2 profiled: step"
    # Outside of the first run and the calls: 10,000 - 900 - 3,000 = 6,100
    assert next(view.outside(seen)).startswith(
        "61 % of its time passed outside calls of functions,"
    )
    both = replace(seen, groups=(*WATCHED.groups, *seen.groups))
    assert "outside session.run and calls of functions," in next(view.outside(both))
