"""The report: what is refused before anything is computed, and what is written in the end."""

import importlib
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import pytest

from tests.commands import in_one_process, run_here
from tests.examples.lab import COMPARED
from tests.examples.walk import EXECUTION
from tflab.analysis import timeline
from tflab.exporters.markdown import rendered
from tflab.follow import node_history
from tflab.records.blocks import Table
from tflab.records.measured import Settings
from tflab.records.options import Options
from tflab.records.stages import Placement
from tflab.records.timed import Spread
from tflab.report import __main__ as report
from tflab.report import chapters, contents, graph_states, handout, html
from tflab.report import lab as measuring
from tflab.report.contents import Lab, Walked
from tflab.runtime import trace
from tflab.train import summaries

pytestmark = pytest.mark.tensorflow


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def lab(walked):
    """The lab with both models as they ran; the comparison is made up."""

    def of(model):
        stages = tuple(walked(model).values())
        return Walked(model, stages, node_history.histories(stages))

    environment = [("CPUs", "2")]
    return Lab("lenet", environment, of("lenet"), compared=COMPARED)


@pytest.fixture(scope="module")
def whole(lab):
    return chapters.report(lab, "python -m tflab.report", contents.chosen(()))


@pytest.mark.parametrize("model", ["toy", "lenet"])
def test_the_states_of_a_drawing_end_in_the_graph_that_ran(walked, model):
    stages = tuple(walked(model).values())
    placement = next(stage for stage in stages if isinstance(stage, Placement))
    states = graph_states.states(stages)
    versions = graph_states.versions(states)
    every = [version for own in versions.values() for version in own]
    last = [version.node for version in every if version.last == len(states) - 1]
    assert {node.name: (node.op, node.inputs) for node in last} == {
        node.name: (node.op, node.inputs) for node in placement.nodes
    }
    sizes = graph_states.node_counts(states, versions)
    for state, before, after in zip(states[1:], sizes, sizes[1:], strict=False):
        if state.place is not None:
            step = placement.passes[state.place]
            assert (before, after) == (step.before, step.after)


def test_page_and_handout_hold_the_same_tables_and_the_page_is_small_enough_to_send(
    whole, tmp_path
):
    page, markdown = unescape(html.page(whole).replace("<wbr>", "")), handout.page(whole)
    assert len(page.encode()) < 5 * 2**20
    every = [part for chapter in whole.chapters for part in chapter.parts]
    tables = [part for part in every if isinstance(part, Table)]
    titles = [table.title for table in tables]
    assert "The untraced step at each batch size, and what was found" in titles
    for table in tables:
        cells = [cell for row in table.cells() for cell in row]
        for text in (table.title, *cells):
            assert text in page
            assert rendered(text) in markdown or (table.drawing and text in markdown)
    handout.write_pictures(whole, tmp_path / handout.FOLDER)
    wanted = set(re.findall(r"\]\((report_files/\S+\.png)\)", markdown))
    assert {f"{handout.FOLDER}/{name}" for name in names(tmp_path / handout.FOLDER)} >= wanted
    assert wanted


@pytest.fixture
def measured(monkeypatch):
    """`measured(model, *chapters)`: the lab, of which every part is its name, and what was done."""
    done = []

    def walk(name, _options, drawn):
        done.append(("walk", name, drawn))
        yield Walked(name, (), {})

    def train(lab, _options):
        done.append(("train", lab.model))
        yield lab

    def compare(name, sizes, chosen, **_):
        done.append(("compare", name, chosen.configs, chosen.race_s))
        return COMPARED

    for function in (walk, train):
        monkeypatch.setattr(measuring, function.__name__, function)

    program = SimpleNamespace(model=SimpleNamespace(loss="loss"))
    monkeypatch.setattr(measuring, "program_of", lambda _: program)
    monkeypatch.setattr(measuring, "compare_batch_sizes", compare)
    monkeypatch.setattr(measuring.devices, "inspected", list)
    monkeypatch.setattr(measuring.devices, "gpus", list)

    def of(model, *names):
        chosen = contents.chosen(names)
        return measuring.measure(model, chosen, None, False, lambda _: None), done

    return of


CONFIGS = ("default", "one-thread", "no-onednn")


@pytest.mark.parametrize(
    ("model", "chapters", "steps"),
    [
        ("toy", "", "walk toy True, train toy, compare toy all 60"),
        ("lenet", "", "walk lenet True, train lenet, compare lenet all 60"),
        ("lenet", "slow", "compare lenet default 60"),
        ("lenet", "environment", ""),
        ("lenet", "graph", "walk lenet True"),
        ("toy", "graph", "walk toy True"),
        ("lenet", "training", "walk lenet False, train lenet"),
        ("lenet", "ops", "walk lenet False"),
        ("toy", "memory", "walk toy False"),
    ],
)
def test_only_what_chapters_need_is_measured(measured, model, chapters, steps):
    lab, done = measured(model, *chapters.split())
    names = {CONFIGS: "all", CONFIGS[:1]: "default"}
    words = (" ".join(str(names.get(part, part)) for part in step) for step in done)
    assert ", ".join(words) == steps
    assert (lab.walked and lab.walked.model) == (model if "walk" in steps else None)
    assert lab.compared == (COMPARED if "compare" in steps else None)
    assert not lab.interrupted


