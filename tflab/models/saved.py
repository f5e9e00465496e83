"""Saved: a graph from a file as a Model.

A step fetches what the user names, otherwise the outputs of the signature, the train op that the
file collects, or what no other node uses. It is fed the user's arrays, otherwise seeded values by
dtype and static shape: the first open dimension is the batch, any other is 1. Variables get the
values of the checkpoint that the file's saver restores, otherwise of their initialisers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from tflab.cli import confined
from tflab.datasets import Column, Dataset, Whole
from tflab.errors import NotImportableError, TflabError, UsageError, did_you_mean, reason
from tflab.escaping import with_full_stop
from tflab.models import graph_file
from tflab.models.graph_file import GraphFile
from tflab.records.graph import VARIABLES, Node, node_of, nodes_needed, reach
from tflab.records.options import Model, Saved, Start
from tflab.runtime import functions, nodes, session
from tflab.views.words import listed

LISTED = 5  # names that a sentence lists
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
ASSIGNMENTS = ("AssignVariableOp", "Assign")
# Nodes without users that compute nothing: they keep, set, read or check a variable
BOOKS = (*VARIABLES, *ASSIGNMENTS, "ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized")
SAVERS = re.compile(r"(Save|Restore)(V2|Slices?)?|MergeV2Checkpoints")
ELSEWHERE = re.compile(r"/(job|replica|task):[^/]*")  # parts of a device's name
STRING = tf.string.as_datatype_enum
HANDLES = ("resource", "variant")  # dtypes of values that only a graph itself can make
SEED = 1
ROWS_BYTES, MOST_ROWS, LEAST_ROWS = 64 * 2**20, 1024, 64  # of the rows of one tensor
UNBOUND = 2**16  # rows if no fed tensor has a batch dimension
NOTHING = (
    "has nothing to run by default: every output is used by another node, or only keeps, saves or "
    "restores variables. Give --fetch NAME."
)

Shape = tuple[int | None, ...]  # None as first dimension is the batch
Given = Mapping[str, np.ndarray | tuple[int, ...]]  # tensor -> the user's array, or its shape


def build(file: GraphFile, options: Saved) -> Model:
    """Import the graph into the default graph and find out how to run it.

    Raises NotImportableError if TensorFlow rejects the graph, UsageError if it lacks what the
    options name. If it has nothing to run, the reason is the model's `unready`."""
    graph = tf1.get_default_graph()
    if why := confined.unimported(options.trust):
        raise not_importable(file, why)
    try:
        with graph.as_default():
            tf.import_graph_def(prepared(file), name="")
    except Exception as error:  # TensorFlow raises many types
        too_large = "TensorFlow needs too much memory to import it"
        why = too_large if isinstance(error, MemoryError) else session.plain(str(error))
        raise not_importable(file, why) from error
    signature = graph_file.signature_of(file, options.signature)
    imported = Imported(file, graph, nodes.from_graph(graph), signature)
    loss = imported.tensor(options.loss) if options.loss else None
    fetches, why = imported.fetches(options.fetches)
    given = imported.given(options)
    fed, needed = imported.fed(given, (*fetches, *([loss.name] if loss is not None else [])))
    start = imported.start(needed)
    parameters: tuple[tf.Tensor, ...] = ()
    if loss is not None:  # it is differentiated with respect to variables, else to the feeds
        behind = imported.variables(nodes_needed(imported.nodes, [loss.name], ()))
        parameters = tuple(map(imported.tensor, behind)) or tuple(
            tensor for tensor in fed if tensor.dtype.is_floating
        )
    runs = f"runs {listed(fetches, LISTED)} ({why})" if fetches else "has nothing to run by default"
    return model_of(
        fed,
        given,
        [f"The graph is from '{file.name}', a {file.kind}. It {runs}.", start.about],
        output=imported.output(fetches),
        loss=loss,
        fetches=fetches,
        parameters=parameters,
        start=start,
        unready=None if fetches else TflabError(f"'{file.name}' {NOTHING}"),
    )


