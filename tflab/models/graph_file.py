"""Graph file: a saved graph, recognised by the content of the file, not by its name.

A SavedModel is a folder; a GraphDef and a MetaGraphDef are protos, binary or text. Reading runs
nothing, and opens only plain files of the model (`confined.model_files`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf1
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from tflab import untrusted
from tflab.cli import confined
from tflab.errors import TflabError, UsageError, did_you_mean
from tflab.records.graph import Lines, Source, node_of
from tflab.records.options import Start

KINDS = "a SavedModel folder, a GraphDef or MetaGraphDef (binary or text), or a .keras file"
LARGEST_TEXT = 64 * 2**20  # bytes; parsing a text proto takes about a second per megabyte
HDF5 = b"\x89HDF\r\n\x1a\n"
LINES = Path("debug", "saved_model_debug_info.pb")  # in the folder of a SavedModel
LIBRARY = re.compile(r"(^|[/\\])(tensorflow|keras|tf_keras)[/\\](python|core|compiler|src)[/\\]")


@dataclass(frozen=True)
class GraphFile:
    """A graph, and the files that belong to it."""

    kind: str  # "SavedModel", "MetaGraphDef" or "GraphDef"
    path: Path
    name: str  # what the user calls it
    graph_def: Any
    meta: Any = None  # MetaGraphDef: signatures, saver and collections
    checkpoint: str | None = None  # prefix of the files with the values of its variables
    lines: Lines = field(default_factory=dict)  # the lines of Python that made its nodes


def read(path: Path, name: str = "") -> GraphFile:
    """Return the graph in a file or folder; `name` is what the user calls it, if not its path.

    Raises UsageError if there is no graph, TflabError if it cannot be read.
    """
    if not path.exists():
        raise UsageError(f"There is no file '{path}'. A graph is {KINDS}.")
    confined.model_files(path)
    name = name or str(path)
    if path.is_dir():
        path = next(path / part for part in confined.SAVED_MODELS if (path / part).is_file())
    try:
        content = untrusted.content(path)
    except OSError as error:
        raise TflabError(f"The graph '{path}' cannot be read: {error.strerror}.") from error
    if content.startswith(HDF5):
        raise UsageError(
            f"'{path}' is an HDF5 file. Load it with Keras, save it as .keras, and give that file."
        )
    candidates = list(parsed(path, name, content))
    if candidates:
        return max(candidates, key=lambda file: len(file.graph_def.node))
    raise UsageError(f"'{path}' is not a graph, or is damaged. A graph is {KINDS}.")


def parsed(path: Path, name: str, content: bytes) -> Iterator[GraphFile]:
    """Yield the content as each of the three kinds, if that gives a graph."""
    for kind, message in (
        ("GraphDef", tf1.GraphDef),
        ("MetaGraphDef", tf1.MetaGraphDef),
        ("SavedModel", saved_model_pb2.SavedModel),
    ):
        proto = parse(message(), content)
        if proto is None:
            continue
        meta = proto
        if kind == "SavedModel":  # the MetaGraphDef with the tag `serve`, otherwise the first
            served = [m for m in proto.meta_graphs if "serve" in m.meta_info_def.tags]
            meta = next(iter([*served, *proto.meta_graphs]), None)
        graph_def = proto if kind == "GraphDef" else meta.graph_def if meta else None
        # Arbitrary bytes may parse by chance, but not with these fields
        if not (graph_def and graph_def.node and all(n.name and n.op for n in graph_def.node)):
            continue
        prefix = path.with_suffix("")
        lines = dict(lines_of(graph_def.debug_info))
        if kind == "SavedModel":
            prefix = path.parent / "variables" / "variables"
            lines |= lines_beside(path.parent)
        yield GraphFile(
            kind,
            path,
            name,
            graph_def,
            meta=None if kind == "GraphDef" else meta,
            checkpoint=str(prefix) if Path(f"{prefix}.index").is_file() else None,
            lines=lines,
        )


def parse(message: Any, content: bytes) -> Any:
    """Return the message, binary or text; None if the content is neither."""
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


# What a file says about its graph


def signature_of(file: GraphFile, name: str | None) -> Any:
    """Return the signature of this name, otherwise `serving_default`, otherwise the first; None if
    there is none."""
    signatures = dict(file.meta.signature_def) if file.meta is not None else {}
    signatures = {key: value for key, value in signatures.items() if not key.startswith("__")}
    if name is not None and name not in signatures:
        hint = did_you_mean(name, list(signatures))
        have = ", ".join(sorted(signatures)) or "none"
        raise UsageError(
            f"'{file.name}' has no signature '{name}'; its signatures are: {have}.{hint}"
        )
    name = name or ("serving_default" if "serving_default" in signatures else None)
    return signatures[name] if name else next(iter(signatures.values()), None)


def collected(file: GraphFile, key: str) -> list[str]:
    """Return the nodes of a collection of a MetaGraphDef."""
    collections = file.meta.collection_def if file.meta is not None else {}
    return list(collections[key].node_list.value) if key in collections else []


def tables(file: GraphFile) -> Start:
    """Return what initialises the tables of a graph, with the paths of its asset files."""
    if file.meta is None:
        return Start(())
    names = collected(file, "table_initializer")
    if file.kind == "SavedModel":
        init = file.meta.signature_def.get("__saved_model_init_op")
        names = [info.name for info in init.outputs.values()] if init is not None else []
        names = names or collected(file, "saved_model_main_op") or collected(file, "legacy_init_op")
    assets = file.path.parent / "assets"
    own = assets.resolve()
    feeds = {
        asset.tensor_info.name: str(assets / asset.filename)
        for asset in asset_files(file.meta)
        if (assets / asset.filename).resolve().is_relative_to(own)
    }
    return Start(tuple(map(node_of, names)), feeds)


def asset_files(meta: Any) -> Iterator[Any]:
    """Yield the AssetFileDefs of a MetaGraphDef: its own, and those that TensorFlow 1 stored in a
    collection."""
    yield from meta.asset_file_def
    if "saved_model_assets" in meta.collection_def:
        for packed in meta.collection_def["saved_model_assets"].any_list.value:
            asset = tf1.MetaGraphDef().asset_file_def.add()
            if packed.Is(asset.DESCRIPTOR):
                packed.Unpack(asset)
                yield asset


# The lines of the program that made a graph, in a GraphDebugInfo (tensorflow/core/framework/
# graph_debug_info.proto): for each node the Python stack at its creation, the outermost frame
# first. A GraphDef may contain one, and a SavedModel may have one next to it. The source files that
# it names are not opened, because the file may name any path.


def lines_beside(folder: Path) -> Lines:
    """Return the lines next to a SavedModel. Raises TflabError if they are damaged."""
    path = folder / LINES
    if not path.is_file():
        return {}
    try:
        info = tf1.GraphDef().debug_info
        info.ParseFromString(untrusted.content(path))
        return dict(lines_of(info))
    except (DecodeError, OSError) as error:
        raise TflabError(
            f"The lines of the nodes in '{path}' cannot be read: {' '.join(str(error).split())}. "
            "To show the graph without lines, remove that file."
        ) from error


def lines_of(info: Any) -> Iterator[tuple[tuple[str | None, str], Source]]:
    """Yield the innermost line outside of libraries of each (function or None, node); in the file a
    key is `node@function` or `node`."""
    for key, number in info.name_to_trace_id.items():
        trace = info.traces_by_id.get(number)
        for frame_id in reversed(trace.frame_id if trace else ()):
            frame = info.frames_by_id.get(frame_id)
            known = frame and 0 <= frame.file_index < len(info.files)
            if known and not LIBRARY.search(info.files[frame.file_index]):
                node, _, function = key.partition("@")
                file = info.files[frame.file_index]
                yield (
                    (function or None, node),
                    Source(file, frame.line, frame.func, frame.code.strip()),
                )
                break
