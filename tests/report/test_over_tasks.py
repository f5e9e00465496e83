"""The chapter of several tasks, measured: what is refused at once, what a task's end costs, and the
page that a user gets."""

import re
from dataclasses import replace

import pytest

from tests.pictures import plain
from tflab.errors import LostTaskError, TflabError
from tflab.records.options import Options
from tflab.records.stages import OnTasks
from tflab.report import __main__ as report
from tflab.report import over_tasks
from tflab.report.contents import OverTasks

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

PLAN = OverTasks(clusters=(1, 2), split="layers", batch_size=64, phase="training", steps=20)


@pytest.mark.parametrize(
    ("tasks", "clusters"),
    [
        (1, [1]),
        (2, [1, 2]),
        (4, [1, 2, 4]),
        (5, [1, 2, 4, 5]),
        (("a:1", "b:1", "c:1"), [("a:1",), ("a:1", "b:1"), ("a:1", "b:1", "c:1")]),
    ],
)
def test_tasks_are_doubled_until_all_of_them_share_the_step(tasks, clusters):
    assert list(over_tasks.fewer(tasks)) == clusters


def test_the_plan_is_of_inference_where_the_model_has_no_loss():
    assert over_tasks.plan("toy", 2, "batch", Options()) == replace(PLAN, split="batch")
    silent = over_tasks.plan("tests.planted:without_a_problem", 2, "layers", Options())
    assert silent == replace(PLAN, phase="inference")


# What goes wrong


@pytest.fixture
def measured(monkeypatch, walked, walked_over_tasks):
    """`measured(error)`: alone and on a first task as it was, then what happens on more tasks."""
    from tflab.compare import scaling

    def of(*ends):
        stages = [walked("toy"), walked_over_tasks("toy")]
        on = [
            OnTasks(tasks, stage["placement"], stage["execution"])
            for tasks, stage in enumerate(stages)
        ]
        outcomes = iter([*on, *ends])

        def on_tasks(*_):
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(scaling, "on_tasks", on_tasks)
        return over_tasks.measure("toy", PLAN, Options())

    return of


@pytest.mark.parametrize("error", [LostTaskError("It is gone."), TflabError("It did not begin.")])
def test_a_task_that_dies_costs_its_own_numbers_and_a_sentence(measured, error):
    made = measured(error)
    assert (made.failure, made.scaling.failure) == (None, str(error))
    assert [row.steps for row in made.scaling.rows] == [5, 5]
    assert made.shown.tasks == 1


def test_steps_until_a_task_died_are_shown(measured, walked_over_tasks):

    stages = walked_over_tasks("toy")
    partial = replace(stages["execution"], failure="It is gone.")
    made = measured(OnTasks(2, stages["placement"], partial))
    assert made.scaling.failure == "It is gone."
    assert len(made.scaling.rows) == 3
    assert (made.shown.tasks, made.shown.execution) == (2, partial)


def test_an_interruption_ends_the_report(measured, walked_over_tasks):

    stages = walked_over_tasks("toy")
    with pytest.raises(KeyboardInterrupt):
        measured(OnTasks(2, stages["placement"], replace(stages["execution"], interrupted=True)))


def test_where_the_step_fails_even_alone_that_is_the_sentence(monkeypatch):
    from tflab.compare import scaling

    def fail(*_):
        raise TflabError("It cannot run.")

    monkeypatch.setattr(scaling, "on_tasks", fail)
    made = over_tasks.measure("toy", PLAN, Options())
    assert (made.scaling, made.failure) == (None, "It cannot run.")


# What a user sees


def test_a_model_that_cannot_be_cut_is_refused_before_anything_is_measured(tmp_path, capsys):
    words = "--model tests.planted:without_a_problem --cluster 2 --split batch --chapters tasks"
    assert report.main([*words.split(), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "tflab: --split batch divides the fed rows and averages the loss, but the model "
        "'tests.planted:without_a_problem' has no loss. Give --split layers.\n"
    )
    assert not (tmp_path / "out").exists()


def test_an_address_without_a_task_is_told_before_anything_is_measured(tmp_path, capsys):
    line = ["--model", "toy", "--cluster", "127.0.0.1:1", "--out", str(tmp_path / "out")]
    assert report.main(line) == 1
    assert capsys.readouterr().err == (
        "tflab: Task 0 of the cluster, 127.0.0.1:1, cannot be reached: connection refused. Start "
        "it there with `python -m tflab.worker 127.0.0.1:1`.\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_report_over_two_tasks_has_its_chapter_and_its_picture(
    tmp_path, capsys, monkeypatch, two_tasks
):
    monkeypatch.setattr(over_tasks, "STEPS", 3)
    out = tmp_path / "out"
    words = f"--model toy --cluster {','.join(two_tasks)} --chapters tasks --out {out}"
    assert report.main(words.split()) == 0
    assert "toy on 2 tasks, split by layers" in capsys.readouterr().err
    page = (out / "report.md").read_text()
    assert re.findall("^## .*", page, re.M) == ["## One step over several tasks"]
    tables = re.findall(r"^\*\*(.*?)[,:*]", page, re.M)
    assert tables == [
        "Partitions",
        "Where the wall time of the traced steps went",
        "Computation and communication",
        "Tensors sent between tasks",
        "Untraced steps; network",
    ]
    assert re.findall(r"^\| +([0-9]) \|", page, re.M) == ["0", "1", "2"]
    assert "Clocks, compared with the client's through the messages of the steps: task 0 " in page
    assert (out / "report_files" / "tasks.png").is_file()
    svg = (out / "report_files" / "tasks.svg").read_text()
    assert all(name in plain(svg) for name in ("client", "task 0 CPU:0", "task 1 CPU:0"))