def model_of(fed: Sequence[tf.Tensor], given: Given, notes: Iterable[str], **parts: Any) -> Model:
    """Return a Model of these parts. It is fed the user's arrays, otherwise seeded values."""
    columns, phrases = columns_of(fed, given)
    seeded_values = [f"Fed are seeded values: {'; '.join(phrases)}."] if phrases else []
    name = "seeded values" if phrases else "the arrays that were given"
    replaced = "the model's own data" if phrases else None
    whole = [column.value for column in columns.values() if isinstance(column, Whole)]
    sizes = [len(value) for value in whole if np.ndim(value)]
    return Model(
        feeds={tensor: label(tensor) for tensor in fed},
        data=lambda split, _: Dataset(name, split, columns, replaced),
        notes=tuple(filter(None, (*notes, *seeded_values))),
        fixed_batch=max(sizes) if sizes and len(whole) == len(columns) else None,
        **parts,
    )


# The import


def not_importable(file: GraphFile, why: str) -> NotImportableError:
    return NotImportableError(
        f"The graph '{file.name}' is shown but cannot be run: {with_full_stop(why)}",
        nodes.from_graph_def(file.graph_def, {}, {}),
        functions.of_graph_def(file.graph_def),
    )


def prepared(file: GraphFile) -> tf1.GraphDef:
    """Return the graph with its assets where they are now, and with all devices on this machine:
    soft placement replaces a missing device only within the same job."""
    copy = tf1.GraphDef()
    copy.CopyFrom(file.graph_def)
    for body in (copy.node, *(function.node_def for function in copy.library.function)):
        for node in body:
            node.device = ELSEWHERE.sub("", node.device)
    paths = graph_file.assets(file)
    for node in copy.node:
        if node.op == "Const" and node.name in paths and node.attr["dtype"].type == STRING:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(paths[node.name]))
    return copy


# What runs, and what is fed


