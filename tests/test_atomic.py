"""Atomic folders: one owner each, and what a killed process left does not stay."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tflab import atomic

HELD = """
import sys
from pathlib import Path
from tflab import atomic
print(atomic.process_folder(), flush=True)
with atomic.new_folder_beside(Path(sys.argv[1])) as work:
    print(work, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    """Another process with a temporary folder, and with the claim of `result`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", HELD, str(tmp_path / "result")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        temporary, work = (Path(process.stdout.readline().strip()) for _ in range(2))
        yield process, temporary, work
        process.kill()


def test_no_two_processes_make_the_same(holder, tmp_path):
    _, temporary, work = holder
    with pytest.raises(atomic.TakenError), atomic.new_folder_beside(tmp_path / "result"):
        pytest.fail("claimed twice")
    atomic.remove_dead(atomic.temporary_in(tmp_path))
    assert work.is_dir() and temporary.is_dir()


def test_what_a_killed_process_had_is_taken_over_and_removed(holder, tmp_path):
    process, temporary, work = holder
    (work / "half").touch()
    (temporary / "dump").touch()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert work.is_dir() and temporary.is_dir()
    with atomic.new_folder_beside(tmp_path / "result") as again:
        assert again == work and not any(again.iterdir())
    atomic.remove_dead(atomic.temporary_in(tmp_path))
    assert not any(tmp_path.iterdir())


def test_a_process_that_ends_takes_its_folders_with_it(holder, tmp_path):
    process, *_ = holder
    process.communicate()
    assert process.returncode == 0
    assert not any(tmp_path.iterdir())


def test_a_folder_of_somebody_with_a_similar_name_is_not_temporary(tmp_path):
    for name in ("tflab-1234-notebook", "tflab-report.tmp", "tflab-1-abcdefgh.tmp.old", "tflab"):
        (tmp_path / name).mkdir()
    assert not [*atomic.temporary_in(tmp_path)]
    (tmp_path / "tflab-1-abcdefgh.tmp").mkdir()
    assert [path.name for path in atomic.temporary_in(tmp_path)] == ["tflab-1-abcdefgh.tmp"]


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    link = tmp_path / "tflab-1-abcdefgh.tmp"
    link.symlink_to(tmp_path / "precious")
    atomic.remove_dead([link])
    assert (tmp_path / "precious").is_dir() and link.is_symlink()


def test_what_another_user_has_is_not_removed(tmp_path, monkeypatch):
    (tmp_path / "left").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    atomic.remove_dead([tmp_path / "left"])
    assert (tmp_path / "left").is_dir()


def test_where_there_are_no_locks_nothing_is_taken_for_left(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(atomic.fcntl, "flock", refuse)
    (tmp_path / ".result.tflab-unfinished").mkdir()
    with pytest.raises(atomic.TakenError), atomic.new_folder_beside(tmp_path / "result"):
        pytest.fail("claimed")
    with atomic.new_folder_beside(tmp_path / "other") as work:
        work.rename(tmp_path / "other")
    assert (tmp_path / "other").is_dir()


def test_where_folders_have_no_locks_results_are_made_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "DIRECTORY", None)
    with atomic.new_folder_beside(tmp_path / "result") as work:
        (work / "file").touch()
        work.rename(tmp_path / "result")
    with atomic.new_folder_beside(tmp_path / "other"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
