"""The lifecycle command, as its users run it: documents, logdirs, errors and Ctrl-C."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests import walks
from tests.commands import run_here
from tests.shown import without_progress
from tflab.exporters import text
from tflab.life import storage
from tflab.lifecycle import __main__ as command
from tflab.records.blocks import Block, Table
from tflab.records.graph import Node
from tflab.records.stages import Backward, Execution, Frontend
from tflab.views import in_short, stages

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "tflab.lifecycle")
WIDTH = 100
SCREEN = 60  # lines
NODES = (Node("s/x", "Placeholder"), Node("s/exp", "Exp", ("s/x",)))
ESCAPE = "\x1b"
CHATTER = re.compile(r"^[IWEF]\d{4} |^WARNING|TF_ENABLE_ONEDNN_OPTS", re.MULTILINE)

# What other programs rely on: dotted names in each stage, of which every list has some
PROMISED = {
    "frontend": "nodes.source.file nodes.source.line nodes.source.function nodes.source.code",
    "backward": (
        "gradients.forward gradients.nodes added_nodes gradient_nodes.name gradient_nodes.formula "
        "gradient_checks.tensor gradient_checks.max_relative_error"
    ),
    "placement": (
        "fetches partitions.device partitions.nodes transfers.tensor transfers.from transfers.to "
        "transfers.bytes"
    ),
    "execution": (
        "warmup_steps steps untraced_step_ns.median untraced_step_ns.p10 untraced_step_ns.p90 "
        "traced_step_ns.median traced_step_ns.p10 traced_step_ns.p90 runs.step runs.name runs.op "
        "runs.device runs.start_ns runs.duration_ns top_ops.name top_ops.op top_ops.calls "
        "top_ops.total_ns top_ops.self_ns top_ops.mean_ns top_ops.share time_ledger.owner "
        "time_ledger.ns wall_ns critical_path.nodes critical_path.ns critical_path.parallelism "
        "memory.per_op.name memory.per_op.requested_bytes memory.peak_bytes values.tensor "
        "values.dtype values.shape values.values values.mean values.min values.max "
        "values.not_finite"
    ),
}
OF_NODES = (
    "nodes.name nodes.op nodes.inputs nodes.control_inputs nodes.device nodes.outputs nodes.source"
)

# The toy, but it writes a line to a file in every step.
COUNTED = """
from dataclasses import replace
import tensorflow as tf
from tflab.models import toy

def build():
    model = toy.build()
    with tf.control_dependencies([tf.print("step", output_stream="file://{path}")]):
        return replace(model, loss=tf.identity(model.loss))
"""

# The toy on 20 rows: fewer than the largest batch of the lab.
FEW = """
from dataclasses import replace
from tflab.models import toy

def build():
    return replace(toy.build(), data=few)

def few(split, data_dir=None):
    data = toy.line(split)
    columns = {name: column[:20] for name, column in data.columns.items()}
    return replace(data, name="a few points", columns=columns)
"""

BROKEN = """
def raises():
    raise ValueError("this model is broken")

def returns_nothing():
    pass