@dataclass(frozen=True)
class Imported:
    """A graph from a file in the default graph."""

    file: GraphFile
    graph: tf.Graph
    nodes: tuple[Node, ...]
    signature: SignatureDef | None  # by which it is run

    def tensor(self, name: str) -> tf.Tensor:
        """Return the tensor of this name, by default the first output of a node."""
        whole = name if ":" in name else f"{name}:0"
        try:
            return self.graph.get_tensor_by_name(whole)
        except (KeyError, ValueError) as error:
            names = [output.name for op in self.graph.get_operations() for output in op.outputs]
            hint = did_you_mean(whole, names, LISTED)
            raise UsageError(f"There is no tensor '{name}' in the graph.{hint}") from error

    def fetches(self, names: Iterable[str]) -> tuple[tuple[str, ...], str]:
        """Return what to fetch, and why. Unknown names may be gradients that `--loss` adds."""
        ops = {op.name: op for op in self.graph.get_operations()}
        here = [name for name in names if node_of(name) in ops]
        if here:
            is_node = {name: ":" not in name and not ops[name].outputs for name in here}
            return tuple(n if is_node[n] else self.tensor(n).name for n in here), "as asked for"
        outputs = sorted(self.signature.outputs.items()) if self.signature else []
        if known := tuple(self.tensor(info.name).name for _, info in outputs if info.name):
            return known, f"the {'output' if len(known) == 1 else 'outputs'} of its signature"
        if train_ops := [n for n in graph_file.collected(self.file, "train_op") if n in ops]:
            return tuple(train_ops), "its collection train_op"
        inputs = {node.name: node.waits_for for node in self.nodes}
        used = {name for names in inputs.values() for name in names}
        savers = {node.name for node in self.nodes if SAVERS.fullmatch(node.op)}
        ends = tuple(
            f"{node.name}:0"
            for node in self.nodes
            if node.name not in used
            and node.op not in (*BOOKS, "Const", *PLACEHOLDERS)
            and node.outputs
            and node.outputs[0].dtype not in HANDLES
            and not savers & reach([node.name], inputs)
        )
        return ends, f"no other node uses {'it' if len(ends) == 1 else 'them'}"

    def output(self, fetches: Sequence[str]) -> tf.Tensor | None:
        """Return the first fetched tensor, otherwise the last that the fetches need, if any."""
        needed = nodes_needed(self.nodes, fetches, ())
        made = (
            node.name
            for node in reversed(self.nodes)
            if node.name in needed and node.outputs and node.outputs[0].dtype not in HANDLES
        )
        name = next(chain((name for name in fetches if ":" in name), made), None)
        return self.tensor(name) if name else None

    def variables(self, needed: set[str]) -> list[str]:
        return [node.name for node in self.nodes if node.op in VARIABLES and node.name in needed]

    def given(self, options: Saved) -> Given:
        """Return the user's array or shape, by tensor. Raises UsageError if it cannot be fed."""
        keys = dict(self.signature.inputs) if self.signature else {}
        ops = {op.name for op in self.graph.get_operations()}

        def named(name: str) -> str:
            fed = self.tensor(keys[name].name if name in keys and name not in ops else name)
            if not self.graph.is_feedable(fed) or fed.dtype.name in HANDLES:
                raise UsageError(f"'{name}' cannot be fed. Feed a tensor that is computed from it.")
            return fed.name

        shapes = {named(name): shape for name, shape in options.shapes}
        return shapes | {named(name): load(name, path) for name, path in options.feeds}

    def fed(self, given: Iterable[str], ends: Sequence[str]) -> tuple[list[tf.Tensor], set[str]]:
        """Return the tensors to feed, and the nodes that the ends then need. Fed are the tensors
        that the user names, the inputs of the signature, and all needed placeholders."""
        by_user = list(map(self.tensor, given))
        inputs = self.signature.inputs.values() if self.signature else ()
        of_signature = [self.tensor(info.name) for info in inputs if info.name]
        chosen = {t.name: t for t in (*by_user, *of_signature) if self.graph.is_feedable(t)}
        needed = nodes_needed(self.nodes, ends, chosen)
        for node in self.nodes:
            if node.op in PLACEHOLDERS and node.name in needed:
                chosen.setdefault(f"{node.name}:0", self.tensor(node.name))
        unused = [label(tensor) for tensor in by_user if tensor.op.name not in needed]
        if ends and unused:
            raise UsageError(
                f"'{unused[0]}' is not needed for {listed(ends, LISTED)}, so nothing can be fed to "
                "it. Leave it out, or give another --fetch."
            )
        fed = [t for t in chosen.values() if t.op.name in needed and t.dtype.name not in HANDLES]
        return fed, needed

    def start(self, needed: set[str]) -> Start:
        """Return how the needed variables get their initial values, and the tables theirs."""
        variables = self.variables(needed)
        tables, checkpoint = graph_file.table_initializers(self.file), self.file.checkpoint
        saver, waited_for = self.file.meta.saver_def, nodes_needed(self.nodes, tables, ())
        feeds = {
            f"{node.name}:0": path
            for node in self.nodes
            if node.op in PLACEHOLDERS and node.name in waited_for
            if (path := graph_file.assets(self.file).get(node.name))
        }
        if variables and checkpoint and saver.restore_op_name:
            about = f"Variables have the values of the checkpoint of '{self.file.name}'."
            targets = (node_of(saver.restore_op_name), *tables)
            return Start(targets, feeds | {saver.filename_tensor_name: checkpoint}, about)
        assigned = {
            node_of(node.inputs[0]): node.name
            for node in reversed(self.nodes)
            if node.op in ASSIGNMENTS and node.name.endswith("/Assign")
        }
        initialised = [assigned[name] for name in variables if name in assigned]
        about = "Variables have the values of their initialisers." if initialised else ""
        return Start((*tables, *initialised), feeds, about)


