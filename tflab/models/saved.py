"""Saved: a graph from a file as a Model.

Fetched are the user's fetches, otherwise the outputs of its signature, the train op that it
collects, or what no other node uses. Fed are the user's arrays, otherwise seeded values by dtype
and static shape: the first open dimension is the batch, any other is 1. Variables get the values of
the checkpoint beside the file, otherwise of their initialisers, otherwise seeded values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import confined
from tflab.datasets import Column, Dataset, Whole
from tflab.errors import NotImportableError, TflabError, UsageError, did_you_mean, reason
from tflab.escaping import with_full_stop
from tflab.models import graph_file
from tflab.models.graph_file import GraphFile
from tflab.records.graph import VARIABLES, Node, node_of, nodes_needed, reach
from tflab.records.options import Model, Saved, Start
from tflab.runtime import functions, nodes, refusals
from tflab.units import plural, size

LISTED = 5  # names that a sentence lists
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
ASSIGNMENTS = ("AssignVariableOp", "Assign")
# Nodes without users that compute nothing: they keep, set, read or check a variable
BOOKS = (*VARIABLES, *ASSIGNMENTS, "ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized")
SAVERS = re.compile(r"(Save|Restore)(V2|Slices?)?|MergeV2Checkpoints")
STRING = tf.string.as_datatype_enum
HANDLES = ("resource", "variant")  # dtypes of values that only a graph itself can make
SEED = 1
LARGEST = 2**30  # bytes of seeded values for one tensor
ROWS_BYTES, MOST_ROWS, LEAST_ROWS = 64 * 2**20, 1024, 64  # of the rows of one tensor
UNBOUND = 2**16  # rows if no fed tensor has a batch dimension
NOTHING = (
    "has nothing to run by default: every output is used by another node, or only keeps, saves or "
    "restores variables. Give --fetch NAME."
)
SCOPE = "tflab_start"  # the name scope of assignments that tflab adds

Shape = tuple[int | None, ...]  # None as first dimension is the batch


def build(file: GraphFile, options: Saved) -> Model:
    """Import the graph into the default graph and find out how to run it.

    Raises NotImportableError if TensorFlow rejects the graph, UsageError if the options name
    something that it does not have. If it has nothing to run, the model has the reason as
    `unready`, and the graph is still shown.
    """
    graph = tf1.get_default_graph()
    import_graph(file, graph, options.trust)
    graph_nodes = nodes.from_graph(graph)
    signature = graph_file.signature_of(file, options.signature)
    loss = tensor(graph, options.loss) if options.loss else None
    fetches, why = fetches_of(file, graph, graph_nodes, signature, options.fetches)
    ends = (*fetches, *([loss.name] if loss is not None else []))
    files, shapes = given(graph, signature, options)
    fed, needed = fed_tensors(graph, graph_nodes, signature, (*files, *shapes), ends)
    arrays = {name: load(name, path) for name, path in files.items()}
    columns, phrases = columns_of(fed, arrays, shapes)
    start = start_of(file, graph, graph_nodes, needed)
    sizes = [len(c.value) for c in columns.values() if isinstance(c, Whole) and np.ndim(c.value)]
    fixed = max(sizes) if sizes and len(sizes) == len(columns) else None
    runs = f"runs {listed(fetches)} ({why})" if fetches else "has nothing to run by default"
    notes = [f"The graph is from '{file.name}', a {file.kind}. It {runs}."]
    notes += [start.about] if start.about else []
    notes += [f"Fed are seeded values: {'; '.join(phrases)}."] if phrases else []
    return Model(
        output=output_of(graph, graph_nodes, fetches),
        feeds={tensor: label(tensor) for tensor in fed},
        data=lambda split, _: dataset(split, columns, bool(phrases)),
        loss=loss,
        fetches=fetches,
        parameters=parameters(graph, graph_nodes, loss, fed),
        notes=tuple(notes),
        start=start,
        lines=file.lines,
        made_up=tuple(label(t) for t in fed if t.name not in arrays),
        unready=None if fetches else TflabError(f"'{file.name}' {NOTHING}"),
        fixed_batch=fixed,
    )


# The import


def import_graph(file: GraphFile, graph: tf.Graph, trusted: bool) -> None:
    if why := confined.unimported(trusted):
        raise not_importable(file, why)
    try:
        with graph.as_default(), confined.importing():
            tf.import_graph_def(prepared(file), name="")
    except MemoryError as error:
        raise not_importable(file, "TensorFlow needs too much memory to import it") from error
    except Exception as error:  # TensorFlow raises many types
        why = refusals.sentence(str(error)) or type(error).__name__
        raise not_importable(file, why) from error


def not_importable(file: GraphFile, why: str) -> NotImportableError:
    lines = nodes.graph_lines(file.lines)
    makers = {name: Node(name, "", source=source) for name, source in lines.items()}
    return NotImportableError(
        f"The graph '{file.name}' is shown but cannot be run: {with_full_stop(why)}",
        nodes.from_graph_def(file.graph_def, makers, {}),
        functions.of_graph_def(file.graph_def, file.lines),
    )


def prepared(file: GraphFile) -> Any:
    """Return the graph with all devices on this machine, because soft placement replaces a missing
    device only within the same job, and with its assets at the place where they are now."""
    copy = type(file.graph_def)()
    copy.CopyFrom(file.graph_def)
    for body in (copy.node, *(function.node_def for function in copy.library.function)):
        for node in body:
            if node.device:
                node.device = local(node.device)
    assets = {node_of(name): path for name, path in graph_file.tables(file).feeds.items()}
    for node in copy.node:
        if node.op == "Const" and node.name in assets and node.attr["dtype"].type == STRING:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(assets[node.name]))
    return copy


def local(device: str) -> str:
    """Return the same device on this machine; "" (any device) for an invalid name."""
    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return ""
    return tf.DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()


# What runs


def fetches_of(
    file: GraphFile,
    graph: tf.Graph,
    graph_nodes: Sequence[Node],
    signature: Any,
    names: Iterable[str],
) -> tuple[tuple[str, ...], str]:
    """Return what to fetch, and why. The user's names that are not here may be gradients that
    `--loss` adds later."""
    ops = {op.name: op for op in graph.get_operations()}
    asked = [
        name if ":" in name or not ops[name].outputs else f"{name}:0"
        for name in names
        if node_of(name) in ops
    ]
    if asked:
        return tuple(tensor(graph, name).name if ":" in name else name for name in asked), (
            "as asked for"
        )
    outputs = sorted(signature.outputs.items()) if signature is not None else []
    if known := tuple(tensor(graph, info.name).name for _, info in outputs if info.name):
        return known, f"the {'output' if len(known) == 1 else 'outputs'} of its signature"
    if train_ops := [name for name in graph_file.collected(file, "train_op") if name in ops]:
        return tuple(train_ops), "its collection train_op"
    inputs = {n.name: n.waits_for for n in graph_nodes}
    used = {name for names in inputs.values() for name in names}
    savers = {node.name for node in graph_nodes if SAVERS.fullmatch(node.op)}
    fetches = tuple(
        f"{node.name}:0"
        for node in graph_nodes
        if node.name not in used
        and node.op not in (*BOOKS, "Const", *PLACEHOLDERS)
        and node.outputs
        and node.outputs[0].dtype not in HANDLES
        and not savers & reach([node.name], inputs)
    )
    return fetches, f"no other node uses {'it' if len(fetches) == 1 else 'them'}"


def tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        names = [output.name for op in graph.get_operations() for output in op.outputs]
        hint = did_you_mean(name if ":" in name else f"{name}:0", names, LISTED)
        raise UsageError(f"There is no tensor '{name}' in the graph.{hint}") from error


def output_of(
    graph: tf.Graph, graph_nodes: Sequence[Node], fetches: Sequence[str]
) -> tf.Tensor | None:
    """Return the first fetched tensor, otherwise a tensor that the fetches need."""
    named = next((name for name in fetches if ":" in name), None)
    if named:
        return tensor(graph, named)
    ops = map(graph.get_operation_by_name, nodes_needed(graph_nodes, fetches, ()))
    return next((op.outputs[0] for op in ops if op.outputs), None)


def parameters(
    graph: tf.Graph, graph_nodes: Sequence[Node], loss: Any, fed: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """Return the tensors with respect to which a chosen loss is differentiated: the variables, or
    the feeds if there are none."""
    if loss is None:
        return ()
    behind = nodes_needed(graph_nodes, [loss.name], ())
    handles = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in graph_nodes
        if node.op in VARIABLES and node.name in behind
    ]
    return tuple(handles or [tensor for tensor in fed if tensor.dtype.is_floating])


# What is fed


def label(tensor: tf.Tensor) -> str:
    """Return the name of a fed tensor for readers: `x` for a placeholder, else `dequeue:1`."""
    return tensor.op.name if tensor.op.type in PLACEHOLDERS else tensor.name


def given(
    graph: tf.Graph, signature: Any, options: Saved
) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Return the user's files and shapes by tensor. Raises UsageError for one that cannot be
    fed."""
    keys = dict(signature.inputs) if signature is not None else {}
    ops = {op.name for op in graph.get_operations()}

    def named(name: str) -> str:
        if name in keys and name not in ops:
            name = keys[name].name
        fed = tensor(graph, name)
        if not graph.is_feedable(fed) or fed.dtype.name in HANDLES:
            raise UsageError(f"'{name}' cannot be fed. Feed a tensor that is computed from it.")
        return fed.name

    return (
        {named(name): path for name, path in options.feeds},
        {named(name): shape for name, shape in options.shapes},
    )


