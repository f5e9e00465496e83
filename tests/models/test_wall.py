"""The wall: the kernel keeps a graph from all that it was not given, whatever is in the graph."""

import json
import os
import re
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format

from tests import attacks, graphs, needs
from tests.commands import run_python
from tflab import models
from tflab.errors import UsageError
from tflab.records.options import Saved

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, needs.LANDLOCK]

# What it prints of each graph: how it ended, and the values of its step
CONFINED = """
import json, os, sys
from tflab.cli import confined, landlock
if sys.argv[1] == "confined":
    readable = (*confined.SYSTEM, *confined.installed(), "/proc/self/cmdline", os.getcwd())
    landlock.confine(readable, [os.environ["TMPDIR"], "/dev/null"])
from tflab.runtime import dumps, tf_import
dumps.prepare()  # else each placement would need another process
tf_import.load()
import tensorflow as tf
from tflab import lifecycle
from tflab.errors import TflabError
from tflab.lifecycle import placement
from tflab.records import Options, Saved
placement.SMALL = 0  # the code of small graphs, which XLA makes in another process, is not wanted
options = Options(steps=2, saved=Saved(trust=True))
for path in sys.argv[2:]:
    ended = "ran"
    try:
        *_, last = lifecycle.walk(path, options)
        ended = "ran " + " ".join(str(value.values) for value in last.values)
    except TflabError as error:
        ended = f"sentence {error}"
    except Exception as error:
        ended = f"traceback {error!r}"
    print(json.dumps([path, ended]), flush=True)
"""
SECRET = "16111213"  # exact in float32, and too long to stand in other values by chance


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with attacks in one folder, and what they want in another."""
    place = tmp_path_factory.mktemp("wall")
    for name in ("work", "outside"):
        (place / name).mkdir()
    (place / "outside" / "secret").write_text(f"{SECRET}\n")
    return place


@pytest.fixture(scope="module")
def attempts(place):
    """The paths of graphs that write or read what is outside."""
    paths = []
    for way in attacks.WAYS:
        (place / "work" / way.__name__).mkdir()
        paths.append(way(place / "work" / way.__name__, place / "outside" / f"by_{way.__name__}"))
    for name, build in attacks.reading(place / "outside" / "secret").items():
        graph = graphs.graph_def(build)
        paths.append(graphs.write(place / "work" / f"{name}.pb", graph))
    return [str(path) for path in paths]


def ends(place, attempts, way):
    work = str(place / "work")
    done = run_python(place / "work", "-c", CONFINED, way, *attempts, TMPDIR=work, HOME=work)
    return dict(map(json.loads, done.stdout.splitlines())), done.stdout + done.stderr


def test_no_attack_reaches_anything_outside(place, attempts):
    ended, said = ends(place, attempts, "confined")
    assert [*ended] == attempts, said
    assert [end for end in ended.values() if end.startswith("traceback")] == []
    assert SECRET not in said
    assert [path.name for path in (place / "outside").iterdir()] == ["secret"]


def test_without_the_kernel_the_same_attacks_succeed(place, attempts):
    names = ("behind_an_initialiser", "behind_a_main_op", "in_functions", "text.pb", "dataset.pb")
    chosen = [path for path in attempts if any(f"/{name}" in path for name in names)]
    ended, _ = ends(place, chosen, "free")
    written = {path.name for path in (place / "outside").iterdir()} - {"secret"}
    assert {"by_behind_an_initialiser", "by_behind_a_main_op", "by_in_functions"} <= written
    read = {Path(path).name for path, end in ended.items() if SECRET in end}
    assert read == {"text.pb", "dataset.pb"}, ended


# The whole command, with a model in a folder of downloads

PROGRAM = """
import sys
from tflab.__main__ import main
from tflab.cli import confined
confined.IMPORT_S = int(sys.argv[1])  # of this process, which hands it on
sys.exit(main(["lifecycle", *sys.argv[2:]]))
"""


def run(folder, *arguments, import_s=120):
    done = run_python(folder, "-c", PROGRAM, str(import_s), "--steps", "2", *arguments)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_read_that_the_kernel_refuses_says_what_would_be_right(tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)
    text = lambda: tf.io.read_file(str(tmp_path / "secret.txt"), name="out")  # noqa: E731
    model = graphs.write(tmp_path / "s.pb", graphs.graph_def(text))
    status, said = run(tmp_path, "--model", model)
    assert (status, SECRET in said) == (1, False)
    assert (
        "Permission denied (in node 'out'). The graph runs confined; --trust runs it unconfined"
        in said
    )


def folder_model(tmp_path):
    return Path(graphs.saved_model_v1(tmp_path / "downloads" / "v1"))


def pipe(folder, outside):
    (folder / "assets").mkdir()
    os.mkfifo(folder / "assets" / "words")
    return folder, "it is a pipe, not a file"


def checkpoint_link(folder, outside):
    path = Path(graphs.meta_graph(folder / "meta"))
    (data,) = path.parent.glob("*.data-*")
    os.replace(data, outside)
    data.symlink_to(outside)
    return path, "is a link to another place, and tflab does not follow it"


@pytest.mark.parametrize("trap", [pipe, checkpoint_link], ids=lambda trap: trap.__name__)
def test_what_is_no_plain_file_of_the_model_is_refused_before_anything_is_opened(trap, tmp_path):
    """By the process that starts the confined one, and where the user trusts the graph."""
    outside = tmp_path / "outside"
    outside.write_text(SECRET)
    model, why = trap(folder_model(tmp_path), outside)
    status, said = run(tmp_path, "--model", str(model))
    assert (status, why in said, SECRET in said) == (2, True, False), said
    with pytest.raises(UsageError, match=re.escape(why)):
        models.find(str(model), Saved(trust=True))()


def function(name, *calls):
    """A function as text that hands its number on, through calls of these."""
    taken, nodes = "a", ""
    for place, callee in enumerate(calls):
        nodes += f"node_def {{ {call(callee, f'call{place}', taken)} }}"
        taken = f"call{place}:output:0"
    ends = 'input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT }'
    signature = f'signature {{ name: "{name}" {ends} }}'
    return f'function {{ {signature} {nodes} ret {{ key: "b" value: "{taken}" }} }}'


def call(callee, name, taken):
    types = "value { list { type: DT_FLOAT } }"
    return (
        f'name: "{name}" op: "PartitionedCall" input: "{taken}" '
        f'attr {{ key: "f" value {{ func {{ name: "{callee}" }} }} }} '
        f'attr {{ key: "Tin" {types} }} attr {{ key: "Tout" {types} }}'
    )


def calling(*functions):
    x = 'name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }'
    nodes = f"node {{ {x} }} node {{ {call('f0', 'call', 'x')} }}"
    library = f"library {{ {' '.join(functions)} }} versions {{ producer: 1882 }}"
    return text_format.Parse(f"{nodes} {library}", tf1.GraphDef())


def nested():
    """2^30 calls, of functions that each call the next twice."""
    functions = [function(f"f{n}", *2 * [f"f{n + 1}"]) for n in range(30)]
    return calling(*functions, function("f30"))


def endless():
    return calling(function("f0", "f1"), function("f1", "f0"))


def many():
    """150,000 functions in some 9 MB, which TensorFlow takes much more memory for."""
    graph = calling(function("f0"))
    for number in range(150_000):
        graph.library.function.add().signature.name = f"a_function_with_a_longer_name_{number}"
    return graph


@pytest.mark.parametrize("made", [nested, endless, many], ids=lambda made: made.__name__)
def test_a_graph_that_asks_for_too_much_is_shown_without_tensorflow(made, tmp_path):
    model = graphs.write(tmp_path / "g.pb", made())
    status, said = run(tmp_path, "--model", model, "--stage", "frontend", import_s=5)
    assert (status, "call" in said, "Traceback" in said) == (0, True, False), said


def test_a_variable_larger_than_the_memory_is_one_sentence(tmp_path):
    def huge():
        x = tf1.placeholder(tf.float32, [16, 10**9], name="x")
        tf.identity(x, name="out")

    model = graphs.write(tmp_path / "g.pb", graphs.graph_def(huge))
    status, said = run(tmp_path, "--model", model)
    assert (status, "'x' takes 59.6 GiB" in said) == (2, True), said
