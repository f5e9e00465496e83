"""Command: arguments, exit statuses, and what becomes of the chatter of C++."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.approval import approve, refused
from tflab.cli import command
from tflab.errors import TflabError, UsageError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

STAGE = command.one_of("stage", ("frontend", "backward"))
BATCH = command.count("batch size")


WRONG = (
    *((STAGE, "bakward"), (STAGE, "xyz"), (STAGE, ""), (BATCH, "0"), (BATCH, "1.5"), (BATCH, "")),
    *((BATCH, "1,16"), (command.count("size", 2, 9), "10")),
)
LINES = (*("--colour", "--stpes=3", "--stage roofline", "--steps", "--steps 0"),)


def test_another_argument_is_one_sentence_that_says_what_it_has_to_be_and_status_2(capsys):
    said = [f"{given!r}: {refused(kind, given)}" for kind, given in WRONG]
    parser = command.Parser(prog="python -m tflab.demo")
    parser.add_argument("--steps", type=command.count("number of steps"))
    parser.add_argument("--stage", type=command.one_of("stage", ("frontend",)))
    for line in LINES:
        assert command.run(lambda line=line: parser.parse_args(line.split()) and 0) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        said.append(f"{line}: {err.rstrip()}")
    approve("arguments.txt", "\n".join(said))


# Exit statuses


def test_an_error_is_a_sentence_on_stderr_and_a_status_and_another_keeps_its_traceback(capsys):
    def failing(error):
        raise error

    for error, status, said in (
        (TflabError("No kernel \x1b."), 1, r"No kernel \x1b."),
        (UsageError("No such model."), 2, "No such model."),
        (KeyboardInterrupt(), 130, "interrupted."),
        (MemoryError("3 GiB"), 1, "There is not enough memory."),
    ):
        assert command.run(lambda error=error: failing(error)) == status
        assert capsys.readouterr() == ("", f"tflab: {said}\n")
    for error in (ZeroDivisionError(), FileNotFoundError(2, "No such file")):
        with pytest.raises(type(error)):
            command.run(lambda error=error: failing(error))


# In a process of its own, whose stderr is file descriptor 2


def process(program: str, *words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*words, sys.executable, "-c", program],
        **{"cwd": ROOT, "capture_output": True, "text": True} | options,
    )


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

status = command.run(body)
os.write(2, b"2 is as before\\n")
sys.exit(status)
"""
MESSAGES = """\
TensorFlow's messages:
  WARNING: all messages
  GPU trace was not collected. (3 times)
  WARNING:tensorflow:deprecated
"""


@pytest.mark.parametrize(
    "ending, status, said",
    [
        ("return 0", 0, ""),
        ('raise TflabError("It failed.")', 1, "tflab: It failed.\n"),  # that says everything
        ('raise RanDryError("It failed.")', 1, "tflab: It failed.\n"),
        ('raise RefusedError("It failed.")', 1, f"{MESSAGES}tflab: It failed.\n"),
        ('raise UsageError("No such model.")', 2, "tflab: No such model.\n"),
        ("os.kill(os.getpid(), 2)", 130, "tflab: interrupted.\n"),
    ],
)
def test_chatter_is_shown_only_where_it_explains_something(ending, status, said):
    done = process(CHATTY.format(ending=ending))
    assert (done.returncode, done.stdout) == (status, "result\n")
    assert done.stderr == f"progress\n{said}2 is as before\n"


def test_a_reader_that_had_enough_is_no_error():
    program = (
        "from tflab.cli import command\ncommand.run(lambda: [print(n) for n in range(99_999)])"
    )
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as running:
        first = running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert (first, said, running.returncode) == ("0\n", "", 0)


def test_a_command_that_writes_files_goes_on_without_its_reader(tmp_path):
    program = (
        "import sys; from tflab.cli import command\n"
        "def body():\n"
        "    with command.reader_may_leave():\n"
        "        print('x' * 999_999)\n"
        f"    open({str(tmp_path / 'file')!r}, 'w').close()\n"
        "    print('y' * 999_999)\n"
        "    return 0\n"
        "sys.exit(command.run(body))"
    )
    done = process(program, "bash", "-c", '"$@" | head -c 1; exit ${PIPESTATUS[0]}', "bash")
    assert (done.stdout, done.stderr, done.returncode) == ("x", "", 0)
    assert (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("closed", "body", "status"),
    [(">&- 2>&-", "print(1) or 0", 0), (">&-", "print(1) or 0", 0), ("2>&-", "count('x')('y')", 2)],
)
def test_closed_streams_do_not_change_the_exit_status(closed, body, status):
    """What is opened later does not get their descriptors."""
    program = (
        "import os, sys; from tflab.cli import command; from tflab.cli.command import count\n"
        f"status = command.run(lambda: {body})\n"
        "sys.exit(status if os.open(os.devnull, os.O_RDONLY) > 2 else 9)"
    )
    done = process(program, "sh", "-c", f'"$0" "$@" {closed}')
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


@pytest.mark.parametrize(
    ("lines", "unbuffered"),
    [(1, ""), (99_999, "1")],  # at the end, and in the middle of the output
)
def test_a_full_disk_is_a_sentence_and_status_1(lines, unbuffered):
    program = (
        "import sys; from tflab.cli import command\n"
        f"sys.exit(command.run(lambda: [print(n) for n in range({lines})] and 0))"
    )
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = process(
            program, capture_output=False, stdout=full, stderr=subprocess.PIPE, env=environment
        )
    said = "tflab: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("line", ["lifecycle", "report"])
def test_a_python_without_tensorflow_says_which_one_has_it(line, tmp_path):
    program = (
        "import sys; sys.modules['tensorflow'] = None\n"
        f"sys.argv[1:] = {line.split()}\n"
        "from tflab.__main__ import main; sys.exit(main())"
    )
    done = process(program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"tflab: The package 'tensorflow' is missing for this Python ({sys.executable}). Run it as "
        "`.venv/bin/python -m tflab...`, or activate .venv before.\n",
    )
