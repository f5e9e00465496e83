"""The process of programs: programs that work, programs that fail, and programs that mean harm."""

import os
import time
from contextlib import closing

import pytest

from tflab.explore import worker, worker_pool
from tflab.explore.request import TOY, ProgramRequest, Source

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

SECONDS = 20  # of a stage, on a machine with other work
STAGES = ["frontend", "backward", "placement", "execution", "values"]
PRODUCT = """\
x = tf1.placeholder(tf.float32, [None], name="x")
y = tf1.get_variable("y", initializer=2.0)
loss = tf.reduce_sum(x * y, name="loss")
feeds = {x: [1.0, 2.0]}
"""
DENSE = """\
x = tf1.placeholder(tf.float32, [None, 8], name="x")
w = tf1.get_variable("w", [8, 4])
sums = tf.nn.bias_add(tf.matmul(x, w), tf.ones([4]))
loss = tf.reduce_mean(tf.sqrt(tf.abs(sums)), name="loss")
"""
HALF = """\
import os
for file in range(3, 30):
    try:
        os.write(file, b"half of a line")
    except OSError:
        pass
"""
SMALL = "x = tf.constant(1.0)\ny = x + 2.0\n"


class Runner:
    def __init__(self, process):
        self.process, self.number = process, 0

    def __call__(self, text, seconds=SECONDS, **switches):
        """All messages of a program."""
        self.number += 1
        self.process.seconds = seconds
        return list(self.process.life("page", self.number, ProgramRequest(text, **switches)))

    def error(self, text, seconds=SECONDS, **switches):
        return self(text, seconds, **switches)[-1]["error"]


@pytest.fixture(scope="module")
def run():
    """A process that ends with the server."""
    with closing(worker_pool.WorkerProcess(Source("program.py"))) as process:
        yield Runner(process)
        last = process.process.pid
    for _ in range(50):
        if not os.path.exists(f"/proc/{last}"):
            return
        time.sleep(0.1)
    raise AssertionError("The process is still there.")


def by_stage(messages):
    return {message["stage"]: message for message in messages if "stage" in message}


def names(message):
    return [node["name"] for node in message["graph"]["nodes"]]


def test_each_stage_comes_with_its_drawing_and_the_line_of_every_node(run):
    messages = run(PRODUCT)
    assert [message.get("stage") for message in messages] == [*STAGES, None]
    assert messages[-1] == {"done": True}
    stages = by_stage(messages)
    lines = dict(zip(names(stages["values"]), stages["values"]["graph"]["lines"], strict=True))
    assert (lines["x"], lines["y"], lines["mul"], lines["loss"]) == ([1], [2], [3], [3])
    assert lines["gradients/mul_grad/Mul"] == [3]
    loss = stages["values"]["graph"]["nodes"][names(stages["values"]).index("loss")]
    assert loss["data"] == "6"  # 2 * 1 + 2 * 2, of a batch that has the two rows that are fed
    assert "data" not in stages["execution"]["graph"]["nodes"][0]


def facts_of(stage: dict) -> dict[str, str]:
    """The facts of the stages so far, by their labels."""
    return {label: text for _, label, text in stage["parts"]["In short"][-1]["rows"]}


def test_of_compiled_nodes_no_fusion_and_no_memory_is_told(run):
    last = by_stage(run(DENSE, xla=True))["values"]
    facts = facts_of(last)
    assert "fused" not in facts
    assert facts["memory"] == "not recorded, code that XLA compiled ran"
    ends = {node["name"]: node["history"] for node in last["graph"]["nodes"]}
    about = "compiled: in a cluster of nodes that XLA compiled"
    assert about in {section["about"] for section in ends["Abs"]}


def test_questions_come_with_the_last_stage_where_they_are_wanted(run):
    *_, last, _ = run(PRODUCT, predict=True)
    stages = by_stage(run(PRODUCT))
    written = len(stages["frontend"]["graph"]["nodes"])
    assert last["questions"][0]["text"] == (
        f"program.py has {written} nodes as written. How many of these will run under their own "
        "name?"
    )
    assert "questions" not in stages["values"]


