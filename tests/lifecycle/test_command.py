"""The lifecycle command, as its users run it: documents, logdirs, errors and Ctrl-C."""

import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests import graphs, needs
from tests.approval import approve
from tests.commands import run_here, run_python
from tests.records_by_hand import a_backward, a_frontend
from tflab.lifecycle import __main__ as command
from tflab.models import toy
from tflab.records.blocks import Table
from tflab.records.graph import Node
from tflab.records.measured import Load
from tflab.report import storage
from tflab.runtime import session
from tflab.views import stages

pytestmark = pytest.mark.tensorflow

NODES = (Node("s/x", "Placeholder"), Node("s/exp", "Exp", ("s/x",)))
ESCAPE = "\x1b"

# What has nothing to say in this walk of the toy; all other keys of each stage have
SILENT = {
    "frontend": {"always_run", "blocked", "functions", "notes", "unordered"},
    "backward": {
        *("added_functions", "custom_gradients", "functions", "gradient_stops"),
        *("stopped", "unchecked", "unordered"),
    },
    "placement": {"not_run", "notes"},
    "execution": {"failure", "network", "not_finite"},
}


def few():
    """The toy on 20 rows: fewer than the largest batch of the lab."""
    data = toy.line("train")
    columns = {name: column[:20] for name, column in data.columns.items()}
    points = replace(data, name="a few points", columns=columns)
    return replace(toy.build(), data=lambda split, data_dir: points)


def raises():
    raise ValueError("this model is broken")


