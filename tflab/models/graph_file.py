"""Graph file: a saved graph, recognised by the content of the file, not by its name.

A SavedModel is a folder; a GraphDef and a MetaGraphDef are protos, binary or text. Reading runs
nothing, and opens only plain files of the model (`confined.model_files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf1
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tflab import untrusted
from tflab.cli import confined
from tflab.errors import TflabError, UsageError, did_you_mean
from tflab.records.graph import Lines, node_of
from tflab.records.options import Start
from tflab.runtime import debug_info, private

KINDS = "a SavedModel folder, a GraphDef or MetaGraphDef (binary or text), or a .keras file"
LARGEST_TEXT = 64 * 2**20  # bytes; parsing a text proto takes about a second per megabyte
HDF5 = b"\x89HDF\r\n\x1a\n"


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
        ("SavedModel", private.saved_model),
    ):
        proto = parse(message(), content)
        if proto is None:
            continue
        meta = served_meta_graph(proto) if kind == "SavedModel" else proto
        graph_def = proto if kind == "GraphDef" else meta.graph_def if meta else None
        # Arbitrary bytes may parse by chance, but not with these fields
        if not (graph_def and graph_def.node and all(n.name and n.op for n in graph_def.node)):
            continue
        prefix = path.with_suffix("")
        lines = debug_info.of_graph(graph_def)
        if kind == "SavedModel":
            prefix = path.parent / "variables" / "variables"
            lines = {**lines, **debug_info.of_saved_model(path.parent)}
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


def served_meta_graph(saved: Any) -> Any:
    """Return the MetaGraphDef with the tag `serve`, otherwise the first; None if there is none."""
    metas = list(saved.meta_graphs)
    return next(
        (meta for meta in metas if "serve" in meta.meta_info_def.tags), (metas or [None])[0]
    )


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
        for key in ("saved_model_main_op", "legacy_init_op"):
            names += collected(file, key)[:1] if not names else []
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
