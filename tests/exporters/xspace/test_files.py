"""Files: a new folder for each capture, whole or not at all."""

import os

import pytest

from tests.exporters.xspace import xplane
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun

pytestmark = pytest.mark.tensorflow


def capture(name: str) -> Capture:
    return Capture(name, (), (OpRun(0, f"op of {name}", "Op", "CPU:0", 1_000, 1),))


def test_each_capture_is_a_file_in_a_folder_of_its_own_and_none_is_written_to_again(tmp_path):
    profiles = tmp_path / "new/plugins/profile"
    profiles.mkdir(parents=True)
    (profiles / "toy").write_text("kept")
    captures = [capture("toy"), capture("lenet-batch-16"), capture(".."), capture("toy")]
    modules = {"cluster_0": b"\x01"}
    paths = xspace.write(tmp_path / "new", captures, host="here", modules=modules)
    assert paths == [
        profiles / folder / "here.xplane.pb"
        for folder in ("toy-2", "lenet-batch-16", "profile", "toy-3")
    ]
    contents = [path.read_bytes() for path in paths]
    assert contents == [xspace.encode(one, host="here", modules=modules) for one in captures]
    assert (profiles / "toy").read_text() == "kept"


@pytest.mark.parametrize("host, file", [("my host", "my-host"), ("...", "localhost")])
def test_the_file_is_named_for_the_machine(tmp_path, monkeypatch, host, file):
    monkeypatch.setattr(xspace.socket, "gethostname", lambda: host)
    (path,) = xspace.write(str(tmp_path), [capture("toy")])
    assert path == tmp_path / "plugins/profile/toy" / f"{file}.xplane.pb"
    assert list(xplane.read(path.read_bytes()).hostnames) == [file]


def test_a_name_never_becomes_a_path():
    names = {
        "my.models:build-batch-1": "my.models-build-batch-1",
        "../../x": "x",
        "a b/c": "a-b-c",
        "_größe-1.2_": "_größe-1.2_",
        "..": "other",
        "": "other",
    }
    assert {name: xspace.file_name(name, "other") for name in names} == names


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(xspace, "encode", fail)
    with pytest.raises(error):
        xspace.write(tmp_path, [capture("toy")])
    assert os.listdir(tmp_path / "plugins/profile") == []
