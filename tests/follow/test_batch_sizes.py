"""Following a node where a batch size cannot be had: the others are kept, and it is said why."""

import json

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tests.commands import run_here
from tflab import lifecycle
from tflab.errors import RefusedError
from tflab.follow import __main__ as command
from tflab.follow import measurement
from tflab.records.options import Options
from tflab.runtime import session

pytestmark = pytest.mark.tensorflow


def follow(*args: str):
    return run_here(command.main, *args)


def in_pairs() -> None:
    """Rows are taken two by two, so that an odd number of them fails."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    tf.tanh(tf.reshape(x, [-1, 2, 4], name="pairs"), name="y")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("pairs") / "g.pb"
    return graphs.write(path, graphs.graph_def(in_pairs))


@pytest.fixture(scope="module")
def stages(pairs):
    return tuple(lifecycle.walk(pairs, Options(steps=1), "placement"))


def test_a_batch_size_that_fails_leaves_the_others(pairs):
    done = follow("y", "--model", pairs, "--batch-sizes", "2", "3", "16", "--format", "json")
    assert done.returncode == 1, done.stderr
    life = json.loads(done.stdout)["life"]
    assert [size for size, row in life["times"] if row["calls"]] == [2, 16]
    why = "The runtime refused the step: Input to reshape is a tensor with 12 values"
    assert list(life["untimed"]) == ["3"]
    assert life["untimed"]["3"].startswith(why)
    assert f"tflab: A batch of 3 is not measured. {why}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_text_says_why_a_batch_size_has_no_times(pairs):
    done = follow("y", "--model", pairs, "--batch-sizes", "1", "5000")
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "A batch of 1 is not measured. The runtime refused the step: Input to resh" in said
    assert "A batch of 5000 is not measured. The data (seeded values) have 1,024 rows." in said


def test_a_step_that_fails_while_it_is_measured_begins_anew_without_it(stages, monkeypatch):
    """The step fails whenever four rows are fed to it, but not while it is placed."""
    real = session.timed_step

    def failing(traced, values, index):
        if len(values[0]) == 4:
            raise tf.errors.InternalError(None, None, "not four")
        return real(traced, values, index)

    monkeypatch.setattr(session, "timed_step", failing)
    timed = measurement.measured(stages, (2, 4, 16), Options(batch_size=16))
    assert list(timed.tables) == [2, 16]
    assert timed.untimed == {4: "The runtime refused the step: not four."}
    assert timed.failed


def test_what_was_measured_before_a_step_failed_is_kept(stages, monkeypatch):
    """The data run dry in the middle: what came before is there, and the reason with it."""
    real, run = measurement.sweep.run, []

    def ending(*args):
        swept = real(*args)
        run.append(swept)
        failure = RefusedError("It ran dry.")
        failure.batch_size = 16
        return measurement.sweep.Sweep(swept.batches, type(swept.ending)(failure=failure))

    monkeypatch.setattr(measurement.sweep, "run", ending)
    timed = measurement.measured(stages, (2, 16), Options(batch_size=16))
    assert (len(run), list(timed.tables), timed.untimed) == (1, [2, 16], {16: "It ran dry."})
