"""Examples: each runs as a student runs it, says what to look at, and shows what it promises."""

import ast
import importlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import tensorflow as tf

from tests.commands import run_here
from tests.shown import without_progress
from tflab.lifecycle import __main__ as lifecycle

pytestmark = pytest.mark.tensorflow

FOLDER = Path(__file__).parents[2] / "examples"
SHARED = "lesson"  # what the examples share is none itself
EXAMPLES = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != SHARED)
ORDINARY = "slow_training"  # knows nothing of tflab, and so prints all of TensorFlow's notes
LIMIT_S = 600  # generous: on a machine of one's own it is less than a minute
WIDTH = 100

# What follows from what each of them computes, on any machine, as patterns of lines.
FACTS = {
    "ordinary_program": (
        r"No value in its first step is NaN or Inf\.",
        r"Inf came from Log \(Log, ordinary_program\.py:\d+: hits = labels \* tf\.math\.log\(",
        r".*Its inputs: Maximum: \d+ zeros\.",
    ),
    "adding_a_model": (
        r"backward   .*\b\d+ of the nodes new",
        r"execution  .* a step",
        r"1,000 .* 9\d\.\d %",
    ),
    "slow_training": (r"\d\d\.\d% of the digits it has not seen are right",),
    "batch_size": (
        *(rf"{batch} .* [\d,]+ +\S+ %" for batch in (1, 2, 4, 8, 16, 32, 64, 128)),
        r"A straight line through the medians: .* a step and ",
    ),
    "convolution": (
        r"output column +28 +12 +0 +8",
        r"images +1 x 32 x 32 x 3 +12\.0 KiB .* 2 +38\.3 +50",
        r"kernels +5 x 5 x 3 x 2 +600 B .* 784 +784\.0 +784",
        r"im2col's matrix +784 x 75 +230 KiB .* 2 +2\.0 +2",
        r"The chapter's example\. The three ways agree;",
        r"LeNet's conv1\. The three ways agree;",
        r"LeNet's conv2\. The three ways agree;",
    ),
    "eager_and_symbolic": (
        r"1 not needed by the fetches: Exp",
        r"merged with the equal add: add_1",
        r"folded into the constant truediv: Const, Const_1, Sqrt",
        r"Both ways give the same values, within 1e-06\.",
    ),
    "first_call": (
        r"call +batch 16 +batch 48",
        r"dense1/Relu .* %",
        r"The very first call took \d+ x",
    ),
    "formula_to_instructions": (
        r"graph +5  2 ReadVariableOp, 1 Mul, 1 AddV2, 1 Relu",
        r"HLO  \d+ operations",
        r"machine code  \d+ lines",
        r"1,048,576  XLA",
    ),
    "fusion": (
        r"Conv2D +fused into Relu by remapper",
        r"BiasAdd +fused into Relu by remapper",
        r"on +5 +359 KiB",
    ),
    "gradient_function": (
        r"x @ y +_MatMulGrad .* 2 MatMul +0 +\de-",
        r"relu\(x\) +_ReluGrad .* ReluGrad +0 +\de-",
        r"-1\.5 +-1 +-1 +0 +1",
    ),
    "two_devices": (
        r"CPU:0 +first/_0 +_Send +first +the runtime's",
        r"CPU:1 +first/_1 +_Recv +the runtime's",
        r"A step transfers 4\.00 KiB from CPU:0 to CPU:1, 4\.00 KiB from CPU:1 to CPU:0\.",
    ),
}


