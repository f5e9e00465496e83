"""A watched program behaves as without tflab: output, errors and exit status, byte for byte."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.commands import run_python
from tflab.run import PREFIX, launch

pytestmark = pytest.mark.slow

SURROUNDINGS = """
import os, sys, threading
print(__name__, __file__, sys.argv, sys.path, sys.flags)
print([thread.name for thread in threading.enumerate()])
print(sorted(os.environ.items()))
print("json" in sys.modules, "types" in sys.modules, sys.stdin.read())
exec("print('executed')")
"""
CHAINED = """
def inner():
    return {}["key"]
try:
    inner()
except KeyError as error:
    raise ValueError("twice") from error
"""
LATE = """
import atexit, io, sys, threading, time
atexit.register(lambda: print("at exit", file=sys.__stdout__))
threading.Thread(target=lambda: (time.sleep(0.2), print("in a thread"))).start()
print("the last line", flush=True)
sys.stdout = io.StringIO()
print("into nowhere")
sys.stderr.write("an error\\n")
sys.stderr = None
"""
CHILDREN = """
import multiprocessing, os, subprocess, sys
if __name__ == "__main__":
    print(os.waitpid(os.fork() or os._exit(5), 0)[1], flush=True)
    child = multiprocessing.Process(target=print, args=("in a child",))
    child.start(); child.join()
    shown = "import os; print(sorted(os.environ.items()))"
    subprocess.run([sys.executable, "-c", shown])
    if os.fork() == 0:
        sys.exit(print("a fork that ends like a program"))
    os.wait()
"""
INTERRUPTED = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("caught", flush=True)
signal.raise_signal(signal.SIGINT)
"""
HOOKED = """
import sys
sys.excepthook = lambda kind, error, frames: print(kind, error, frames.tb_frame.f_back)
raise RuntimeError("hooked")
"""
PROGRAMS = {
    "surroundings": SURROUNDINGS,
    "a message": "import sys; sys.exit('that is all')",
    "a chained exception": CHAINED,
    "a syntax error": "x = 1\nprint(x\n",
    "threads, atexit and replaced streams": LATE,
    "children": CHILDREN,
    "another program": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', '1/0'])",
    "an interruption": INTERRUPTED,
    "a hook": HOOKED,
    "no farewell": "import os; print('lost'); os.write(1, b'kept'); os._exit(7)",
    "a signal": "import os, signal; print('lost'); os.kill(os.getpid(), signal.SIGTERM)",
    "a file with the name of a module": "import signal, random; print(signal.own, random.own)",
    "a file that cannot be decoded": b"print('\xff')\n",
}


def run(*words, folder, given=b"given"):
    environment = {name: text for name, text in os.environ.items() if name != "TFLAB_OFFLINE"}
    environment["PYTHONPATH"] = os.getcwd()
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, timeout=100
    )
    return done.stdout, done.stderr, done.returncode


def both(*words, folder):
    """What a program does by itself, and watched, without what tflab says; and what it says."""
    out, err, status = run("-m", "tflab.run", *words, folder=folder)
    err, mark, said = err.rpartition(b"\ntflab: ")
    return run(*words, folder=folder), (out, err, status), (mark + said).decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_watched_program_does_the_same(name, tmp_path):
    program = PROGRAMS[name]
    (tmp_path / "own").mkdir()  # where Python looks for what the program imports, and not tflab
    script = tmp_path / "own" / "program.py"
    script.write_bytes(program if isinstance(program, bytes) else program.encode())
    for shadow in ("signal", "random") if "name of a module" in name else ():
        (tmp_path / "own" / f"{shadow}.py").write_text("own = 'of the program'")
    plain, watched, said = both("own/program.py", "--epochs", "3", folder=tmp_path)
    assert watched == plain
    assert said.startswith("\ntflab: program.py took ")
    assert ("Forked child processes" in said) is (name == "children")


