"""What is told of tf.functions: what a tracing differs in, and the op runs of a profile."""

import functools
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.run.test_summary import SEGMENT, WATCHED
from tests.shown import grid, layout
from tflab.records.watched import MadeAnew, TracedFunction, Tracing
from tflab.run import function_calls, summary, tracings, view
from tflab.runtime.private import Part

SHAPE = (("x", "float32 (8, 4)", "float32 (7, 4)"),)
TRACINGS = (
    Tracing("step", "train.py:3", False, (), 500_000, 1),
    Tracing("step", "train.py:9", True, SHAPE, 200_000, 1),
    Tracing("other", "train.py:4", False, (), 900_000, 2),
    Tracing("step", "train.py:7", True, (), 100_000, 1),
)
STEP = TracedFunction(1, "step", 1, 1, 3, 800_000, 500_000, TRACINGS[3])
OTHER = TracedFunction(2, "other", 1, 1, 1, 900_000, 900_000, TRACINGS[2])


def parts(**texts):
    return {name: Part(text, hash(text)) for name, text in texts.items()}


def test_a_tracing_is_compared_with_the_earlier_one_that_is_most_alike():
    earlier = [parts(x="int32 (1,)", n="3"), parts(x="float32 (8,)", n="3")]
    assert function_calls.nearest(parts(x="float32 (7,)", n="3"), earlier[1:]) == [
        ("x", "float32 (8,)", "float32 (7,)")
    ]
    assert function_calls.nearest(parts(x="float32 (8,)", n="4"), earlier) == [("n", "3", "4")]
    assert function_calls.nearest(parts(x="float32 (8,)"), earlier) == [("n", "3", "nothing")]
    assert function_calls.nearest(parts(x="float32 (8,)", n="3"), earlier) == []
    assert function_calls.nearest(parts(x="float32 (8,)"), []) == []
    numbers = [parts(n=str(number)) for number in range(5)]
    assert function_calls.nearest(parts(n="5"), numbers) == [("n", "4", "5")]
    shapes = [parts(x="float32 (1, 3)"), parts(x="float32 (2, 3)")]
    assert function_calls.nearest(parts(x="float64 (2, 3)"), shapes) == [
        ("x", "float32 (2, 3)", "float64 (2, 3)")
    ]


def test_arguments_that_read_the_same_and_differ_are_others():
    then, now = Part("an object of Config", 1), Part("an object of Config", 2)
    assert function_calls.nearest({"config": now}, [{"config": then}]) == [
        ("config", "an object of Config", "another object of Config")
    ]
    variables = Part("Variable float32 ()", 1), Part("Variable float32 ()", 2)
    assert function_calls.differing(*variables)[1] == "another Variable float32 ()"


def test_tracings_read_like_this():
    same = (
        "with the same arguments (TensorFlow also traces again for another graph, device or "
        "strategy)"
    )
    assert [*tracings.traced_again((STEP, OTHER))] == [
        "The function step was traced 3 times, in 800 us (300 us after the first time); the last "
        f"time at train.py:7, {same}."
    ]
    assert [*tracings.traced_again((OTHER,))] == []
    another = Tracing("step", "train.py:3", False, (), 450_000, 3)
    table = tracings.table((*TRACINGS, another), (STEP, OTHER))
    numbers = ("times right", "time right")
    assert layout(table) == ["function", *numbers, "called at", "traced again gives way to 16"]
    assert grid(table) == [
        "Functions that were traced",
        ("function", "times", "time", "called at", "traced again"),
        ("step", "2", "950 us", "train.py:3", ""),
        ("other", "1", "900 us", "train.py:4", ""),
        ("step", "1", "200 us", "train.py:9", "because x was float32 (8, 4) and is float32 (7, 4)"),
        ("step", "1", "100 us", "train.py:7", same),
        0,
    ]
    seen = replace(WATCHED, tracings=TRACINGS, functions=(STEP, OTHER))
    shown = view.blocks(seen, lines=True)
    table = tracings.table(TRACINGS, seen.functions)
    assert grid(table) in [grid(block) for block in shown if not isinstance(block, str)]
    assert [*tracings.traced_again(seen.functions)] == [
        block for block in view.blocks(seen, lines=False) if str(block).startswith("The function")
    ]


def test_the_function_is_named_that_took_longest_to_trace_again():
    """The first tracing of a function is necessary."""
    changes = (("x", "1", "2"), ("n", "3", "4"))
    last = Tracing("little", "a.py:1", True, changes, 300_001)
    little = TracedFunction(3, "little", 2, 3, 2, 300_002, 1, last)
    assert [*tracings.traced_again((STEP, OTHER, little))] == [
        "The function little (number 2 of 3) was traced 2 times, in 300 us (300 us after the first "
        "time); the last time at a.py:1, because x was 1 and is 2, n was 3 and is 4."
    ]
    many = replace(last, changed=tuple((name, "1", "2") for name in "abcde"))
    assert tracings.reason(many) == (
        "because a was 1 and is 2, b was 1 and is 2, c was 1 and is 2, and 2 others changed"
    )


