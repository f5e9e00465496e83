"""Tracings of tf.functions: which belong together, and what they differ in."""

import functools
import weakref
from types import SimpleNamespace

import pytest

from tests.examples.watched import SEGMENT
from tflab.records.watched import MadeAnew
from tflab.run import functions, summary
from tflab.runtime.private import Part


def parts(**texts):
    return {name: Part(text, hash(text)) for name, text in texts.items()}


@pytest.mark.parametrize(
    "now, earlier, changed",
    [
        ({"x": "a (7,)", "n": "3"}, [{"x": "a (8,)", "n": "3"}], [("x", "a (8,)", "a (7,)")]),
        (
            {"x": "a (8,)", "n": "4"},
            [{"x": "b (1,)", "n": "3"}, {"x": "a (8,)", "n": "3"}],
            [("n", "3", "4")],
        ),
        ({"x": "a (8,)"}, [{"x": "a (8,)", "n": "3"}], [("n", "3", "nothing")]),
        ({"x": "a (8,)", "n": "3"}, [{"x": "a (8,)"}], [("n", "nothing", "3")]),
        ({"x": "a (8,)"}, [{"x": "a (8,)"}], []),
        ({"x": "a (8,)"}, [], []),
        ({"n": "5"}, [{"n": str(number)} for number in range(5)], [("n", "4", "5")]),
        # The shape is the same
        (
            {"x": "a (2, 3)"},
            [{"x": "b (1, 3)"}, {"x": "b (2, 3)"}],
            [("x", "b (2, 3)", "a (2, 3)")],
        ),
    ],
)
def test_a_tracing_is_compared_with_the_earlier_one_that_is_most_alike(now, earlier, changed):
    assert functions.nearest(parts(**now), [parts(**then) for then in earlier]) == changed


def test_arguments_that_read_the_same_and_differ_are_others():
    then, now = Part("an object of Config", 1), Part("an object of Config", 2)
    assert functions.nearest({"config": now}, [{"config": then}]) == [
        ("config", "an object of Config", "another object of Config")
    ]
    variables = Part("Variable float32 ()", 1), Part("Variable float32 ()", 2)
    assert functions.differing(*variables)[1] == "another Variable float32 ()"


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
        self.seen = functions.Functions(self.sampler, self.faults.append)

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
    monkeypatch.setattr(functions, "COMPARED", 3)
    clock = (number * number for number in range(14))  # the tracings take 1, 5, 9 ... 25 ns
    monkeypatch.setattr(functions, "perf_counter_ns", lambda: next(clock))
    cache = []
    for number in range(7):
        program.trace(cache, x=str(number), line=number)
        cache.append("a tracing")
    (kept,) = program.seen.kept
    assert len(kept.earlier) == 3
    (function,) = program.watched().functions
    assert (function.tracings, function.changed) == (7, (("x", "5", "6"),))
    assert function.place == "train.py:6 in main"
    assert (function.first_ns, function.ns) == (1, 91)


def test_of_many_functions_those_are_kept_that_took_longest_to_trace_again(program, monkeypatch):
    monkeypatch.setattr(functions, "MOST_FUNCTIONS", 3)
    for number, ns in enumerate((5, 40, 10, 30, 20)):
        function = functions.Traced(str(number), None)
        program.seen.keep(function)
        first_ns = 1_000 // ns  # which does not matter
        function.tracings, function.first_ns, function.ns = 2, first_ns, first_ns + ns
        function.last = functions.Tracing(function, None, {}, False, [0, 0])
    assert [function.name for function in program.seen.kept] == ["1", "3", "4"]
    assert program.watched().notes == ("Of 5 functions that were traced, only 3 are listed.",)


def test_a_method_has_the_name_of_its_class(program):
    def other(x):
        pass

    for function, name in ((step, "step"), (Model.step, "step"), (other, "wrapped")):
        program.trace([], function=function, name=name)
    lines = [function.__code__.co_firstlineno for function in (step, Model.step, other)]
    assert [(function.name, function.made) for function in program.watched().functions] == [
        (name, f"test_functions.py:{line}")
        for name, line in zip(("step", "Model.step", "wrapped"), lines, strict=True)
    ]


def test_a_tracing_follows_from_the_creation_of_variables_only_once(program):
    def created(cache, *tracings):
        for x, scope in tracings:
            program.trace(cache, x=x, scope=scope)
            cache.append("a tracing")
            yield program.seen.kept[-1].last.created

    one, other = "float32 (3,)", "float32 (4,)"
    creates, reads = "VARIABLE_CREATION", "NO_VARIABLE_CREATION"
    # The third is on another device
    tracings = ((one, creates), (one, reads), (one, reads), (other, reads))
    assert [*created([], *tracings)] == [False, True, False, False]
    assert [*created([], (one, creates), (other, creates))] == [False, False]


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
    assert [function["tracings"] for function in segment["functions"]] == [1] * 4 + [2]
    (anew,) = segment["made_anew"]
    spent = sum(function["ns"] for function in segment["functions"][:3])
    assert (anew["functions"], anew["ns"]) == (3, spent)
    known = program.watched().made_anew
    made = f"test_functions.py:{step.__code__.co_firstlineno} in step"
    assert known == (MadeAnew(made, "train.py:9 in main", 3, spent),)
