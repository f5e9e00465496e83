"""The command: as a user types it, also with Ctrl-C."""

import re
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.approval import approve
from tests.examples import training
from tflab.train import __main__ as train
from tflab.train import checkpoints, summaries

pytestmark = pytest.mark.tensorflow

MODEL = "tests.examples.training:build"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(capsys, *args) -> tuple[int, str, str]:
    status = train.main(list(args))
    return (status, *capsys.readouterr())


# In one process


def test_a_training_prints_every_epoch_and_writes_what_tensorboard_shows(here, capsys):
    status, out, err = called(capsys, "--model", MODEL, "--epochs", "3", "--logdir", "mine")
    assert (status, err) == (0, "")
    assert re.match(
        rf"{MODEL} on noise: 3 epochs of 70 rows in 5 steps of up to 16, tested on 30 rows\. "
        r"Seed 1\. The epochs epoch ",
        " ".join(out.split()),
    )
    assert re.findall(r"\n      (\d) +\d+ ", out) == ["1", "2", "3"]
    assert re.search(r"\n\nIts scalars in TensorBoard:  \S+ --logdir mine\n$", out)
    files = {str(path.relative_to("mine")) for path in Path("mine").rglob("*") if path.is_file()}
    assert {name.partition("/events")[0] for name in files} == {
        "settings.json",
        "train",
        "test",
        "written",
        "plugins/life/life.json.gz",
        "checkpoints/checkpoint",
        *(f"checkpoints/step-{n}.index" for n in (5, 10, 15)),
        *(f"checkpoints/step-{n}.data-00000-of-00001" for n in (5, 10, 15)),
    }


def test_options_go_before_the_recipe_and_what_is_in_a_logdir_stays(here, capsys):
    Path("mine").mkdir()
    Path("mine/precious").write_text("precious")
    given = ("--epochs", "2", "--batch-size", "35", "--rows", "60", "--logdir", "mine")
    status, *_ = called(capsys, "--model", MODEL, *given)
    assert status == 0
    assert Path("mine/precious").read_text() == "precious"
    (folder,) = (path for path in Path("mine").iterdir() if path.is_dir())
    assert re.fullmatch(r"tests.examples.training-build-train-\d{8}-\d{6}", folder.name)
    used = checkpoints.read_settings(folder)
    assert (used.epochs, used.batch_size, used.train_rows, used.seed) == (2, 35, 60, 1)
    assert used.data == "noise, the first 60 training rows"
    assert training.steps_in(folder) == [2, 4]
    status, _, err = called(capsys, "--model", MODEL, "--resume", "--logdir", str(folder))
    assert (status, err) == (0, f"Continuing in '{folder}': 4 of 4 steps are done.\n")


def test_a_finished_training_stays_as_it_is(here, capsys):
    called(capsys, "--model", MODEL, "--epochs", "3", "--logdir", "mine")
    before = {path: path.stat().st_mtime_ns for path in Path("mine").rglob("*")}
    status, out, err = called(capsys, "--model", MODEL, "--logdir", "mine", "--resume")
    assert (status, err) == (0, "Continuing in 'mine': 15 of 15 steps are done.\n")
    assert re.fullmatch(r"\nIts scalars in TensorBoard:  \S+ --logdir mine\n", out)
    assert {path: path.stat().st_mtime_ns for path in Path("mine").rglob("*")} == before
    changed = ("--batch-size", "35", "--epochs", "4")
    status, out, err = called(capsys, "--model", MODEL, "--logdir", "mine", "--resume", *changed)
    assert (status, out) == (2, "")
    assert err == (
        "tflab: The training in 'mine' can continue only with the same settings, which "
        "determine every step: batch size: 16 "
        "before, 35 now; epochs: 3 before, 4 now. To start again, omit --resume.\n"
    )
    status, out, err = called(capsys, "--logdir", "mine", "--resume")
    assert (status, out) == (2, "")
    assert f"model: {MODEL} before, toy now; " in err


WRONG = (
    *("--epochs 0", f"--model {MODEL} --batch-size 71", "--resume"),
    *("--resume --logdir nowhere --model toy", f"--model {MODEL} --logdir file/mine"),
)


def test_a_wrong_argument_is_one_sentence_and_leaves_nothing(here, capsys):
    Path("file").touch()
    said = []
    for line in WRONG:
        status, out, err = called(capsys, *line.split())
        assert (status, out, err.count("\n")) == (2, "", 1)
        said.append(f"{line}: {err.rstrip()}")
    assert [path.name for path in here.iterdir()] == ["file"]
    approve("train-refused.txt", "\n".join(said))


def test_a_training_that_diverges_shows_its_epochs_and_fails(here, capsys, monkeypatch):
    monkeypatch.setattr(training, "rate", lambda step, *_: float("inf") if step > 7 else 0.01)
    status, out, err = called(capsys, "--model", MODEL, "--epochs", "3", "--logdir", "mine")
    assert status == 1
    assert "; epoch 1 of 3, " in out
    assert err.startswith("tflab: The training diverged: ")


# Stopped by Ctrl-C


def test_an_interrupt_shows_the_epochs_so_far_and_how_to_go_on(here, capsys, monkeypatch):
    add_step, steps = summaries.add_step, count(1)

    def interrupted(event_files, step):
        add_step(event_files, step)
        if next(steps) == 12:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(summaries, "add_step", interrupted)
    where = ("--model", MODEL, "--logdir", "mine")
    status, out, err = called(capsys, *where, "--epochs", "3")
    assert status == 130
    assert "\nThe epochs: partial\n" in out
    assert re.findall(r"\n      (\d) +(\d+) ", out) == [("1", "5"), ("2", "10")]
    assert err.endswith(
        f"Interrupted. To continue:  python -m tflab.train --resume --model {MODEL} --logdir mine\n"
    )
    status, out, err = called(capsys, "--resume", *where)
    assert status == 0
    assert err.startswith("Continuing in 'mine': 10 of 15 steps are done. Restored: ")
    assert "; epoch 3 of 3, " in out
