"""Examples: each runs as a student runs it, says what to look at, and shows what it promises."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.commands import run_here
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
        r"Inf began at ordinary_program\.py:\d+, `hits = labels \* tf\.math\.log\(",
    ),
    "adding_a_model": (
        r"backward   .*\b\d+ nodes new",
        r"execution  .* at batch size",
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
        r"seven loops in Python .* \d+(\.\d+)? [nu]s +0\.0",
        r"The chapter's example\. The three ways agree;",
        r"LeNet's conv1\. The three ways agree;",
        r"LeNet's conv2\. The three ways agree;",
    ),
    "eager_and_symbolic": (
        r"not needed by the fetches: Exp",
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
        r"HLO +\d+ lines",
        r"machine code  \d+ lines",
        r"1,048,576  XLA",
    ),
    "fusion": (
        r"Conv2D +fused into Relu by remapper",
        r"BiasAdd +fused into Relu by remapper",
        r"on +5 +294 KiB",
    ),
    "gradient_function": (
        r"x @ y +_MatMulGrad .* 2 MatMul +0 +\de-",
        r"relu\(x\) +_ReluGrad .* ReluGrad +0 +\de-",
        r"-1\.5 +-1 +-1 +0 +1",
    ),
    "two_devices": (
        r"CPU:0 +first/_0 +_Send +first +the runtime's",
        r"CPU:1 +first/_1 +_Recv +the runtime's",
        r"transfers  4\.00 KiB from CPU:0 to CPU:1, 4\.00 KiB from CPU:1 to CPU:0,",
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
def test_an_example_runs_from_any_folder_and_shows_what_it_promises(name, ran):
    done = ran[name]
    assert done.returncode == 0, done.stderr
    assert name == ORDINARY or done.stderr == ""
    about = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))
    assert done.stdout.strip().startswith(about) and re.search(r"\blook at\b", about, re.I)
    assert [line for line in done.stdout.splitlines() if len(line.rstrip()) > WIDTH] == []
    missing = [fact for fact in FACTS[name] if not re.search(rf"^ *{fact}", done.stdout, re.M)]
    assert missing == []


def test_the_list_of_examples_is_complete():
    listed = re.findall(r"\[(\w+)\.py\]\(\1\.py\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == EXAMPLES


def test_the_model_of_an_example_can_be_named_on_the_command_line(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    about = ast.get_docstring(ast.parse((FOLDER / "adding_a_model.py").read_text()))
    line = re.search(r"PYTHONPATH=examples python -m tflab.lifecycle (--model .*)", about)[1]
    done = run_here(lifecycle.main, *line.split(), "--stage", "frontend")
    assert (done.returncode, done.stderr) == (0, "")
    assert "adding_a_model.py:" in done.stdout