# The values that are fed


def label(tensor: tf.Tensor) -> str:
    """Return the name of a fed tensor for readers: `x` for a placeholder, else `dequeue:1`."""
    return tensor.op.name if tensor.op.type in PLACEHOLDERS else tensor.name


def load(name: str, file: str) -> np.ndarray:
    """Return the array to feed to `name`. It is mapped from its file, because a header may declare
    more than the file has. Raises UsageError if the file has no array."""
    try:
        confined.check_plain(Path(file))
        return np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"'{file}' cannot be fed to '{name}': {with_full_stop(reason(error))} Give a .npy file "
            "with one array."
        ) from error


def columns_of(fed: Sequence[tf.Tensor], given: Given) -> tuple[dict[str, Column], list[str]]:
    """Return the data of each fed tensor, and a phrase about each that has seeded values."""
    shapes = {tensor.name: feed_shape(tensor, given.get(tensor.name)) for tensor in fed}
    arrays = {name: np.asarray(v) for name, v in given.items() if isinstance(v, np.ndarray)}
    batched = [tensor for tensor in fed if shapes[tensor.name][:1] == (None,)]
    lengths = [len(arrays[tensor.name]) for tensor in batched if tensor.name in arrays]
    row_bytes = [prod(d or 1 for d in shapes[t.name]) * (t.dtype.size or 1) for t in batched]
    rows = min(lengths, default=UNBOUND)
    if batched and not lengths:
        rows = max(LEAST_ROWS, min(MOST_ROWS, ROWS_BYTES // max(row_bytes)))
    columns: dict[str, Column] = {}
    phrases = []
    for tensor in fed:
        name, shape = label(tensor), shapes[tensor.name]
        values = arrays.get(tensor.name)
        if values is None:
            values = seeded(tensor.dtype, [rows if dim is None else dim for dim in shape])
            sizes = ", ".join("batch" if dim is None else str(dim) for dim in shape)
            phrases.append(f"{name} {tensor.dtype.base_dtype.name} [{sizes}]")
        columns[name] = values[:rows] if shape[:1] == (None,) else Whole(values, rows)
    return columns, phrases


def feed_shape(tensor: tf.Tensor, given: np.ndarray | tuple[int, ...] | None) -> Shape:
    """Return the shape to feed: that of the user's array, or the user's own, or else the static
    one, with the batch (None) as first open dimension and 1 as any other. Raises UsageError."""
    known = tensor.shape.rank is not None
    dims = tensor.shape.as_list() if known else [None]
    if given is None:
        return tuple(dim or (None if at == 0 else 1) for at, dim in enumerate(dims))
    shape = tuple(given.shape) if isinstance(given, np.ndarray) else given
    if not tensor.shape.is_compatible_with(shape):
        raise UsageError(
            f"'{label(tensor)}' takes the shape {tensor.shape}, which {list(shape)} does not fit."
        )
    of_rows = dims[:1] == [None] and (known or isinstance(given, np.ndarray))
    return (None, *shape[1:]) if shape and of_rows else shape


def seeded(dtype: tf.DType, shape: Sequence[int]) -> np.ndarray:
    """Return values of a dtype and shape: normally distributed, zeros and ones, or empty strings; a
    scalar is 0.5 (a probability, a rate) or False."""
    plain = dtype.base_dtype
    rng = np.random.default_rng(SEED)
    if plain == tf.string:
        return np.full(shape, b"", object)
    if not len(shape) and (plain.is_floating or plain.is_bool):
        return np.array(0.5 if plain.is_floating else False, plain.as_numpy_dtype)
    if plain.is_floating or plain.is_complex:
        return rng.standard_normal(shape, np.float32).astype(plain.as_numpy_dtype)
    # Whole numbers are indices or labels: 0 and 1 are valid for most
    return rng.integers(0, 2, shape).astype(plain.as_numpy_dtype)
