"""What XLA compiled in a program, by the files of its dumps."""

import json
import os
from types import SimpleNamespace

import pytest

from tests.approval import approve
from tests.commands import run_python
from tflab.run import functions, summary, view

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
    monkeypatch.setattr(functions, "os", system)
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
    found = functions.Compilations(str(folder))
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
    functions.Compilations(str(folder), wanted=False).look(LINE)
    assert flags == {}
    environ["XLA_FLAGS"] = "--xla_dump_to=/mine"
    functions.Compilations(str(folder)).look(LINE)
    assert flags == {}
    environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math"
    functions.Compilations(str(folder))
    assert flags["XLA_FLAGS"].startswith("--xla_cpu_enable_fast_math --xla_dump_to=")


PROGRAM = """import tensorflow as tf

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
