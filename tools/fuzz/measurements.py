"""Fuzz target: a saved comparison, up to what is shown of it beside another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tools.fuzz import target

try:
    import atheris
except ImportError:  # seeds can be written without it
    from tflab.compare import saved
    from tflab.records import codec
else:
    with atheris.instrument_imports(include=["tflab"]):
        from tflab.compare import saved
        from tflab.records import codec

ROUNDS = {"step_ns": [900.0, 1_000.0, 1_100.0], "rows_ns": {"Conv2D": [500.0, 510.0, 490.0]}}
USUAL = {
    "model": "lenet",
    "phase": "inference",
    "by": "op",
    "rounds": {"4": ROUNDS, "16": ROUNDS},
    "environment": {"processor": "Some CPU", "packages": {"tensorflow": "2.21.0"}},
}


def seeds() -> Mapping[str, bytes]:
    return {"saved.json": json.dumps(USUAL).encode()}


def read(path: Path) -> None:
    content = codec.read_object(str(path), "give another")
    for block in saved.blocks(saved.compare("usual", "other", USUAL, content)):
        if hasattr(block, "cells"):
            list(block.cells())


if __name__ == "__main__":
    target.run(seeds, read)
