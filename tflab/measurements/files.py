"""Files of measurements: written whole, and read again, also those of strangers. No
TensorFlow in here.

A file is JSON, compressed by gzip: what it is, the version of its format, and a `Measurement` with
all fields of its records. docs/comparing.md describes it for other programs.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tflab
from tflab import doors
from tflab.analysis.row_labels import KEYS
from tflab.cli import new_files
from tflab.errors import TflabError, UsageError
from tflab.measurements.decoding import WrongError, decoded, encoded
from tflab.records import Comparison, Measurement, Observed

KIND = "tflab measurement"
FORMAT = 1  # a file that older versions would misread gets the next number
WHAT = "measurement"  # what errors call it
GIVE = "give a file that `python -m tflab.compare --save FILE` wrote"
MOST_BYTES = 2**25  # of a file
MOST_TEXT = 2**28  # of what it unpacks to: a small file may hold a great deal of nothing
WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def write(path: Path, measurement: Measurement) -> None:
    """Raises UsageError where there is such a file, or none can be written."""
    new_files.write(path, packed(measurement), WHAT)


def packed(measurement: Measurement) -> bytes:
    content = {"kind": KIND, "format": FORMAT, **encoded(measurement)}
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)  # the same content, the same bytes


def read(path: str) -> Measurement:
    """Raises UsageError for what is no such file or of a newer version, TflabError for a damaged
    one."""
    content = parsed(path, unpacked(path))
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise UsageError(f"'{path}' is no measurement; {GIVE}.")
    version = content.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise damaged(path, "the version of its format is no number from 1 on")
    if version > FORMAT:
        by = content.get("tflab")
        named = f" {by}" if isinstance(by, str) and len(by) < 20 else ""
        raise UsageError(
            f"'{path}' was written by a newer tflab{named}, in format {version}; this one is "
            f"{tflab.__version__} and reads formats up to {FORMAT}. Install the newer one, or "
            "measure again."
        )
    try:
        measurement: Measurement = decoded(Measurement, content)
        check(measurement)
    except WrongError as error:
        raise damaged(path, str(error)) from error
    return measurement


def unpacked(path: str) -> bytes:
    try:
        with doors.opened(path) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UsageError(
                f"'{path}' has more than {MOST_BYTES >> 20} MB, and is no measurement; {GIVE}."
            )
        if content[:2] != b"\x1f\x8b":
            raise UsageError(f"'{path}' is {'no measurement' if content else 'empty'}; {GIVE}.")
        unzip = zlib.decompressobj(wbits=31)  # a single member, with its checksum
        text = unzip.decompress(content, MOST_TEXT + 1)
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except zlib.error as error:
        raise damaged(path, "its compressed content cannot be unpacked") from error
    if len(text) > MOST_TEXT:
        raise UsageError(
            f"'{path}' unpacks to more than {MOST_TEXT >> 20} MB, and is no measurement; {GIVE}."
        )
    if not unzip.eof:
        raise TflabError(f"'{path}' is cut short: it ends in the middle; copy it again.")
    return text


def parsed(path: str, text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is no measurement, for it holds no JSON; {GIVE}.") from error


def damaged(path: str, wrong: str) -> TflabError:
    return TflabError(f"'{path}' is not as tflab writes it: {wrong}. Measure again, or copy it.")


# What no type says


def check(measurement: Measurement) -> None:
    """Raise WrongError where the parts do not belong together."""
    for wrong in (*of_comparison(measurement.comparison), *of_processes(measurement)):
        raise WrongError("", wrong)
    if not WHEN.fullmatch(measurement.when):
        raise WrongError("when", "is no time such as 2026-03-01T12:00:00Z")


def of_comparison(comparison: Comparison) -> Iterator[str]:
    sizes = comparison.batch_sizes
    if not sizes or min(sizes) < 1 or list(sizes) != sorted(set(sizes)):
        yield "has batch sizes that do not rise from 1 on"
    if {*comparison.steps} != {*sizes} or {*comparison.tables} != {*sizes}:
        yield "has steps or tables of other batch sizes"
    if comparison.by not in KEYS:
        yield f"has rows by something else than {', '.join(KEYS)}"
    for step in comparison.steps.values():
        if min(step.steps, step.untraced_ns.median, step.traced_ns.median) <= 0:
            yield "has a step that takes no time"
    for row in comparison.rows:
        if not row.cells or not {*row.cells} <= {*sizes}:
            yield "has a row without a batch size, or of another"
    stats = [row for table in comparison.tables.values() for row in table]
    stats += [cell for row in comparison.rows for cell in row.cells.values()]
    if any(row.calls < 1 for row in (*stats, *comparison.cold)):
        yield "has a row that never ran"
    if not {*comparison.experiments} <= {*sizes}:
        yield "has experiments of another batch size"
    configs = {row.config for row in comparison.configs}
    pairs = [(row.batch_size, row.config) for row in comparison.configs]
    if sorted(pairs) != sorted((size, name) for size in sizes for name in configs):
        yield "has configurations that were not measured at each batch size"
    if comparison.configs and comparison.configs[0].config != "default":
        yield "has configurations and no default among them"
    if any(row.untraced_ns.median <= 0 for row in comparison.configs):
        yield "has a configuration whose step takes no time"


def of_processes(measurement: Measurement) -> Iterator[str]:
    observed: Observed = measurement.observed
    sizes = {*measurement.comparison.batch_sizes}
    for process in observed.processes:
        for times in (process.untraced_ns, process.traced_ns):
            if {*times} != sizes:
                yield "has a process of other batch sizes"
            if not all(turns and all(map(all, turns)) and all(turns) for turns in times.values()):
                yield "has a process with a step that takes no time"
        if {*process.rows_ns} != sizes:
            yield "has a process with rows of other batch sizes"
