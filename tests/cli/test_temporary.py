"""Temporary folders: removed with their process, and one sentence if there is no place for them."""

import os
from pathlib import Path

import pytest

from tests.commands import run_python
from tflab.cli import temporary
from tflab.errors import TflabError


def test_a_folder_is_removed_with_its_context_and_that_of_the_process_at_its_end(tmp_path):
    program = (
        "from tflab.cli import temporary\n"
        "with temporary.folder('work') as folder:\n"
        "    print(folder.parent == temporary.process_folder(), folder.is_dir())\n"
        "print(folder.exists(), folder.parent.exists())"
    )
    done = run_python(Path.cwd(), "-c", program, TMPDIR=str(tmp_path))
    assert done.stdout == "True True\nFalse True\n"
    assert not any(tmp_path.iterdir())


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    for name in ("tflab-process-left", "tflab-process-locked", "tflab-process-new", "tflab-notes"):
        (tmp_path / name / "content").mkdir(parents=True)
        if "new" not in name:
            os.utime(tmp_path / name, (1, 1))
    (tmp_path / "tflab-process-link").symlink_to(tmp_path / "tflab-notes")
    os.utime(tmp_path / "tflab-process-link", (1, 1), follow_symlinks=False)
    os.mkfifo(tmp_path / "tflab-process-pipe")  # anybody may make one in a shared folder
    os.utime(tmp_path / "tflab-process-pipe", (1, 1))
    before = {path.name for path in tmp_path.iterdir()}
    lock = temporary.lock(tmp_path / "tflab-process-locked")
    temporary.remove_left_behind(tmp_path)
    os.close(lock)
    assert before - {path.name for path in tmp_path.iterdir()} == {"tflab-process-left"}
    assert (tmp_path / "tflab-notes" / "content").exists()


def test_without_a_place_there_is_a_sentence_and_a_file_that_keeps_nothing(monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(temporary.tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(temporary.tempfile, "TemporaryFile", refuse)
    with pytest.raises(TflabError, match=r"^No temporary folder can be written: No usable"):
        temporary.process_folder.__wrapped__()
    with temporary.file() as file:
        file.write(b"gone")
        file.seek(0)
        assert file.read() == b""
