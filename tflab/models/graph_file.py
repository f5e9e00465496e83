"""Graph file: a saved graph, recognised by the content of the file, not by its name.

A SavedModel is a folder; a GraphDef and a MetaGraphDef are protos, binary or text. Reading runs
nothing, and opens only plain files of the model (`confined.model_files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import tensorflow.compat.v1 as tf1
from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message
from tensorflow.core.protobuf.meta_graph_pb2 import AssetFileDef, SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tflab.cli import confined
from tflab.errors import TflabError, UsageError, did_you_mean
from tflab.records.graph import node_of

M = TypeVar("M", bound=Message)

KINDS = "a SavedModel folder, a GraphDef or MetaGraphDef (binary or text), or a .keras file"
LARGEST_TEXT = 64 * 2**20  # bytes; parsing a text proto takes about a second per megabyte


@dataclass(frozen=True)
class GraphFile:
    """A graph, and the files that belong to it."""

    kind: str  # "SavedModel", "MetaGraphDef" or "GraphDef"
    path: Path
    name: str  # what the user calls it
    meta: tf1.MetaGraphDef  # of a GraphDef, without signatures, saver and collections
    checkpoint: str | None = None  # prefix of the files with the values of its variables

    @property
    def graph_def(self) -> tf1.GraphDef:
        return self.meta.graph_def


def read(path: Path) -> GraphFile:
    """Return the graph in a file or folder. Raises UsageError if none is there."""
    if not path.exists():
        raise UsageError(f"There is no file '{path}'. A graph is {KINDS}.")
    confined.model_files(path)
    name = str(path)
    if path.is_dir():
        path = next(path / part for part in confined.SAVED_MODELS if (path / part).is_file())
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TflabError(f"The graph '{path}' cannot be read: {error.strerror}.") from error
    # Arbitrary bytes may parse by chance, but not with these fields
    metas = [
        (kind, meta)
        for kind, meta in parsed(content)
        if meta.graph_def.node and all(node.name and node.op for node in meta.graph_def.node)
    ]
    if not metas:
        raise UsageError(f"'{path}' is not a graph, or is damaged. A graph is {KINDS}.")
    kind, meta = max(metas, key=lambda known: len(known[1].graph_def.node))
    saved = kind == "SavedModel"
    prefix = path.parent / "variables" / "variables" if saved else path.with_suffix("")
    checkpoint = str(prefix) if Path(f"{prefix}.index").is_file() else None
    return GraphFile(kind, path, name, meta, checkpoint)


def parsed(content: bytes) -> Iterator[tuple[str, tf1.MetaGraphDef]]:
    """Yield the content as each of the three kinds that it can be parsed as."""
    if graph := parse(tf1.GraphDef(), content):
        yield "GraphDef", tf1.MetaGraphDef(graph_def=graph)
    if meta := parse(tf1.MetaGraphDef(), content):
        yield "MetaGraphDef", meta
    if saved := parse(SavedModel(), content):
        served = [meta for meta in saved.meta_graphs if "serve" in meta.meta_info_def.tags]
        yield from (("SavedModel", meta) for meta in (*served, *saved.meta_graphs)[:1])


def parse(message: M, content: bytes) -> M | None:
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


def signature_of(file: GraphFile, name: str | None) -> SignatureDef | None:
    """Return the signature of this name, by default `serving_default`, else the first, if any."""
    known = {key: s for key, s in file.meta.signature_def.items() if not key.startswith("__")}
    if name is not None and name not in known:
        hint = did_you_mean(name, list(known))
        have = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"'{file.name}' has no signature '{name}'; its signatures are: {have}.{hint}"
        )
    return known.get(name or "serving_default") or next(iter(known.values()), None)


def collected(file: GraphFile, key: str) -> list[str]:
    """Return the names of the nodes in a collection; [] if there is none."""
    collections = file.meta.collection_def
    return list(collections[key].node_list.value) if key in collections else []


def table_initializers(file: GraphFile) -> list[str]:
    """Return the nodes that initialise the tables."""
    init = file.meta.signature_def.get("__saved_model_init_op")
    names = [info.name for info in init.outputs.values()] if init else []
    for key in ("saved_model_main_op", "legacy_init_op", "table_initializer"):
        names = names or collected(file, key)
    return list(map(node_of, names))


def assets(file: GraphFile) -> dict[str, str]:
    """Return the path of each asset beside the file, by the node that holds it."""
    found = list(file.meta.asset_file_def)
    if "saved_model_assets" in file.meta.collection_def:  # where TensorFlow 1 stored them
        for packed in file.meta.collection_def["saved_model_assets"].any_list.value:
            packed.Unpack(asset := AssetFileDef())
            found.append(asset)
    folder = file.path.parent / "assets"
    return {
        node_of(asset.tensor_info.name): str(folder / asset.filename)
        for asset in found
        if (folder / asset.filename).resolve().is_relative_to(folder.resolve())
    }
