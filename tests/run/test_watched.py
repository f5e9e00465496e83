"""What is seen of programs that use TensorFlow, and that they do not feel it."""

import json
import re
from operator import itemgetter

import pytest

from tests.approval import approve
from tests.commands import run_python
from tflab.report import storage as lives
from tflab.run import sampler

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

STEPS = 300
# Keras takes as long to import as TensorFlow, which does without it; no program here needs it.
WITHOUT_KERAS = "import sys; sys.modules['keras'] = None"
TRAINING = f"""{WITHOUT_KERAS}
import threading, traceback
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()

def next_batch(random):
    total = 0
    for number in range(20000):
        total += number
    return random.rand(8, 4)

x = tf.placeholder(tf.float32, [None, 4], name="x")
w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
y = tf.matmul(x, w, name="y")
loss = tf.reduce_mean(tf.square(y - 1), name="loss")
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
wrong = tf.Assert(loss < 0, [loss], name="wrong")
random = np.random.RandomState(1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range({STEPS}):
        value, _ = session.run([loss, train], {{x: next_batch(random)}})
    print("%.6f" % value)
    called = session.make_callable(loss, [x])
    print("%.6f" % called(np.ones([2, 4])))
    print("%.6f" % session.make_callable(tf.reduce_sum(w))())
    other = threading.Thread(target=lambda: session.run(y, {{x: np.ones([1, 4])}}))
    other.start()
    other.join()
    options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
    metadata = tf.RunMetadata()
    session.run(y, {{x: np.ones([1, 4])}}, options=options, run_metadata=metadata)
    print(len(metadata.step_stats.dev_stats), len(metadata.partition_graphs))
    for fetch, feeds in ((wrong, {{x: np.ones([1, 4])}}), (loss, {{x: [[1.0]]}}), (loss, {{}})):
        try:
            session.run(fetch, feeds)
        except Exception:
            print(traceback.format_exc())
    session.run(wrong, {{x: np.ones([1, 4])}})
"""
# Time and thread of a line of the log, and other numbers that are new each time
STAMP = re.compile(r"^([A-Z]\d{4}) \S+ +\d+ (\S+)|(Key hash:) \d+", re.M)
ADDRESS = re.compile(r"0x[0-9a-f]+")


def run(script, *options, watched=True, log="0"):
    words = ("-m", "tflab.run", *options) if watched else ()
    done = run_python(script.parent, *words, str(script), log=log)
    return done.stdout, done.stderr, done.returncode


def seen_in(out):
    """What the program wrote, and the object after it."""
    program, mark, text = out.rpartition('{\n "program"')
    return program, json.loads(mark + text)


def without_stamps(text):
    return ADDRESS.sub("0x", STAMP.sub(r"\1 \2 \3", text))


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    script = tmp_path_factory.mktemp("training") / "train.py"
    script.write_text(TRAINING)
    out, err, status = run(script, "--format", "json")
    program, seen = seen_in(out)
    return script, (program, err, status), seen


def line_of(text):
    return 1 + TRAINING[: TRAINING.index(text)].count("\n")


def test_a_training_does_not_feel_that_it_is_watched(training):
    """Its values, tracebacks, log and exit status are the same."""
    script, (out, err, status), seen = training
    plain_out, plain_err, plain_status = run(script, watched=False)
    assert without_stamps(out) == without_stamps(plain_out)
    assert without_stamps(err) == without_stamps(plain_err)
    assert status == plain_status == seen["exit_status"] == 1


def test_each_nanosecond_of_a_training_has_one_owner(training):
    *_, seen = training
    owners = seen["process"]["owners"]
    assert sum(owner["ns"] for owner in owners) == seen["process"]["wall_ns"]
    assert all(owner["ns"] > 0 for owner in owners)
    names = [owner["owner"] for owner in owners]
    assert len(names) == len(set(names))
    assert {"import of TensorFlow", "first runs", "steps of group 2", "tflab"} <= {*names}
    by_name = {owner["owner"]: owner["ns"] for owner in owners}
    assert by_name["steps of group 2"] == seen["groups"][1]["total_ns"]


def test_runs_are_grouped_and_each_is_counted(training):
    *_, seen = training
    names = ("calls", "fetches", "feeds")
    groups = (" ".join(str(group[name]) for name in names) for group in seen["groups"])
    approve("groups-of-training.txt", "\n".join(groups))
    largest = seen["groups"][1]
    assert largest["graph"] == "graph 1"
    assert 1 <= largest["traced"] < STEPS
    assert largest["median_ns"] > 0


