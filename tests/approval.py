"""Approval: outputs in files, which a reviewer reads. `make approve` writes them again."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"


def approve(name: str, content: str) -> None:
    """Compare an output with its approved file, or replace the file if APPROVE is set."""
    path = FOLDER / name
    content = "".join(f"{line.rstrip()}\n" for line in content.splitlines())
    if os.environ.get("APPROVE"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert content == path.read_text(encoding="utf-8")
