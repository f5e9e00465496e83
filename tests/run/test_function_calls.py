"""What is told of tf.functions: what a tracing differs in, and the op runs of a profile."""

import functools
from dataclasses import replace
from types import SimpleNamespace

from tests.run.test_summary import SEGMENT, WATCHED
from tests.shown import grid, layout
from tflab.records.watched import MadeAnew, Tracing
from tflab.run import function_calls, summary, view

TRACINGS = (
    Tracing("step", "train.py:3", False, (), 500_000),
    Tracing("step", "train.py:9", True, (("x", "float32 (8, 4)", "float32 (7, 4)"),), 200_000),
    Tracing("other", "train.py:4", False, (), 900_000),
    Tracing("step", "train.py:7", True, (), 100_000),
)


def test_a_tracing_is_compared_with_the_earlier_one_that_is_most_alike():
    earlier = [{"x": "int32 (1,)", "n": "3"}, {"x": "float32 (8,)", "n": "3"}]
    assert function_calls.nearest({"x": "float32 (7,)", "n": "3"}, earlier[1:]) == [
        ("x", "float32 (8,)", "float32 (7,)")
    ]
    assert function_calls.nearest({"x": "float32 (8,)", "n": "4"}, earlier) == [("n", "3", "4")]
    assert function_calls.nearest({"x": "float32 (8,)"}, earlier) == [("n", "3", "nothing")]
    assert function_calls.nearest({"x": "float32 (8,)", "n": "3"}, earlier) == []
    assert function_calls.nearest({"x": "float32 (8,)"}, []) == []
    numbers = [{"n": str(number)} for number in range(5)]
    assert function_calls.nearest({"n": "5"}, numbers) == [("n", "4", "5")]
    shapes = [{"x": "float32 (1, 3)"}, {"x": "float32 (2, 3)"}]
    assert function_calls.nearest({"x": "float64 (2, 3)"}, shapes) == [
        ("x", "float32 (2, 3)", "float64 (2, 3)")
    ]


def test_tracings_read_like_this():
    assert [*view.traced_again(TRACINGS)] == [
        "The function step was traced 3 times, in 800 us; the last time at train.py:7, with the "
        "same arguments."
    ]
    assert [*view.traced_again(TRACINGS[::2])] == []
    another = Tracing("step", "train.py:3", False, (), 450_000)
    table = view.table_of_tracings((*TRACINGS, another))
    numbers = ("times right", "time right")
    assert layout(table) == ["function", *numbers, "called at", "traced again gives way to 16"]
    assert grid(table) == [
        "Functions that were traced",
        ("function", "times", "time", "called at", "traced again"),
        ("step", "2", "950 us", "train.py:3", ""),
        ("other", "1", "900 us", "train.py:4", ""),
        ("step", "1", "200 us", "train.py:9", "because x was float32 (8, 4) and is float32 (7, 4)"),
        ("step", "1", "100 us", "train.py:7", "with the same arguments"),
        0,
    ]
    table = view.table_of_tracings(TRACINGS)
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


def test_functions_made_anew_of_the_same_code_are_counted_and_not_taken_for_one():
    def step(x):
        pass

    def traced(cache, x="float32 (3,)", line=9):
        """A tracing of a function; without tracings in its cache, it is a new one."""
        sampler.line_of = lambda frame: ("/code/train.py", line, "main")
        constraint = SimpleNamespace(type_constraint=SimpleNamespace(value=x))
        types = SimpleNamespace(parameters={"x": constraint})
        options = SimpleNamespace(
            function_cache=cache, name="step", python_function=functools.partial(step)
        )
        seen.end_tracing(seen.begin_tracing(types, options))

    sampler = SimpleNamespace(is_program=lambda file: file == __file__)
    faults = []
    watcher = SimpleNamespace(sampler=sampler, broke=faults.append)
    seen = function_calls.Functions(SimpleNamespace(watcher=watcher))
    cache = []  # whose id the next function has, too
    for _ in range(3):
        traced(cache)
    traced(cache, x="float32 (4,)")
    traced(cache, line=10)
    cache.append("a tracing")
    traced(cache, x="float32 (5,)")
    segment = seen.segment()
    assert not faults
    assert [tracing["again"] for tracing in segment["tracings"]] == [False] * 5 + [True]
    (anew,) = segment["made_anew"]
    spent = sum(tracing["ns"] for tracing in segment["tracings"][:3])
    assert (anew["functions"], anew["ns"]) == (3, spent)
    known = summary.watched(("train.py",), {**SEGMENT, **segment}, 10_000, 0).made_anew
    made = f"test_function_calls.py:{step.__code__.co_firstlineno} in step"
    assert known == (MadeAnew(made, "train.py:9 in main", 3, spent),)
    shorter = MadeAnew("a.py:1", "a.py:2", 9, 5)
    longer = replace(known[0], made="train.py:4 in step", ns=600_000)
    assert [*view.made_anew((shorter, longer))] == [
        "3 functions made from the same lines (train.py:4 in step) were called at "
        "train.py:9 in main with the same types, and each was traced: 600 us in all. If they do "
        "the same, make the function once, outside the loop."
    ]


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
    assert seen.tracings == (Tracing("step", "train.py:9 in main", True, (("x", "3", "4"),), 70),)
    assert seen.notes == ("1,200 later tracings of functions are not listed.",)
    assert view.about_group(seen.groups[0]) == "4 runs, median 900 ns, 2 profiled: step"
    # Outside of the first run and the calls: 10,000 - 900 - 3,000 = 6,100
    assert next(view.time_outside_runs(seen)).startswith(
        "61 % of its time passed outside calls of functions,"
    )
    both = replace(seen, groups=(*WATCHED.groups, *seen.groups))
    assert "outside session.run and calls of functions," in next(view.time_outside_runs(both))