# Imports TensorFlow as the examples do, and forks a process for each of them. What they time takes
# fewer turns than for a student, and fewer gradients are checked.
FORKING = """
import os, runpy, sys
examples, written, *lines = sys.argv[1:]
sys.path[0] = examples
import lesson
from tflab.lifecycle import gradient_check
gradient_check.ELEMENTS = 6
def shorter(take):
    return lambda *given, **more: take(*given[:-1], min(given[-1], 20), **more)
lesson.in_turn, lesson.in_rotation = shorter(lesson.in_turn), shorter(lesson.in_rotation)
for name, *words in map(str.split, lines):
    child = os.fork()
    if not child:
        for number, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{written}/{name}.{stream}", os.O_WRONLY | os.O_CREAT), number)
        sys.argv = [f"{examples}/{name}.py", *words]
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Each example as it ended, run from some other folder, in which it must not leave anything."""
    empty, written = map(tmp_path_factory.mktemp, ("empty", "written"))

    plain = {
        name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")
    }
    lines = [f"{name} --steps 40" if name == ORDINARY else name for name in EXAMPLES]
    forking = subprocess.run(
        [sys.executable, "-c", FORKING, str(FOLDER), str(written), *lines],
        cwd=empty,
        env=plain,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (forking.returncode, forking.stderr) == (0, "")
    ended = {}
    for name, status in map(str.split, forking.stdout.splitlines()):
        said = ((written / f"{name}.{stream}").read_text() for stream in ("out", "err"))
        ended[name] = CompletedProcess(name, int(status), *said)
    assert list(empty.iterdir()) == []
    return ended


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_from_any_folder_and_is_quiet(name, ran):
    done = ran[name]
    assert done.returncode == 0, done.stderr
    assert name == ORDINARY or without_progress(done.stderr) == ""


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != ORDINARY])
def test_an_example_imports_what_makes_tensorflow_quiet_before_anything_else(name):
    imports = (
        [one.module] if isinstance(one, ast.ImportFrom) else [alias.name for alias in one.names]
        for one in ast.parse((FOLDER / f"{name}.py").read_text()).body
        if isinstance(one, (ast.Import, ast.ImportFrom))
    )
    modules = itertools.chain.from_iterable(imports)
    others = (name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names)
    assert next(others) == SHARED


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_begins_with_what_to_look_at(name, ran):
    about = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))
    assert ran[name].stdout.strip().startswith(about)
    assert re.search(r"\blook at\b", about, re.I)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_shows_what_follows_from_what_it_computes(name, ran):
    printed = ran[name].stdout
    assert FACTS.get(name), f"Say in FACTS what {name} is there to show."
    missing = [fact for fact in FACTS[name] if not re.search(rf"^ *{fact}", printed, re.M)]
    assert missing == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_an_example_prints_fits_100_columns(name, ran):
    printed = ran[name].stdout
    assert [line for line in printed.splitlines() if len(line.rstrip()) > WIDTH] == []