"""


@pytest.fixture(scope="module")
def environment():
    """That of a user, whose TensorFlow is not set to be quiet."""
    quiet = ("TF_CPP_MIN_LOG_LEVEL", "COLUMNS", "FORCE_COLOR")
    known = {name: value for name, value in os.environ.items() if name not in quiet}
    return known | {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def run_in(tmp_path):
    """Run the command in this process, in an empty folder, and expect it to be done."""

    def run_in(*args):
        done = run_here(command.main, *args, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done, tmp_path

    return run_in


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    args = ("--devices", "2", "--steps", "4", "--warmup", "1", "--batch-size", "8")
    logdir = tmp_path_factory.mktemp("logs") / "toy"
    done = run_here(command.main, *args, "--format", "json", "--logdir", str(logdir))
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def logdir(toy):
    """The one that `toy` wrote."""
    return Path(toy.args[-1])


@pytest.fixture(scope="module")
def as_text(environment, logdir, tmp_path_factory):
    """The toy again, in colourless text, by a process of its own, into a logdir that has been
    written to."""
    before = contents(logdir)
    done = subprocess.run(
        [*COMMAND, "--logdir", str(logdir)],
        cwd=tmp_path_factory.mktemp("empty"),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, CHATTER.findall(done.stderr)) == (0, []), done.stderr
    return done, before


# JSON


def test_json_keeps_the_promises_of_the_design(toy):
    walk = json.loads(toy.stdout)
    assert list(walk) == ["model", "environment", "stages"]
    assert (walk["model"], [stage["stage"] for stage in walk["stages"]]) == ("toy", [*PROMISED])
    for stage in walk["stages"]:
        for name in f"{OF_NODES} {PROMISED[stage['stage']]}".split():
            assert values_of(stage, name.split(".")), (stage["stage"], name)
        edges = sum(len(node["inputs"]) + len(node["control_inputs"]) for node in stage["nodes"])
        assert (stage["node_count"], stage["edge_count"]) == (len(stage["nodes"]), edges)


def values_of(value, names):
    """All values under these names, in every object of every list; a missing name is an error."""
    if not names:
        return [value]
    if isinstance(value, list):
        return [found for item in value for found in values_of(item, names)]
    return values_of(value[names[0]], names[1:])


def test_json_has_the_derivatives_of_a_formula_and_none_of_a_network(toy, walked):
    backward = json.loads(toy.stdout)["stages"][1]
    assert [derivative["variable"] for derivative in backward["derivatives"]] == ["y", "z"]
    for derivative in backward["derivatives"]:
        assert list(derivative) == ["variable", "formula", "value", "difference", "checked"]
        assert derivative["formula"].startswith("mean(2 * ")
        assert 0 <= derivative["difference"] < 1e-5 < abs(derivative["value"])
    assert walked("lenet")["backward"].derivatives == ()


def test_json_holds_what_was_asked_for_and_the_machine(toy):
    *_, executed = json.loads(toy.stdout)["stages"]
    assert (executed["steps"], executed["warmup_steps"], executed["batch_size"]) == (4, 1, 8)
    assert {run["step"] for run in executed["runs"]} == {0, 1, 2, 3}
    assert sum(owner["ns"] for owner in executed["time_ledger"]) == executed["wall_ns"]
    machine = json.loads(toy.stdout)["environment"]
    assert machine["python"] == ".".join(map(str, sys.version_info[:3]))
    assert machine["packages"]["tensorflow"]


def test_values_are_left_out_where_they_are_not_wanted(run_in):
    done, _ = run_in("--no-values", "--steps", "1", "--format", "json")
    executed = json.loads(done.stdout)["stages"][-1]
    assert (executed["values"], executed["values_step"]) == ([], None)


def test_beside_json_stderr_holds_only_the_line_that_opens_tensorboard(toy, logdir):
    line = rf"\nOpen it in TensorBoard:  \S*tensorboard --logdir {logdir}\n"
    assert re.fullmatch(line, without_progress(toy.stderr))


# Text and Markdown


@pytest.mark.thorough
def test_piped_text_has_no_escape_codes_and_a_quiet_stderr(as_text):
    done, _ = as_text
    assert (without_progress(done.stderr), ESCAPE in done.stdout) == ("", False)
    places = done.stdout.index("1  Frontend"), done.stdout.index("4  Execution")
    assert places[0] < places[1] < done.stdout.index("More: ")


@pytest.mark.parametrize("width", ["80", "100"])
@pytest.mark.parametrize("name", ["toy", "lenet"])
def test_a_walk_in_short_fits_one_screen(name, width, walked, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    out = io.StringIO()
    console = text.console(out)
    for number, stage in enumerate(walked(name).values(), 1):
        quiet = replace(stage, load=None) if isinstance(stage, Execution) else stage
        text.show(console, number, quiet, in_short.blocks(quiet))
    text.show_block(console, command.MORE)
    assert len(out.getvalue().splitlines()) <= SCREEN - 2  # the last opens TensorBoard
    assert max(map(len, out.getvalue().splitlines())) <= int(width)


def shown_with(*options: str) -> list[list[Block] | None]:
    """What the command would show of a frontend and a backward stage that are empty."""
    args = command.parser().parse_args(options)
    return [
        command.blocks_of(args, stage) for stage in (Frontend(None, NODES), Backward(None, NODES))
    ]


def test_stages_are_shown_in_short_in_full_or_in_a_line():
    built, derived = Frontend(None, NODES), Backward(None, NODES)
    short = [in_short.blocks(built), in_short.blocks(derived)]
    full = [stages.blocks(built), stages.blocks(derived)]
    titles = titled(short + full)
    assert titled(shown_with()) == titles[:2]
    assert titled(shown_with("--full")) == titles[2:]
    assert titled(shown_with("--stage", "backward")) == [None, titles[3]]
    assert titled(shown_with("--stage", "backward", "--full")) == titles[2:]


def test_the_rows_of_a_long_list_are_shown_with_full_which_the_stage_names():
    scopes = tuple(Node(f"n{'x' * length}", "Op") for length in range(50))
    tables = []
    for options in (("--stage", "frontend"), ("--stage", "frontend", "--full")):
        blocks = command.blocks_of(command.parser().parse_args(options), Frontend(None, scopes))
        tables.append(next(block for block in blocks if isinstance(block, Table)))
    assert [len(table.rows) for table in tables] == [41, 50]
    assert [table.rest() for table in tables] == ["(--full shows every row)", ""]


def titled(shown: list[list[Block] | None]) -> list[list[str] | None]:
    """Blocks as their sentences and titles, since the cells of a table cannot be compared."""
    return [
        blocks and [block.title if isinstance(block, Table) else block for block in blocks]
        for blocks in shown
    ]


@pytest.mark.parametrize("name", walks.WHOLE)
def test_text_fits_100_columns(name, walked):
    out = io.StringIO()
    for number, stage in enumerate(walked(name).values(), 1):
        text.show(text.console(out), number, stage, stages.blocks(stage))
    too_wide = [line for line in out.getvalue().splitlines() if len(line) > WIDTH]
    assert too_wide == []


def test_markdown_has_a_section_for_each_stage_and_closes_its_code(run_in):
    done, _ = run_in("--stage", "placement", "--format", "markdown")
    headings = re.findall(r"^#+ .*$", done.stdout, re.MULTILINE)
    assert headings[0] == "# The stages of toy"
    assert [heading[:5] for heading in headings[1:]] == ["## 1.", "## 2.", "## 3."]
    assert done.stdout.count("```") % 2 == 0
    assert_tables_are_even(done.stdout)


def assert_tables_are_even(markdown):
    """Every row of a table has as many cells as the rule under its header."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert lines
    for block in re.findall(r"(?:^\| .*\n)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1


# Stages and logdirs


def test_a_stage_is_the_last_one_and_leaves_nothing_behind(run_in):
    done, folder = run_in("--stage", "frontend", "--format", "json")
    assert [stage["stage"] for stage in json.loads(done.stdout)["stages"]] == ["frontend"]
    assert without_progress(done.stderr) == ""
    assert list(folder.iterdir()) == []


def test_the_logdir_holds_both_graphs_profiles_and_the_life(toy, logdir):
    _, backward, placement, execution = json.loads(toy.stdout)["stages"]
    assert drawn(logdir / "written") == {node["name"] for node in backward["nodes"]}
    assert drawn(logdir / "executed") == {node["name"] for node in placement["nodes"]}
    events = EventAccumulator(str(logdir / "executed")).Reload()
    assert events.Tags()["run_metadata"] == ["batch 1", "batch 16", "batch 64"]
    for tag in events.Tags()["run_metadata"]:
        devices = events.RunMetadata(tag).step_stats.dev_stats
        assert "mul" in {stats.node_name for device in devices for stats in device.node_stats}
    runs = {path.parent.name for path in logdir.glob("plugins/profile/*/*.xplane.pb")}
    assert runs == {"toy-batch-1", "toy-batch-16", "toy-batch-64"}
    life = storage.read(storage.runs(logdir)["."])
    shown = {node["name"] for node in life["graph"]["nodes"]}
    assert shown >= {fate["name"] for fate in placement["ledger"]}
    assert life["numbers"]["nodes that ran"] == len(placement["nodes"])
    assert life["numbers"]["bytes"] == execution["memory"]["peak_bytes"]
    assert life["parts"].keys() >= {"In short", "Derivatives", "Passes", "Ops"}


def drawn(folder):
    return {node.name for node in EventAccumulator(str(folder)).Reload().Graph().node}


def test_a_second_run_into_a_logdir_overwrites_nothing(as_text, logdir):
    done, before = as_text
    after = contents(logdir)
    assert before.items() < after.items()
    (folder,) = {Path(name).parts[0] for name in after.keys() - before.keys()}
    assert f"--logdir {logdir / folder}\n" in done.stdout


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# Errors


@pytest.fixture
def fail(tmp_path, monkeypatch, capsys):
    """Run the command in this process; give its status, its last words and what it printed."""
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)

    def fail(*args):
        status = command.main(args)
        printed = capsys.readouterr()
        return status, printed.err, printed.out

    return fail


