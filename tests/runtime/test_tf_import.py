"""Quiet: what TensorFlow says when it is imported is left out, unless it is an error."""

import pytest

from tests import needs
from tests.commands import run_python
from tflab.runtime import tf_import

log_has_a_level = needs.since(2, 21, "the level of the log counts for all notes of a step")
NOTE = "I0000 00:00:17.5 1 cpu_feature_guard.cc:227] This binary is optimized.\n"
NOTE += "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow\n"
BEFORE = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
CUDA = "E0000 00:00:17.5 1 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)\n"
ERROR = "E0000 00:00:17.5 1 other.cc:1] the library is broken\n"
SAID = BEFORE + NOTE + CUDA + ERROR + "no log line\n"


FACTORY = "Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT\n"
OLDER = (  # what TensorFlow 2.18 says at every import
    f"2026-01-02 03:04:05.678901: E external/xla/cuda_fft.cc:477] {FACTORY}"
    f"E0000 00:00:17.5 1 cuda_dnn.cc:8310] {FACTORY}"
    "2026-01-02 03:04:05.678901: I tensorflow/core/util/port.cc:153] oneDNN is on.\n"
)


def test_notes_are_left_out_and_errors_are_not_and_without_notes_all_is_shown():
    """A machine with a GPU hears that it cannot be used."""
    left = f"{ERROR}no log line\n"
    assert tf_import.without(tf_import.NOTES + tf_import.NO_GPU, SAID + OLDER) == left
    assert tf_import.without(tf_import.NOTES, SAID + OLDER) == CUDA + left
    assert tf_import.without("", SAID) == SAID


WALK = """
import sys
from tflab import lifecycle, models
from tflab.datasets import mnist
list(lifecycle.walk("toy", stop="placement"))
assert [*map(models.find, models.MODELS)] and mnist.stand_in("test")
assert not {"keras", "sklearn"} & {name.partition(".")[0] for name in sys.modules}
(stage,) = lifecycle.walk("of_keras:build", stop="frontend")
assert "keras.src" in sys.modules
assert {node.source.line for node in stage.nodes if node.source} == {6, 7, 9}, stage.nodes
"""
OF_KERAS = """import tensorflow as tf

def build():
    model = tf.keras.Sequential([
        tf.keras.Input([4]),
        tf.keras.layers.Dense(3, activation="relu"),
        tf.keras.layers.Dense(2),
    ])
    model.compile("adam", "mse")
    return model
"""


@log_has_a_level
@pytest.mark.tensorflow
def test_the_first_walk_from_python_prints_nothing_and_leaves_keras_to_its_first_use(tmp_path):
    """The lines of layers are known also where the model imports Keras."""
    (tmp_path / "of_keras.py").write_text(OF_KERAS)  # beside which Python begins
    done = run_python(tmp_path, "-c", WALK, log="")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_import_that_fails_shows_what_was_said(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        f"import os\nos.write(2, {NOTE!r}.encode())\nraise ImportError('no such symbol')\n"
    )
    load = "from tflab.runtime import tf_import; tf_import.load()"
    done = run_python(tmp_path, "-c", load, log="")
    assert done.returncode == 1
    assert done.stderr.startswith(NOTE) and done.stderr.endswith("ImportError: no such symbol\n")