def test_functions_of_one_name_have_rows_and_sums_of_their_own():
    """In `fit`, the function of a training step and that of a test are of the same code."""
    name, at = "multi_step", "train.py:3"
    rows = (
        Tracing(name, at, False, (), 2_000, 1, 1),
        Tracing(name, at, False, (), 160, 2, 2),
        Tracing(name, "train.py:9", True, SHAPE, 200, 2, 3),
        Tracing("mapped", at, False, (), 50, 3, 4),
        Tracing("mapped", at, False, (), 70, 4, 4),
    )
    functions = (
        TracedFunction(1, name, 1, 2, 1, 2_000, 2_000, rows[0]),
        TracedFunction(2, name, 2, 2, 2, 360, 160, rows[2]),
        TracedFunction(3, "mapped", 1, 2, 1, 50, 50, rows[3]),
        TracedFunction(4, "mapped", 2, 2, 1, 70, 70, rows[4]),
    )
    reason = "because x was float32 (8, 4) and is float32 (7, 4)"
    assert [*tracings.traced_again(functions)] == [
        "The function multi_step (number 2 of 2) was traced 2 times, in 360 ns (200 ns after the "
        f"first time); the last time at train.py:9, {reason}."
    ]
    assert grid(tracings.table(rows, functions))[2:] == [
        ("multi_step (number 1 of 2)", "1", "2.00 us", at, ""),
        ("multi_step (number 2 of 2)", "1", "200 ns", "train.py:9", reason),
        ("multi_step (number 2 of 2)", "1", "160 ns", at, ""),
        ("mapped", "2", "120 ns", at, ""),
        0,
    ]


def test_a_first_call_that_creates_variables_is_told():
    last = Tracing("step", "gan.py:57", True, (), 900, created=True)
    function = TracedFunction(1, "step", 1, 1, 2, 2_000, 1_100, last)
    assert [*tracings.traced_again((function,))] == [
        "The function step was traced 2 times, in 2.00 us, because its first tracing created "
        "variables. If these exist before its first call, it is traced once; "
        "optimizer.build(variables) creates those of a Keras optimizer."
    ]


class Constraint:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)


class Program:
    """Functions as TensorFlow reports them. `trace` traces the one that has this cache; without
    tracings in its cache, it is a new one."""

    def __init__(self):
        self.faults = []
        self.sampler = SimpleNamespace(is_program=lambda file: file == __file__)
        watcher = SimpleNamespace(sampler=self.sampler, broke=self.faults.append)
        self.seen = function_calls.Functions(SimpleNamespace(watcher=watcher))

    def trace(self, cache, x="float32 (3,)", line=9, function=None, scope="", name="step"):
        self.sampler.line_of = lambda frame: ("/code/train.py", line, "main")
        parameter = SimpleNamespace(type_constraint=x if hasattr(x, "_ref") else Constraint(x))
        types = SimpleNamespace(parameters={"x": parameter})
        options = SimpleNamespace(
            function_cache=cache,
            name=name,
            python_function=functools.partial(function or step),
            scope_type=SimpleNamespace(name=scope),
        )
        self.seen.end_tracing(self.seen.begin_tracing(types, options))
        assert not self.faults

    def watched(self):
        return summary.watched(("train.py",), {**SEGMENT, **self.seen.segment()}, 10_000, 0)


def step(x):
    pass


class Model:
    def step(self):
        pass


@pytest.fixture
def program():
    return Program()


def test_all_tracings_of_a_function_are_counted_and_the_last_is_known(program, monkeypatch):
    monkeypatch.setattr(function_calls, "MOST_TRACINGS", 4)
    monkeypatch.setattr(function_calls, "COMPARED", 3)
    cache = []
    for number in range(7):
        program.trace(cache, x=str(number), line=number)
        cache.append("a tracing")
    function = next(iter(program.seen.retraced.values()))
    assert len(function.earlier) == 3
    seen = program.watched()
    assert [tracing.changed for tracing in seen.tracings][-1] == (("x", "2", "3"),)
    (function,) = seen.functions
    assert (function.tracings, function.last.changed) == (7, (("x", "5", "6"),))
    assert function.last.place == "train.py:6 in main"
    assert function.first_ns == seen.tracings[0].ns
    assert function.ns > sum(tracing.ns for tracing in seen.tracings)
    assert seen.notes == ("Of 7 tracings of functions, only the first 4 are listed.",)


def test_of_many_functions_those_are_kept_that_took_longest_to_trace_again(program, monkeypatch):
    monkeypatch.setattr(function_calls, "MOST_TRACINGS", 2)
    for number, ns in enumerate((5, 40, 10, 30, 20), 1):
        function = function_calls.Traced(number, "step", None, number)
        for tracing in ({"ns": 1_000}, {"ns": ns}):
            function.add(tracing)
            program.seen.keep(function, tracing)
        assert (function.ns, function.again_ns()) == (1_000 + ns, ns)
    assert list(program.seen.retraced) == [2, 4]
    assert list(program.seen.listed) == [1]  # the list of tracings has those of the first only
    assert (len(program.seen.tracings), program.seen.more) == (2, 8)