@pytest.mark.parametrize(
    "args, complaint",
    [
        ("--model lenett", "No model named 'lenett'. Did you mean 'lenet'? Choose from toy, "),
        ("--stage bakward", "No stage named 'bakward'. Did you mean 'backward'? Choose from fr"),
        ("--format yaml", "No format named 'yaml'. Choose from text, json, markdown."),
        ("--batch-size 0", "The batch size is '0'; it has to be a whole number of at least 1."),
        (
            "--batch-size many",
            "The batch size is 'many'; it has to be a whole number of at least 1.",
        ),
        ("--steps -1", "The number of steps is '-1'; it has to be a whole number of at least 1."),
        ("--devices 1.5", "The number of devices is '1.5'; it has to be a whole number from 1 "),
        ("--experiments 0", "The number of seconds for experiments is '0'; it has to be a whole n"),
        (
            "--experiments --stage placement",
            "--experiments runs steps, but the stages up to placement run none. Give --stage",
        ),
        ("--nonsense", "Unrecognized arguments: --nonsense. See `python -m tflab.lifecycle --he"),
        ("--logdir /dev/null/logs", "The logdir '/dev/null/logs' cannot be written: '/dev/null'"),
    ],
)
def test_a_wrong_argument_is_an_error_before_anything_runs(args, complaint, fail):
    status, words, printed = fail(*args.split())
    assert_one_sentence(words, complaint)
    assert (status, printed) == (2, "")