def fed_tensors(
    graph: tf.Graph,
    graph_nodes: Sequence[Node],
    signature: Any,
    names: Iterable[str],
    ends: Sequence[str],
) -> tuple[list[tf.Tensor], set[str]]:
    """Return the tensors to feed, and the nodes that the ends then need: those that the user names,
    the inputs of the signature, and the placeholders that the ends still need."""
    by_user = [graph.get_tensor_by_name(name) for name in dict.fromkeys(names)]
    inputs = dict(signature.inputs).values() if signature is not None else ()
    of_signature = [tensor(graph, info.name) for info in inputs if info.name]
    chosen = {t.name: t for t in (*by_user, *of_signature) if graph.is_feedable(t)}
    needed = nodes_needed(graph_nodes, ends, list(chosen))
    for node in graph_nodes:
        if node.op in PLACEHOLDERS and node.name in needed:
            chosen.setdefault(f"{node.name}:0", graph.get_tensor_by_name(f"{node.name}:0"))
    unused = [label(one) for one in by_user if ends and one.op.name not in needed]
    if unused:
        raise UsageError(
            f"'{unused[0]}' is not needed for {listed(ends)}, so nothing can be fed to it. Leave "
            "it out, or give another --fetch."
        )
    fed = [t for t in chosen.values() if t.op.name in needed and t.dtype.name not in HANDLES]
    return fed, needed


