"""The chapter of a step over several tasks: every cell and sentence, from records by hand."""

from dataclasses import replace

import pytest

from tests.compare.test_scaling_view import SCALING
from tests.records_by_hand import BUSY, BUSY_LINE
from tests.report.lab_by_hand import LAB, chosen, shown
from tests.report.test_graph_states import EXECUTION, PLACEMENT
from tests.views.test_network import NETWORK
from tflab.compare import scaling_view
from tflab.errors import UsageError
from tflab.records.placed import Partition, Transfer
from tflab.records.stages import OnTasks
from tflab.records.timed import OpRun
from tflab.report import __main__ as report
from tflab.report import chapters, comparison_chapters, selection
from tflab.report.contents import Method, OverTasks
from tflab.views import execution, network

pytestmark = pytest.mark.usefixtures("undrawn")

CLIENT = "/job:client/replica:0/task:0/device:CPU:0"
TASK_0 = "/job:worker/replica:0/task:0/device:CPU:0"
WIRES = (OpRun(5, "x/_1", "RecvTensor", "wire from client to task 0", 50_000_000, 900),)
SENT = (Transfer("x", "x/_0", "x/_1", CLIENT, TASK_0, "float32", (64, 256), 65_536),)
PLACED = replace(
    PLACEMENT,
    partitions=(Partition(TASK_0, ("relu", "loss")), Partition(CLIENT, ("read",))),
    transfers=SENT,
)
RAN = replace(EXECUTION, network=NETWORK, wires=WIRES)
MADE = OverTasks(
    clusters=(1, 2),
    split="layers",
    batch_size=64,
    phase="training",
    steps=20,
    scaling=SCALING,
    shown=OnTasks(2, PLACED, RAN),
)
SCALED = Method(
    "At each number of tasks, 20 untraced steps and as many traced ones alternate. Each number "
    "of tasks has new sessions and, on this machine, new tasks.",
    "python -m tflab.compare --model lenet --phase training --batch-sizes 64 --steps 20 --cluster "
    "1 2 --split layers",
)


def test_first_what_is_where_and_what_is_sent():
    assert shown(comparison_chapters.tasks("lenet", MADE))[:3] == [
        "A training step of lenet on 2 tasks of TensorFlow's distributed runtime, and on this "
        "process, the client, which feeds the data. Each task has consecutive layers.",
        [
            "Partitions: one graph for each device",
            ("device", "nodes", "types"),
            ("client CPU:0", "1", "ReadVariableOp"),
            ("task 0 CPU:0", "2", "_FusedMatMul, Mean"),
            0,
        ],
        "A step sends 3 tensors over the wire, 64.0 KiB in all. A tensor of 0 bytes only "
        "enforces an order.",
    ]


def test_a_step_sends_the_bytes_of_all_tensors_together():
    sizes = (1_024, 512, 0)
    tensors = tuple(
        replace(tensor, bytes=amount) for tensor, amount in zip(NETWORK.tensors, sizes, strict=True)
    )
    assert comparison_chapters.sent(replace(NETWORK, tensors=tensors)).startswith(
        "A step sends 3 tensors over the wire, 1.50 KiB in all"
    )


def test_the_step_of_median_length_is_drawn_with_what_went_over_the_wire():
    name, (drawn, runs, *rest) = shown(comparison_chapters.tasks("lenet", MADE))[3]
    assert (name, drawn) == ("tasks", "tasks")
    assert runs == [run for run in EXECUTION.runs if run.name != "_SOURCE"]
    assert rest == [WIRES, EXECUTION.step_times[0], EXECUTION.critical_path, SENT]


def test_then_who_owned_the_time_and_at_last_what_more_tasks_bring():
    assert shown(comparison_chapters.tasks("lenet", MADE))[4:] == [
        *shown([execution.owners(RAN), *network.blocks(RAN)]),
        Method(
            "3 untraced steps and as many traced ones, alternating, after 2 warm-up steps of each; "
            "batch size 16.",
            "python -m tflab.lifecycle --model lenet --batch-size 64 --steps 20 --cluster 2 "
            "--split layers",
        ),
        *shown(scaling_view.tables(SCALING)),
        SCALED,
    ]