@pytest.mark.parametrize(
    "function, complaint",
    [
        ("raises", r"failed while it built its graph \(.*broken.py:3\): ValueError: this model is"),
        (
            "returns_nothing",
            "returned NoneType; a model function must return a tflab.records.Model.",
        ),
    ],
)
def test_a_model_that_cannot_be_built_is_a_failed_run(function, complaint, fail):
    status, words, printed = fail("--model", f"broken:{function}", "--stage", "frontend")
    assert_one_sentence(words, f"The model 'broken:{function}' ")
    assert re.search(complaint, words)
    assert (status, printed) == (1, "")


def test_a_fetch_that_is_not_in_the_graph_leaves_the_stages_before_it(fail, tmp_path):
    logs = tmp_path / "logs"
    args = ("--fetch", "mull", "--format", "json", "--logdir", str(logs / "toy"))
    status, words, printed = fail(*args)
    complaint = "There is no node 'mull' to fetch in the graph. Did you mean 'mul'?"
    assert_one_sentence(words, complaint)
    document = json.loads(printed)
    assert [stage["stage"] for stage in document["stages"]] == ["frontend", "backward"]
    assert (status, document["error"]) == (2, complaint)
    assert list(logs.iterdir()) == []


@pytest.mark.parametrize("stage", ["placement", "all"])
def test_a_batch_larger_than_the_data_is_refused_before_a_stage_is_printed(stage, fail, tmp_path):
    args = ("--stage", stage, "--logdir", str(tmp_path / "logs" / "toy"))
    status, words, printed = fail("--batch-size", "2000", *args)
    assert_one_sentence(words, "A batch of 2000 cannot be taken from the 1024 rows of points of 3x")
    assert (status, printed) == (2, "")


def test_a_graph_is_shown_also_where_no_batch_can_be_cut(fail):
    assert fail("--batch-size", "2000", "--stage", "frontend")[0] == 0


def test_a_walk_on_few_rows_is_done_and_says_which_captures_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "few.py").write_text(FEW)
    monkeypatch.syspath_prepend(str(tmp_path))
    args = ("--model", "few:build", "--steps", "2", "--no-values")
    done = run_here(command.main, *args, folder=tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert done.stdout.endswith(
        "\nA batch of 64 is not captured: the data (a few points) have 20 rows.\n"
    )
    (logdir,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"few-build-\d{8}-\d{6}", logdir.name)
    profiles = {path.parent.name for path in logdir.glob("plugins/profile/*/*.xplane.pb")}
    assert {name.rpartition("-batch-")[2] for name in profiles} == {"1", "16"}


def assert_one_sentence(words, beginning):
    assert words.startswith(f"tflab: {beginning}")
    assert words.count("\n") == 1 and words.endswith("\n")


# Ctrl-C


def test_ctrl_c_keeps_what_was_measured(tmp_path, monkeypatch):
    steps = tmp_path / "steps.txt"
    (tmp_path / "counted.py").write_text(COUNTED.format(path=steps))
    monkeypatch.syspath_prepend(str(tmp_path))

    def interrupt():
        """The stages before, and the warm-up, run far fewer than 100 steps."""
        deadline = time.monotonic() + 60
        while not (steps.exists() and len(steps.read_text().splitlines()) >= 100):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt, daemon=True).start()
    args = ("--model", "counted:build", "--steps", "1000000", "--format", "json")
    done = run_here(command.main, *args, folder=tmp_path)
    assert done.returncode == 130
    *_, executed = json.loads(done.stdout)["stages"]
    assert executed["stage"] == "execution"
    assert executed["interrupted"] is True
    assert 1 <= executed["steps"] < 1_000_000
    assert len({run["step"] for run in executed["runs"]}) == executed["steps"]
    assert "Traceback" not in done.stderr


def test_a_signal_while_the_logdir_is_written_loses_nothing(tmp_path, monkeypatch):
    write = storage.write

    def interrupted(*given):
        os.kill(os.getpid(), signal.SIGTERM)
        return write(*given)

    monkeypatch.setattr(storage, "write", interrupted)
    args = ("--steps", "1", "--warmup", "0", "--logdir", "logs")
    done = run_here(command.main, *args, folder=tmp_path)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout.endswith("tensorboard --logdir logs\n")
    assert tmp_path.joinpath("logs", *storage.PLACE, storage.NAME).exists()