def test_functions_of_one_name_are_told_apart_by_what_differs(program):
    def other(x):
        pass

    first, second, third, fourth = [], [], [], []
    program.trace(first)
    assert program.watched().functions[0].name == "step"
    program.trace(second, function=Model.step)
    program.trace(third, function=Model().step)
    other.__qualname__ = "test.<locals>.step"
    program.trace(fourth, function=other)
    functions = program.watched().functions
    lines = [function.__code__.co_firstlineno for function in (step, other)]
    assert [(function.name, function.ordinal, function.alike) for function in functions] == [
        (f"step at test_function_calls.py:{lines[0]}", 1, 1),
        ("Model.step", 1, 2),
        ("Model.step", 2, 2),
        (f"step at test_function_calls.py:{lines[1]}", 1, 1),
    ]
    assert [tracing.number for tracing in program.watched().tracings] == [1, 2, 3, 4]


def test_a_tracing_follows_from_the_creation_of_variables_only_once(program):
    cache = []
    program.trace(cache, scope="VARIABLE_CREATION")
    cache.append("a tracing")
    program.trace(cache, scope="NO_VARIABLE_CREATION")
    program.trace(cache, scope="NO_VARIABLE_CREATION")  # on another device
    program.trace(cache, x="float32 (4,)", scope="NO_VARIABLE_CREATION")
    assert [tracing.created for tracing in program.watched().tracings] == [
        False,
        True,
        False,
        False,
    ]
    other = []
    program.trace(other, scope="VARIABLE_CREATION")
    other.append("a tracing")
    program.trace(other, x="float32 (4,)", scope="VARIABLE_CREATION")
    assert not any(tracing.created for tracing in program.watched().tracings[4:])


def test_the_way_of_a_tracing_is_through_the_lines_of_libraries(program):
    def called_in(name):
        library = {"trace": program.trace}
        exec(compile("def run():\n    trace([])", f"/lib/{name}.py", "exec"), library)
        library["run"]()

    for name in ("fit", "evaluate", "fit"):
        called_in(name)
    program.trace([])
    assert [tracing.way for tracing in program.watched().tracings] == [1, 2, 1, 3]


def test_an_object_is_another_one_even_if_it_has_the_place_of_the_first():
    from tflab.runtime.private import watched_functions

    class Config:
        pass

    def part(config):
        return dict(watched_functions.leaves("config", SimpleNamespace(_ref=weakref.ref(config))))

    config = Config()
    then = part(config)
    assert then == part(config)
    assert then["config"].text == "an object of Config"
    del config
    assert all(part(Config()) != then for _ in range(3))


def test_functions_made_anew_of_the_same_code_are_counted_and_not_taken_for_one(program):
    cache = []  # whose id the next function has, too
    for _ in range(3):
        program.trace(cache)
    program.trace(cache, x="float32 (4,)")
    program.trace(cache, line=10)
    cache.append("a tracing")
    program.trace(cache, x="float32 (5,)")
    segment = program.seen.segment()
    assert [tracing["again"] for tracing in segment["tracings"]] == [False] * 5 + [True]
    (anew,) = segment["made_anew"]
    spent = sum(tracing["ns"] for tracing in segment["tracings"][:3])
    assert (anew["functions"], anew["ns"]) == (3, spent)
    known = program.watched().made_anew
    made = f"test_function_calls.py:{step.__code__.co_firstlineno} in step"
    assert known == (MadeAnew(made, "train.py:9 in main", 3, spent),)
    shorter = MadeAnew("a.py:1", "a.py:2", 9, 5)
    longer = replace(known[0], made="train.py:4 in step", ns=600_000)
    first = (
        "3 functions made from the same lines (train.py:4 in step) were called at "
        "train.py:9 in main with the same types, and each was traced: 600 us in all. If they do "
        "the same, make the function once, outside the loop."
    )
    assert [*tracings.made_anew((shorter, longer))] == [
        first,
        "So were others: 9 from a.py:1, called at a.py:2 (5 ns).",
    ]
    assert [*tracings.made_anew((longer,))] == [first]
    assert [*tracings.made_anew((longer, *[shorter] * 6))][1].endswith("; and 2 other lines.")
    assert [*tracings.made_anew(())] == []


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
    assert seen.notes == ("Of 1,201 tracings of functions, only the first 1 are listed.",)
    assert view.about_group(seen.groups[0]) == "4 runs, median 900 ns, 2 profiled: step"
    # Outside of the first run and the calls: 10,000 - 900 - 3,000 = 6,100
    assert next(view.time_outside_runs(seen)).startswith(
        "61 % of its time passed outside calls of functions,"
    )
    both = replace(seen, groups=(*WATCHED.groups, *seen.groups))
    assert "outside session.run and calls of functions," in next(view.time_outside_runs(both))