@pytest.fixture
def run_in(tmp_path):
    """Run the command in this process, in an empty folder, and expect it to be done."""

    def run_in(*args):
        done = run_here(command.main, *args, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done, tmp_path

    return run_in


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    args = ("--devices", "2", "--steps", "4", "--warmup", "1", "--batch-size", "8")
    logdir = tmp_path_factory.mktemp("logs") / "toy"
    done = run_here(command.main, *args, "--format", "json", "--logdir", str(logdir))
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def logdir(walk):
    """The one that `walk` wrote."""
    return Path(walk.args[-1])


# JSON


@needs.LOG_IS_SET
def test_json_has_all_that_was_measured_what_was_asked_for_and_the_machine(walk, logdir):
    """Beside it, stderr holds only the line that opens TensorBoard."""
    line = rf"\nOpen it in TensorBoard:  \S*tensorboard --logdir {logdir}\n"
    assert re.fullmatch(line, walk.stderr)
    whole = json.loads(walk.stdout)
    stages = {stage["stage"]: stage for stage in whole["stages"]}
    assert {
        name: {key for key, value in stage.items() if value in (None, "", [], {})}
        for name, stage in stages.items()
    } == SILENT
    executed = stages["execution"]
    assert (executed["steps"], executed["warmup_steps"], executed["batch_size"]) == (4, 1, 8)
    assert {run["step"] for run in executed["runs"]} == {0, 1, 2, 3}
    assert len(stages["placement"]["partitions"]) == 2
    machine = whole["environment"]
    assert machine["python"] == ".".join(map(str, sys.version_info[:3]))
    assert machine["packages"]["tensorflow"]


# Text and Markdown


@pytest.mark.thorough
def test_piped_text_has_no_escape_codes_and_a_quiet_stderr_and_overwrites_nothing(logdir, tmp_path):
    """By a process of its own, whose TensorFlow is not set to be quiet, into a logdir that has been
    written to."""
    before = contents(logdir)
    done = run_python(tmp_path, "-m", "tflab.lifecycle", "--logdir", str(logdir), log="")
    assert (done.returncode, done.stderr, ESCAPE in done.stdout) == (0, "", False)
    places = done.stdout.index("1  Frontend"), done.stdout.index("4  Execution")
    assert places[0] < places[1] < done.stdout.index("More: ")
    after = contents(logdir)
    assert before.items() < after.items()
    (folder,) = {Path(name).parts[0] for name in after.keys() - before.keys()}
    assert f"--logdir {logdir / folder}\n" in done.stdout


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@needs.LOG_IS_SET
@pytest.mark.parametrize(("width", "most"), [(100, 40), (80, 44)])
@pytest.mark.parametrize("name", ["toy", "lenet"])
def test_a_walk_in_short_fits_one_screen_and_begins_with_its_results(
    name, width, most, walked, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", str(width))
    *earlier, ran = walked(name).values()
    busy = replace(ran, load=Load(2, 1.6))
    command.show(choice(model=name), iter([*earlier, busy]), [])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) < most  # the last line opens TensorBoard
    assert max(map(len, shown)) <= width
    assert shown[0].startswith(f"{name}: ") and " a step at batch size " in " ".join(shown[:2])


def test_a_walk_in_full_begins_with_its_result(walked, capsys):
    command.show(choice(full=True), iter(walked("toy").values()), [])
    assert capsys.readouterr().out.startswith("toy: 73 nodes built, ")


def test_stages_are_shown_in_short_in_full_or_in_a_line():
    walk = a_frontend(None, NODES), a_backward(None, NODES)

    def shown_with(**chosen):
        return [titled(command.blocks_of(choice(**chosen), stage)) for stage in walk]

    short = [titled(stages.on_one_screen(stage)) for stage in walk]
    full = [titled(stages.blocks(stage)) for stage in walk]
    assert shown_with() == short
    assert shown_with(full=True) == full
    assert shown_with(stage="backward") == [None, full[1]]
    assert shown_with(stage="backward", full=True) == full


def choice(model="toy", stage="all", full=False):
    return command.Choice(model, stage, full, "text", None)


def titled(blocks):
    """Blocks as their sentences and titles, since the cells of a table cannot be compared."""
    return blocks and [block.title if isinstance(block, Table) else block for block in blocks]


def test_the_rows_of_a_long_list_are_shown_with_full_which_the_stage_names():
    scopes = tuple(Node(f"n{'x' * length}", "Op") for length in range(50))
    tables = []
    for full in (False, True):
        blocks = command.blocks_of(choice("toy", "frontend", full), a_frontend(None, scopes))
        tables.append(next(block for block in blocks if isinstance(block, Table) and block.drawing))
    assert [len(table.rows) for table in tables] == [40, 50]
    assert [table.rest() for table in tables] == ["... and 10 more (--full shows all)", ""]


def test_markdown_has_a_section_for_each_stage_until_the_last_one(run_in):
    done, folder = run_in("--stage", "placement", "--format", "markdown")
    headings = re.findall(r"^##? .*$", done.stdout, re.MULTILINE)
    assert headings[0] == "# The stages of toy"
    assert [heading[:5] for heading in headings[1:]] == ["## 1.", "## 2.", "## 3."]
    assert (done.stderr, [*folder.iterdir()]) == ("", [])


# Stages and logdirs


@pytest.mark.thorough
def test_the_folder_of_generated_code_is_named_where_code_is_shown(tmp_path):
    args = ("-m", "tflab.lifecycle", "--stage", "placement", "--logdir", "logs")
    done = run_python(tmp_path, *args)
    assert done.stdout.endswith("\nComplete generated code:  logs/code\n")
    assert [*tmp_path.glob("logs/code/cluster_0/*")]


def test_the_logdir_holds_both_graphs_profiles_and_the_life(walk, logdir):
    _, backward, placement, _ = json.loads(walk.stdout)["stages"]
    assert drawn(logdir / "written") == {node["name"] for node in backward["nodes"]}
    assert drawn(logdir / "executed") == {node["name"] for node in placement["nodes"]}
    events = EventAccumulator(str(logdir / "executed")).Reload()
    assert events.Tags()["run_metadata"] == ["batch 1", "batch 8", "batch 16", "batch 64"]
    for tag in events.Tags()["run_metadata"]:
        devices = events.RunMetadata(tag).step_stats.dev_stats
        assert "mul" in {stats.node_name for device in devices for stats in device.node_stats}
    runs = {path.parent.name for path in logdir.glob("plugins/profile/*/*.xplane.pb")}
    assert runs == {"toy-batch-1", "toy-batch-8", "toy-batch-16", "toy-batch-64"}
    life = storage.read(storage.runs(logdir)["."])
    shown = {node["name"] for node in life["graph"]["nodes"]}
    assert shown >= {fate["name"] for fate in placement["ledger"]}
    assert life["parts"].keys() >= {"In short", "Derivatives", "Passes", "Ops"}


def drawn(folder):
    return {node.name for node in EventAccumulator(str(folder)).Reload().Graph().node}


# Errors

WRONG = (
    *("--stage bakward", "--format yaml", "--batch-size many", "--steps 0", "--warmup -1"),
    *("--experiments 0", "--experiments --stage placement", "--nonsense", "--logdir /dev/null/x"),
    # Before anything is shown, wherever a batch is needed
    *("--batch-size 2000", "--batch-size 2000 --stage placement"),
    "--batch-size 2000 --stage frontend",  # which needs none
    "--fetch mull",
    "--loss nope",
    "--shape x=3",
    *("--model lenett", f"--model {__name__}:raises"),
)


def test_an_error_is_one_sentence_and_leaves_the_stages_before_it_and_no_logdir(tmp_path):
    said = []
    for line in WRONG:
        logs = "" if "--stage" in line or "--logdir" in line else "--logdir logs/toy "
        words = f"--format json {logs}{line}".split()
        done = run_here(command.main, *words, folder=tmp_path)
        sentence = done.stderr
        assert sentence.count("\n") == bool(done.returncode), sentence
        document = json.loads(done.stdout or '{"stages": []}')
        stages = [stage["stage"] for stage in document["stages"]]
        error = f"tflab: {document['error']}\n" if "error" in document else ""
        assert error == (sentence if stages else "")
        assert not list(tmp_path.glob("logs/*"))
        shown = f" after {', '.join(stages)}" if stages else ""
        said += [f"# {line}", f"{done.returncode}{shown} {sentence.strip()}".strip(), ""]
    places = rf"{tmp_path}|{__file__}:\d+"
    approve("lifecycle-refused.txt", re.sub(places, "PLACE", "\n".join(said)))


def test_a_walk_on_few_rows_captures_the_batch_sizes_that_the_data_fill(run_in):
    done, folder = run_in("--model", f"{__name__}:few", "--steps", "2", "--no-values")
    assert done.stderr == ""
    (logdir,) = (folder / "runs").iterdir()
    assert re.fullmatch(r"\S+-few-\d{8}-\d{6}", logdir.name)
    profiles = {path.parent.name for path in logdir.glob("plugins/profile/*/*.xplane.pb")}
    assert {name.rpartition("-batch-")[2] for name in profiles} == {"1", "16"}


def test_a_file_that_asks_for_a_gpu_is_captured_on_the_devices_that_are_here(tmp_path):
    graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.on_a_gpu))
    args = ("--model", "g.pb", "--steps", "2", "--no-values", "--logdir", "logs")
    done = run_here(command.main, *args, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [*tmp_path.glob("logs/plugins/profile/*/*.xplane.pb")]


def test_ctrl_c_keeps_what_was_measured(tmp_path, monkeypatch):
    timed_step, begun = session.timed_step, []

    def interrupted(*given):
        begun.append(given)
        if len(begun) == 30:  # the stages before time fewer steps
            signal.raise_signal(signal.SIGINT)
        return timed_step(*given)

    monkeypatch.setattr(session, "timed_step", interrupted)
    done = run_here(command.main, "--steps", "1000000", "--format", "json", folder=tmp_path)
    *_, executed = json.loads(done.stdout)["stages"]
    assert (done.returncode, executed["interrupted"]) == (130, True)
    assert len({run["step"] for run in executed["runs"]}) == executed["steps"] > 0


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
