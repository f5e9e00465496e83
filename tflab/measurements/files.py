"""Files of measurements: written completely, and read again, also if they come from strangers.

A file is JSON, possibly compressed by gzip: its kind, the version of its format, a `Measurement`
with all fields of its records, and a checksum of all this. docs/measurements.md describes it for
other programs. `tflab.run` writes the record of a watched program.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tflab
from tflab import untrusted
from tflab.analysis.row_labels import KEYS
from tflab.cli import new_files
from tflab.errors import UsageError
from tflab.records.codec import WrongError, decoded, encoded
from tflab.records.measured import Comparison, Fingerprint, Observed
from tflab.records.measurements import Measurement
from tflab.records.watched import Watched

KIND = "tflab measurement"
FORMAT = 2  # a file that older versions would misread gets the next number
CHECKED = 2  # from this format on a file has a checksum
WHAT = "measurement"  # its name in errors
GIVE = "give a file that `python -m tflab.compare --save FILE` wrote"
MOST_BYTES = 2**25  # of a compressed file
MOST_TEXT = 2**28  # of its JSON: a small file may unpack to a very large one
GZIP = b"\x1f\x8b"  # the first bytes of compressed content
WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
DIGEST = re.compile("[0-9a-f]{16}")
# Of a watched program
RUN_KIND = "tflab run"
RUN_FORMAT = 1  # a file that older versions would misread gets the next number
RUN_NAME = "run.json"  # in a logdir
GIVE_RUN = "give a file that `python -m tflab.run --save FILE` wrote"


def write(path: Path, measurement: Measurement) -> None:
    """Raises UsageError if the file exists already or cannot be written."""
    new_files.write(path, packed(measurement), WHAT)


def packed(measurement: Measurement) -> bytes:
    content = {"kind": KIND, "format": FORMAT, **encoded(measurement)}
    text = as_bytes({"checksum": checksum(content), **content}, allow_nan=False)
    return gzip.compress(text, mtime=0)  # the same content gives the same bytes


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of the content without the checksum itself."""
    content_alone = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(as_bytes(content_alone, sort_keys=True)).hexdigest()


def as_bytes(content: Mapping[str, Any], **options: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), **options).encode()


def read(path: str) -> Measurement:
    """Raises UsageError for a file of another kind or a newer version, and for a damaged or changed
    one."""
    content = parsed(path, json_of(path))
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise UsageError(f"'{path}' is not a measurement; {GIVE}.")
    version = content.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise damaged(path, "the version of its format is not a positive number")
    if version > FORMAT:
        by = content.get("tflab")
        version_text = f" {by}" if isinstance(by, str) and len(by) < 20 else ""
        raise UsageError(
            f"'{path}' was written by a newer tflab{version_text}, in format {version}; this is "
            f"{tflab.__version__}, which reads formats up to {FORMAT}. Install the newer version, "
            "or measure again."
        )
    try:
        measurement: Measurement = decoded(Measurement, content)
        check(measurement)
    except WrongError as error:
        raise damaged(path, str(error)) from error
    if version >= CHECKED and content.get("checksum") != checksum(content):
        raise damaged(path, "it was changed: its checksum does not match its content")
    return measurement


def json_of(path: str) -> bytes:
    """The JSON in a file, which may be compressed."""
    try:
        with untrusted.opened(path) as file:
            content = file.read(MOST_BYTES + 1)
            zipped = content.startswith(GZIP)
            if not zipped:
                content += file.read(MOST_TEXT + 1 - len(content))
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    if not content:
        raise UsageError(f"'{path}' is empty; {GIVE}.")
    most = MOST_BYTES if zipped else MOST_TEXT
    if len(content) > most:
        raise UsageError(
            f"'{path}' has more than {most >> 20} MiB, and is not a measurement; {GIVE}."
        )
    return unpacked(path, content) if zipped else content


def unpacked(path: str, content: bytes) -> bytes:
    unzip = zlib.decompressobj(wbits=31)  # a single member, with its checksum
    try:
        text = unzip.decompress(content, MOST_TEXT + 1)
    except zlib.error as error:
        raise damaged(path, "its compressed content cannot be unpacked") from error
    if len(text) > MOST_TEXT:
        raise UsageError(
            f"'{path}' unpacks to more than {MOST_TEXT >> 20} MiB, and is not a measurement; "
            f"{GIVE}."
        )
    if not unzip.eof:
        raise UsageError(f"'{path}' is incomplete: it ends in the middle. Copy it again.")
    return text