def load(name: str, file: str) -> np.ndarray:
    """Return the array to feed to `name`, mapped from its file: a header that declares more than
    the file has takes no memory. Raises UsageError if the file does not contain one array."""
    try:
        confined.check_plain(Path(file))
        return np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"'{file}' cannot be fed to '{name}': {with_full_stop(reason(error))} Give a .npy file "
            "with one array."
        ) from error


def columns_of(
    fed: Sequence[tf.Tensor],
    arrays: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
) -> tuple[dict[str, Column], list[str]]:
    """Return the data by fed tensor, and a phrase about each that has seeded values."""
    all_shapes = {
        tensor.name: feed_shape(tensor, shapes.get(tensor.name), arrays.get(tensor.name))
        for tensor in fed
    }
    rows = rows_of(fed, all_shapes, arrays)
    columns: dict[str, Column] = {}
    phrases = []
    for tensor in fed:
        name, shape = label(tensor), all_shapes[tensor.name]
        full = tuple(rows if dim is None else dim for dim in shape)
        if tensor.name in arrays:
            values = np.asarray(arrays[tensor.name])
            values = values[:rows] if shape[:1] == (None,) else values
        else:
            values = seeded(name, tensor.dtype, full)
            sizes = ", ".join("batch" if dim is None else str(dim) for dim in shape)
            phrases.append(f"{name} {tensor.dtype.base_dtype.name} [{sizes}]")
        columns[name] = values if shape[:1] == (None,) else Whole(values, rows)
    return columns, phrases


def feed_shape(
    tensor: tf.Tensor, chosen: tuple[int, ...] | None, array: np.ndarray | None
) -> Shape:
    """Return the shape to feed: of the user's array or option, otherwise the static one, in which
    the first open dimension is the batch (None) and any other is 1; a vector if none is known."""
    dims = tensor.shape.as_list() if tensor.shape.rank is not None else [None]
    shape = tuple(array.shape) if array is not None else chosen
    if shape is None:
        return tuple(dim or (None if at == 0 else 1) for at, dim in enumerate(dims))
    if not tensor.shape.is_compatible_with(shape):
        raise UsageError(
            f"'{label(tensor)}' takes the shape {tensor.shape}, which {list(shape)} does not fit."
        )
    known = array is not None or tensor.shape.rank is not None
    return (None, *shape[1:]) if shape and known and dims[:1] == [None] else shape


