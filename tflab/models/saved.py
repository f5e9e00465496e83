"""Saved: a graph from a file as a Model. What it lacks is chosen or made up, and its notes say so.

Fetches: the signature's outputs, else a train op and its loss, else outputs that no node takes.
Feeds: the user's arrays, else values made up from dtype and shape with a seed. Initial values of
variables: those of a checkpoint, else of their initialisers, else made up with a seed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tflab.analysis import gradient_search
from tflab.analysis.gradient_search import Training
from tflab.analysis.ledger import nodes_needed
from tflab.errors import TflabError, UsageError
from tflab.records import Function, Model, Node, Saved, node_of
from tflab.runtime import functions, nodes
from tflab.saved_graphs import elsewhere, feeding, starting
from tflab.saved_graphs.effects import effects, effects_text
from tflab.saved_graphs.formats import GraphFile
from tflab.saved_graphs.starting import ASSIGNMENTS, VARIABLES

LISTED = 5  # effects and names that a message lists
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
QUIET = (*PLACEHOLDERS, *VARIABLES, *ASSIGNMENTS, "Const", "NoOp", "SaveV2", "RestoreV2")


class NotImportableError(TflabError):
    """A graph that parses but cannot be imported: only its nodes can be shown."""

    def __init__(
        self, message: str, nodes: tuple[Node, ...], functions: tuple[Function, ...]
    ) -> None:
        super().__init__(message)
        self.nodes = nodes
        self.functions = functions


def build(file: GraphFile, options: Saved) -> Model:
    """Import the graph into the default graph and find out how to run it.

    Raises NotImportableError where TensorFlow refuses the graph, UsageError where the options name
    something that it does not have, or where it would touch more than tensors.
    """
    graph = tf.compat.v1.get_default_graph()
    graph_def, moved = (
        elsewhere.here(file.graph_def) if options.soft_placement else (file.graph_def, "")
    )
    import_graph(replace(file, graph_def=graph_def), graph)
    graph_nodes = nodes.from_graph(graph)
    signature = signature_of(file, options)
    trainings = gradient_search.search(graph_nodes, nodes.ones(graph)).trainings
    fetches, why = fetches_of(graph_nodes, signature, next(iter(trainings), None))
    loss = tensor(graph, options.loss) if options.loss else None
    needed = nodes_needed(graph_nodes, (*fetches, *([options.loss] if options.loss else [])), ())
    refuse_effects(file, graph_nodes, needed, options)
    placeholders = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in graph_nodes
        if node.op in PLACEHOLDERS and node.name in needed
    ]
    columns, made_up = feeding.columns_of(placeholders, options)
    start = starting.start_of(file, graph, graph_nodes, needed)
    origin = "exported as " if file.given else ""
    notes = [f"From '{file.name}', {origin}a {file.kind}: runs {', '.join(fetches)} ({why})."]
    notes += [start.about] if start.about else []
    notes += [moved] if moved else []
    fixed = feeding.fixed_batch(columns)
    if fixed:
        name, rows = fixed
        notes.append(
            f"The graph leaves no batch size open: the first dimension of '{name}' is {rows:,}, "
            "which is taken for the rows of each step."
        )
    if made_up:
        notes.append(f"Made up from dtype and shape, with a seed: {'; '.join(made_up)}.")
    return Model(
        output=output_of(graph, graph_nodes, fetches),
        feeds={placeholder: placeholder.op.name for placeholder in placeholders},
        data=lambda split, _: feeding.dataset(split, columns, bool(made_up)),
        loss=loss,
        fetches=fetches,
        parameters=parameters(graph, graph_nodes, loss, placeholders),
        notes=tuple(notes),
        start=start,
        lines=file.lines,
        fixed_batch=fixed and fixed[1],
        captured=(),
    )


def import_graph(file: GraphFile, graph: tf.Graph) -> None:
    try:
        with graph.as_default():
            tf.import_graph_def(file.graph_def, name="")
    except Exception as error:  # of many types, by what is wrong with the graph
        reason = " ".join(str(error).split()).partition(" [[")[0] or type(error).__name__
        missing = re.search(r"Op type not registered '([^']+)'", reason)
        if missing:
            library = missing[1].partition(">")[0] if ">" in missing[1] else "the library it is of"
            reason = (
                f"it has an op of the type '{missing[1]}', which TensorFlow {tf.__version__} does "
                f"not know; it comes from {library} or from another version"
            )
        raise NotImportableError(
            f"The graph '{file.name}' cannot be imported: {reason}.",
            nodes.from_graph_def(file.graph_def, nodes.lines_in(file.lines), {}),
            functions.of_graph_def(file.graph_def, file.lines),
        ) from error


def signature_of(file: GraphFile, options: Saved) -> Any:
    """The signature in the options, else `serving_default`, else the first; None without any."""
    known = dict(file.meta.signature_def) if file.meta is not None else {}
    known = {name: signature for name, signature in known.items() if not name.startswith("__")}
    if options.signature is not None and options.signature not in known:
        have = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"'{file.name}' has no signature '{options.signature}'; its signatures are: {have}."
        )
    name = options.signature or ("serving_default" if "serving_default" in known else None)
    return known[name] if name else next(iter(known.values()), None)


def fetches_of(
    graph_nodes: Sequence[Node], signature: Any, training: Training | None
) -> tuple[tuple[str, ...], str]:
    """What to run, and why. `training` is the first that the graph holds."""
    if signature is not None and signature.outputs:
        names = [info.name for _, info in sorted(signature.outputs.items()) if info.name]
        if names:
            return tuple(names), "the outputs of its signature"
    if training:
        loss = [f"{training.loss}:0"] if training.loss else []
        return (*loss, *training.train_ops), "its train op"
    taken = {node_of(tensor) for node in graph_nodes for tensor in node.inputs}
    taken |= {name for node in graph_nodes for name in node.control_inputs}
    sinks = [n for n in graph_nodes if n.name not in taken and n.outputs and n.op not in QUIET]
    fed = {node.name for node in graph_nodes if node.op in PLACEHOLDERS}
    depending = [n for n in sinks if nodes_needed(graph_nodes, [n.name], ()) & fed]
    chosen = (depending or sinks)[:LISTED]
    if not chosen:
        raise TflabError(
            "The graph has nothing to run: each of its outputs is taken by another node, or it "
            "has only constants and variables. Give --fetch NAME."
        )
    return tuple(f"{node.name}:0" for node in chosen), "nobody takes their outputs"


def output_of(graph: tf.Graph, graph_nodes: Sequence[Node], fetches: Sequence[str]) -> tf.Tensor:
    named = next((name for name in fetches if ":" in name), None)
    if named:
        return tensor(graph, named)
    ops = map(graph.get_operation_by_name, nodes_needed(graph_nodes, fetches, ()))
    return next(op.outputs[0] for op in ops if op.outputs)


def tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        nearest = ", ".join(similar_names(name, graph))
        hint = f" The nearest names are {nearest}." if nearest else ""
        raise UsageError(f"There is no tensor '{name}' in the graph.{hint}") from error


def similar_names(name: str, graph: tf.Graph) -> list[str]:
    """Names of similar tensors; first those that end in this name, in other scopes."""
    tensors = [tensor_name.name for op in graph.get_operations() for tensor_name in op.outputs]
    last = name.partition(":")[0].rpartition("/")[2]
    ending = [
        tensor_name
        for tensor_name in tensors
        if re.search(rf"(^|/){re.escape(last)}(_\d+)?:", tensor_name)
    ]
    near = difflib.get_close_matches(name if ":" in name else f"{name}:0", tensors, n=LISTED)
    return list(dict.fromkeys([*ending, *near]))[:LISTED]


def refuse_effects(
    file: GraphFile, graph_nodes: Sequence[Node], needed: set[str], options: Saved
) -> None:
    """Raise UsageError where running would touch more than tensors and that is not allowed."""
    library = [
        (f"{function.signature.name}/{node.name}", node.op)
        for function in file.graph_def.library.function
        for node in function.node_def
        if not is_saving_function(function)
    ]
    here = [(node.name, node.op) for node in graph_nodes if node.name in needed]
    side_effects = effects([*here, *library])
    if side_effects and not options.side_effects:
        more = f" and {len(side_effects) - LISTED} more" if len(side_effects) > LISTED else ""
        raise UsageError(
            f"Running '{file.name}' would touch more than tensors: "
            f"{effects_text(side_effects[:LISTED])}{more}. "
            "Give --allow-side-effects if you trust it."
        )


def is_saving_function(function: Any) -> bool:
    """Whether it is the function by which a SavedModel saves or restores its variables."""
    return (
        re.search(r"__inference__traced_(save|restore)_\d+$", function.signature.name) is not None
    )


def parameters(
    graph: tf.Graph, graph_nodes: Sequence[Node], loss: Any, placeholders: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """What a chosen loss is derived by: the variables, or where there are none, the feeds."""
    if loss is None:
        return ()
    behind = nodes_needed(graph_nodes, [loss.name], ())
    handles = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in graph_nodes
        if node.op in VARIABLES and node.name in behind
    ]
    return tuple(
        handles or [placeholder for placeholder in placeholders if placeholder.dtype.is_floating]
    )
