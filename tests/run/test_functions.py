"""Tracings of tf.functions: which belong together, and what they differ in."""

import functools
from types import SimpleNamespace

import pytest

from tests.examples.watched import SEGMENT
from tflab.run import functions, summary


def arguments(text):
    """The arguments of a tracing: `x=a (7,); n=3`."""
    return dict(part.split("=") for part in text.split("; "))


@pytest.mark.parametrize(
    "now, earlier, changed",
    [
        ("x=a (7,); n=3", ["x=a (8,); n=3"], ("x", "a (8,)", "a (7,)")),
        ("x=a (8,); n=4", ["x=b (1,); n=3", "x=a (8,); n=3"], ("n", "3", "4")),
        ("x=a (8,)", ["x=a (8,); n=3"], ("n", "3", "nothing")),
        ("x=a (8,); n=3", ["x=a (8,)"], ("n", "nothing", "3")),
        ("x=a (8,)", ["x=a (8,)"], None),
        ("x=a (8,)", [], None),
        ("n=5", [f"n={number}" for number in range(5)], ("n", "4", "5")),
    ],
)
def test_a_tracing_is_compared_with_the_earlier_one_that_is_most_alike(now, earlier, changed):
    found = functions.nearest(arguments(now), [*map(arguments, earlier)])
    assert found == ((changed,) if changed else ())


class Program:
    """Functions as TensorFlow reports them."""

    def __init__(self):
        self.sampler = SimpleNamespace()
        self.seen = functions.Functions(self.sampler, None)

    def trace(self, function, x="3", line=9, name="step", tracings=()):
        self.sampler.line_of = lambda frame: ("/code/train.py", line, "main")
        parameter = SimpleNamespace(type_constraint=SimpleNamespace(value=x))
        types = SimpleNamespace(parameters={"x": parameter})
        wrapped = functools.partial(function)
        options = SimpleNamespace(name=name, python_function=wrapped, function_cache=tracings)
        self.seen.end_tracing(self.seen.begin_tracing(types, options))

    def functions(self):
        segment = {**SEGMENT, "functions": self.seen.segment()}
        return summary.watched(("train.py",), segment, 10_000, 0).functions


def step(x):
    pass


@pytest.fixture
def program():
    return Program()


def test_all_tracings_of_a_function_are_counted_and_the_last_is_known(program, monkeypatch):
    """Also those of others that the program makes of the same code."""
    monkeypatch.setattr(functions, "COMPARED", 3)
    clock = (number * number for number in range(14))  # the tracings take 1, 5, 9 ... 25 ns
    monkeypatch.setattr(functions, "perf_counter_ns", lambda: next(clock))
    for number in range(7):
        program.trace(step, x=str(number), line=number, tracings=[1] * (number % 4))
    assert [len(kept) for kept in program.seen.earlier.values()] == [3]
    (function,) = program.functions()
    assert (function.functions, function.tracings) == (2, 7)
    assert function.changed == (("x", "5", "6"),)
    assert function.place == "train.py:6 in main"
    assert (function.first_ns, function.ns) == (1, 91)


def test_a_function_that_is_made_anew_is_not_said_to_have_other_arguments(program):
    for number in range(3):
        program.trace(step, x=str(number), tracings=())
    (function,) = program.functions()
    assert (function.functions, function.tracings, function.changed) == (3, 3, ())


def test_what_is_traced_within_a_tracing_is_part_of_it_and_of_many_functions_some_are_kept(
    program, monkeypatch
):
    monkeypatch.setattr(functions, "MOST_FUNCTIONS", 2)
    outer = program.seen.depth[functions.get_ident()] = 1
    program.trace(step)
    assert (outer, program.functions()) == (1, ())
    program.seen.depth.clear()
    for name in "abca":
        program.trace(step, name=name)
    assert [(each.name, each.tracings) for each in program.functions()] == [("a", 2), ("b", 1)]
