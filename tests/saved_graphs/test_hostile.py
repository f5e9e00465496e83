"""Small files that ask for a lot: each is shown with little memory and time, or is one error."""

import json
import re
import subprocess
import sys
import zipfile

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework.graph_pb2 import GraphDef

from tests import needs
from tests.saved_graphs import test_recursion as recursion

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, needs.LANDLOCK]

MOST_BYTES = 2 * 2**30  # of the largest process; TensorFlow itself takes 0.6 GB
WIDE = 41_000  # 6.7 GB of weights between two layers
# Seconds: what ends takes some on a busy machine, and the rest need not be waited for
IMPORT_S, ENDLESS_S = 60, 1


def node(name, op, *inputs, **attributes):
    """A node as text; types and shapes are attributes in the words of the proto."""
    taken = " ".join(f'input: "{source}"' for source in inputs)
    given = " ".join(f'attr {{key: "{key}" value {{{v}}}}}' for key, v in attributes.items())
    return f'node {{name: "{name}" op: "{op}" {taken} {given}}}'


def constant(name, dtype, *values):
    """A vector of a few numbers."""
    kind = {"DT_FLOAT": "float_val", "DT_INT32": "int_val"}[dtype]
    held = " ".join(f"{kind}: {value}" for value in values)
    tensor = f"tensor {{dtype: {dtype} tensor_shape {{dim {{size: {len(values)}}}}} {held}}}"
    return node(name, "Const", dtype=f"type: {dtype}", value=tensor)


def sizes(*dims):
    return f"shape {{{' '.join(f'dim {{size: {dim}}}' for dim in dims)}}}"


def variable(size):
    dtype = "type: DT_FLOAT"
    made = node("v", "VarHandleOp", dtype=dtype, shape=sizes(size))
    return [made, node("out", "ReadVariableOp", "v", dtype=dtype)]


def folded(size):
    """A shape that follows from a large constant, which TensorFlow evaluates at the import."""
    floats, whole = "type: DT_FLOAT", "type: DT_INT32"
    scalar = "tensor {dtype: DT_FLOAT tensor_shape {} float_val: 1}"
    large = node("a", "Fill", "size", "one", T=floats, index_type=whole)
    return [
        constant("size", "DT_INT32", size),
        node("one", "Const", dtype=floats, value=scalar),
        large,
        constant("axes", "DT_INT32", 0),
        node("sum", "Sum", "a", "axes", T=floats, Tidx=whole),
        node("whole", "Cast", "sum", SrcT=floats, DstT=whole),
        node("shape", "Pack", "whole", N="i: 1", T=whole, axis="i: 0"),
        node("out", "Fill", "shape", "one", T=floats, index_type=whole),
    ]


def nested():
    """2^30 calls, of functions that each call the next twice."""
    functions = [recursion.function(f"f{n}", *2 * [f"f{n + 1}"]) for n in range(30)]
    return recursion.graph("f0", *functions, recursion.function("f30"))


LATE = "The graph 'g.pb' cannot be imported: TensorFlow "  # needs too long, or too much memory
GRAPHS = {  # what it is -> its nodes, the last one's name, why it is only parsed
    "a variable of 64 GB": (variable(16 * 10**9), "out", ""),
    "a constant of 6.6 GB": (folded(1_650_000_000), "out", LATE),
    "nested calls": (nested(), "call", LATE),
}


# A process counts the memory of the one that it was started from, so a small one starts it.
MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
with open("used", "w") as used:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=used)
sys.exit(status)
"""


def shown(folder, name, seconds=IMPORT_S):
    """(exit status, standard output, standard error, bytes of the largest process) of the frontend
    of a file."""
    command = [sys.executable, "-m", "tflab", "lifecycle", "--model", name, "--stage", "frontend"]
    command += ["--format", "json", "--import-seconds", str(seconds)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, int((folder / "used").read_text())


@pytest.mark.parametrize("what", GRAPHS)
def test_a_graph_that_asks_for_a_lot_is_shown_in_little_memory(what, tmp_path):
    graph, last, said = GRAPHS[what]
    if isinstance(graph, list):
        graph = text_format.Parse(" ".join(graph), GraphDef())
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    status, out, err, used = shown(tmp_path, "g.pb", ENDLESS_S if said else IMPORT_S)
    assert (status, used < MOST_BYTES) == (0, True), (err, used)
    (stage,) = json.loads(out)["stages"]
    assert last in {node["name"] for node in stage["nodes"]}
    assert (stage["blocked"] or "")[: len(LATE)] == said


def widened(config):
    """The configuration of a model of dense layers, each with WIDE units, and without
    contradiction."""
    first, *others = (one for one in config["config"]["layers"] if one["class_name"] == "Dense")
    for layer in (first, *others):
        layer["config"]["units"] = WIDE
    for layer in others:
        layer["build_config"]["input_shape"] = [None, WIDE]
    return json.dumps(config)


def test_a_keras_file_that_builds_large_weights_is_one_error(tmp_path):
    layers = [tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)]
    tf.keras.Sequential([tf.keras.Input([4]), *layers]).save(tmp_path / "small.keras")
    with (
        zipfile.ZipFile(tmp_path / "small.keras") as small,
        zipfile.ZipFile(tmp_path / "large.keras", "w") as large,
    ):
        for name in small.namelist():
            content = small.read(name)
            if name == "config.json":
                content = widened(json.loads(content))
            large.writestr(name, content)
    status, out, err, used = shown(tmp_path, "large.keras", 60)
    assert (status, out, used < MOST_BYTES) == (1, "", True), (err, used)
    *waited, said = err.splitlines()
    assert said == (
        "tflab: Keras cannot load 'large.keras': OOM when allocating tensor with "
        f"shape[{WIDE},{WIDE}] and type float."
    )
    assert all(re.fullmatch(r"tflab: (large.keras|frontend): \d+ s", line) for line in waited)