@pytest.mark.parametrize("model", ["toy", "lenet"])
def test_a_signal_before_anything_is_measured_ends_the_report(measured, monkeypatch, model):
    def walk(*_):
        yield from interrupted()

    monkeypatch.setattr(measuring, "walk", walk)
    with pytest.raises(KeyboardInterrupt):
        measured(model)


def test_a_signal_within_a_walk_or_a_comparison_keeps_what_there_is(measured, monkeypatch):
    partial = replace(COMPARED, interrupted=True, configs=())
    monkeypatch.setattr(measuring, "compare_batch_sizes", lambda *_, **__: partial)
    lab, _ = measured("lenet", "times", "batch-sizes", "configurations")
    assert (lab.interrupted, lab.walked.model, lab.compared) == (True, "lenet", partial)

    def walk(name, *_):
        yield name
        yield from interrupted()

    monkeypatch.setattr(measuring, "walk", walk)
    lab, done = measured("lenet", "ops", "times", "training")
    assert (lab.interrupted, lab.walked, lab.compared) == (True, "lenet", None)
    assert ("train", "lenet") not in done


def interrupted():
    raise KeyboardInterrupt
    yield


def test_a_wrong_chapter_and_chinese_without_the_lab_are_refused(capsys):
    assert report.main(["--chapters", "batchsizes", "environment"]) == 2
    assert capsys.readouterr() == (
        "",
        "tflab: No chapter named 'batchsizes'. Did you mean 'batch-sizes'? Choose from lab, "
        "graph, network, training, ops, batch-sizes, slow, times, configurations, "
        "memory, environment.\n",
    )
    assert report.main(["--language", "zh", "--chapters", "lab", "memory"]) == 2
    assert capsys.readouterr().err == (
        "tflab: --language zh is for the report of the lab: add --chapters lab.\n"
    )


@pytest.mark.parametrize(
    "options", ["--chapters memory times", "--chapters lab --language zh", "--trust"]
)
def test_the_command_that_repeats_a_report_has_its_options(options):
    line = f"--model toy {options}"
    args = report.parser().parse_args(line.split())
    assert report.repeated(args) == f"python -m tflab.report {line}"


def test_a_training_has_so_many_rows_that_it_ends_in_its_time():
    plan = Settings("m", "MNIST", 60_000, 10_000, 64, 2, 1)
    step = replace(EXECUTION, batch_size=16, untraced_step_ns=Spread(16e6, 1, 1))  # 1 ms a row
    assert measuring.affordable_rows(plan, step) == 45_000  # 2 epochs in half of 180 s
    slow = replace(step, untraced_step_ns=Spread(16e12, 1, 1))
    assert measuring.affordable_rows(plan, slow) == 64


def test_a_report_of_one_chapter_is_written(tmp_path, capsys):
    line = ["--model", "toy", "--chapters", "environment", "--out", str(tmp_path / "out")]
    assert report.main(line) == 0
    assert re.findall("^## .*", (tmp_path / "out" / "report.md").read_text(), re.M) == [
        "## Environment"
    ]
    assert capsys.readouterr().err == ""


def test_a_training_ends_after_its_time_or_by_a_signal_and_keeps_its_steps(monkeypatch):
    def train():
        lab, complete = Lab("tests.examples.training:build", ()), True
        try:
            for trained in measuring.train(lab, Options()):
                lab = trained
        except KeyboardInterrupt:
            complete = False
        history = lab.history
        return history and (len(history.steps), len(history.epochs), history.interrupted, complete)

    def interrupted(files, step):
        if step.step == last:
            raise KeyboardInterrupt

    assert train() == (5 * contents.EPOCHS, contents.EPOCHS, False, True)
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "TRAINING_S", 0)
        assert train() == (1, 0, True, True)
    monkeypatch.setattr(summaries, "add_step", interrupted)
    last = 7
    assert train() == (6, 1, True, False)
    last = 1
    assert train() is None


def test_the_timeline_counts_the_ops_of_the_graph_and_not_the_executors_own_start(lab):
    step = lab.walked.execution
    middle = timeline.median_step(step.step_times).step
    names = {run.name for run in step.runs if run.step == middle}
    drawn = next(
        part for part in chapters.times(lab.walked) if getattr(part, "name", "") == "timeline"
    )
    assert trace.EXECUTOR in names
    assert f" ops of {len(names) - 1} are on the critical path." in drawn.caption


SHORTER = {
    "report.lab": {"SWEEP_S": 1, "STEPS": 5},
    "compare.configurations": {"ROUNDS": 2, "TURNS": 2, "OBSERVATIONS": 3},
}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_whole_report_of_a_model_has_every_chapter(tmp_path, monkeypatch):
    def captioned(name, draw, *records):
        return contents.Picture(name, str(draw(*records).get_label()), "<svg/>", b"")

    in_one_process(monkeypatch)
    monkeypatch.setattr(contents, "picture", captioned)
    for module, names in SHORTER.items():
        for name, value in names.items():
            monkeypatch.setattr(importlib.import_module(f"tflab.{module}"), name, value)
    done = run_here(report.main, "--model", "toy", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    titles = re.findall("^## (.*)", (tmp_path / "out" / "report.md").read_text(), re.M)
    assert len(titles) == len(contents.chosen(())) - 1  # the toy sees no images
    shown = map(unescape, re.findall(r"<li><a href=.*?>(.*?)</a>", page))
    assert list(shown) == [title.replace("\\", "") for title in titles]
