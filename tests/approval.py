"""Approval: outputs in files, which a reviewer reads. `make approve` writes them again."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tflab.errors import TflabError

FOLDER = Path(__file__).parent / "approved"


def approve(name: str, content: str) -> None:
    """Compare an output with its approved file, or replace the file if APPROVE is set."""
    path = FOLDER / name
    content = "".join(f"{line.rstrip()}\n" for line in content.splitlines())
    if os.environ.get("APPROVE"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert content == path.read_text(encoding="utf-8")


def refused(call: Callable[..., Any], *given: Any) -> str:
    """Return the kind of the error that a call ends with, and its sentence."""
    with pytest.raises(TflabError) as error:
        call(*given)
    assert "\n" not in str(error.value)
    return f"{type(error.value).__name__}: {error.value}"
