"""Graph files: recognised by content; everything else is refused in one sentence."""

import io
import os
import zipfile

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import graphs
from tflab.errors import TflabError, UsageError
from tflab.runtime import refusals
from tflab.saved_graphs import graph_files, keras_archives

pytestmark = pytest.mark.tensorflow


def test_each_kind_is_recognised_by_its_content(tmp_path):
    graph = graphs.graph_def(graphs.dense)
    path_of_kind = {
        "GraphDef": graphs.write(tmp_path / "saved_model.txt", graph),
        "SavedModel": graphs.saved_model_v2(tmp_path / "graph.pb"),
        "MetaGraphDef": graphs.meta_graph(tmp_path / "meta.pbtxt"),
    }
    for kind, path in path_of_kind.items():
        assert graph_files.read(tmp_path / path).kind == kind


def test_a_saved_model_knows_its_variables(tmp_path):
    folder = tmp_path / "v2"
    graphs.saved_model_v2(folder)
    assert graph_files.read(folder).checkpoint == str(folder / "variables" / "variables")
    assert graph_files.read(folder / "saved_model.pb").tags == ("serve",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "is not a graph, or is damaged"),
        (b"# Read me\n\nThis is no graph.\n", "is not a graph, or is damaged"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "save it as .keras"),
        (b"PK\x03\x04 and no more", "damaged zip archive"),
        (
            b'step_stats { dev_stats { device: "CPU:0" node_stats { node_name: "x" } } }',
            "is not a graph but the trace of a step. Try: python -m tflab.convert .*graph.pb$",
        ),
        (b"\x0a\xff\xff\xff\xff\x07", "is not a graph, or is damaged"),  # claims 2 GiB
    ],
)
def test_what_is_no_graph_is_refused(content, message, tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        graph_files.read(path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.keras", "w") as archive:
        archive.writestr("../../readme", "hello")
    with pytest.raises(UsageError, match="not a Keras model"):
        graph_files.read(tmp_path / "a.keras")
    assert [path.name for path in tmp_path.iterdir()] == ["a.keras"]


def test_an_archive_that_unpacks_to_far_more_than_it_has_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(65 * 2**20))
    with pytest.raises(
        UsageError, match=r"unpacks from 6\d\.\d KiB to 65.0 MiB, so Keras did not write it"
    ):
        graph_files.read(tmp_path / "a.keras")


def keras_archive(path, fill):
    """An archive as Keras makes it, with weights that `fill` declares."""
    weights = path.with_suffix(".h5")
    with h5py.File(weights, "w") as file:
        fill(file)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
        archive.write(weights, "model.weights.h5")
    weights.unlink()
    return path


def test_weights_that_declare_more_than_there_is_memory_for_are_not_read(tmp_path, monkeypatch):
    def fill(file):
        file.create_dataset("layers/dense/vars/0", (2**20, 2**18), "f4", compression="gzip")
        file["layers/dense/vars/1"] = np.zeros(2**10, np.float32)

    path = keras_archive(tmp_path / "a.keras", fill)
    assert path.stat().st_size < 2**15
    monkeypatch.setattr(keras_archives, "free_memory", lambda: 2**30)
    with pytest.raises(UsageError) as error:
        graph_files.read(path)
    assert str(error.value) == (
        f"'{path}' declares 1024 GiB of weights ('layers/dense/vars/0' has 1024 GiB), but 1.00 "
        "GiB of memory is free. Load it on a machine with more memory."
    )


def test_weights_that_fit_to_the_last_byte_are_for_keras(tmp_path, monkeypatch):
    path = keras_archive(tmp_path / "a.keras", lambda file: file.create_dataset("w", (256,), "f4"))
    monkeypatch.setattr(keras_archives, "free_memory", lambda: 1023)
    with pytest.raises(UsageError, match=r"declares 1.00 KiB of weights .* but 1023 B of memory"):
        keras_archives.check(path)
    monkeypatch.setattr(keras_archives, "free_memory", lambda: 1024)
    keras_archives.check(path)
    monkeypatch.setattr(keras_archives, "free_memory", lambda: None)
    keras_archives.check(path)


def beside(file):
    file["w"] = h5py.ExternalLink("/etc/other.h5", "w")


def outside(file):
    file.create_dataset("w", (4,), "u1", external=[("/etc/hostname", 0, 4)])


def virtual(file):
    layout = h5py.VirtualLayout((4,), "u1")
    layout[:] = h5py.VirtualSource("/etc/other.h5", "w", (4,))
    file.create_virtual_dataset("w", layout)


@pytest.mark.parametrize("fill", [beside, outside, virtual], ids=lambda fill: fill.__name__)
def test_weights_that_would_be_read_from_other_files_are_refused(fill, tmp_path):
    path = keras_archive(tmp_path / "a.keras", fill)
    with pytest.raises(UsageError, match=f"'{path}' takes weights from other files: '[w/]' points"):
        graph_files.read(path)


def test_weights_that_are_no_hdf5_and_plain_ones_that_unpack_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "a.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", "no weights")
    with pytest.raises(UsageError, match=r"is damaged: its model\.weights\.h5 cannot be read: "):
        graph_files.read(path)
    inner = io.BytesIO()
    np.savez_compressed(inner, w=np.zeros(2**20, np.float32))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.npz", inner.getvalue())
    monkeypatch.setattr(keras_archives, "free_memory", lambda: 2**20)
    with pytest.raises(UsageError, match=r"declares 4.00 MiB of weights \('w.npy' has 4.00 MiB\)"):
        graph_files.read(path)