def test_copies_of_a_model_have_parts_of_the_rows_and_given_tasks_are_named():
    at = ("a:1", "b:2")
    given = replace(MADE, clusters=(at[:1], at), split="batch", shown=replace(MADE.shown, tasks=at))
    first, *_, last = shown(comparison_chapters.tasks("lenet", given))
    assert first.endswith(
        "Each task has a copy of the model and its part of the rows; task 0 has the variables."
    )
    assert last.command.endswith("--cluster a:1 a:1,b:2 --split batch")
    commands = [
        part.command for part in comparison_chapters.tasks("m", given) if type(part) is Method
    ]
    assert commands[0].endswith("--cluster a:1,b:2 --split batch")


def test_a_busy_machine_and_a_task_that_died_come_before_all_numbers():
    died = replace(SCALING, quality=BUSY, failure="Task 1 is gone.")
    parts = shown(comparison_chapters.tasks("lenet", replace(MADE, scaling=died)))
    assert parts[:2] == [
        BUSY_LINE,
        "Partial: these are the measurements before this error: Task 1 is gone.",
    ]
    *one_step, recipe = shown(comparison_chapters.tasks("lenet", MADE))
    concluded = len(shown(scaling_view.tables(SCALING))) - 2  # of a quiet machine only
    assert parts[2:] == [*one_step[:-concluded], recipe]


def test_where_only_this_process_was_measured_no_step_is_shown():
    died = replace(SCALING, rows=SCALING.rows[:1], failure="It died.")
    assert shown(comparison_chapters.tasks("m", replace(MADE, scaling=died, shown=None)))[:2] == [
        "Partial: these are the measurements before this error: It died.",
        "Each row is a step of training on the same 64 rows of MNIST, split by layers. 0 tasks "
        "means this process alone. Each number of tasks was measured once, so speed-ups have no "
        "interval.",
    ]


def test_where_nothing_was_measured_a_sentence_says_why():
    nothing = replace(MADE, scaling=None, shown=None, failure="Task 0 did not begin.")
    assert [*comparison_chapters.tasks("lenet", nothing)] == [
        "lenet was not run over tasks. Task 0 did not begin."
    ]


def test_only_a_report_with_tasks_has_the_chapter_and_all_else_stays():
    def titles(lab):
        return [chapter.title for chapter in chapters.report(lab, "").chapters]

    without = titles(LAB)
    assert titles(replace(LAB, tasks=MADE)) == [
        *without[:-2],
        "One step over several tasks",
        *without[-2:],
    ]


# What is given


def test_the_chapter_is_there_with_those_that_were_chosen():
    assert chosen("--chapters", "memory", "--cluster", "2") == ("memory", "tasks")
    assert chosen("--model", "lenet", "--cluster", "2") == selection.CHAPTERS
    with pytest.raises(UsageError) as error:
        chosen("--chapters", "tasks")
    assert str(error.value) == (
        "The chapter 'tasks' shows a step that several tasks share; give --cluster 2, for example."
    )


def test_the_command_that_repeats_a_report_has_its_tasks():
    for words in (
        "--cluster 2 --split batch --soft-placement",
        "--cluster 127.0.0.1:1,127.0.0.1:2",
    ):
        args = report.parser().parse_args(words.split())
        assert report.repeated(args) == f"python -m tflab.report --model toy {words}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--cluster 0", "The number of tasks is '0'"),
        ("--cluster 17", "The number of tasks is '17'"),
        (
            "--cluster localhost:0",
            "'localhost:0' is not the address of a task: its port cannot be 0.",
        ),
        ("--cluster two", "The number of tasks is 'two'"),
        ("--cluster 2 --split rows", "No way to split a model named 'rows'"),
        ("--split batch", "--split batch needs --cluster; give --cluster 2, for example."),
    ],
)
def test_what_cannot_be_is_one_sentence_before_anything_is_made(tmp_path, capsys, words, sentence):
    out = tmp_path / "out"
    assert report.main([*words.split(), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"tflab: {sentence}") and said.count("\n") == 1
    assert not out.exists()