def parsed(path: str, text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"'{path}' is not a measurement, because it is not JSON; {GIVE}."
        ) from error


def damaged(path: str, wrong: str) -> UsageError:
    return UsageError(
        f"'{path}' is not in the format that tflab writes: {wrong}. Measure again, or copy it "
        "again."
    )


# What types cannot express


def check(measurement: Measurement) -> None:
    """Raise WrongError if the parts do not fit together."""
    for wrong in (
        *of_comparison(measurement.comparison),
        *of_configurations(measurement.comparison),
        *of_fingerprint(measurement.observed.fingerprint),
        *of_processes(measurement),
    ):
        raise WrongError("", wrong)
    if not WHEN.fullmatch(measurement.when):
        raise WrongError("when", "is not a time such as 2026-03-01T12:00:00Z")


def of_comparison(comparison: Comparison) -> Iterator[str]:
    sizes = comparison.batch_sizes
    if not sizes or min(sizes) < 1 or list(sizes) != sorted(set(sizes)):
        yield "has batch sizes that are not positive and ascending"
    if {*comparison.steps} != {*sizes} or {*comparison.tables} != {*sizes}:
        yield "has steps or tables of other batch sizes"
    if comparison.by not in KEYS:
        yield f"has rows by something other than {', '.join(KEYS)}"
    for step in comparison.steps.values():
        if min(step.steps, step.untraced_ns.median, step.traced_ns.median) <= 0:
            yield "has a step of zero or negative time"
    for row in comparison.rows:
        if not row.cells or not {*row.cells} <= {*sizes}:
            yield "has a row without a batch size, or of another"
    stats = [row for table in comparison.tables.values() for row in table]
    stats += [cell for row in comparison.rows for cell in row.cells.values()]
    if any(row.calls < 1 for row in (*stats, *comparison.cold)):
        yield "has a row that never ran"
    if not {*comparison.experiments} <= {*sizes}:
        yield "has experiments of another batch size"


def of_configurations(comparison: Comparison) -> Iterator[str]:
    sizes = comparison.batch_sizes
    configs = {row.config for row in comparison.configs}
    pairs = [(row.batch_size, row.config) for row in comparison.configs]
    if sorted(pairs) != sorted((size, name) for size in sizes for name in configs):
        yield "has configurations that were not measured at each batch size"
    if comparison.configs and comparison.configs[0].config != "default":
        yield "has configurations, but not the default one"
    if any(row.untraced_ns.median <= 0 for row in comparison.configs):
        yield "has a configuration with a step of zero or negative time"


def of_fingerprint(fingerprint: Fingerprint) -> Iterator[str]:
    digests = (fingerprint.graph, fingerprint.data, fingerprint.weights or fingerprint.data)
    if not all(map(DIGEST.fullmatch, digests)):
        yield "has a fingerprint that is not 16 hexadecimal digits"
    counted = sum(fingerprint.ops.values())
    if counted != fingerprint.nodes:
        yield f"has a fingerprint of {fingerprint.nodes} nodes, but {counted} ops"


def of_processes(measurement: Measurement) -> Iterator[str]:
    observed: Observed = measurement.observed
    sizes = {*measurement.comparison.batch_sizes}
    if not observed.processes:
        yield "has no process, so it has no observation to compare"
    for process in observed.processes:
        for times in (process.untraced_ns, process.traced_ns):
            if {*times} != sizes:
                yield "has a process of other batch sizes"
            if not all(turns and all(map(all, turns)) and all(turns) for turns in times.values()):
                yield "has a process with a step of zero or negative time"
        if {*process.rows_ns} != sizes:
            yield "has a process with rows of other batch sizes"


# The record of a watched program, as a file that other commands read


def run_text(seen: Watched) -> str:
    content = {"kind": RUN_KIND, "format": RUN_FORMAT, **encoded(seen)}
    return json.dumps(content, indent=1, allow_nan=False)


def read_run(path: str) -> Watched:
    """The run in a file, or in the logdir of one. Raises UsageError for a file of another kind or a
    newer version, and for one with invalid content."""
    content = read_content(os.path.join(path, RUN_NAME) if os.path.isdir(path) else path)
    if content is None:
        raise UsageError(f"'{path}' is not a watched run; {GIVE_RUN}.")
    if content.get("format") != RUN_FORMAT:
        raise UsageError(
            f"'{path}' is of format {str(content.get('format'))[:20]}; this tflab reads format "
            f"{RUN_FORMAT}. Use the version that wrote it."
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
    return content if isinstance(content, dict) and content.get("kind") == RUN_KIND else None
