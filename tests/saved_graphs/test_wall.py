"""The wall: with the gate open, the kernel keeps a graph from all that it was not given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs, needs
from tests.saved_graphs import test_permissions as attacks

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, needs.LANDLOCK]

# What it prints of each graph: how it ended, and the values of its step
CONFINED = """
import json, os, sys
from tflab.runtime import dumps, quiet_import
dumps.prepare()  # else each placement would need another process
quiet_import.load()
from tests.fuzz import watched
if sys.argv[1] == "confined":
    watched.confine(os.environ["TMPDIR"])
import tensorflow as tf
from tflab import lifecycle
from tflab.errors import TflabError
from tflab.lifecycle import placement
from tflab.records import Options, Saved
placement.SMALL = 0  # the code of small graphs, which XLA makes in another process, is not wanted
options = Options(steps=2, saved=Saved(side_effects=True))
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


def reading(secret):
    """Ways to read a file: each leads to its content or to a number made of it."""
    text = lambda: tf.strings.to_number(tf.io.read_file(str(secret)), name="out")  # noqa: E731

    def table():
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                *(str(secret), tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
                *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
            ),
            "",
        )
        tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, table._init_op)
        tf.strings.to_number(table.lookup(tf.constant(0, tf.int64)), name="out")

    def dataset():
        lines = tf1.data.TextLineDataset(str(secret)).repeat()
        line = tf1.data.make_one_shot_iterator(lines).get_next()
        tf.strings.to_number(line, name="out")

    def matching():
        tf.size(tf.io.matching_files(str(secret) + "*"), name="out")

    shape = lambda: attacks.shape_from_a_file(secret)  # noqa: E731
    return {"text": text, "dataset": dataset, "matching": matching, "shape": shape}


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
    for name, build in reading(place / "outside" / "secret").items():
        graph = graphs.graph_def(build)
        paths.append(graphs.write(place / "work" / f"{name}.pb", graph))
    return [str(path) for path in paths]


def ends(place, attempts, way):
    (place / "work" / "temporary").mkdir(exist_ok=True)
    own = {"TMPDIR": str(place / "work"), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, way, *attempts],
        cwd=place / "work",
        env={**os.environ, **own},
        capture_output=True,
        text=True,
    )
    return dict(map(json.loads, done.stdout.splitlines())), done.stdout + done.stderr


def test_no_attack_reaches_anything_outside(place, attempts):
    ended, said = ends(place, attempts, "confined")
    assert [*ended] == attempts
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
