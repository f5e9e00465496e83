"""Two programs in turns: the order, the ratios and their control, worked out by hand, and what is
kept if one of them fails."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.approval import approve
from tests.examples.watched import WATCHED, with_graph
from tflab.compare import __main__ as command
from tflab.errors import TflabError
from tflab.exporters import text
from tflab.records.measured import Load
from tflab.run import turns
from tflab.run.turns import LINE, OP, PROCESS, STEP, WHOLE, Program, Run

NAMES = ("old.py", "new.py")
QUIET = Load(2, 0.0)
JITTER = (1.0, 1.01, 0.99, 1.0, 1.02, 0.98)


def a_run(place, step=1e6, process=8e9, **rows):
    """A run with these times of rows; `op_MatMul=5` is 5 ns of the op MatMul."""
    times = {(WHOLE, STEP): step, (WHOLE, PROCESS): process}
    times |= {tuple(name.split("_", 1)): ns for name, ns in rows.items()}
    return Run(place, "loss:0, train", times)


def a_race(rounds=12, slower=1.1, **second):
    """Rounds in which steps of the second program, and its MatMul, take so many times as long."""
    first = {"op_MatMul": 5e5, "op_Add": 3e5, "line_loss = f(x)": 4e6}
    number = 0
    made = []
    for places in [*turns.FIRST, *(turns.ORDER[at % 2] for at in range(rounds))]:
        made.append([])
        for place in places:
            noise = JITTER[number * number // 5 % 6]
            times = {name: ns * noise for name, ns in first.items()}
            if place:
                times["op_MatMul"] *= slower
                times |= second
            step = 1e6 * noise * (slower if place else 1)
            made[-1].append(a_run(place, step, 8e9 * noise, **times))
            number += 1
    return made


def test_rounds_are_aba_and_bab_until_the_time_is_over_and_verdicts_have_enough(monkeypatch):
    ran = []

    def together(programs, steps):
        ran.append("".join(program.name for program in programs))
        return [WATCHED] * len(programs)

    monkeypatch.setattr(turns, "together", together)
    programs = [Program(name, (name,)) for name in "AB"]
    assert len([*turns.rounds_of(programs, 0, 0)]) == 2 + turns.LEAST_ROUNDS
    assert ran == ["A", "B", "ABA", "BAB", "ABA", "BAB"]
    assert len([*turns.rounds_of(programs, 0, 1_000)]) == 2 + turns.MOST_ROUNDS


def test_both_programs_have_the_same_steps_if_the_second_has_those_of_the_first(monkeypatch):
    short = replace(WATCHED.groups[1], fetches=("eval",), median_ns=5.0, total_ns=3_999)
    long = replace(short, total_ns=9_000)
    seen = {
        "A": replace(WATCHED, groups=(*WATCHED.groups, short)),
        "B": replace(WATCHED, groups=(*WATCHED.groups, long)),
        "C": replace(WATCHED, groups=(long,)),
    }
    monkeypatch.setattr(turns, "together", lambda programs, _: [seen[p.name] for p in programs])

    def groups_of(names):
        programs = [Program(name, (name,)) for name in names]
        return [[each.group[:4] for each in runs] for runs in turns.rounds_of(programs, 0, 0)]

    assert groups_of("AB")[:3] == [["loss"], ["loss"], ["loss"] * 3]
    assert groups_of("AC")[:3] == [["loss"], ["eval"], ["loss", "eval", "loss"]]


def test_processes_that_live_at_once_go_on_in_turn_until_all_have_ended(monkeypatch):
    went, turn_lengths = [], set()

    def process_of(program, steps, turn_ns):
        turn_lengths.add(turn_ns)
        for _ in range(int(program.words[0])):
            went.append(program.name)
            yield None
        yield program.name

    monkeypatch.setattr(turns, "process_of", process_of)
    programs = [Program("a", ("2",)), Program("b", ("0",)), Program("c", ("3",))]
    assert turns.together(programs, 0) == ["a", "b", "c"]
    assert "".join(went) == "acacc"
    assert turn_lengths == {turns.TURN_NS}
    turns.together(programs[:1], 0)  # nothing else waits
    assert turn_lengths == {turns.TURN_NS, 0}


def test_the_middle_of_a_round_is_in_the_ratio_and_its_ends_are_the_control():
    steps = ((9,), (9,), (2, 12, 8), (9, 2, 4))
    made = [
        [a_run(place, step) for place, step in zip(places, of_round, strict=True)]
        for places, of_round in zip((*turns.FIRST, *turns.ORDER), steps, strict=True)
    ]
    ratios, control = turns.observed(made, (WHOLE, STEP))
    assert ratios == [12 / 4, 6 / 2]
    assert control == [8 / 2, 4 / 9]
    step, _ = turns.changes(made, WHOLE)  # the first: geometric mean of the runs that count
    assert step.first_ns == pytest.approx((2 * 8 * 2) ** (1 / 3))
    assert step.second_ns == step.first_ns * step.verdict.ratio


def test_a_row_counts_that_a_program_has_in_every_run_and_the_other_in_every_or_none():
    made = [
        [
            a_run(at, op_Both=2, **{"op_New": 3} if at else {}, **{"op_Some": 1} if last else {})
            for at, last in zip(places, (0, 0, 1), strict=False)
        ]
        for places in (*turns.FIRST, *turns.ORDER)
    ]
    rows = [(row.key, row.first_ns, row.second_ns) for row in turns.changes(made, OP)]
    assert rows == [("Both", pytest.approx(2), pytest.approx(2)), ("New", None, pytest.approx(3))]


def test_types_that_no_run_traced_are_not_said_to_be_alike():
    result = turns.concluded(NAMES, a_race(), QUIET)
    for ops, said in ((result.ops, ", where they differ"), ((), ": none was seen in all runs")):
        shown = text.as_text(turns.blocks(replace(result, ops=ops), 10))
        assert f"Types of ops in a traced step{said}" in shown


def test_a_type_of_one_program_stands_beside_the_empty_column_of_the_other():
    result = turns.concluded(NAMES, a_race(), QUIET)
    only = replace(result.ops[0], second_ns=None, verdict=None)
    shown = text.as_text(turns.blocks(replace(result, ops=(only,)), 10)).splitlines()
    (head,) = (at for at, line in enumerate(shown) if line.startswith("  type that ran"))
    assert shown[head].split()[-3:] == ["old.py", "new.py", "verdict"]
    assert shown[head + 2].endswith("only in old.py")
    long = replace(result, ops=(only,), programs=("a_program_of_long_name.py", "new.py"))
    assert "only in first" in text.as_text(turns.blocks(long, 10))


def test_other_programs_are_named_if_they_used_much():
    result = turns.concluded(NAMES, a_race(), Load(2, 0.6))
    for load, said in ((0.6, True), (0.5, False)):
        shown = text.as_text(turns.blocks(replace(result, load=Load(2, load)), 10))
        assert ("Other programs used" in shown) == said


def test_what_differs_is_shown_with_the_smallest_slow_down_that_is_or_that_nothing_does():
    made = a_race(slower=1.2, **{"line_loss = g(x)": 5e6})
    for each in chain(*made):
        if each.place:
            del each.times[LINE, "loss = f(x)"]
    result = turns.concluded(NAMES, made, QUIET)
    result = replace(result, gate=turns.gate_of(result, 5))
    alike = turns.concluded(NAMES, a_race(slower=1.0), QUIET)
    views = (text.as_text(turns.blocks(each, 10)) for each in (result, alike))
    approve("compare-turns.txt", "\n".join(views))


@pytest.mark.parametrize(
    ("slower", "process", "limit", "slow", "undecided", "passed"),
    [
        (1.2, 1.0, 5, 1, 0, 0),
        (1.0, 1.0, 5, 0, 0, 1),
        (1.0, 1.0, 1, 0, 1, 0),
        (1.0, 1.5, 5, 1, 0, 1),  # outside of the steps
    ],
)
def test_the_gate_is_of_the_step_and_also_proven_by_the_process(
    slower, process, limit, slow, undecided, passed
):
    made = a_race(slower=slower)
    for each in chain(*made):
        each.times[WHOLE, PROCESS] *= process if each.place else 1
    gate = turns.gate_of(turns.concluded(NAMES, made, QUIET), limit)
    counts = len(gate.slower), len(gate.undecided), len(gate.passed)
    assert counts == (slow, undecided, passed)


def test_without_a_step_the_whole_process_decides_and_that_is_said():
    made = a_race(slower=1.0)
    for each in chain(*made):
        del each.times[WHOLE, STEP]
    made = [[replace(each, group=None) for each in of_round] for of_round in made]
    result = turns.concluded(NAMES, made, QUIET)
    assert [change.key for change in result.whole] == [PROCESS]
    assert len(turns.gate_of(result, 1).undecided) == 1
    shown = " ".join(text.as_text(turns.blocks(result, 10)).split())
    assert "A step is unknown: nothing ran more than once" in shown


def test_times_are_of_the_process_without_tflab_and_of_the_largest_group():
    seen = turns.run_of(WATCHED, 0, None)
    owners = {owner.owner: owner.ns for owner in WATCHED.process.owners}
    assert seen.group == "loss:0, train with x:0 (8, 4)"
    assert seen.times[WHOLE, STEP] == 900
    assert seen.times[WHOLE, PROCESS] == WATCHED.process.wall_ns - owners["tflab"]
    ops = turns.run_of(with_graph("train.py"), 0, None).times
    assert (ops[OP, "_Fused"], ops[OP, "Op"]) == (1_000 / 2, 30 / 2)  # in two traced runs


def test_the_step_is_the_group_that_took_longest_and_stays_it():
    short = replace(WATCHED.groups[1], fetches=("eval",), median_ns=5.0, total_ns=3_999)
    seen = replace(WATCHED, groups=(*WATCHED.groups, short))
    first = turns.run_of(seen, 0, None)
    assert (first.group, first.times[WHOLE, STEP]) == ("loss:0, train with x:0 (8, 4)", 900)
    waits = replace(short, fetches=("enqueue",), total_ns=9_000, calls=5, in_other_threads=5)
    assert turns.run_of(replace(seen, groups=(*seen.groups, waits)), 0, None).group == first.group
    assert turns.run_of(replace(seen, groups=(waits,)), 0, None).group.startswith("enqueue")
    again = turns.run_of(seen, 0, "eval with x:0 (8, 4)")
    assert (again.group, again.times[WHOLE, STEP]) == ("eval with x:0 (8, 4)", 5)


@pytest.mark.parametrize(
    ("files", "lists", "names", "words"),
    [
        (["a/t.py", "u.py"], [], ["t.py", "u.py"], [(), ()]),
        (["a/t.py", "b/t.py"], [["-x"]], ["a/t.py -x", "b/t.py -x"], [("-x",), ("-x",)]),
        (["t.py"], [["-b", "1"], []], ["t.py -b 1", "t.py"], [("-b", "1"), ()]),
        (["t.py", "t.py"], [["-b"], ["-c"]], ["t.py -b", "t.py -c"], [("-b",), ("-c",)]),
        (["a/t.py", "a/t.py"], [], ["a/t.py", "a/t.py again"], [(), ()]),
    ],
)
def test_programs_are_named_by_what_differs(monkeypatch, files, lists, names, words):
    monkeypatch.setattr(turns.launch, "check", lambda script: None)
    programs = turns.programs_of(files, lists)
    assert [program.name for program in programs] == names
    assert [program.words[1:] for program in programs] == words


def ending_with(error, after):
    """A stand-in for the processes of a program, of which the one after these fails."""
    ran = []

    def process_of(program, steps, turn_ns):
        ran.append(program)
        if len(ran) > after:
            raise error
        yield WATCHED

    return process_of


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (TflabError("'new.py' ended with status 3."), 1, "prevented the rest: 'new.py' ended with"),
        (KeyboardInterrupt(), 130, "before the interruption"),
    ],
)
def test_what_was_measured_is_kept_if_a_program_fails_or_the_command_is_interrupted(
    monkeypatch, capsys, tmp_path, error, status, sentence
):
    monkeypatch.setattr(turns, "process_of", ending_with(error, 6))
    kept = tmp_path / "kept.json"
    line = [__file__, __file__, "--save", str(kept), "--fail-if-slower", "5"]
    assert command.main(line) == status
    shown = capsys.readouterr().out
    assert sentence in shown.splitlines()[0]
    assert "cannot tell" in " ".join(shown.split())  # it may be chance
    assert "Gate" not in shown  # the exit status is another
    assert "1 round of three runs: 2 of " in shown and "[" not in shown
    assert "A verdict takes at least 3 rounds. --steps N makes rounds shorter." in shown
    found = json.loads(kept.read_text())
    step = found["whole"][0]
    assert found["runs"] == [2, 1]
    assert (step["first_ns"], step["second_ns"]) == (pytest.approx(900), pytest.approx(900))


def test_a_failure_or_interruption_before_a_round_is_all_that_is_said(monkeypatch, capsys):
    for error, status in ((TflabError("Failed."), 1), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr(turns, "process_of", ending_with(error, 1))
        assert command.main([__file__, __file__]) == status
        assert capsys.readouterr().out == ""


# Real programs, without TensorFlow

LINES = "import os, sys, time\nopen('ran', 'a').write(sys.argv[-1])\n"


def program(folder, name, text):
    (folder / name).write_text(LINES + text)
    return name


def compare(folder, *words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "tflab.compare", *words],
        **{"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
    )


@pytest.mark.slow
@pytest.mark.thorough
def test_a_program_runs_unchanged_in_its_folder_with_empty_input_until_one_fails(tmp_path):
    stop = "import signal; [os.killpg(0, signal.SIGSTOP) for _ in range(3)]\n"
    old = program(tmp_path, "old.py", f"print('hidden'); assert sys.stdin.read() == ''\n{stop}")
    late = "if os.path.getsize('ran') == 6:\n    sys.exit('no more of it')\n"
    new = program(tmp_path, "new.py", late)
    ran = compare(tmp_path, old, new, "--", "x", "--", "y")
    out, err = ran.communicate()
    assert (tmp_path / "ran").read_text() == "xyxyxy"
    assert ran.returncode == 1
    assert err.endswith("tflab: 'new.py y' ended with status 1: no more of it\n")
    assert "prevented the rest: 'new.py y' ended with" in " ".join(out.split())
    assert "hidden" not in out + err


STEPS = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
square = tf.linalg.matmul(*[tf.Variable(tf.ones([400, 400]))] * 2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(40):
        session.run(square)
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_processes_stop_in_turn_and_the_time_until_they_go_on_is_not_the_programs(tmp_path):
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    first, second = turns.together([Program("steps", (str(script),))] * 2, 0)
    own, other = ({each.owner: each.ns for each in seen.process.owners} for seen in (first, second))
    assert sum(own.values()) == first.process.wall_ns
    assert own["tflab"] > other["import of TensorFlow"] + other["steps of group 2"] / 4
    times = [turns.run_of(seen, 0, None).times for seen in (first, second)]
    assert [len(seen.groups) for seen in (first, second)] == [2, 2]
    assert times[0][WHOLE, PROCESS] == first.process.wall_ns - own["tflab"]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_signal_ends_the_program_that_runs_and_shows_what_was_measured(tmp_path, closed):
    wait = "open('pid', 'w').write(f'{os.getpid()} '); time.sleep(60)"
    one = program(tmp_path, "one.py", f"if os.path.getsize('ran') == 6:\n    {wait}\n")
    ran = compare(tmp_path, one, "--", "x", "--", "y", preexec_fn=lambda: os.close(closed))
    place = tmp_path / "pid"
    while not (place.exists() and place.read_text().endswith(" ")):
        assert ran.poll() is None
        time.sleep(0.05)
    ran.send_signal(signal.SIGTERM)
    out, _ = ran.communicate(timeout=30)
    assert ran.returncode == 128 + signal.SIGTERM
    assert ("before the interruption" in out) == (closed != 1)
    assert not Path("/proc", place.read_text().strip()).exists()
