"""Graph files: a saved graph, recognised by the content of the file, not by its name.

A SavedModel is a folder; a GraphDef, a MetaGraphDef and a bare saved_model.pb are protos, binary or
text; a Keras model is a zip archive. This module never runs the graph.
"""

from __future__ import annotations

import glob
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tflab import atomic, untrusted
from tflab.errors import TflabError, UsageError, reason
from tflab.escaping import with_full_stop
from tflab.records.graph import Lines
from tflab.runtime import private, refusals
from tflab.saved_graphs import debug_info, keras_archives

KINDS = "a SavedModel folder, a GraphDef or MetaGraphDef (binary or text), or a .keras file"
LARGEST_TEXT = 64 * 2**20  # bytes; parsing a text proto takes about a second per megabyte
HDF5 = b"\x89HDF\r\n\x1a\n"
ZIP = b"PK\x03\x04"
CAUSE = "Exception encountered:"  # before the reason, in an error of Keras about a layer


@dataclass(frozen=True)
class GraphFile:
    """A graph and the files beside it."""

    kind: str  # "SavedModel", "MetaGraphDef" or "GraphDef"
    path: Path
    graph_def: Any
    meta: Any = None  # MetaGraphDef: signatures and saver
    tags: tuple[str, ...] = ()
    checkpoint: str | None = None  # prefix of the files with the values of its variables
    lines: Lines = field(default_factory=dict)  # the lines of Python that made its nodes
    given: str | None = None  # the path that the user gave, if this was exported from it

    @property
    def name(self) -> str:
        """The path to show: the one that the user gave, not a temporary folder."""
        return self.given or str(self.path)


def read(path: Path) -> GraphFile:
    """The graph in a file or folder.

    Raises UsageError if there is no such file or it contains no graph, TflabError if it cannot be
    read.
    """
    try:
        if path.is_dir():
            return read_saved_model(path)
        if not path.exists():
            raise UsageError(f"There is no file '{path}'. A graph is {KINDS}.")
        content = untrusted.content(path)
    except OSError as error:
        raise TflabError(f"The graph '{path}' cannot be read: {error.strerror}.") from error
    if content.startswith(ZIP):
        return read_keras_model(path)
    if content.startswith(HDF5):
        raise UsageError(
            f"'{path}' is an HDF5 file. Load it with Keras, save it as .keras, and give that file."
        )
    if not content:
        raise UsageError(f"'{path}' is empty. A graph is {KINDS}.")
    return read_proto(path, content)


def read_saved_model(folder: Path) -> GraphFile:
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        if (folder / name).is_file():
            file = read_proto(folder / name, untrusted.content(folder / name))
            if file.kind != "SavedModel":
                raise UsageError(f"'{folder / name}' holds a {file.kind}, not a SavedModel.")
            return file
    entries = ", ".join(sorted(entry.name for entry in folder.iterdir())[:5]) or "nothing"
    raise UsageError(
        f"The folder '{folder}' has no saved_model.pb, but {entries}. A graph is {KINDS}."
    )


def read_keras_model(path: Path) -> GraphFile:
    """A Keras model, exported as a SavedModel. Code in the file is not loaded (`safe_mode`)."""
    keras_archives.check(path)
    try:
        return exported(
            lambda: tf.keras.models.load_model(path, compile=False, safe_mode=True), str(path)
        )
    except Exception as error:  # Keras may raise anything
        raise TflabError(f"Keras cannot load '{path}': {told_by_keras(error)}") from error


def told_by_keras(error: Exception) -> str:
    """The first sentence of Keras's error, and the cause that it gives further down."""
    lines = [line.strip() for line in reason(error).splitlines() if line.strip()]
    causes = [line.partition(CAUSE)[2].strip() for line in lines if line.startswith(CAUSE)]
    first = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    sentences = re.split(r"(?<=\.) ", first)
    complete = " ".join(text for text in sentences if text.count("<") == text.count(">"))
    messages = dict.fromkeys(filter(None, [complete, *causes[-1:]])) or [type(error).__name__]
    return " ".join(with_full_stop(refusals.sentence(text)) for text in messages if text)