def rows_of(
    fed: Sequence[tf.Tensor], shapes: Mapping[str, Shape], arrays: Mapping[str, np.ndarray]
) -> int:
    """Return the number of rows: of the user's arrays, otherwise as many as fit in memory."""
    batched = [tensor for tensor in fed if shapes[tensor.name][:1] == (None,)]
    lengths = [len(arrays[tensor.name]) for tensor in batched if tensor.name in arrays]
    if lengths or not batched:
        return min(lengths, default=UNBOUND)
    row_bytes = [
        prod(dim or 1 for dim in shapes[t.name]) * max(1, t.dtype.size or 1) for t in batched
    ]
    return max(LEAST_ROWS, min(MOST_ROWS, ROWS_BYTES // max(1, *row_bytes)))


def seeded(name: str, dtype: tf.DType, shape: Sequence[int]) -> np.ndarray:
    """Return values of a dtype and shape: normally distributed, zeros and ones, or empty strings; a
    scalar is 0.5 (a probability, a rate) or False."""
    plain = dtype.base_dtype
    needed_bytes = prod(shape) * max(1, plain.size or 1)
    if needed_bytes > LARGEST:
        raise UsageError(
            f"'{name}' takes {size(needed_bytes)}, but tflab makes at most {size(LARGEST)} of "
            "seeded values. Give --feed or --shape."
        )
    rng = np.random.default_rng(SEED)
    if plain == tf.string:
        return np.full(shape, b"", object)
    if not len(shape) and (plain.is_floating or plain.is_bool):
        return np.array(0.5 if plain.is_floating else False, plain.as_numpy_dtype)
    if plain.is_floating or plain.is_complex:
        return rng.standard_normal(shape, np.float32).astype(plain.as_numpy_dtype)
    # Whole numbers are indices or labels: 0 and 1 are valid for most
    return rng.integers(0, 2, shape).astype(plain.as_numpy_dtype)


def dataset(split: str, columns: Mapping[str, Column], made: bool) -> Dataset:
    name = "seeded values" if made else "the arrays that were given"
    all_columns = columns or {"row": np.arange(UNBOUND)}
    return Dataset(name, split, all_columns, "the model's own data" if made else None)


# The initial values of its variables


def start_of(
    file: GraphFile, graph: tf.Graph, graph_nodes: Sequence[Node], needed: set[str]
) -> Start:
    """Return how the variables that the fetches need get their initial values, and tables too."""
    variables = [node.name for node in graph_nodes if node.op in VARIABLES and node.name in needed]
    tables = graph_file.tables(file)
    targets, feeds, about = [*tables.targets], dict(tables.feeds), ""
    saver = file.meta.saver_def if file.meta is not None else None
    if variables and file.checkpoint and saver is not None and saver.restore_op_name:
        feeds[saver.filename_tensor_name] = file.checkpoint
        targets.insert(0, node_of(saver.restore_op_name))
        about = f"Variables have the values of the checkpoint of '{file.name}'."
    elif variables:
        kept = tf.train.load_checkpoint(file.checkpoint) if file.checkpoint else None
        assigned = {
            node_of(node.inputs[0]): node.name
            for node in reversed(graph_nodes)
            if node.op in ASSIGNMENTS and node.name.endswith("/Assign")
        }
        counts = Counter[str]()
        for name in variables:
            if kept is not None and kept.has_tensor(name):
                source, begun = "the checkpoint", add_assignment(graph, name, kept.get_tensor(name))
            elif name in assigned:
                source, begun = "an initialiser", assigned[name]
            else:
                source, begun = "a seed", add_assignment(graph, name)
            counts[source] += 1
            targets.append(begun)
        parts = [f"{count:,} from {source}" for source, count in counts.items()]
        about = f"{plural(len(variables), 'variable')} got values: {', '.join(parts)}."
    return checked(Start(tuple(targets), feeds, about), file, graph)


def checked(start: Start, file: GraphFile, graph: tf.Graph) -> Start:
    """Return the same start. Raises TflabError if the file names nodes that the graph does not
    have."""
    ops = {op.name for op in graph.get_operations()}
    wrong = {*start.targets, *map(node_of, start.feeds)} - ops
    fed = [tensor(graph, name) for name in start.feeds if node_of(name) in ops]
    wrong |= {one.op.name for one in fed if one.dtype != tf.string or one.shape.rank}
    if wrong:
        raise TflabError(
            f"'{file.name}' says that '{min(wrong)}' restores or initialises it, but its graph has "
            "no such node. Save it again, or give its GraphDef."
        )
    return start


def add_assignment(graph: tf.Graph, name: str, values: np.ndarray | None = None) -> str:
    """Add a node that assigns values, or seeded ones, to a variable; return its name."""
    op = graph.get_operation_by_name(name)
    dtype = tf.dtypes.as_dtype(op.get_attr("dtype"))
    shape = tf.TensorShape(op.get_attr("shape"))
    if values is None and not shape.is_fully_defined():
        raise TflabError(f"The variable '{name}' has no values, no initialiser and no known shape.")
    if values is None:
        values = seeded(name, dtype, shape.as_list())
        values = values * 0.1 if dtype.is_floating else values  # as weights are
    with graph.as_default(), tf1.name_scope(f"{SCOPE}/"):
        held = tf.constant(values, dtype)
        if op.type == "VarHandleOp":
            return tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=held).name
        return tf.raw_ops.Assign(ref=op.outputs[0], value=held).op.name


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many there are more."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"
