"""History: every row once in an epoch, means that are true, and a log that survives whatever ends
the process."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tflab import datasets
from tflab.errors import TflabError, UsageError
from tflab.records.trained import Epoch, History
from tflab.train import history
from tflab.train.history import Settings, TimedStep

TEN_ROWS = Settings(
    model="m",
    data="d",
    train_rows=10,
    test_rows=4,
    batch_size=4,
    epochs=3,
    seed=7,
)
SETTINGS = Settings("lenet", "MNIST", 10, 4, batch_size=5, epochs=2, seed=1)
STEPS = [TimedStep(n, loss=1 / n, accuracy=n / 10, rate=0.1, seconds=0.5) for n in (1, 2, 3, 4)]
EPOCHS = [Epoch(n, 2 * n, 1.5, 0.5, 1.25, 0.75, 1.0, 10.0) for n in (1, 2)]
RECORDS = [*STEPS[:2], EPOCHS[0], *STEPS[2:], EPOCHS[1]]


def test_the_last_batch_of_an_epoch_is_a_step_too():
    assert (TEN_ROWS.epoch_steps, TEN_ROWS.steps) == (3, 9)


def test_an_epoch_is_every_row_once():
    assert sorted(history.order(TEN_ROWS, 0)) == list(range(10))


def test_every_epoch_has_its_own_order_and_always_the_same():
    orders = [tuple(history.order(TEN_ROWS, epoch)) for epoch in (0, 1, 2)]
    assert len(set(orders)) == 3
    assert orders == [tuple(history.order(TEN_ROWS, epoch)) for epoch in (0, 1, 2)]


def test_the_order_is_that_of_shuffled_batches():
    data = datasets.Dataset("d", "train", {"row": np.arange(10)})
    batch = next(datasets.batches(data, 10, seed=7))
    assert list(batch["row"]) == list(history.order(TEN_ROWS, 0))


@pytest.mark.parametrize("batch_size", [0, 11, 1_000])
def test_a_batch_that_cannot_be_cut_is_refused(batch_size):
    with pytest.raises(UsageError) as error:
        Settings("m", "d", 10, 4, batch_size, 3, 7)
    assert str(error.value) == (
        f"A batch of {batch_size:,} cannot be taken from the 10 training rows of d; choose a "
        "batch size from 1 to 10."
    )


def test_an_epoch_is_a_mean_over_rows_not_over_batches():
    steps = [
        TimedStep(step=4, loss=1.0, accuracy=0.25, rate=0.1, seconds=1.0),
        TimedStep(step=5, loss=2.0, accuracy=0.5, rate=0.1, seconds=1.5),
        TimedStep(step=6, loss=8.0, accuracy=1.0, rate=0.1, seconds=2.5),  # of two rows
    ]
    assert history.epoch_of(TEN_ROWS, steps, 0.5, 0.75) == Epoch(
        epoch=2,
        step=6,
        train_loss=(4 * 1 + 4 * 2 + 2 * 8) / 10,
        train_accuracy=(1 + 2 + 2) / 10,
        test_loss=0.5,
        test_accuracy=0.75,
        seconds=5.0,
        images_per_second=2.0,
    )


def test_traced_steps_count_in_the_time_and_not_in_the_rate():
    steps = [
        TimedStep(step=1, loss=1.0, accuracy=0.0, rate=0.1, seconds=1.0),
        TimedStep(step=2, loss=1.0, accuracy=0.0, rate=0.1, seconds=7.0, traced=True),
        TimedStep(step=3, loss=1.0, accuracy=0.0, rate=0.1, seconds=0.5),  # of two rows
    ]
    epoch = history.epoch_of(TEN_ROWS, steps, 0.5, 0.75)
    assert (epoch.seconds, epoch.images_per_second) == (8.5, 6 / 1.5)


def test_an_epoch_of_traced_steps_alone_has_their_rate():
    steps = [TimedStep(n, 1.0, 0.0, 0.1, seconds=1.0, traced=True) for n in (1, 2, 3)]
    assert history.epoch_of(TEN_ROWS, steps, 0.5, 0.75).images_per_second == pytest.approx(10 / 3)


def test_the_mean_of_an_epoch_whose_first_steps_were_lost_is_that_of_the_others():
    steps = [
        TimedStep(step=5, loss=2.0, accuracy=0.5, rate=0.1, seconds=1.0),
        TimedStep(step=6, loss=8.0, accuracy=1.0, rate=0.1, seconds=1.0),  # of two rows
    ]
    epoch = history.epoch_of(TEN_ROWS, steps, 0.5, 0.75)
    assert (epoch.train_loss, epoch.images_per_second) == ((4 * 2 + 2 * 8) / 6, 3.0)


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
    history.create(path, Settings("toy", "XOR", 20, 8, 4, epochs=3, seed=9))
    write(path, [TimedStep(1, 2.5, 0.75, 0.01, seconds=0.125)])
    write(path, [Epoch(1, 5, 1.5, 0.5, 1.25, 0.625, seconds=2.0, images_per_second=10.0)])
    assert path.read_text() == (
        '{"model": "toy", "data": "XOR", "train_rows": 20, "test_rows": 8, "batch_size": 4, '
        '"epochs": 3, "seed": 9}\n'
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


HEADER = "model, data, train_rows, test_rows, batch_size, epochs, seed"


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
