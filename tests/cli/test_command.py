"""Command: arguments, exit statuses, and what becomes of the chatter of C++."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tflab.cli import command
from tflab.errors import TflabError, UsageError

ROOT = Path(__file__).parents[2]

# Arguments


def test_one_of_the_names_is_taken_as_it_is():
    assert command.one_of("stage", ("frontend", "backward"))("backward") == "backward"


@pytest.mark.parametrize(
    "given, said",
    [
        (
            "bakward",
            "No stage named 'bakward'. Did you mean 'backward'? Choose from frontend, backward.",
        ),
        ("xyz", "No stage named 'xyz'. Choose from frontend, backward."),
        ("", "No stage named ''. Choose from frontend, backward."),
    ],
)
def test_another_name_is_an_error_with_the_right_ones(given, said):
    with pytest.raises(UsageError) as error:
        command.one_of("stage", ("frontend", "backward"))(given)
    assert str(error.value) == said


@pytest.mark.parametrize("given, number", [("1", 1), ("64", 64), (" 7 ", 7)])
def test_a_count_is_a_whole_number(given, number):
    assert command.count("batch size")(given) == number


@pytest.mark.parametrize("given", ["0", "-3", "1.5", "many", ""])
def test_another_count_is_an_error_that_says_what_it_has_to_be(given):
    with pytest.raises(UsageError) as error:
        command.count("batch size")(given)
    expected = f"The batch size is '{given}'; it has to be a whole number of at least 1."
    assert str(error.value) == expected


def test_of_numbers_with_commas_between_them_the_error_says_to_use_spaces():
    with pytest.raises(UsageError) as error:
        command.count("batch size", several=True)("1,16")
    assert str(error.value) == (
        "The batch size is '1,16'; it has to be a whole number of at least 1. Separate several "
        "numbers with spaces, not commas."
    )


def test_a_count_may_start_at_nought():
    assert command.count("number of warm-up steps", 0)("0") == 0


def parser() -> command.Parser:
    parser = command.Parser(prog="python -m tflab.demo")
    parser.add_argument("--steps", type=command.count("number of steps"))
    parser.add_argument("--stage", type=command.one_of("stage", ("frontend",)))
    return parser


@pytest.mark.parametrize(
    "argv, said",
    [
        (
            ["--colour"],
            "Unrecognized arguments: --colour. See `python -m tflab.demo --help`.",
        ),
        (
            ["--stpes=3"],
            "Unrecognized arguments: --stpes=3. Did you mean '--steps'? "
            "See `python -m tflab.demo --help`.",
        ),
        (
            ["--allow-read=here"],
            "--allow-read: gone; the graph runs confined, --trust runs it without. "
            "See `python -m tflab.demo --help`.",
        ),
        (
            ["--stage", "roofline"],
            "roofline: gone; the column GFLOP/s of the op table. Choose from frontend.",
        ),
        (
            ["--steps"],
            "Argument --steps: expected one argument. See `python -m tflab.demo --help`.",
        ),
        (
            ["--steps", "0"],
            "The number of steps is '0'; it has to be a whole number of at least 1.",
        ),
        (
            ["--stage", "frontent"],
            "No stage named 'frontent'. Did you mean 'frontend'? Choose from frontend.",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_status_2(argv, said, capsys):
    assert command.run(lambda: parser().parse_args(argv) and 0) == 2
    assert capsys.readouterr() == ("", f"tflab: {said}\n")


# Exit statuses


def failing(error: BaseException):
    def body() -> int:
        raise error

    return body


def test_the_status_of_the_body_is_the_status_of_the_command(capsys):
    assert [command.run(lambda status=status: status) for status in (0, 1, 130)] == [0, 1, 130]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "error, status, said",
    [
        (TflabError("No kernel."), 1, "tflab: No kernel.\n"),
        (UsageError("No such model."), 2, "tflab: No such model.\n"),
        (KeyboardInterrupt(), 130, "tflab: interrupted.\n"),
    ],
)
def test_an_error_is_a_sentence_on_stderr_and_a_status(error, status, said, capsys):
    assert command.run(failing(error)) == status
    assert capsys.readouterr() == ("", said)


def test_what_nobody_foresaw_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        command.run(failing(ZeroDivisionError()))


# Chatter, in a process whose stderr is file descriptor 2

CHATTY = """
import logging, os, sys
from tflab.cli import command
from tflab.errors import RanDryError, RefusedError, TflabError, UsageError

