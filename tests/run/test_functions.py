"""Functions: which tracings belong together, what they differ in, and what XLA compiled."""

import functools
import json
import os
from types import SimpleNamespace

import pytest

from tests.approval import approve
from tests.commands import run_python
from tests.examples.watched import SEGMENT
from tflab.run import groups, summary, view


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
    found = groups.nearest(arguments(now), [*map(arguments, earlier)])
    assert found == ((changed,) if changed else ())


class Program:
    """Functions as TensorFlow reports them."""

    def __init__(self):
        self.sampler = SimpleNamespace()
        self.seen = groups.Functions(self.sampler, None)

    def trace(self, function, x="3", line=9, name="step", tracings=()):
        self.sampler.line_of = lambda frame: ("/code/train.py", line, "main")
        parameter = SimpleNamespace(type_constraint=SimpleNamespace(value=x))
        types = SimpleNamespace(parameters={"x": parameter})
        wrapped = functools.partial(function)
        options = SimpleNamespace(name=name, python_function=wrapped, function_cache=tracings)
        self.seen.end_tracing(self.seen.begin_tracing(types, options, SimpleNamespace()))

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
    monkeypatch.setattr(groups, "COMPARED", 3)
    clock = (number * number for number in range(14))  # the tracings take 1, 5, 9 ... 25 ns
    monkeypatch.setattr(groups, "perf_counter_ns", lambda: next(clock))
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


def test_functions_of_one_code_that_close_over_others_are_different(program):
    """So are the steps of Keras, for training and for validation."""

    def made(inner):
        @functools.wraps(inner)
        def wrapper():
            return inner()

        return lambda: wrapper()

    def test():
        pass

    for inner in (step, test, step, test):
        program.trace(made(inner))
    assert [each.tracings for each in program.functions()] == [2, 2]


def test_what_is_traced_within_a_tracing_is_part_of_it(program):
    program.seen.tracing.add(groups.get_ident())
    program.trace(step)
    assert program.functions() == ()
    program.seen.tracing.clear()
    for name in "aba":
        program.trace(step, name=name)
    assert [(each.name, each.tracings) for each in program.functions()] == [("a", 2), ("b", 1)]


# What XLA compiled, by the files of its dumps

LINE = ("/a/train.py", 17, "main")
NAME = "module_{:04}.{}.{}.{}.txt"
KERNEL = "a_inference_step_175__XlaMustCompile_true_config_proto_135_executor_type_111_"
KERAS = "a_inference_one_step_on_data_229__"  # of a function that another calls
CLUSTER = "cluster_0__XlaCompiledKernel_true__XlaHasReferenceVars_false_"
HEAD = (
    "HloModule a_inference_step_175.3, entry_computation_layout={{({})->f32[]}}\n\n"
    "ENTRY %a (x: f32[9]) -> f32[] {{\n"
)


@pytest.fixture
def dumps(tmp_path, monkeypatch):
    """A folder of dumps, the flags that XLA would read, and the program's environment."""
    flags, environ = {}, {}

    def gone(name):
        flags.pop(name, None)

    system = SimpleNamespace(environ=environ, putenv=flags.__setitem__, unsetenv=gone)
    monkeypatch.setattr(groups, "os", system)
    return tmp_path, flags, environ


def write(folder, number, module, inputs, start_ms, *later_ms):
    """The files of a module: the first, and those that XLA wrote later."""
    first = folder / "xla" / NAME.format(number, module, 9, "before_optimizations")
    first.write_text(HEAD.format(inputs))
    os.utime(first, ns=(0, start_ms * 10**6))
    for at, ms in enumerate(later_ms):
        file = folder / "xla" / f"module_{number:04}.{module}.9.{at}.ll"
        file.touch()
        os.utime(file, ns=(0, ms * 10**6))


def test_a_compilation_has_its_shapes_its_line_and_the_time_from_its_first_file_to_its_last(dumps):
    folder, flags, _ = dumps
    found = groups.Compilations(str(folder))
    assert flags == {"XLA_FLAGS": f'--xla_dump_to="{folder}/xla"'}
    found.look(None)  # nothing was compiled
    assert (found.made, len(flags)) == ({}, 1)
    write(folder, 0, KERNEL, "f32[8,4]{1,0}, /*index=1*/s32[]", 1_000, 1_700, 1_500)
    write(folder, 1, CLUSTER, "f32[3]{0}", 2_000, 2_040)
    found.look(LINE)
    assert flags == {}  # read by now, and not for child processes
    write(folder, 10, KERNEL, "f32[7,4]{1,0}, s32[]", 5_000, 5_100)
    write(folder, 11, KERNEL, "f32[8,4]{1,0}, s32[]", 6_000, 6_100)
    found.look(LINE)
    write(folder, 12, KERAS, "f32[7,4]{1,0}, s32[]", 7_000, 7_001)
    found.look(None)
    assert list((folder / "xla").iterdir()) == []
    rows = summary.watched((), {"compiled": [*found.made.values()]}, 1, 0).compiled
    assert [row.ns for row in rows] == [900_000_000, 40_000_000, 1_000_000]
    approve("compiled.txt", "\n".join(view.compiled(rows)))
    assert len([*view.compiled(rows * 2)]) == view.NAMED


def test_nothing_is_dumped_without_overhead_and_dumps_that_the_user_wants_are_left_alone(dumps):
    folder, flags, environ = dumps
    groups.Compilations(str(folder), wanted=False).look(LINE)
    assert flags == {}
    environ["XLA_FLAGS"] = "--xla_dump_to=/mine"
    groups.Compilations(str(folder)).look(LINE)
    assert flags == {}
    environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math"
    groups.Compilations(str(folder))
    assert flags["XLA_FLAGS"].startswith("--xla_cpu_enable_fast_math --xla_dump_to=")


PROGRAM = """import sys; sys.modules["keras"] = None  # which takes long to import
import tensorflow as tf
@tf.function(jit_compile=True, input_signature=[tf.TensorSpec((None, 4))])
def step(x):
    return tf.reduce_sum(x + 1.0)

for rows in (3, 5, 3, 7, 5):
    step(tf.ones((rows, 4)))
"""


@pytest.mark.thorough
@pytest.mark.tensorflow
def test_of_a_program_each_new_shape_is_one_compilation(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python(tmp_path, "-m", "tflab.run", "--format", "json", "program.py")
    (compiled,) = json.loads(done.stdout[done.stdout.index("{\n") :])["compiled"]
    assert (compiled["name"], compiled["place"]) == ("step", "program.py:8")
    assert (compiled["compilations"], compiled["shapes"]) == (
        3,
        ["f32[3,4]", "f32[5,4]", "f32[7,4]"],
    )
    assert compiled["ns"] > 0
