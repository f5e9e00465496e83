"""The step on more and more tasks: what is kept when it ends early, and what it is run with."""

from types import SimpleNamespace

import pytest

from tests.compare.test_scaling_view import SCALING
from tflab.cli import command
from tflab.compare import __main__ as compare
from tflab.errors import LostTaskError, TflabError, UsageError
from tflab.records.cluster import ScalingRow
from tflab.records.options import Options
from tflab.records.timed import Spread

pytestmark = pytest.mark.tensorflow


def ran(failure=None, interrupted=False):
    execution = SimpleNamespace(failure=failure, interrupted=interrupted)
    return SimpleNamespace(execution=execution)


WHOLE, FAILED, INTERRUPTED = ran(), ran(failure="It died."), ran(interrupted=True)


@pytest.fixture
def measured(monkeypatch):
    """`measured(...)`: what comes of the step alone, on 1 and on 2 tasks, which is given."""
    from tflab.compare import scaling

    def of(*outcomes):
        left = iter(outcomes)

        def on_tasks(*_):
            outcome = next(left)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(scaling, "on_tasks", on_tasks)
        return scaling.measure("toy", "training", (1, 2), Options())

    return of


def seen(series):
    return len(series.measured), series.failure, series.interrupted


def row(tasks, ns):
    return ScalingRow(tasks, 10, Spread(ns, ns, ns), 1.0, 1.0, None, None, 3, 0)


def test_speed_up_is_against_this_process_alone_and_efficiency_by_task():
    from tflab.compare import scaling

    rows = scaling.against_alone([row(0, 1000), row(1, 1250), row(4, 400)])
    assert [(r.speed_up, r.efficiency) for r in rows] == [(1.0, None), (0.8, 0.8), (2.5, 0.625)]


def test_a_step_that_fails_ends_it_and_what_was_measured_until_then_is_kept(measured):
    assert seen(measured(WHOLE, WHOLE, WHOLE)) == (3, None, False)
    assert seen(measured(WHOLE, FAILED)) == (2, "It died.", False)
    assert seen(measured(WHOLE, WHOLE, INTERRUPTED)) == (3, None, True)
    assert seen(measured(FAILED)) == (1, "It died.", False)


def test_ctrl_c_before_any_step_of_a_number_of_tasks_keeps_the_others(measured):
    assert seen(measured(WHOLE, KeyboardInterrupt())) == (1, None, True)
    with pytest.raises(KeyboardInterrupt):
        measured(KeyboardInterrupt())


@pytest.mark.parametrize("error", [LostTaskError("It died."), TflabError("It never came.")])
def test_a_task_that_dies_or_never_comes_keeps_what_was_measured_before(measured, error):
    assert seen(measured(WHOLE, WHOLE, error)) == (2, str(error), False)
    with pytest.raises(type(error)):
        measured(error)


def test_a_model_that_cannot_be_cut_is_the_users_mistake(measured):
    with pytest.raises(UsageError):
        measured(WHOLE, UsageError("It has no loss."))


def test_interrupted_numbers_of_tasks_are_shown_with_the_status_of_ctrl_c(monkeypatch, capsys):
    from dataclasses import replace

    from tflab.compare import scaling

    asked = []
    monkeypatch.setattr(scaling, "measure", lambda *given: asked.append(given[-1]))
    partial = replace(SCALING, interrupted=True)
    monkeypatch.setattr(scaling, "compare", lambda *_: partial)
    words = ["--model", "toy", "--cluster", "1", "--soft-placement", "--split", "batch"]
    assert compare.main(words) == command.INTERRUPTED
    assert "Partial: these are the measurements before the interruption." in capsys.readouterr().out
    assert [(options.soft_placement, options.split) for options in asked] == [(True, "batch")]