def exported(make: Callable[[], Any], given: str) -> GraphFile:
    """A Keras model as a SavedModel in a temporary folder, which is removed when Python exits.

    `given` is the path that the user gave. Keras builds and exports eagerly, so this needs a
    separate thread while this thread builds a graph.
    """
    folder = tempfile.mkdtemp(prefix="keras-", dir=atomic.process_folder())
    with ThreadPoolExecutor(1) as eager:
        export = eager.submit(lambda: make().export(folder, format="tf_saved_model", verbose=False))
        export.result()
    return replace(read_saved_model(Path(folder)), given=given)


def read_proto(path: Path, content: bytes) -> GraphFile:
    """A proto as the kind that gives the most nodes."""
    candidates = list(graph_files(path, content))
    if not candidates:
        trace = parse(tf1.RunMetadata(), content)
        if trace and any(device.node_stats for device in trace.step_stats.dev_stats):
            raise UsageError(
                f"'{path}' is not a graph but the trace of a step. Try: "
                f"python -m tflab.convert {shlex.quote(str(path))}"
            )
        raise UsageError(
            f"'{path}' is not a graph, or is damaged: it is not a valid GraphDef, MetaGraphDef or "
            "SavedModel."
        )
    return max(candidates, key=lambda file: len(file.graph_def.node))


def graph_files(path: Path, content: bytes) -> Iterator[GraphFile]:
    """The content parsed as each of the three kinds, if that gives a graph."""
    for kind, message in (
        ("GraphDef", tf1.GraphDef),
        ("MetaGraphDef", tf1.MetaGraphDef),
        ("SavedModel", private.saved_model),
    ):
        proto = parse(message(), content)
        if proto is None:
            continue
        meta = served_meta_graph(proto) if kind == "SavedModel" else proto
        graph_def = proto if kind == "GraphDef" else meta.graph_def if meta else None
        if graph_def is None or not is_graph(graph_def):
            continue
        yield GraphFile(
            kind,
            path,
            graph_def,
            meta=None if kind == "GraphDef" else meta,
            tags=tuple(meta.meta_info_def.tags) if kind == "SavedModel" else (),
            checkpoint=checkpoint(path, kind),
            lines=known_lines(path, kind, graph_def),
        )


def parse(message: Any, content: bytes) -> Any:
    """The message, binary or text; None if the content is neither."""
    try:
        message.ParseFromString(content)
        return message
    except DecodeError:
        message.Clear()
    if len(content) > LARGEST_TEXT or b"\0" in content:
        return None
    try:
        return text_format.Parse(content.decode(), message)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError):
        return None


def is_graph(graph_def: Any) -> bool:
    """Whether this is a graph. Arbitrary bytes may parse by chance, but not with these fields."""
    return bool(graph_def.node) and all(node.name and node.op for node in graph_def.node)


def served_meta_graph(saved: Any) -> Any:
    """The MetaGraphDef with the tag `serve`, otherwise the first; None if there is none."""
    metas = list(saved.meta_graphs)
    return next(
        (meta for meta in metas if "serve" in meta.meta_info_def.tags), (metas or [None])[0]
    )


def known_lines(path: Path, kind: str, graph_def: Any) -> Lines:
    beside = debug_info.of_saved_model(path.parent) if kind == "SavedModel" else {}
    return {**debug_info.of_graph(graph_def), **beside}


def checkpoint(path: Path, kind: str) -> str | None:
    """The prefix of the checkpoint that belongs to a graph file; None if there is none."""
    if kind == "SavedModel":
        prefixes = [path.parent / "variables" / "variables"]
    else:
        prefixes = [path.with_suffix(""), path]
        indices = sorted(path.parent.glob("*.index"))
        if len(indices) == 1 and kind == "GraphDef":
            prefixes.append(indices[0].with_suffix(""))
    for prefix in prefixes:
        if prefix.with_name(prefix.name + ".index").is_file():
            return str(prefix)
    return old_checkpoint(path.with_suffix("")) if path.suffix == ".meta" else None


def old_checkpoint(prefix: Path) -> str | None:
    """The name with which TensorFlow reads a checkpoint of the format before 2016: its only file,
    or a pattern for all its shards."""
    shard = next(prefix.parent.glob(f"{glob.escape(prefix.name)}-00000-of-?????"), None)
    if not (prefix.is_file() or shard):
        return None
    name = str(prefix) if shard is None else f"{prefix}-?????-of-{shard.name[-5:]}"
    try:
        tf1.train.load_checkpoint(name)
        return name
    except tf.errors.OpError:
        return None
