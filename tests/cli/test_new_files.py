"""New files: whole or not there, and nobody else's is replaced."""

import os

import pytest

from tflab.cli import new_files
from tflab.errors import TflabError, UsageError


def test_a_file_is_written_into_a_folder_that_was_not_there(tmp_path):
    new_files.write(tmp_path / "new" / "a", b"mine", "picture")
    assert (tmp_path / "new" / "a").read_bytes() == b"mine"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "a.svg"
    path.write_text("somebody else's")
    with pytest.raises(UsageError) as error:
        new_files.write(path, b"mine", "picture")
    assert (
        str(error.value) == f"The picture '{path}' exists already; remove it or give another path."
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("a.svg", "somebody else's")
    ]


@pytest.mark.parametrize(("number", "kind"), [(28, TflabError), (5, UsageError)])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, number, kind):
    """A full disk is a failure of the run, any other place a wrong argument."""
    drafts = []

    def failing(draft, path):
        drafts.append((draft.name, draft.read_bytes(), path.name, path.read_bytes()))
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(TflabError, match=f"cannot be written: {os.strerror(number)}") as error:
        new_files.write(tmp_path / "a.svg", b"<svg />", "picture")
    assert type(error.value) is kind
    assert drafts == [(f".a.svg.{os.getpid()}", b"<svg />", "a.svg", b"")]
    assert list(tmp_path.iterdir()) == []


def test_a_check_leaves_nothing_behind(tmp_path):
    new_files.check(tmp_path / "new" / "a", "picture")
    assert list(tmp_path.iterdir()) == []


def test_a_check_says_before_anything_is_computed_what_a_write_would(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    for path, wrong in (("a", "exists already"), ("a/b", "cannot be written")):
        with pytest.raises(UsageError, match=wrong):
            (tmp_path / "file").write_text("")
            new_files.check(tmp_path / path.replace("a/", "file/"), "picture")
