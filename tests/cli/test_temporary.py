"""Temporary folders: removed with their process, and one sentence if there is no place for them."""

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
