"""Saved files: JSON that may come from strangers."""

import pytest

from tflab.cli import saved_files
from tflab.errors import UsageError


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "is not JSON; give one"),
        (b"{", "is not JSON; give one"),
        (b"\xff\xfe", "is not JSON; give one"),
        (b"[" * 100_000, "is not JSON; give one"),
        (b"[1]", "has no JSON object; give one"),
        (b"1" * 1_000, "it has 1000 B, but tflab reads at most 100 B"),
    ],
)
def test_what_is_no_object_is_a_sentence(tmp_path, monkeypatch, content, sentence):
    if content.startswith(b"1"):
        monkeypatch.setattr(saved_files, "LARGEST", 100)
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError) as error:
        saved_files.read_object(str(tmp_path / "x"), "give one")
    assert sentence in str(error.value)
