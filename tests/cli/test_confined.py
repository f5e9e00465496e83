"""Confined: which files belong to a model, and what a command in a confined process can do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import needs
from tests.approval import approve, refused
from tests.commands import children_of, processor_seconds, run_python
from tflab.cli import confined
from tflab.errors import UsageError

# Files of models


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")


CHECKPOINT = ("s.pb", "s.index", "s.data-00000-of-00002", "s.data-00001-of-00002")
NEIGHBOURS = (
    *("s2.pb", "s.txt", "secret.txt", "checkpoint", "s-1.index", "s.index.bak", "s.data-1"),
    "s2.data-00000-of-00001",
)
PARTS = ("saved_model.pb", "variables", "assets", "fingerprint.pb")
IN_PARTS = ("saved_model.pb", "variables/variables.index", "assets/words", "fingerprint.pb")
BESIDE_PARTS = ("secret.txt", "other/saved_model.pb", "saved_model.pb.bak")


@pytest.mark.parametrize(
    ("files", "model", "own"),
    [
        # Of a file, the checkpoint of exactly its stem, which ends before the suffix
        ((*CHECKPOINT, *NEIGHBOURS), "s.pb", CHECKPOINT),
        (
            ("m.ckpt-10.meta", "m.ckpt-10.index", "m.ckpt-100.index", "m.index"),
            "m.ckpt-10.meta",
            ("m.ckpt-10.meta", "m.ckpt-10.index"),
        ),
        (("[ab].pb", "a.index", "[ab].index"), "[ab].pb", ("[ab].pb", "[ab].index")),
        # Of a SavedModel, its parts
        ((*IN_PARTS, *BESIDE_PARTS), ".", PARTS),
        ((*IN_PARTS, *BESIDE_PARTS), "saved_model.pb", PARTS),
    ],
)
def test_the_files_of_a_model_and_nothing_beside_them(files, model, own, tmp_path):
    make(tmp_path, *files)
    assert {*confined.model_files(tmp_path / model)} == {tmp_path / name for name in own}


@pytest.mark.parametrize(
    ("name", "target", "model"),
    [
        ("s.index", "outside", "s.pb"),
        ("s.index", "s.pb", "s.pb"),
        ("s.data-00000-of-00001", "gone", "s.pb"),
        *(
            (f"model/{place}", target, "model")
            for place in ("assets", "saved_model.pb")
            for target in ("outside", "model/secret")
        ),
    ],
)
def test_a_link_out_of_a_model_is_refused(name, target, model, tmp_path):
    make(tmp_path, "s.pb", "outside", "model/saved_model.pb", "model/secret")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match=f"{name}' is a link to another place"):
        confined.model_files(tmp_path / model)


def test_what_is_no_plain_file_is_refused(tmp_path):
    make(tmp_path, "secret", "small")
    os.mkfifo(tmp_path / "pipe")
    paths = (tmp_path, tmp_path / "pipe", Path("/dev/zero"), tmp_path / "none")
    said = [
        refused(confined.model_files, paths[0]),
        *(refused(confined.check_plain, p) for p in paths),
    ]
    confined.check_plain(tmp_path / "small")
    approve("model-files-refused.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))


# Whether a command is confined


def test_only_a_file_without_trust_is_confined_where_the_kernel_can(monkeypatch):
    monkeypatch.setattr(confined, "ENABLED", True)
    for landlock in (7, 0):
        monkeypatch.setattr(confined.landlock, "abi", lambda landlock=landlock: landlock)
        assert confined.is_wanted(True, False) == bool(landlock)
        assert not confined.is_wanted(True, True)
        assert not confined.is_wanted(False, False)
    assert confined.unimported(True) == ""
    assert confined.unimported(False) == confined.UNCONFINED


def test_folders_that_only_pythonpath_names_are_not_read(monkeypatch):
    own = ["/somewhere/secrets", "/somewhere/site-packages"]
    monkeypatch.setattr(sys, "path", [*own, *sys.path])
    assert not {own[0], os.getcwd(), str(Path.home())} & {*confined.installed()}
    assert {own[1], sys.prefix} <= {*confined.installed()}


# In a confined process

STATE = """
import json, os, sys
from tflab.cli import confined
sys.modules["tflab.state"] = package = type(sys)("tflab.state")
package.__path__ = []
sys.modules["tflab.state.__main__"] = module = type(sys)("tflab.state.__main__")

def tried(action):
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__

def main(argv):
    print(json.dumps({
        "environment": sorted(os.environ),
        "secret": tried(lambda: open(argv[1]).read()),
        "model": tried(lambda: open(argv[0]).read()),
        "environ": tried(lambda: open("/proc/self/environ").read()),
        "input": sys.stdin.read(),
    }))
    return 7

module.main = main
sys.argv = sys.argv[2:]  # without `-m`
sys.exit(confined.main())
"""


@needs.LANDLOCK
@pytest.mark.slow
def test_a_confined_process_has_an_empty_environment_and_reads_the_model_alone(tmp_path):
    make(tmp_path, "s.pb", "secret")
    program = (
        "import argparse, sys; from tflab.cli import command, confined\n"
        f"confined.python = lambda own=confined.python: [*own(), '-c', {STATE!r}]\n"
        "args = argparse.Namespace(model=sys.argv[1])\n"
        "sys.exit(command.run(lambda: confined.run('state', sys.argv[1:], args, {})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s.pb"), str(tmp_path / "secret")],
        env={**os.environ, "TOKEN": "open sesame", "LANG": "C.UTF-8"},
        input="typed",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7, done.stderr
    state = json.loads(done.stdout)
    kept = {"HOME", "TMPDIR", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONSAFEPATH", *confined.KEPT}
    assert {*state.pop("environment")} <= {*kept, "LC_CTYPE"}
    assert state == {
        "secret": "PermissionError",
        "model": "content",
        "environ": "PermissionError",
        "input": "",
    }


# Commands on graphs from files


@pytest.mark.tensorflow
@needs.LANDLOCK
@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--batch-sizes", "4", "--images", "16"),
        ("report", "--chapters", "batch-sizes", "--out", "report"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_measures_in_processes_of_its_own_does_so_for_a_file(tmp_path, arguments):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from tests import graphs

    def product():
        x = tf1.placeholder(tf.float32, [None, 8], name="x")
        tf.matmul(x, tf.ones([8, 2]), name="out")

    graphs.write(tmp_path / "g.pb", graphs.graph_def(product))
    done = run_python(tmp_path, "-m", "tflab", *arguments, "--model", "g.pb")
    assert (done.returncode, "ended with status" in done.stderr) == (0, False), done.stderr
    assert "Batch 4" in done.stdout or (tmp_path / "report" / "report.html").exists()


@pytest.mark.tensorflow
@needs.LANDLOCK
def test_a_killed_process_is_one_sentence_and_no_output(tmp_path):
    from tests import graphs

    graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.dense))
    arguments = ("--model", "g.pb", "--steps", "1000000", "--logdir", "logs", "--full")
    with subprocess.Popen(
        [sys.executable, "-m", "tflab", "lifecycle", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (children := children_of(process.pid)):
            time.sleep(0.1)
        (child,) = children
        while processor_seconds(child) < 5:  # long enough to be in the steps
            time.sleep(0.1)
        os.kill(child, signal.SIGKILL)
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert err.splitlines()[-1] == (
        "tflab: The graph 'g.pb' ended the process that ran it, with SIGKILL."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["g.pb"]
