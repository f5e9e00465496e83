"""Saved: a graph from a file as a Model. Missing information is chosen or made up, and its notes
say so.

Fetched are the user's fetches, otherwise those that `fetching` finds. Fed are the user's arrays,
otherwise values made up with a seed. Variables get the values of a checkpoint, otherwise of their
initialisers, otherwise values made up with a seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tflab.analysis import gradient_search
from tflab.analysis.ledger import nodes_needed
from tflab.cli import confined
from tflab.errors import TflabError, UsageError
from tflab.escaping import with_full_stop
from tflab.records.graph import Function, Node
from tflab.records.options import Model, Saved, Start
from tflab.runtime import functions, nodes, refusals
from tflab.saved_graphs import endless, feeding, fetching, permissions, sparse_inputs, starting
from tflab.saved_graphs.fetching import PLACEHOLDERS
from tflab.saved_graphs.graph_files import GraphFile
from tflab.saved_graphs.starting import VARIABLES


class NotImportableError(TflabError):
    """A graph that can be parsed but not imported: only its nodes can be shown."""

    def __init__(
        self, message: str, nodes: tuple[Node, ...], functions: tuple[Function, ...]
    ) -> None:
        super().__init__(message)
        self.nodes = nodes
        self.functions = functions


def build(file: GraphFile, options: Saved) -> Model:
    """Import the graph into the default graph and find out how to run it.

    Raises NotImportableError if TensorFlow rejects the graph, UsageError if the options name
    something that it does not have. If only running is impossible, for example because of a queue
    that no node fills, the model has the reason as `unready`, and the graph is still shown.
    """
    graph = tf.compat.v1.get_default_graph()
    graph_def, moved = permissions.on_this_machine(file.graph_def)
    graph_def, paths = permissions.with_paths(graph_def, starting.table_initialisation(file).feeds)
    import_graph(replace(file, graph_def=graph_def), graph, options, paths)
    graph_nodes = nodes.from_graph(graph)
    signature = fetching.signature_of(file, options.signature)
    loss = fetching.tensor(graph, options.loss) if options.loss else None
    fetches, why = what_runs(file, graph, graph_nodes, signature, options)
    ends = (*fetches, *([loss.name] if loss is not None else []))
    user_feeds = feeding.feeds_of_user(graph, signature, options)
    fed, needed, unfed = what_is_fed(graph, graph_nodes, signature, user_feeds, ends)
    handles = [tensor for tensor in fed if tensor.dtype in feeding.HANDLES]
    fed = [tensor for tensor in fed if tensor.dtype not in feeding.HANDLES]
    start, unready = None, None
    iterators: list[str] = []
    try:
        columns, made_up = feeding.columns_of(graph, fed, needed, user_feeds)
    except UsageError:
        raise
    except TflabError as error:
        columns, made_up, unready = {}, [], error
    fixed = feeding.fixed_batch(columns)
    try:
        if unready:
            raise unready
        if not fetches:
            raise fetching.nothing_to_run(graph_nodes)
        feeding.refuse_handles(handles)
        start, iterators = started(file, graph, graph_nodes, needed, fed)
    except TflabError as error:
        unready = error
    notes = notes_of(file, fetches, why, start, moved, fixed, made_up)
    permitted = permissions.Permissions(file.name, options.allowed, paths)
    return Model(
        output=output_of(graph, graph_nodes, fetches),
        feeds={tensor: feeding.label(tensor) for tensor in fed},
        data=lambda split, _: feeding.dataset(split, columns, bool(made_up)),
        loss=loss,
        fetches=fetches,
        parameters=parameters(graph, graph_nodes, loss, fed),
        notes=(*notes, *unfed, *iterators),
        start=start,
        lines=file.lines,
        made_up=tuple(feeding.label(t) for t in fed if t.name not in user_feeds.files),
        unready=unready,
        fixed_batch=fixed and fixed[1],
        captured=(),
        check_run=None if options.side_effects else permitted.check,
    )


def started(
    file: GraphFile, graph: tf.Graph, graph_nodes: Sequence[Node], needed: set[str], fed: list[Any]
) -> tuple[Start, list[str]]:
    """What is run once before the first step, and a sentence for each iterator that it
    initialises."""
    begun = [op.name for op in endless.beginnings(graph, needed)]
    needed = needed | nodes_needed(graph_nodes, begun, ())
    endless.refuse(graph, needed, {tensor.name for tensor in fed})
    start = starting.start_of(file, graph, graph_nodes, needed)
    sentences = [f"'{name}' runs once, to initialise an iterator." for name in begun]
    return replace(start, targets=(*start.targets, *begun)), sentences


def what_runs(
    file: GraphFile,
    graph: tf.Graph,
    graph_nodes: Sequence[Node],
    signature: Any,
    options: Saved,
) -> tuple[tuple[str, ...], str]:
    """The fetches, and why these; none if the user chose none and there is no clear choice."""
    wanted = fetching.asked_for(graph, graph_nodes, options.fetches)
    if wanted:
        return wanted, "as asked for"
    graph_functions = functions.of_graph(graph, file.lines)
    return fetching.fetches_of(
        graph_nodes, graph_functions, signature, training_of(graph, graph_nodes)
    )


def training_of(graph: tf.Graph, graph_nodes: Sequence[Node]) -> tuple[str, ...]:
    """The loss and the train op of the first training in the graph."""
    for training in gradient_search.search(graph_nodes, nodes.constants_of_one(graph)).trainings:
        return (*([f"{training.loss}:0"] if training.loss else []), *training.train_ops)
    return ()


def what_is_fed(
    graph: tf.Graph,
    graph_nodes: Sequence[Node],
    signature: Any,
    user_feeds: feeding.FeedOptions,
    ends: Sequence[str],
) -> tuple[list[tf.Tensor], set[str], list[str]]:
    """The tensors to feed, the nodes that the ends then need, and the inputs of the signature that
    cannot be fed. An input of the signature that depends on what the user feeds is not fed."""
    tensors = [graph.get_tensor_by_name(name) for name in user_feeds.tensors]
    by_user = {tensor.op.name for tensor in tensors}
    inputs, unfed = feeding.inputs_of(graph, signature)
    named_tensors = [
        *tensors,
        *(t for t in inputs if not nodes_needed(graph_nodes, [t.name], ()) & by_user),
    ]
    needed = nodes_needed(graph_nodes, ends, [tensor.name for tensor in named_tensors])
    if ends:
        feeding.check_used(user_feeds, graph, needed, ends)
    placeholders = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in graph_nodes
        if node.op in PLACEHOLDERS and node.name in needed
    ]
    placeholders += sparse_inputs.open_defaults(graph, needed)
    fed = {t.name: t for t in (*named_tensors, *placeholders) if t.op.name in needed}
    return list(fed.values()), needed, unfed


def notes_of(
    file: GraphFile,
    fetches: Sequence[str],
    why: str,
    start: Start | None,
    moved: str,
    fixed: tuple[str, int] | None,
    made_up: Sequence[str],
) -> Iterator[str]:
    origin = "exported as " if file.given else ""
    runs = f"runs {', '.join(fetches)} ({why})" if fetches else "has no default fetches"
    yield f"The graph is from '{file.name}', {origin}a {file.kind}. It {runs}."
    if start is not None and start.about:
        yield start.about
    if moved:
        yield moved
    if fixed:
        name, rows = fixed
        yield (
            f"The graph has a fixed batch size: the first dimension of '{name}' is {rows:,}, so "
            f"each step has {rows:,} rows."
        )
    if made_up:
        yield f"These values are made up from dtype and shape, with a seed: {'; '.join(made_up)}."


def import_graph(
    file: GraphFile, graph: tf.Graph, options: Saved, paths: Sequence[str] = ()
) -> None:
    """Import the graph of a file. `paths` are constants that contain the path of an asset."""
    if confined.unimported():
        raise not_importable(file, confined.unimported())
    if circle := endless.circle(file.graph_def):
        names = ", ".join(f"'{name}'" for name in circle)
        raise not_importable(file, f"its functions call one another in an endless cycle: {names}")
    graph_def = (
        file.graph_def
        if options.side_effects
        else permissions.locked(file.graph_def, options.allowed, paths)
    )
    try:
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")
    except Exception as error:  # TensorFlow raises many types
        if options.side_effects or options.allowed:
            # The message may quote a file that was read. Without permission no file is read, and
            # the error is the same.
            import_graph(file, tf.Graph(), replace(options, side_effects=False, allowed=()), paths)
            raise not_importable(
                file,
                "to infer a shape, TensorFlow read a value that does not fit. To see the graph, "
                "omit the --allow options",
            ) from error
        if isinstance(error, MemoryError):
            raise not_importable(file, "TensorFlow needs too much memory to import it") from error
        reason = " ".join(str(error).split()).partition(" [[")[0]
        reason = refusals.without_open_bracket(reason) or type(error).__name__
        missing = re.search(r"Op type not registered '([^']+)'", reason)
        if missing:
            library = missing[1].partition(">")[0] if ">" in missing[1] else "its library"
            reason = (
                f"it has an op of the type '{missing[1]}', which TensorFlow {tf.__version__} does "
                f"not know. It belongs to {library} or to another version"
            )
        raise not_importable(file, reason) from error


def not_importable(file: GraphFile, reason: str) -> NotImportableError:
    lines = nodes.graph_lines(file.lines)
    makers = {name: Node(name, "", source=source) for name, source in lines.items()}
    return NotImportableError(
        f"The graph '{file.name}' cannot be imported: {with_full_stop(reason)}",
        nodes.from_graph_def(file.graph_def, makers, {}),
        functions.of_graph_def(file.graph_def, file.lines),
    )


def output_of(
    graph: tf.Graph, graph_nodes: Sequence[Node], fetches: Sequence[str]
) -> tf.Tensor | None:
    """The first fetched tensor, otherwise a tensor that the fetches need."""
    named = next((name for name in fetches if ":" in name), None)
    if named:
        return fetching.tensor(graph, named)
    ops = map(graph.get_operation_by_name, nodes_needed(graph_nodes, fetches, ()))
    return next((op.outputs[0] for op in ops if op.outputs), None)


def parameters(
    graph: tf.Graph, graph_nodes: Sequence[Node], loss: Any, fed: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """The tensors with respect to which a chosen loss is differentiated: the variables, or the
    feeds if there are none."""
    if loss is None:
        return ()
    behind = nodes_needed(graph_nodes, [loss.name], ())
    handles = [
        graph.get_tensor_by_name(f"{node.name}:0")
        for node in graph_nodes
        if node.op in VARIABLES and node.name in behind
    ]
    return tuple(handles or [tensor for tensor in fed if tensor.dtype.is_floating])
