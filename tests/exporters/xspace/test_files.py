"""Files: a new folder for each capture, whole or not at all."""

import os
from pathlib import Path

import pytest

from tests.exporters.xspace import xplane
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun

pytestmark = pytest.mark.tensorflow


def capture(name: str) -> Capture:
    return Capture(name, (), (OpRun(0, f"op of {name}", "Op", "CPU:0", 1_000, 1),))


def test_each_capture_is_a_file_in_a_folder_of_its_own(tmp_path):
    captures = [capture("lenet-batch-1"), capture("lenet-batch-16"), capture("..")]
    paths = xspace.write(tmp_path / "new", captures, host="here", modules={"cluster_0": b"\x01"})
    profiles = tmp_path / "new/plugins/profile"
    assert paths == [
        profiles / folder / "here.xplane.pb"
        for folder in ("lenet-batch-1", "lenet-batch-16", "profile")
    ]
    contents = [path.read_bytes() for path in paths]
    modules = {"cluster_0": b"\x01"}
    assert contents == [xspace.encode(one, host="here", modules=modules) for one in captures]


@pytest.mark.parametrize("host, file", [("my host", "my-host"), ("...", "localhost")])
def test_the_file_is_named_for_the_machine(tmp_path, monkeypatch, host, file):
    monkeypatch.setattr(xspace.socket, "gethostname", lambda: host)
    (path,) = xspace.write(str(tmp_path), [capture("toy")])
    assert path == tmp_path / "plugins/profile/toy" / f"{file}.xplane.pb"
    assert list(xplane.read(path.read_bytes()).hostnames) == [file]


def test_a_folder_or_file_that_exists_is_never_written_to(tmp_path):
    (tmp_path / "plugins/profile").mkdir(parents=True)
    (tmp_path / "plugins/profile/toy").write_text("kept")
    paths = [xspace.write(tmp_path, [capture("toy")])[0] for _ in range(2)]
    assert [path.parent.name for path in paths] == ["toy-2", "toy-3"]
    assert all(os.listdir(path.parent) == [path.name] for path in paths)
    assert (tmp_path / "plugins/profile/toy").read_text() == "kept"


@pytest.mark.parametrize(
    "name, safe",
    [
        ("my.models:build-batch-1", "my.models-build-batch-1"),
        ("../../x", "x"),
        ("a b/c", "a-b-c"),
        ("_größe-1.2_", "_größe-1.2_"),
        ("-.x.-", "x"),
        ("..", "other"),
        ("", "other"),
    ],
)
def test_a_name_never_becomes_a_path(name, safe):
    assert xspace.file_name(name, "other") == safe


def test_a_file_has_its_name_once_it_is_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "rename", lambda self, target: (self.name, target.name))
    written = xspace.write_file(tmp_path / "file.pb", b"abc")
    assert written == (".file.pb", "file.pb")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(xspace, "write_file", fail)
    with pytest.raises(error):
        xspace.write(tmp_path, [capture("toy")])
    assert os.listdir(tmp_path / "plugins/profile") == []