def test_a_module_and_pythons_own_options_are_passed_on(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(SURROUNDINGS)
    words = ("-m", "package", "--lines", "-m", "x")
    plain = run("-X", "dev", *words, folder=tmp_path)
    out, err, status = run("-X", "dev", "-m", "tflab.run", *words, folder=tmp_path)
    assert (out, err.rpartition(b"\ntflab: ")[0], status) == plain


def test_a_signal_to_the_command_goes_on_to_the_program(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "tflab.run", str(script)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(command, **pipes) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.2)
            process.send_signal(number)
            _, err = process.communicate(timeout=50)
            assert process.returncode == -number
        assert f"was ended by signal {number:d}." in err
        assert ("KeyboardInterrupt" in err) is (number == signal.SIGINT)


COUNTING = """
import signal, time
got = []
signal.signal(signal.SIGINT, lambda *of: got.append(of))
print("ready", flush=True)
end = time.time() + 3
while time.time() < end:
    time.sleep(0.05)
print(len(got), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc, and a signal of Linux")
def test_a_program_gets_the_signals_to_its_group_once_and_ends_with_its_command(tmp_path):
    (tmp_path / "counts.py").write_text(COUNTING)
    command = [sys.executable, "-m", "tflab.run", str(tmp_path / "counts.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "1\n"
        process.kill()
        process.wait()
        assert process.stdout.read() == ""  # so the program has ended


BUSY = """
import os, sys, time
end = time.time() + (1 if sys.argv[1:] else 0.5)
while time.time() < end:
    pass
if sys.argv[1:]:
    os._exit(9)
"""


@pytest.mark.parametrize(
    "words, status, last", [((), 0, ["tflab", "end of Python"]), (("x",), 9, ["not seen"])]
)
def test_the_ledger_of_a_program_adds_up_also_if_it_leaves_without_farewell(
    words, status, last, tmp_path
):
    """Of the latter there is what was written meanwhile, also in the first two seconds."""
    (tmp_path / "busy.py").write_text(BUSY)
    out, _, _ = run("-m", "tflab.run", "--format", "json", "busy.py", *words, folder=tmp_path)
    seen = json.loads(out)
    owners = {owner["owner"]: owner["ns"] for owner in seen["process"]["owners"]}
    assert sum(owners.values()) == seen["process"]["wall_ns"]
    assert [owner for owner in owners if owner != "other imports"] == [
        *("start of Python", "Python", *last)
    ]
    assert all(ns > 0 for ns in owners.values())
    assert seen["lines"][0]["code"] in ("while time.time() < end:", "pass")
    assert (seen["groups"], seen["exit_status"]) == ([], status)
    assert [note[:30] for note in seen["notes"]] == (
        ["Python did not end by itself: "] * bool(words)
    )


def test_the_time_of_a_program_ends_with_it(tmp_path):
    (tmp_path / "x.py").write_text("")
    code = """
import pathlib, time
from tflab.run import launch
settings = {"OVERHEAD": "5", "STEPS": "0"}
print(launch.run(["x.py"], pathlib.Path(), settings, lambda: time.sleep(5)))
"""
    out, _, _ = run("-c", code, folder=tmp_path)
    status, wall_ns = eval(out)
    assert (status, wall_ns < 5e9) == (0, True)


def test_a_fault_of_tflab_is_one_line_and_the_program_goes_on(tmp_path):
    (tmp_path / "program.py").write_text("print('done')")
    environment = {f"{PREFIX}OVERHEAD": "much"}  # which no launcher would give
    environment |= {f"{PREFIX}{name}": "0" for name in ("START", "STEPS")}
    environment[f"{PREFIX}FOLDER"] = str(tmp_path)
    startup = os.path.join(os.path.dirname(launch.__file__), "startup")
    done = run_python(tmp_path, "program.py", **environment, PYTHONPATH=startup)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert (tmp_path / "fault").read_text().startswith("ValueError: could not convert string")


INTERRUPTED_AND_DONE = """
import atexit, sys
from tflab.run import watcher
if sys.argv[1:]:
    atexit.register(watcher.end_by_interruption)
atexit.register(lambda: exec("1"))  # as the import of a dataclass
raise KeyboardInterrupt
"""


def test_an_interrupted_program_ends_by_its_signal_whatever_is_imported_at_its_end(tmp_path):
    (tmp_path / "program.py").write_text(INTERRUPTED_AND_DONE)
    *_, status = run("program.py", folder=tmp_path)
    *_, restored = run("program.py", "restored", folder=tmp_path)
    assert (status, restored) == (1, -signal.SIGINT)