def body():
    os.write(2, b"WARNING: all messages\\n")
    for line in (84, 84, 85):
        os.write(2, b"W0000 00:00:17 12 x.cc:%d] GPU trace was not collected.\\n" % line)
    logging.getLogger("tensorflow").warning("deprecated")
    print("progress", file=sys.stderr)
    print("result")
    {ending}

sys.exit(command.run(body))
"""


def chatty(ending: str) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command whose body ends like this."""
    done = subprocess.run(
        [sys.executable, "-c", CHATTY.format(ending=ending)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_chatter_is_not_shown_on_success_and_stderr_stays_usable():
    assert chatty("return 0") == (0, "result\n", "progress\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["TflabError", "RanDryError"])
def test_an_error_that_says_everything_is_shown_alone(kind):
    assert chatty(f'raise {kind}("It failed.")') == (
        1,
        "result\n",
        "progress\ntflab: It failed.\n",
    )


@pytest.mark.slow
def test_chatter_is_shown_when_tensorflow_refused_and_repeated_lines_are_counted():
    assert chatty('raise RefusedError("It failed.")') == (
        1,
        "result\n",
        "progress\n"
        "TensorFlow's messages:\n"
        "  WARNING: all messages\n"
        "  GPU trace was not collected. (3 times)\n"
        "  WARNING:tensorflow:deprecated\n"
        "tflab: It failed.\n",
    )


@pytest.mark.slow
def test_chatter_is_shown_before_a_traceback():
    status, _, said = chatty("1 / 0")
    assert status == 1
    assert said.index("GPU trace was not collected.") < said.index("Traceback")
    assert said.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending, status, said",
    [
        ('raise UsageError("No such model.")', 2, "tflab: No such model.\n"),
        ("os.kill(os.getpid(), 2)", 130, "tflab: interrupted.\n"),
    ],
)
def test_chatter_is_not_shown_where_it_explains_nothing(ending, status, said):
    assert chatty(ending) == (status, "result\n", f"progress\n{said}")


@pytest.mark.slow
def test_a_reader_that_had_enough_is_no_error():
    program = (
        "from tflab.cli import command\ncommand.run(lambda: [print(n) for n in range(99_999)])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        first = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (first, said, process.returncode) == ("0\n", "", 0)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("body", "status"), [("print(1) or 0", 0), ("count('x')('y')", 2)])
def test_closed_streams_do_not_change_the_exit_status(closed, body, status, tmp_path):
    """What is opened later does not get their descriptors."""
    program = (
        "import os, sys; from tflab.cli import command; from tflab.cli.command import count\n"
        f"status = command.run(lambda: {body})\n"
        "sys.exit(status if os.open(os.devnull, os.O_RDONLY) > 2 else 9)"
    )
    words = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, program]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


@pytest.mark.slow
def test_a_command_that_writes_files_goes_on_without_its_reader(tmp_path):
    program = (
        "import sys; from tflab.cli import command\n"
        "def body():\n"
        "    with command.reader_may_leave():\n"
        "        print('x' * 999_999)\n"
        "    open(sys.argv[1], 'w').close()\n"
        "    print('y' * 999_999)\n"
        "    return 0\n"
        "sys.exit(command.run(body))"
    )
    words = ["bash", "-c", '"$0" -c "$1" "$2" | head -c 1; exit ${PIPESTATUS[0]}', sys.executable]
    done = subprocess.run(
        [*words, program, tmp_path / "file"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == ("x", "", 0)
    assert (tmp_path / "file").exists()


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 99_999])  # at the end, and in the middle of the output
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_a_sentence_and_status_1(lines, unbuffered):
    program = (
        "import sys; from tflab.cli import command\n"
        f"sys.exit(command.run(lambda: [print(n) for n in range({lines})] and 0))"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
        )
    said = b"tflab: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_file_that_fails_keeps_its_traceback():
    with pytest.raises(FileNotFoundError):
        command.run(failing(FileNotFoundError(2, "No such file or directory")))


@pytest.mark.slow
@pytest.mark.parametrize("line", ["train", "lifecycle", "compare", "follow mul", "report"])
def test_a_python_without_tensorflow_says_which_one_has_it(line, tmp_path):
    program = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from tflab.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"tflab: TensorFlow is missing for this Python ({sys.executable}). Run it as "
        "`.venv/bin/python -m tflab...`, or activate .venv before.\n",
    )


@pytest.mark.slow
def test_descriptor_2_is_as_before_when_the_command_is_done():
    program = (
        "import os; from tflab.cli import command; command.run(int); os.write(2, b'still heard')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True)
    assert done.stderr == b"still heard"
    assert os.fstat(2)  # and that of the test runner was never touched