def test_the_list_of_examples_is_complete():
    listed = re.findall(r"\[(\w+)\.py\]\(\1\.py\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == EXAMPLES


def test_a_tensor_that_two_nodes_use_is_sent_once(ran):
    printed = ran["two_devices"].stdout
    takers = re.findall(r"^ *CPU:1 .* first/_1\b.*two_devices\.py", printed, re.M)
    sends = re.findall(r" _Send +first ", printed)
    assert (len(takers), len(sends)) == (2, 1)


def test_the_model_of_an_example_can_be_named_on_the_command_line(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    about = ast.get_docstring(ast.parse((FOLDER / "adding_a_model.py").read_text()))
    line = re.search(r"PYTHONPATH=examples python -m tflab.lifecycle (--model .*)", about)[1]
    done = run_here(lifecycle.main, *line.split(), "--stage", "frontend")
    assert (done.returncode, done.stderr) == (0, "")
    assert "adding_a_model.py:" in done.stdout


def test_symbolic_evaluation_makes_fewer_python_calls(ran):
    rows = re.findall(r"(eager|symbolic) +(\d+) ", ran["eager_and_symbolic"].stdout)
    eager, symbolic = (
        {int(calls) for way, calls in rows if way == kind} for kind in ("eager", "symbolic")
    )
    assert max(symbolic) < min(eager)


# The convolution


@pytest.fixture
def convolution(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("convolution")


def arrays(seed):
    """Images and kernels of a random shape, neither of them square."""
    rng = np.random.default_rng(seed)
    count, rows, columns, channels, outputs = rng.integers(1, 5, 5)
    kernel_rows, kernel_columns = rng.integers(1, 5, 2)
    images = rng.normal(size=(count, kernel_rows + rows, kernel_columns + 2 * columns, channels))
    kernels = rng.normal(size=(kernel_rows, kernel_columns, channels, outputs))
    return images.astype(np.float32), kernels.astype(np.float32)


@pytest.mark.parametrize("way", ["seven_loops", "matrix_product", "framework"])
@pytest.mark.parametrize("seed", range(5))
def test_each_way_gives_the_sums_that_scipy_gives(convolution, way, seed):
    from scipy.signal import correlate

    images, kernels = arrays(seed)
    expected = np.stack(
        [
            [correlate(image, kernels[..., output], "valid")[..., 0] for image in images]
            for output in range(kernels.shape[3])
        ],
        axis=-1,
    )
    found = getattr(convolution, way)(images, kernels)
    assert (found.shape, found.dtype) == (expected.shape, np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_an_element_is_used_as_often_as_the_sum_of_all_sums_grows_with_it(convolution, seed):
    images, kernels = (tf.ones_like(array) for array in arrays(seed))
    with tf.GradientTape() as tape:
        tape.watch((images, kernels))
        sums = tf.nn.conv2d(images, kernels, strides=1, padding="VALID")
        everything = tf.reduce_sum(sums)
    slopes = tape.gradient(everything, (images, kernels))
    used = convolution.uses(images.numpy(), kernels.numpy())
    for name, expected in zip(("images", "kernels", "sums"), (*slopes, sums), strict=True):
        np.testing.assert_array_equal(used[name], expected)
    assert (
        used["im2col's matrix"].shape == convolution.im2col(images.numpy(), kernels.numpy()).shape
    )
    assert {int(counts.sum()) for counts in used.values()} == {int(everything)}


def test_the_loops_step_through_memory_as_the_arrays_lie_there(convolution):
    shapes = ((2, 3, 5, 7), (2, 3, 7, 11))
    steps = convolution.locality(*(np.empty(shape, np.float32) for shape in shapes))
    assert list(steps.cells()) == [
        ("image", "2", "420", "0", "264"),
        ("output channel", "11", "0", "4", "4"),
        ("input channel", "7", "4", "44", "0"),
        ("output row", "2", "140", "0", "132"),
        ("output column", "3", "28", "0", "44"),
        ("kernel row", "2", "140", "924", "0"),
        ("kernel column", "3", "28", "308", "0"),
    ]


def test_a_turn_of_the_innermost_loop_is_as_long_as_python_traces_it(convolution):
    def instructions(turns):
        """Those that the loops run for one output pixel."""
        count = itertools.count()

        def local(frame, event, _):
            if event == "opcode":
                next(count)
            return local

        def called(frame, event, _):
            if frame.f_code is not convolution.seven_loops.__code__:
                return None
            frame.f_trace_opcodes = True
            return local

        usual = sys.gettrace()
        sys.settrace(called)
        convolution.seven_loops(np.ones((1, 1, turns, 1)), np.ones((1, turns, 1, 1)))
        sys.settrace(usual)
        return next(count)

    assert instructions(5) - instructions(4) == convolution.instructions_per_turn()


def test_caches_for_data_are_read_from_the_machine(convolution, tmp_path):
    for index, facts in enumerate(
        [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")]
    ):
        (tmp_path / f"index{index}").mkdir()
        for name, fact in zip(("level", "type", "size"), facts, strict=True):
            (tmp_path / f"index{index}" / name).write_text(f"{fact}\n")
    assert list(convolution.data_caches(tmp_path)) == [
        ("L1, 32.0 KiB", 2**15),
        ("L2, 1.00 MiB", 2**20),
    ]


def test_whether_tensors_fit_is_unknown_where_the_machine_does_not_tell_its_caches(
    convolution, monkeypatch, tmp_path
):
    assert list(convolution.data_caches(tmp_path)) == []
    monkeypatch.setattr(convolution, "data_caches", lambda: iter(()))
    (row,) = convolution.reuse({"images": np.ones((2, 2), int)}).cells()
    assert row == ("images", "2 x 2", "16 B", "unknown", "1", "1.0", "1")


# What the examples share


@pytest.fixture
def lesson(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(SHARED)


def test_ways_are_timed_in_turn_and_the_order_is_turned_around(lesson):
    called = []
    times = lesson.in_turn([lambda: called.append("a"), lambda: called.append("b")], 2, warmup=1)
    assert "".join(called) == "abbaab"
    assert [len(all_ns) for all_ns in times] == [2, 2]


def test_a_difference_within_the_noise_is_called_that(lesson):
    usual = [100] * 40
    assert lesson.against(usual, [90, 110] * 20) == "within the noise"
    assert lesson.against(usual, [150] * 40) == "1.50 x"


def test_columns_of_numbers_stand_right(lesson):
    rows = [("1,024", "-3", "L1, 32.0 KiB", "1.5 us"), (7, "0.5", "none", "0.75 x")]
    table = lesson.table("a title", ("a", "b", "c", "d"), rows)
    assert [column.right for column in table.columns] == [True, True, False, True]
    assert list(table.cells()) == [
        ("1,024", "-3", "L1, 32.0 KiB", "1.5 us"),
        ("7", "0.5", "none", "0.75 x"),
    ]
