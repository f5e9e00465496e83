"""Health: tasks that die, stand still or start anew are named, and what was measured is kept."""

import os
import signal
import threading
import time

import pytest
import tensorflow as tf

from tests.examples.models import placed
from tflab.errors import LostTaskError
from tflab.lifecycle import execution
from tflab.models import toy
from tflab.records.options import Model, Options
from tflab.runtime import cluster, refusals, server
from tflab.units import task_of

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def pool(two_tasks):
    """Addresses of tasks: the first one lives, each of the others is for a test that ends it."""
    with cluster.tasks(3) as addresses:
        yield (two_tasks[0], *addresses)
    assert all(server.STARTED[address].poll() is not None for address in addresses)


def send(number, address):
    os.kill(server.STARTED[address].pid, number)


def test_steps_until_a_task_died_are_kept_and_none_begins_without_it(pool, monkeypatch):
    options = Options(steps=50, warmup=0, cluster=(pool[1], pool[0]))
    stage = placed(toy.build, options)
    observe = execution.Measured.observe

    def dies_meanwhile(measured, turn, timed, recorded):
        observe(measured, turn, timed, recorded)
        if len(measured.steps) == 3 and recorded is not None:
            send(signal.SIGKILL, pool[1])

    monkeypatch.setattr(execution.Measured, "observe", dies_meanwhile)
    executed = execution.execute(stage, options)
    said = f"A step over 2 tasks was abandoned: task 0 ({pool[1]}) is gone."
    assert (executed.steps, executed.failure) == (3, said)
    assert sum(owner.ns for owner in executed.time_ledger) == executed.wall_ns
    with pytest.raises(LostTaskError) as error:
        placed(toy.build, options)
    assert str(error.value) == said


QUICK = 5  # steps, before one that does not end: two of each kind, and that which brings the graphs


def endless():
    """A model whose later steps compute for ever, on the task that has the loop."""
    with tf.name_scope("count"):
        steps = tf.Variable(tf.constant(0, tf.int64), name="steps")
        limit = tf.where(steps.assign_add(1) > QUICK, tf.int64.max, tf.constant(1, tf.int64))
    with tf.name_scope("loop"):
        turns = tf.while_loop(lambda i: i < limit, lambda i: i + 1, [tf.constant(0, tf.int64)])
    return Model(output=tf.identity(turns[0], name="turns"), feeds={}, data=None)


def test_a_task_that_dies_while_it_computes_is_named_and_the_steps_before_are_kept(
    pool, monkeypatch
):
    options = Options(steps=50, warmup=0, cluster=(pool[2], pool[0]))
    stage = placed(endless, options)
    loops = {task_of(node.device) for node in stage.nodes if node.op == "LoopCond"}
    assert loops == {"/job:worker/replica:0/task:0"}
    observe = execution.Measured.observe

    def dies_in_a_long_step(measured, turn, timed, recorded):
        if not measured.untraced_ns:
            threading.Thread(target=kill_while_it_computes, args=(pool[2],), daemon=True).start()
        observe(measured, turn, timed, recorded)

    monkeypatch.setattr(execution.Measured, "observe", dies_in_a_long_step)
    executed = execution.execute(stage, options)
    assert executed.steps == 2
    assert executed.failure == (f"A step over 2 tasks was abandoned: task 0 ({pool[2]}) is gone.")


def kill_while_it_computes(address):
    """Once it has computed for longer than quick steps do."""
    before = processor_time(address)
    while processor_time(address) < before + 50:
        time.sleep(0.1)
    send(signal.SIGKILL, address)


def processor_time(address):
    """Of a task, in hundredths of a second."""
    with open(f"/proc/{server.STARTED[address].pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_task_that_stands_still_in_a_step_is_named_after_its_time_limit(pool, monkeypatch):
    options = Options(steps=50, warmup=0, cluster=(pool[0], pool[3]))
    stage = placed(toy.build, options)
    monkeypatch.setattr(refusals, "TIME_LIMIT_S", 4)
    monkeypatch.setattr(server, "ANSWER_S", 2)
    observe = execution.Measured.observe
    stopped = []

    def stops_meanwhile(measured, turn, timed, recorded):
        observe(measured, turn, timed, recorded)
        if len(measured.steps) == 3 and not stopped:
            send(signal.SIGSTOP, pool[3])
            stopped.append(pool[3])

    monkeypatch.setattr(execution.Measured, "observe", stops_meanwhile)
    executed = execution.execute(stage, options)
    assert executed.steps == 3
    assert executed.failure == (
        f"A step over 2 tasks was abandoned: task 1 ({pool[3]}) does not answer."
    )


def test_before_a_session_begins_a_task_that_stands_still_is_named_at_once(two_tasks, monkeypatch):
    monkeypatch.setattr(server, "ANSWER_S", 1)
    still = server.STARTED[two_tasks[1]]
    monkeypatch.setattr(server, "STARTED", {})  # it is not ended for that
    still.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(LostTaskError, match=r"task 1 \(127\.0\.0\.1:\d+\) does not answer\.$"):
            server.check_all(two_tasks)
    finally:
        still.send_signal(signal.SIGCONT)


def test_a_task_that_was_started_anew_has_forgotten_its_part(two_tasks, monkeypatch):
    assert server.failures(two_tasks) == []
    monkeypatch.setitem(server.INCARNATIONS, two_tasks[1], 5)  # of the one before
    forgotten = tf.errors.AbortedError(None, None, "Session handle is not found: d7fd99f71ae75903.")
    assert str(refusals.refused(forgotten, Options(cluster=two_tasks))) == (
        f"A step over 2 tasks was abandoned: task 1 ({two_tasks[1]}) was restarted."
    )
    server.check_all(two_tasks)  # for a new session it is as good as any
    assert server.failures(two_tasks) == []
    assert str(refusals.refused(forgotten, Options(cluster=two_tasks))) == (
        "A step over 2 tasks was abandoned: another command started to use one of them, and a "
        "task serves one command at a time. Start separate tasks for each command."
    )


def test_a_heading_of_several_errors_is_none():
    several = tf.errors.AbortedError(None, None, "=====================\nIt went wrong.\n==")
    assert (
        str(refusals.refused(several, Options())) == "The runtime refused the step: It went wrong."
    )