def test_a_pipe_a_device_and_a_file_that_is_too_large_are_said_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.pb")
    (tmp_path / "device.pb").symlink_to("/dev/zero")
    with (tmp_path / "large.pb").open("wb") as file:
        file.truncate(1 << 40)
    for name, what in {
        "pipe.pb": "it is a pipe, not a file",
        "device.pb": "it is a device, not a file",
        "large.pb": "it has 1024 GiB, but tflab reads at most 2.00 GiB",
    }.items():
        with pytest.raises(TflabError) as error:
            graph_files.read(tmp_path / name)
        assert str(error.value) == f"The graph '{tmp_path / name}' cannot be read: {what}."


def test_a_folder_says_what_is_in_it_instead(tmp_path):
    (tmp_path / "model.index").touch()
    with pytest.raises(UsageError, match=r"has no saved_model.pb, but model.index"):
        graph_files.read(tmp_path)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    graph = graphs.graph_def(graphs.dense)
    graphs.saved_model_v2(folder / "v2")
    return [
        graph.SerializeToString(),
        str(graph).encode(),
        (folder / "v2" / "saved_model.pb").read_bytes(),
    ]


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_gives_a_graph_or_one_sentence(contents, tmp_path, data):
    content = bytearray(data.draw(st.sampled_from(contents)))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "graph"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        assert graph_files.read(path).graph_def.node
    except TflabError as error:
        assert str(path) in str(error)


def test_of_what_keras_says_the_cause_is_kept():
    error = TypeError(
        "<class 'Odd'> could not be deserialized properly.\n\nconfig={'a': 1}.\n\n"
        "Exception encountered: Unable to revive model from config (it was\nmade elsewhere)"
    )
    assert graph_files.told_by_keras(error) == (
        "<class 'Odd'> could not be deserialized properly. Unable to revive model from config."
    )
    error = ValueError(
        "{{function_node __wrapped__X_device_/job:a/device:CPU:0}} OOM when allocating tensor with "
        "shape[4,9] and type float on /job:a/device:CPU:0 by allocator mklcpu [Op:X] name: "
    )
    assert (
        graph_files.told_by_keras(error)
        == "OOM when allocating tensor with shape[4,9] and type float."
    )
    assert graph_files.told_by_keras(ValueError()) == "ValueError."
    error = ValueError(
        "A total of 2 objects could not be loaded. Example error message for object <Dense>:\n\n"
        "The shapes must match. Target variable: <Variable shape=(4, 41), value=[[1.\n 2.]]>\n"
    )
    assert graph_files.told_by_keras(error) == (
        "A total of 2 objects could not be loaded. Example error message for object <Dense>: The "
        "shapes must match."
    )


def test_a_message_is_not_cut_within_a_bracket():
    cut = refusals.without_open_bracket
    assert cut("indices[0] = 5 is not in [0, 3)") == "indices[0] = 5 is not in [0, 3)"
    assert cut("shapes differ (as in (a), but") == "shapes differ"
    assert cut("(from here") == "(from here"