def test_a_file_finds_its_neighbours(run, tmp_path):
    (tmp_path / "neighbour.py").write_text("FACTOR = 3.0\n")
    run.process.source = Source("program.py", str(tmp_path))
    text = "import neighbour\nprint(__file__)\nx = tf.constant(1.0) * neighbour.FACTOR\n"
    try:
        messages = run(text)
    finally:
        run.process.source = Source("program.py")
    assert messages[-1] == {"done": True}
    assert messages[0]["printed"] == f"{tmp_path / 'program.py'}\n"


def test_switches_reach_the_runtime(run):
    stages = by_stage(run(TOY, devices=2, without=("grappler",)))
    sent = stages["placement"]["graph"]
    assert sent["legend"]["device"] == ["CPU:0", "CPU:1"]
    assert not any("Grappler" in state["about"] for state in sent["states"])
    compiled = by_stage(run(TOY, xla=True))["placement"]
    assert "compiled" in compiled["graph"]["legend"]["fate"]
    assert "Generated code" in compiled["parts"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1 +\n", 1, "SyntaxError"),
        ("x = tf.constant(1.0)\nfoo\n", 2, "NameError: name 'foo' is not defined"),
        ("x = tf.ones([3]) \\\n + tf.ones([2])", 1, "Dimensions must be equal, but are 3 and 2"),
        ("raise SystemExit(3)", 1, "SystemExit: 3"),
        ("", None, "The program makes no node"),
        ("with tf.Graph().as_default() as own: tf.ones([])", None, "makes a graph of its own"),
        ("x = tf.ones([])\nloss = 3.0", None, "`loss` is float; it has to be a tensor"),
        (
            "x = tf1.placeholder(tf.float32, [None])\n\ny = tf.reshape(x, [3, 5])",
            3,
            "Input to reshape is a tensor with 16 values, but the requested shape has 15 (in node "
            "'Reshape').",
        ),
        (
            "x = tf1.placeholder(tf.float32, [None])\n"
            "y = tf.while_loop(lambda i: True, lambda i: (\n"
            "    tf.debugging.check_numerics(i / 0.0, 'bad'),), [x])",
            3,
            "bad : Tensor had Inf values",
        ),
        ("x = tf1.placeholder(tf.float32, [None], 'x')\ny = -x\nfeeds = {x: []}", None, "no row"),
        (
            "x, y = (tf1.placeholder(tf.float32, [None]) for _ in 'ab')\n"
            "feeds = {x: [1.0, 2.0], y: [3.0]}",
            None,
            "gives 1 and 2 rows",
        ),
        ("x = tf.ones([])\nfeeds = [x]\ny = -x", None, "is list"),
        (
            "a = tf.ones([])\nwith tf.device('/cpu:2'):\n    v = tf1.get_variable('v', [4, 1])\n"
            "loss = tf.reduce_sum(v)",
            3,
            "CPU:2",
        ),
        ("big = bytearray(10**15)", 1, "MemoryError"),
    ],
)
def test_an_error_is_said_with_its_line(run, text, line, words):
    error = run.error(text)
    assert error["line"] == line
    assert words in error["message"]


OWN = "The program has gradients of its own, so tflab adds none."
LINE = "x = tf1.placeholder(tf.float32, [None], 'x')\na = tf1.get_variable('a', initializer=2.0)\n"
PENALTY = "g = tf.gradients(tf.sin(a * x), x)[0]\n"
SCRIPT = """\
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.reset_default_graph()
x = tf.placeholder(tf.float32, [None], 'x')
a = tf.Variable(tf.ones([x.shape.ndims], name='a'))
cost = tf.reduce_mean(a * x, name='cost')
right = tf.reduce_mean(tf.cast(tf.greater(a * x, 0.0), tf.float32))
"""


