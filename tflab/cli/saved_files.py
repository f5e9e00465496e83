"""Saved files: the JSON that commands wrote and read again. It may come from strangers."""

from __future__ import annotations

import json
import os
from typing import Any

from tflab import untrusted
from tflab.errors import UsageError
from tflab.records import codec
from tflab.records.watched import Watched

LARGEST = 2**28  # bytes
# A watched program
RUN_KIND = "tflab run"
RUN_FORMAT = 4  # a file that older versions would misread gets the next number
RUN_NAME = "run.json"  # in a logdir
GIVE_RUN = "give a file that `python -m tflab.run --save FILE` wrote"


def read_object(path: str, give: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raise UsageError if there is none; it ends with `give`,
    which says what file to give."""
    try:
        content = json.loads(untrusted.content(path, LARGEST))
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'; {give}.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not JSON; {give}.") from error
    if not isinstance(content, dict):
        raise UsageError(f"'{path}' has no JSON object; {give}.")
    return content


def decode(kind: type, content: dict[str, Any], path: str) -> Any:
    """Return the record in a file's content. Raise UsageError if a value does not fit its field."""
    try:
        return codec.decoded(kind, content)
    except codec.WrongError as error:
        raise UsageError(f"'{path}' is not in the format that tflab writes: {error}.") from error


def run_text(seen: Watched) -> str:
    """Return the file of a watched program."""
    content = {"kind": RUN_KIND, "format": RUN_FORMAT, **codec.encoded(seen)}
    return json.dumps(content, indent=1, allow_nan=False)


def is_run(content: dict[str, Any]) -> bool:
    return content.get("kind") == RUN_KIND


def read_run(path: str) -> Watched:
    """Return the watched program in a file, or in the logdir of one.

    Raise UsageError for a file of another kind or a newer version, and for invalid content.
    """
    content = read_object(os.path.join(path, RUN_NAME) if os.path.isdir(path) else path, GIVE_RUN)
    if not is_run(content):
        raise UsageError(f"'{path}' is not a watched run; {GIVE_RUN}.")
    if content.get("format") != RUN_FORMAT:
        raise UsageError(
            f"'{path}' is of format {str(content.get('format'))[:20]}; this tflab reads format "
            f"{RUN_FORMAT}. Use the version that wrote it."
        )
    seen: Watched = decode(Watched, content, path)
    return seen
