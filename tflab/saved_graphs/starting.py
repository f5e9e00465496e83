"""Starting: the initial values of the variables of a graph from a file, and where they come
from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.records.graph import VARIABLES, Node, node_of
from tflab.records.options import Start
from tflab.saved_graphs.graph_files import GraphFile
from tflab.saved_graphs.made_up import SEED, plain_values
from tflab.units import plural

ASSIGNMENTS = ("AssignVariableOp", "Assign")
LISTED = 2**18  # elements of a constant at most
SCOPE = "tflab_start"  # the name scope of assignments that tflab adds


def start_of(file: GraphFile, graph: tf.Graph, nodes: Sequence[Node], needed: set[str]) -> Start:
    """How the variables that the fetches need get their initial values."""
    variables = [node for node in nodes if node.op in VARIABLES and node.name in needed]
    tables = table_initialisation(file)
    if not variables:
        return checked(Start(tables.targets, tables.feeds), file, graph)
    saver = file.meta.saver_def if file.meta is not None else None
    if file.checkpoint and saver is not None and saver.restore_op_name:
        feeds = {saver.filename_tensor_name: file.checkpoint, **tables.feeds}
        targets = (node_of(saver.restore_op_name), *tables.targets)
        source = file.given or file.checkpoint
        about = f"Variables have the values of '{source}'."
        return checked(Start(targets, feeds, about), file, graph)
    assigned = {
        node_of(node.inputs[0]): node.name
        for node in reversed(nodes)
        if node.op in ASSIGNMENTS and node.name.endswith("/Assign")
    }
    missing = [node.name for node in variables if node.name not in assigned]
    initialised = tuple(assigned[node.name] for node in variables if node.name in assigned)
    made_up = [add_assignment(graph, name) for name in missing]
    phrases = []
    if initialised:
        count = plural(len(initialised), "variable")
        phrases.append(f"{count} {has(initialised)} the values of the initialisers")
    if made_up:
        phrases.append(
            f"{len(made_up)} {has(made_up)} values made up with a seed, by nodes that tflab added "
            f"under {SCOPE}/"
        )
    about = " and ".join(phrases) + "."
    if file.checkpoint:
        about += (
            f" The checkpoint '{file.checkpoint}' beside it was not read, because the file does "
            "not name an op that restores it, as a MetaGraphDef does."
        )
    targets = (*initialised, *made_up, *tables.targets)
    return checked(Start(targets, tables.feeds, about), file, graph)


def checked(start: Start, file: GraphFile, graph: tf.Graph) -> Start:
    """The same start. Raises TflabError if the file names nodes that the graph does not have."""
    ops = {op.name: op for op in graph.get_operations()}
    for name in start.targets:
        if name not in ops:
            raise TflabError(
                f"'{file.name}' says that '{name}' restores or initialises it, but its graph has "
                "no such node. Save it again, or show only its graph with --stage frontend."
            )
    for name in start.feeds:
        if wrong := no_path(name, ops, graph):
            raise TflabError(
                f"'{file.name}' says that '{name}' takes the path of its files, {wrong}; it must "
                "be one string. Save it again, or show only its graph with --stage frontend."
            )
    return start


def no_path(name: str, ops: Mapping[str, tf.Operation], graph: tf.Graph) -> str | None:
    """Why the path of a file cannot be fed to this tensor; "" if it can."""
    place = name.rpartition(":")[2]
    op = ops.get(node_of(name))
    if op is None or not place.isdecimal() or int(place) >= len(op.outputs):
        return "which is not in its graph"
    tensor = op.outputs[int(place)]
    if tensor.dtype != tf.string:
        return f"which is {tensor.dtype.name}"
    if not tensor.shape.is_compatible_with([]):
        return f"which has the shape {tensor.shape}"
    return None if graph.is_feedable(tensor) else "which cannot be fed"


def has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def table_initialisation(file: GraphFile) -> Start:
    """The SavedModel's own initialisation (for example of lookup tables) and its asset files."""
    if file.meta is None or file.kind != "SavedModel":
        return Start(())
    init = file.meta.signature_def.get("__saved_model_init_op")
    names = [info.name for info in init.outputs.values()] if init is not None else []
    for key in ("saved_model_main_op", "legacy_init_op"):
        names += list(file.meta.collection_def[key].node_list.value)[:1] if not names else []
    assets = file.path.parent / "assets"
    # No links, because these files are read without permission
    own = file.path.parent.resolve() / "assets"
    feeds = {
        asset.tensor_info.name: str(assets / asset.filename)
        for asset in asset_files(file.meta)
        if (assets / asset.filename).resolve().is_relative_to(own)
    }
    return Start(tuple(map(node_of, names)), feeds)


def asset_files(meta: Any) -> Iterator[Any]:
    """The AssetFileDefs of a MetaGraphDef: its own, and those that TensorFlow 1 stored in a
    collection."""
    yield from meta.asset_file_def
    if "saved_model_assets" in meta.collection_def:
        for packed in meta.collection_def["saved_model_assets"].any_list.value:
            asset = tf1.MetaGraphDef().asset_file_def.add()
            if packed.Is(asset.DESCRIPTOR):
                packed.Unpack(asset)
                yield asset


def add_assignment(graph: tf.Graph, name: str) -> str:
    """Add a node that assigns made-up values to a variable; return its name."""
    op = graph.get_operation_by_name(name)
    dtype = tf.dtypes.as_dtype(op.get_attr("dtype"))
    shape = tf.TensorShape(op.get_attr("shape"))
    if not shape.is_fully_defined():
        raise TflabError(f"The variable '{name}' has no values, no initialiser and no known shape.")
    with graph.as_default(), tf.compat.v1.name_scope(f"{SCOPE}/"):
        values = first_values(dtype, shape)
        if op.type == "VarHandleOp":
            return tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=values).name
        return tf.raw_ops.Assign(ref=op.outputs[0], value=values).op.name


def first_values(dtype: tf.DType, shape: tf.TensorShape) -> tf.Tensor:
    """Small normally distributed numbers, zeros and ones, or empty strings. Large ones are made by
    the assigning step, when it runs."""
    if shape.num_elements() <= LISTED:
        plain = plain_values(dtype, shape.as_list())
        small = dtype.is_floating or dtype.is_complex
        return tf.constant(plain / 10 if small else plain, dtype)
    if dtype == tf.string:
        return tf.fill(shape, "")
    if dtype.is_floating or dtype.is_complex:
        return tf.cast(tf.random.stateless_normal(shape, [SEED, 0], stddev=0.1), dtype)
    return tf.cast(tf.random.stateless_uniform(shape, [SEED, 0], 0, 2, tf.int32), dtype)