def test_the_lines_of_a_training_have_their_times(training):
    script, _, seen = training
    lines = {line["line"]: line for line in seen["lines"] if line["file"] == str(script)}
    multiplying = lines[line_of("y = tf.matmul")]
    assert multiplying["code"] == 'y = tf.matmul(x, w, name="y")'
    assert "y" in multiplying["nodes"]
    assert "gradients/y_grad/MatMul_1" in multiplying["nodes"]
    assert multiplying["forward_ns"] > 0
    assert multiplying["backward_ns"] > 0
    assert multiplying["update_ns"] == 0
    updating = lines[line_of("train = tf.train")]
    assert updating["update_ns"] > 0
    # Python decides at which of the two lines of the loop it can be interrupted
    loop = (line_of("for number in range"), line_of("total += number"))
    batch = [lines[number] for number in loop if number in lines]
    assert {line["code"] for line in batch} <= {"for number in range(20000):", "total += number"}
    assert [line["nodes"] for line in batch] == [[]] * len(batch)
    python_ns = sum(line["python_ns"] for line in seen["lines"])
    assert 0.2 * python_ns < sum(line["python_ns"] for line in batch)


def test_every_node_of_the_graph_has_one_fate(training):
    """Those of the step that trains: what only starts the variables is not reached."""
    *_, seen = training
    assert seen["notes"] == []
    assert sum(seen["fates"].values()) == len(
        {node for line in seen["lines"] for node in line["nodes"]}
    )
    assert seen["fates"]["executed"] > 5
    assert seen["fates"]["unreached"] > 5


ENDLESS = f"""{WITHOUT_KERAS}
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
session = tf.Session()
two = tf.placeholder(tf.float32, [])
doubled = tf.log(tf.multiply(tf.constant([1.0, 0.5]), two, name="mul"), name="log")
runs = 0
while True:
    runs += 1
    session.run(doubled, {{two: 2.0 if runs < 100 else 0.0}})
"""