@pytest.mark.parametrize(
    ("text", "fetches", "notes"),
    [
        (
            LINE + "loss = tf.reduce_sum(a * x)\ng = tf.gradients(loss, [a, x])",
            "Sum:0, gradients/mul_grad/Reshape:0, gradients/mul_grad/Mul_1:0",
            [OWN],
        ),
        (
            LINE + "loss = tf.reduce_sum(a * x)\nb = a.assign_sub(tf.gradients(loss, a)[0])",
            "Sum:0, AssignSubVariableOp",
            [OWN],
        ),
        (LINE + PENALTY + "loss = tf.reduce_sum(g)", "Sum:0, gradients/mul_grad/Mul_1:0", [OWN]),
        (SCRIPT, "cost:0, train", []),
        # The backward stage shows where the gradient stops
        (LINE + "loss = tf.cast(tf.argmax(a * x), tf.float32)", "Cast:0", []),
        (
            "x = tf1.placeholder(tf.int32, [None], 'x')\n"
            "loss = tf.reduce_sum(tf.cast(x, tf.float32))",
            "Sum:0",
            ["No gradients are added: the gradient of Sum reaches no placeholder of floats."],
        ),
        (
            "x = tf1.placeholder(tf.float32, [None, 3], 'x')\ny = x * 2.0",
            "mul:0",
            ["No gradients are added: no line names a scalar of a float type."],
        ),
    ],
)
def test_the_loss_and_gradients_of_a_program_are_run(run, text, fetches, notes):
    stage = by_stage(run(text))["values"]
    told = stage["parts"]["In short"]
    assert facts_of(stage)["fetches"] == fetches
    others = ("Fed are seeded values: x ", "Other programs used ")
    assert [note for note in told[:-1] if not note.startswith(others)] == notes


def test_gradients_of_a_graph_that_takes_only_one_size_of_batch_are_checked_with_that(run):
    text = LINE + "loss = tf.reduce_sum(a * tf.reshape(x, [4, 4]))"
    facts = facts_of(by_stage(run(text, batch_size=16))["backward"])
    checked, error, how = facts["checked"].split(", ")
    assert (checked, how[:21]) == ("1 of 1 variable", "by finite differences")
    assert float(error.removeprefix("largest relative error ")) < 1e-4
    assert "with 15 values" in run.error(text, batch_size=15)["message"]


def test_what_a_program_prints_is_kept_up_to_a_length(run):
    assert run("print('hello')\n" + SMALL)[0]["printed"] == "hello\n"
    ended = run("while True: print('x' * 1000)\n", seconds=1)[-1]
    assert len(ended["printed"]) == worker.PRINTED
    message = "tflab ended the program: it took longer than 1 s."
    assert ended["error"] == {"message": message, "line": 1}


def test_an_endless_loop_is_ended_at_its_line_by_the_same_process(run, monkeypatch):
    monkeypatch.setattr(worker_pool, "GRACE_S", SECONDS)  # on a busy machine its end takes longer
    run(SMALL)
    before = run.process.process.pid
    error = run.error("x = 1\nwhile True:\n    x += 1\n", seconds=1)
    assert error["message"] == "tflab ended the program: it took longer than 1 s."
    assert error["line"] in (2, 3)
    run(SMALL)
    assert run.process.process.pid == before


def test_a_fork_does_not_answer(run):
    messages = run("import os\nfor _ in range(3):\n    os.fork()\n" + SMALL)
    assert [message.get("stage") for message in messages] == [*STAGES, None]


def test_a_process_that_is_lost_is_replaced(run, monkeypatch):
    monkeypatch.setattr(worker_pool, "GRACE_S", 0.2)
    for text, words in (
        ("import os\nos._exit(3)", "ended its process with status 3"),
        # No signal interrupts it
        ("sum(range(10**12))", "did not stop within 1 s"),
        (HALF, "it wrote into the results of tflab"),
        ("import os\nos.closerange(3, 100)\nsum(range(10**12))", "it closed the results of tflab"),
    ):
        before = run.process.process.pid
        assert words in run.error(text, seconds=1 if "sum" in text else SECONDS)["message"]
        assert run.process.process.pid != before
        assert not os.path.exists(f"/proc/{before}")
    assert list(by_stage(run(SMALL))) == STAGES


def test_a_newer_version_of_a_page_takes_the_place_of_an_older_one(run):
    older = run.process.life("other page", 1, ProgramRequest(SMALL))
    assert next(older)["stage"] == "frontend"
    run.process.newest["other page"] = 2
    assert list(older) == [{"superseded": True}]


@pytest.mark.parametrize(("shape", "rows"), [("[4, 3]", 4), ("[]", 1), ("[None]", 5)])
def test_a_batch_of_fixed_shapes_has_their_rows(run, shape, rows):
    text = (
        f"x, rate = tf1.placeholder(tf.float32, {shape}), tf1.placeholder(tf.float32, [])\n"
        "y = rate * tf.reduce_sum(x * x)\n"
    )
    told = by_stage(run(text, batch_size=5))["values"]
    assert f"at batch size {rows}" in str(told["parts"])
    assert f"at batch size {rows}" in str(told["graph"])
