"""Fuzz target: a kept measurement, up to what is shown of it alone and beside another.

What is damaged is the JSON within the file: with its checksum, gzip would refuse all else.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import target
from tests.measurements_by_hand import measurement

try:
    import atheris
except ImportError:  # seeds can be written without it
    from tflab.compare import view as compared
    from tflab.measurements import contrast, files, view
else:
    with atheris.instrument_imports(include=["tflab"]):
        from tflab.compare import view as compared
        from tflab.measurements import contrast, files, view

USUAL = measurement()


def seeds() -> Mapping[str, bytes]:
    return {
        "five.json": gzip.decompress(files.packed(USUAL)),
        "one.json": gzip.decompress(files.packed(measurement((100.0,)))),
    }


def sealed(text: bytes) -> bytes:
    """The same with a checksum that is right, where it is an object."""
    try:
        content = json.loads(text)
        return json.dumps({**content, "checksum": files.checksum(content)}).encode()
    except (ValueError, TypeError, RecursionError):
        return text


def read(path: Path) -> None:
    with TemporaryDirectory(prefix="tflab-fuzz-") as folder:
        packed = Path(folder, "kept.json.gz")
        packed.write_bytes(gzip.compress(sealed(path.read_bytes()), 1))
        kept = files.read(str(packed))
    blocks = [*compared.blocks(kept.comparison)]
    blocks += view.blocks(contrast.contrast({"usual": USUAL, "kept": kept}, other_graph=True))
    for block in blocks:
        if hasattr(block, "cells"):
            list(block.cells())


if __name__ == "__main__":
    target.run(seeds, read)