def test_steps_end_a_program_that_would_not_end(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    options = ("--save", str(tmp_path / "kept.json"), "--logdir", str(tmp_path / "logs"))
    options += ("--html", str(tmp_path / "page.html"))
    _, err, status = run(script, "--steps", "500", "--lines", "--values", "100", *options, log="2")
    assert (status, "KeyboardInterrupt" in err) == (0, False)
    assert re.search(r"endless\.py took .*; --steps interrupted it\.", err)
    assert "\nThe page is in " in err
    assert re.search(r"\n  steps .* log:0: 499 runs, median ", err)
    assert len(err[err.index("\ntflab: ") :].partition("\n\n")[0].splitlines()) <= 9
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert (kept["stopped"], kept["exit_status"], kept["groups"][0]["calls"]) == (True, 0, 500)
    graph = kept["graph"]
    assert "mul" in {node["name"] for node in graph["nodes"]}
    assert graph["ops"]["mul"]["runs"] == graph["traced"] == kept["groups"][0]["traced"] > 0
    # Also those that are not Grappler's: the runtime has read what to dump before the first step
    assert "feeds_and_fetches" in {step["name"] for step in graph["passes"]}
    (line,) = [line for line in kept["lines"] if "mul" in line["nodes"]]
    assert (line["line"], line["code"]) == (6, ENDLESS.splitlines()[5])
    told = " ".join(err[err.index("Inf began") :].split())
    assert told.startswith("Inf began at endless.py:6: in log, 2 of 2 elements. First in run 100.")
    assert kept["groups"][0]["not_finite"] == {"log:0": 100}
    values = {value["tensor"]: value for value in kept["values"]["values"]}
    assert values["Placeholder:0"]["kind"] == "fed"
    assert values["mul:0"]["values"] == [0.0, 0.0]
    assert values["log:0"]["values"] == ["-Inf", "-Inf"]
    assert kept["values"]["not_finite"] == ["log:0"]
    page = (tmp_path / "page.html").read_text()
    assert re.search(r' data-line="5" class="made"><th scope="row" class="heat-\d">6<', page)
    for file in ("kept.json", "page.html"):  # what it shows of a program is private
        assert (tmp_path / file).stat().st_mode & 0o077 == 0
    assert err.endswith(f"tensorboard --logdir {tmp_path / 'logs'}\n")
    assert {file.name for file in (tmp_path / "logs").iterdir()} == {
        *("executed", "plugins", "run.json", "written")
    }
    life = lives.read(lives.runs(tmp_path / "logs")["."])
    assert life["stage"] == "execution"
    assert "mul" in {node["name"] for node in life["graph"]["nodes"]}
    (profile,) = (tmp_path / "logs").rglob("*.xplane.pb")
    assert b"mul:Mul" in profile.read_bytes()


FUNCTIONS = f"""{WITHOUT_KERAS}
import tensorflow as tf

@tf.function
def doubled(x):
    return tf.multiply(x, 2)

class Config:
    pass

class A:
    @tf.function
    def step(self, x):
        return x + 1.0

class B:
    @tf.function
    def step(self, x, config):
        return x * 2.0

weights = []

@tf.function
def creating(x):
    if not weights:
        weights.append(tf.Variable(1.0))
    return x * weights[0]

@tf.function
def reading(x):
    return x * weights[0]

@tf.function
def scaled(x, k):
    return x * k

total = 0
for number in range(200):
    for again in range(20000):
        total += again
    doubled(tf.constant(1.0))
print(float(doubled(tf.constant(2.0))))
print(doubled(tf.constant([2, 3])).numpy().tolist())

b, x, config = B(), tf.ones([4]), Config()
A().step(x)
b.step(x, config)
b.step(tf.ones([5]), config)
b.step(x, Config())
b.step(x, config)
for called in (creating, reading, creating):
    called(x)
for k in range(110):
    scaled(x, k)
scaled(x, 109)
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    script = tmp_path_factory.mktemp("functions") / "function.py"
    script.write_text(FUNCTIONS)
    out, err, status = run(script, "--format", "json")
    program, seen = seen_in(out)
    assert (program, status) == ("4.0\n[4, 6]\n", 0)
    assert "Traceback" not in err
    return seen


def test_each_function_has_all_its_tracings_and_what_they_differ_in(functions):
    names = ("name", "tracings", "place", "made", "changed")
    traced = (
        " | ".join(str(function[name]) for name in names)
        for function in sorted(functions["functions"], key=itemgetter("name"))
        if function["name"] != "initialize_variables"
    )
    approve("functions-of-a-program.txt", "\n".join(traced))


def test_calls_of_functions_are_groups_and_the_later_ones_are_one(functions):
    *groups, later = functions["groups"]
    names = ("graph", "calls", "first_runs")
    assert [tuple(group[name] for name in names) for group in groups] == [
        ("function doubled", 202, 2),
        ("function step", 1, 1),
        ("function step", 4, 3),
        ("function initialize_variables", 1, 1),
        ("function creating", 2, 1),
        ("function reading", 1, 1),
        ("function scaled", 91, 91),
    ]
    assert groups[0]["traced"] > 0
    assert groups[0]["feeds"] == {"x": "float32 ()"}  # of its first tracing
    # 2 + 1 + 3 + 1 + 1 + 110 graphs, and that which initialises the variable
    assert (later["graph"], later["first_runs"]) == ("all later runs", 19)
    assert later["calls"] == 20  # the last call is of a graph that ran before


def test_a_program_of_version_2_has_its_ledger_and_its_lines(functions):
    owners = {owner["owner"]: owner["ns"] for owner in functions["process"]["owners"]}
    assert sum(owners.values()) == functions["process"]["wall_ns"]
    assert {"first runs", "steps of group 1", "Python between steps"} <= {*owners}
    lines = {line["line"]: line for line in functions["lines"]}
    assert sorted(lines[6]["nodes"]) == ["Mul", "Mul/y"]
    assert lines[6]["forward_ns"] > 0
    (product,) = [op for op in functions["ops"] if op["op"] == "Mul"]
    assert product["ns"] > 0
    loop = FUNCTIONS[: FUNCTIONS.index("    for again")].count("\n") + 1
    spent = max(functions["lines"], key=lambda line: line["python_ns"])
    assert spent["line"] in (loop, loop + 1)
    calls = (sampler.GRAPHS, sampler.EAGER, sampler.FRAMEWORK, sampler.DATA)
    called_ns = sum(line["tensorflow_ns"] for line in lines.values())
    assert called_ns == sum(owners.get(owner, 0) for owner in calls)
    assert not any(lines[at]["tensorflow_ns"] for at in (loop, loop + 1) if at in lines)
