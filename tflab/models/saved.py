"""Saved: a graph from a file becomes a Model, with what it lacks chosen or made up, and said.

What to fetch: the signature's outputs, else a train op and its loss, else what nobody takes.
What to feed: the user's arrays, else values made up from dtype and shape with a seed. What the
variables hold: a checkpoint's values, else those of their initialisers, else of a seed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tflab.analysis.ledger import nodes_needed
from tflab.errors import TflabError, UsageError
from tflab.records import Function, Model, Node, Saved, node_of
from tflab.runtime import functions, nodes
from tflab.saved_graphs import feeding, starting
from tflab.saved_graphs.effects import effects, listed
from tflab.saved_graphs.formats import GraphFile
from tflab.saved_graphs.starting import ASSIGNMENTS, VARIABLES

LISTED = 5  # effects and names that are written out
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
UPDATES = re.compile(r"(Resource|Sparse|ResourceSparse)?Apply\w+")
QUIET = (*PLACEHOLDERS, *VARIABLES, *ASSIGNMENTS, "Const", "NoOp", "SaveV2", "RestoreV2")


class NotImportableError(TflabError):
    """A graph that parses and cannot be imported: what is in it is all that can be shown."""

    def __init__(self, message: str, found: tuple[Node, ...], called: tuple[Function, ...]) -> None:
        super().__init__(message)
        self.nodes = found
        self.functions = called


def build(file: GraphFile, asked: Saved) -> Model:
    """Import the graph into the default graph and find out how to run it.

    Raises NotImportableError where TensorFlow refuses the graph, UsageError where something was
    asked for that it does not have, or where it would touch more than tensors.
    """
    graph = tf.compat.v1.get_default_graph()
    load(file, graph)
    written = nodes.from_graph(graph)
    signature = signature_of(file, asked)
    fetches, why = fetches_of(written, signature)
    loss = tensor(graph, asked.loss) if asked.loss else None
    needed = nodes_needed(written, (*fetches, *([asked.loss] if asked.loss else [])), ())
    refuse_effects(file, written, needed, asked)
    placeholders = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in written
        if node.op in PLACEHOLDERS and node.name in needed
    ]
    columns, made_up = feeding.columns_of(placeholders, asked)
    start = starting.start_of(file, graph, written, needed)
    way = "exported as " if file.given else ""
    notes = [f"From '{file.name}', {way}a {file.kind}: runs {', '.join(fetches)} ({why})."]
    notes += [start.about] if start.about else []
    if made_up:
        notes.append(f"Made up from dtype and shape, with a seed: {'; '.join(made_up)}.")
    return Model(
        output=output_of(graph, written, fetches),
        feeds={one: one.op.name for one in placeholders},
        data=lambda split, _: feeding.dataset(split, columns, bool(made_up)),
        loss=loss,
        fetches=fetches,
        parameters=parameters(graph, written, loss, placeholders),
        notes=tuple(notes),
        start=start,
        lines=file.lines,
    )


def load(file: GraphFile, graph: tf.Graph) -> None:
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


def signature_of(file: GraphFile, asked: Saved) -> Any:
    """The signature that was asked for, else the usual one, else the first; None without any."""
    known = dict(file.meta.signature_def) if file.meta is not None else {}
    known = {name: one for name, one in known.items() if not name.startswith("__")}
    if asked.signature is not None and asked.signature not in known:
        have = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"'{file.name}' has no signature '{asked.signature}'; its signatures are: {have}."
        )
    name = asked.signature or ("serving_default" if "serving_default" in known else None)
    return known[name] if name else next(iter(known.values()), None)


def fetches_of(written: Sequence[Node], signature: Any) -> tuple[tuple[str, ...], str]:
    """What to run, and why that."""
    if signature is not None and signature.outputs:
        names = [info.name for _, info in sorted(signature.outputs.items()) if info.name]
        if names:
            return tuple(names), "the outputs of its signature"
    by_name = {node.name: node for node in written}
    taken = {node_of(tensor) for node in written for tensor in node.inputs}
    taken |= {name for node in written for name in node.control_inputs}
    for node in written:
        updates = [name for name in node.control_inputs if name in by_name]
        if node.op == "NoOp" and any(UPDATES.fullmatch(by_name[name].op) for name in updates):
            loss = next(losses(written), None)
            return (*([f"{loss}:0"] if loss else []), node.name), "its train op"
    sinks = [n for n in written if n.name not in taken and n.outputs and n.op not in QUIET]
    fed = {node.name for node in written if node.op in PLACEHOLDERS}
    depending = [n for n in sinks if nodes_needed(written, [n.name], ()) & fed]
    chosen = (depending or sinks)[:LISTED]
    if not chosen:
        raise TflabError(
            "The graph has nothing to run: each of its outputs is taken by another node, or it "
            "has only constants and variables. Give --fetch NAME."
        )
    return tuple(f"{node.name}:0" for node in chosen), "nobody takes their outputs"


def losses(written: Sequence[Node]) -> Iterator[str]:
    """The forward nodes at which gradients start: `gradients/Mean_grad/...` starts at `Mean`."""
    names = {node.name for node in written}
    for node in written:
        found = re.match(r"gradients(?:_\d+)?/(.+?)_grad/", node.name)
        if found and found[1] in names:
            yield found[1]


def output_of(graph: tf.Graph, written: Sequence[Node], fetches: Sequence[str]) -> tf.Tensor:
    named = next((name for name in fetches if ":" in name), None)
    if named:
        return tensor(graph, named)
    ops = map(graph.get_operation_by_name, nodes_needed(written, fetches, ()))
    return next(op.outputs[0] for op in ops if op.outputs)


def tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        nearest = ", ".join(alike(name, graph))
        hint = f" The nearest names are {nearest}." if nearest else ""
        raise UsageError(f"There is no tensor '{name}' in the graph.{hint}") from error


def alike(name: str, graph: tf.Graph) -> list[str]:
    """Names of tensors like this one; first those that end in it, within scopes."""
    tensors = [one.name for op in graph.get_operations() for one in op.outputs]
    last = name.partition(":")[0].rpartition("/")[2]
    ending = [one for one in tensors if re.search(rf"(^|/){re.escape(last)}(_\d+)?:", one)]
    near = difflib.get_close_matches(name if ":" in name else f"{name}:0", tensors, n=LISTED)
    return list(dict.fromkeys([*ending, *near]))[:LISTED]


def refuse_effects(
    file: GraphFile, written: Sequence[Node], needed: set[str], asked: Saved
) -> None:
    """Raise UsageError where running would touch more than tensors and nobody has allowed it."""
    library = [
        (f"{function.signature.name}/{node.name}", node.op)
        for function in file.graph_def.library.function
        for node in function.node_def
        if not saves(function)
    ]
    here = [(node.name, node.op) for node in written if node.name in needed]
    found = effects([*here, *library])
    if found and not asked.side_effects:
        more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
        raise UsageError(
            f"Running '{file.name}' would touch more than tensors: {listed(found[:LISTED])}{more}. "
            "Give --allow-side-effects if you trust it."
        )


def saves(function: Any) -> bool:
    """Whether it is the function by which a SavedModel saves or restores its variables."""
    return (
        re.search(r"__inference__traced_(save|restore)_\d+$", function.signature.name) is not None
    )


def parameters(
    graph: tf.Graph, written: Sequence[Node], loss: Any, placeholders: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """What a chosen loss is derived by: the variables, or where there are none, what is fed."""
    if loss is None:
        return ()
    behind = nodes_needed(written, [loss.name], ())
    handles = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in written
        if node.op in VARIABLES and node.name in behind
    ]
    return tuple(handles or [one for one in placeholders if one.dtype.is_floating])
