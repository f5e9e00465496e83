"""History: a line for every step and epoch, which survives whatever ends the process."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tflab.errors import TflabError
from tflab.records.trained import Epoch, History
from tflab.train import history
from tflab.train.epochs import Settings, TimedStep

SETTINGS = Settings("lenet", "MNIST", 10, 4, batch_size=5, epochs=2, seed=1, one_thread=True)
STEPS = [TimedStep(n, loss=1 / n, accuracy=n / 10, rate=0.1, seconds=0.5) for n in (1, 2, 3, 4)]
EPOCHS = [Epoch(n, 2 * n, 1.5, 0.5, 1.25, 0.75, 1.0, 10.0) for n in (1, 2)]
RECORDS = [*STEPS[:2], EPOCHS[0], *STEPS[2:], EPOCHS[1]]


@pytest.fixture
def path(tmp_path) -> Path:
    """The history of a training of two epochs, two steps each."""
    file = tmp_path / history.NAME
    history.create(file, SETTINGS)
    write(file, RECORDS)
    return file


def write(path, records):
    with history.opened(path) as file:
        for record in records:
            history.add(file, record)


def test_what_was_written_is_read(path):
    assert history.read(path) == History(
        model="lenet",
        data="MNIST",
        batch_size=5,
        seed=1,
        steps=tuple(STEPS),
        epochs=tuple(EPOCHS),
        interrupted=False,
    )
    assert history.settings(path) == SETTINGS


def test_a_line_holds_the_fields_of_its_record_by_name(tmp_path):
    path = tmp_path / "h"
    history.create(path, Settings("toy", "XOR", 20, 8, 4, epochs=3, seed=9, one_thread=False))
    write(path, [TimedStep(1, 2.5, 0.75, 0.01, seconds=0.125)])
    write(path, [Epoch(1, 5, 1.5, 0.5, 1.25, 0.625, seconds=2.0, images_per_second=10.0)])
    assert path.read_text() == (
        '{"model": "toy", "data": "XOR", "train_rows": 20, "test_rows": 8, "batch_size": 4, '
        '"epochs": 3, "seed": 9, "one_thread": false}\n'
        '{"step": 1, "loss": 2.5, "accuracy": 0.75, "rate": 0.01, "traced": false, '
        '"seconds": 0.125}\n'
        '{"epoch": 1, "step": 5, "train_loss": 1.5, "train_accuracy": 0.5, "test_loss": 1.25, '
        '"test_accuracy": 0.625, "seconds": 2.0, "images_per_second": 10.0}\n'
    )
    assert history.read(path) == History(
        model="toy",
        data="XOR",
        batch_size=4,
        seed=9,
        steps=(TimedStep(1, 2.5, 0.75, 0.01, 0.125),),
        epochs=(Epoch(1, 5, 1.5, 0.5, 1.25, 0.625, 2.0, 10.0),),
        interrupted=True,
    )


def test_every_line_is_json_that_any_program_reads(path):
    def refuse(word):
        pytest.fail(f"{word} is not JSON")

    nameless = replace(STEPS[0], accuracy=math.nan, rate=math.nan)
    write(path, [nameless])
    *_, last = (json.loads(line, parse_constant=refuse) for line in path.open())
    assert last == {
        "step": 1,
        "loss": 1.0,
        "accuracy": None,
        "rate": None,
        "traced": False,
        "seconds": 0.5,
    }


def test_what_a_model_does_not_tell_is_nan(path):
    write(path, [replace(STEPS[0], accuracy=math.nan)])
    assert math.isnan(history.read(path).steps[-1].accuracy)


def test_a_loss_may_be_huge_or_below_zero(path):
    losses = 1e300, -2.0
    write(path, [replace(STEPS[0], step=5 + n, loss=loss) for n, loss in enumerate(losses)])
    assert tuple(step.loss for step in history.read(path).steps[-2:]) == losses


def test_a_step_of_before_tracing_was_recorded_is_untraced(path):
    path.write_text(path.read_text().replace(', "traced": false', ""))
    assert history.read(path).steps == tuple(STEPS)
    write(path, [replace(STEPS[0], step=5, traced=True)])
    assert history.read(path).steps[-1].traced


def test_a_history_with_epochs_to_come_was_interrupted(tmp_path):
    history.create(tmp_path / "h", SETTINGS)
    write(tmp_path / "h", RECORDS[:4])
    assert history.read(tmp_path / "h").interrupted


def test_no_history_is_overwritten(path):
    with pytest.raises(FileExistsError):
        history.create(path, SETTINGS)
    assert len(history.read(path).steps) == 4


def test_half_a_last_line_is_left_out_wherever_it_ends(path):
    content = path.read_bytes()
    last = content[:-1].rindex(b"\n") + 1
    for end in range(last, len(content)):
        path.write_bytes(content[:end])
        assert history.read(path).epochs == (EPOCHS[0],)


def test_half_a_line_of_a_killed_process_stays_and_is_left_out(path):
    for half in (b'{"step": 5, "lo', b"{", b""):
        with path.open("ab") as file:
            file.write(half)
        write(path, [STEPS[3]])
        assert history.read(path).steps == tuple(STEPS)
    with path.open("ab") as file:
        file.write(history.json_line(replace(STEPS[0], step=5)).rstrip(b"\n"))
    write(path, [replace(STEPS[0], step=6)])  # the line before was whole but for its end
    assert [step.step for step in history.read(path).steps] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "done, steps, epochs",
    [(0, 1, 0), (1, 2, 0), (2, 3, 1), (3, 4, 1)],
)
def test_what_a_resumed_training_did_once_more_counts_once(path, done, steps, epochs):
    again = replace(STEPS[done], loss=9.0)
    write(path, [again])
    left = history.read(path)
    assert left.steps == (*STEPS[:done], again)
    assert len(left.steps) == steps
    assert left.epochs == tuple(EPOCHS[:epochs])
    write(path, [replace(EPOCHS[0], step=done + 1)])
    assert [epoch.step for epoch in history.read(path).epochs][-1:] == [done + 1]


HEADER = "model, data, train_rows, test_rows, batch_size, epochs, seed, one_thread"


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n", b"1\n", b'{"model": 1}\n', b"\xff\n", b'{"model": "m"}']
)
def test_another_file_is_told_from_a_history(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(TflabError) as error:
        history.read(path)
    assert str(error.value) == (
        f"Line 1 of '{path}' is not in the format of a training log: it should contain {HEADER}."
    )


@pytest.mark.parametrize("line", ["{}", '{"step": "one"}', '{"epoch": 1}'])
def test_a_line_in_the_middle_that_cannot_be_read_is_named(path, line):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], f"{line}\n", *lines[2:]]))
    with pytest.raises(TflabError, match=r"^Line 3 of .* is not in the format of a training log"):
        history.read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TflabError, match="cannot be read: No such file or directory"):
        history.read(tmp_path / "none")


def test_a_record_that_did_not_fit_on_the_disk_is_an_error(path):
    class Full:
        def write(self, content):
            return len(content) // 2

    with pytest.raises(OSError, match="No space left on device"):
        history.add(Full(), STEPS[0])
