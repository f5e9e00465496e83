"""What the targets share: seeds are written, or inputs are tried until the time is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tflab.errors import TflabError


def run(seeds: Callable[[], Mapping[str, bytes]], read: Callable[[Path], object]) -> None:
    """`--seeds FOLDER` writes the seeds; anything else is for libFuzzer, which tries inputs."""
    if sys.argv[1] == "--seeds":
        for name, content in seeds().items():
            Path(sys.argv[2], name).write_bytes(content)
        return
    import atheris

    with TemporaryDirectory(prefix="tflab-fuzz-") as folder:
        path = Path(folder, "input")

        def try_one(content: bytes) -> None:
            path.write_bytes(content)
            try:
                read(path)
            except TflabError as error:
                assert "\n" not in str(error), "an error is one sentence"
            assert [one.name for one in Path(folder).iterdir()] == ["input"], "nothing is written"

        atheris.Setup(sys.argv, try_one)
        atheris.Fuzz()
