"""Run files: the record of a watched program, as a file that other commands read."""

from __future__ import annotations

import json
import os
from typing import Any

from tflab.errors import UsageError
from tflab.measurements.decoding import WrongError, decoded, encoded
from tflab.measurements.files import json_of
from tflab.records.watched import Watched

KIND = "tflab run"
FORMAT = 1  # a file that older versions would misread gets the next number
NAME = "run.json"  # in a logdir
GIVE = "give a file that `python -m tflab.run --save FILE` wrote"


def text(seen: Watched) -> str:
    content = {"kind": KIND, "format": FORMAT, **encoded(seen)}
    return json.dumps(content, indent=1, allow_nan=False)


def read(path: str) -> Watched:
    """The run in a file, or in the logdir of one. Raises UsageError for a file of another kind or a
    newer version, and for one with invalid content."""
    content = read_content(os.path.join(path, NAME) if os.path.isdir(path) else path)
    if content is None:
        raise UsageError(f"'{path}' is not a watched run; {GIVE}.")
    if content.get("format") != FORMAT:
        raise UsageError(
            f"'{path}' is of format {str(content.get('format'))[:20]}; this tflab reads format "
            f"{FORMAT}. Use the version that wrote it."
        )
    try:
        watched: Watched = decoded(Watched, content)
    except WrongError as error:
        raise UsageError(f"'{path}' is not in the format that tflab writes: {error}.") from error
    return watched


def read_content(path: str) -> dict[str, Any] | None:
    """The content of a file, if it says that it is a watched run."""
    try:
        content = json.loads(json_of(path))
    except (UsageError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("kind") == KIND else None
