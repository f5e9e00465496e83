"""Backward: for each forward op, its registered gradient function adds the ops of its derivative.

`tf.gradients` walks the graph from the loss back to the variables and calls one Python function
per op. Still nothing is computed: the graph has grown its other half.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import access_order, chain_rule
from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import RefusedError, TflabError
from tflab.lifecycle import gradient_check, gradients, graph_copies
from tflab.lifecycle.frontend import step_of
from tflab.lifecycle.gradient_check import Checked
from tflab.lifecycle.gradients import Pairs
from tflab.records.graph import BACKWARD, UPDATE, Function, Node, Source, node_of
from tflab.records.options import Options, Program
from tflab.records.stages import UNEXPLAINED, Backward, Frontend
from tflab.runtime import functions, nodes
from tflab.runtime.private import graphs

# What an optimiser's nodes, and the nodes of `tf.gradients`, are called
UPDATES = re.compile(r"(Resource)?(Sparse)?Apply\w+")
GRADIENTS = re.compile(r"(^|/)gradients(_\d+)?/")
UNKNOWN = "tflab could not confirm which tensor is its gradient"
NO_GRADIENT = "no variable has a gradient"
CAME = "the graph came with gradients"
NO_LOSS = "the model has no loss or no optimiser, and its graph holds no gradients"


def differentiate(frontend: Frontend, options: Options) -> Backward:
    """Add gradients and the optimiser's updates to the graph, record what came from what, and
    explain and check the gradients. A model without a loss or an optimiser passes unchanged. Raises
    TflabError if the loss cannot be differentiated."""
    stage, pairs, calls = grow(frontend, options)
    return stage if stage.unchecked else explained(stage, pairs, calls, options)


def grow(frontend: Frontend, options: Options) -> tuple[Backward, Pairs, gradients.Calls]:
    """Return the stage without its explanations, the gradient of each variable, and the calls of
    the gradient functions. `differentiate` says what it raises."""
    program = frontend.live
    if program.model.loss is None or not (program.model.optimizer or program.model.parameters):
        return unchanged(frontend), [], []
    # TensorFlow does not do so by default; over several devices a gradient follows its forward op.
    calls: list[gradients.Call] = []
    with graphs.derivations(lambda op, *ends: calls.append((op, *map(tuple, ends)))):
        derived = derive(program, together=options.devices > 1 or bool(options.cluster))
    pairs, gradient_ops, update_ops, train_op = derived
    added = gradient_ops + update_ops
    program.graph.finalize()  # from here on the graph must not change
    rows, stops = gradients.rows_and_stops(program, frontend.nodes, gradient_ops, calls, pairs)
    new_nodes = with_lines(frontend.nodes, program, pairs, added)
    grown = nodes.phased((*frontend.nodes, *new_nodes), program.graph.get_operations())
    new = tuple(added_functions(frontend, grown, program.graph))
    if frontend.functions:  # a gradient made branches and loops take and return more
        grown = tuple(
            replace(
                nodes.from_operation(program.graph.get_operation_by_name(node.name)),
                source=node.source,
                forward_source=node.forward_source,
            )
            if functions.calling(node.op)
            else node
            for node in grown
        )
    called = (*frontend.functions, *new)
    program = replace(program, train_op=train_op)
    if not train_op:  # of a gradient of only some rows, those rows: a sum would be another node
        fetches = (part for g, _ in pairs for part in gradients.parts_of(g)[:1])
        model = replace(program.model, fetches=(program.loss.name, *fetches))
        program = replace(program, model=model)
    found = access_order.unordered(step_of(program, grown, options), called)
    unreached = all(gradient is None for gradient, _ in pairs)
    stage = Backward(
        program=program,
        nodes=grown,
        functions=called,
        added_functions=tuple(function.name for function in new),
        added_nodes=tuple(op.name for op in added),
        update_nodes=tuple(op.name for op in update_ops),
        gradients=rows,
        gradient_stops=stops,
        variable_count=len(pairs),
        unordered=tuple(row for row in found if row not in frontend.unordered),
        unchecked=NO_GRADIENT * unreached,
        **UNEXPLAINED,
    )
    return stage, pairs, calls


def unchanged(frontend: Frontend) -> Backward:
    """Return the stage of a graph to which nothing is added. The stage says whether the graph has
    gradients, not which of its nodes they are."""
    program = frontend.live
    program.graph.finalize()
    listed, why = frontend.nodes, program.model.not_trained.rstrip(".") or NO_LOSS
    if any(
        n.phase == BACKWARD or GRADIENTS.search(n.name) or n.op.endswith("Grad") for n in listed
    ):
        why = CAME
    updates = (n.name for n in listed if n.phase == UPDATE or UPDATES.fullmatch(n.op))
    return Backward(
        program=program,
        nodes=listed,
        functions=frontend.functions,
        added_functions=(),
        added_nodes=(),
        update_nodes=tuple(updates),
        gradients=(),
        gradient_stops=(),
        variable_count=0,
        unordered=(),
        unchecked=why,
        **UNEXPLAINED,
    )


def explained(stage: Backward, pairs: Pairs, calls: gradients.Calls, options: Options) -> Backward:
    """Return the stage with the chain rule, and checks of the gradients if the graph can run."""
    program, graph = stage.program, gradients.graph_of(stage, calls)
    if why := program.model.unready:
        return with_chain_rule(stage, graph, pairs, nothing_checked("no step can be run", why))
    try:
        points = graph_copies.points_of(program, graph, options)
        parts = (part for gradient, _ in pairs for part in gradients.parts_of(gradient))
        # A small batch or, if the graph does not accept that, the usual one
        batches = [points.small, graph_copies.batch_of(program, options.batch_size)]
        ends = [program.loss.name, *parts]
        with graph_copies.opened(program, ends, points.tensors, batches, options) as copy:
            graph = replace(graph, points=graph_copies.computed(copy, points))
            loss_pairs = gradients.of_loss(graph, pairs)
            # What no gradient function made is that of the loss if finite differences agree.
            both = zip(pairs, loss_pairs, strict=True)
            candidates = [(g if own is None else own, v) for (g, v), (own, _) in both]
            checked = gradient_check.check(copy, program, candidates)
            checked = gradient_check.with_derivatives(
                checked, copy, program, loss_pairs, graph, options.batch_size
            )
    except RefusedError as error:
        if program.model.optimizer is not None:
            raise
        checked = nothing_checked("a run of the loss and its gradients failed", error)
    return with_chain_rule(stage, graph, pairs, checked)


def nothing_checked(what: str, why: TflabError) -> Checked:
    reason = f"{what}. {str(why).rstrip('.')}"
    return Checked((), reason, no_formula=reason)


def with_chain_rule(
    stage: Backward, graph: GradientGraph, pairs: Pairs, checked: Checked
) -> Backward:
    """Return the stage with the chain rule, the purposes of its gradient nodes, and the checks of
    the loss's own gradients."""
    loss_pairs = gradients.of_loss(graph, pairs)
    called = dict.fromkeys(call.forward for call in graph.calls)
    custom = (  # gradient functions of a node's own, instead of that of its type
        op.name
        for op in map(stage.program.graph.get_operation_by_name, called)
        if "_gradient_op_type" in op.node_def.attr and not functions.calling(op.type)
    )
    made = {v.op.name for own, v in loss_pairs if own is not None}
    checks = tuple(check for check in checked.checks if check.confirms or check.tensor in made)
    # Finite differences include what a stop_gradient ends: where they agree, it ended only zeros.
    doubtful = [check.tensor for check in checks if not check.agrees]
    every = (g for g, _ in (*loss_pairs, *pairs))  # of the loss, and what the optimiser receives
    ends = list(dict.fromkeys(name for g in every for name in gradients.names_of(g)))
    return replace(
        stage,
        gradient_nodes=chain_rule.described(graph, ends),
        chain_rule=chain_rule.links(graph, ends),
        gradient_checks=checks,
        unchecked=checked.reason or ("" if checks else UNKNOWN),
        stopped=chain_rule.stopped(graph, doubtful),
        custom_gradients=tuple(custom),
        derivatives=checked.derivatives,
        no_formula=checked.no_formula,
    )


def derive(program: Program, together: bool) -> tuple[list, list, list, str | None]:
    """Return four things: (gradient, variable) pairs of the optimiser's variables or the chosen
    parameters; the ops that gradients added; the ops that updates added; the train op's name."""
    graph, loss, optimizer = program.graph, program.loss, program.model.optimizer
    before = len(graph.get_operations())
    try:
        with graph.as_default():
            if optimizer is not None:
                pairs = optimizer.compute_gradients(loss, colocate_gradients_with_ops=together)
            else:
                chosen = list(program.model.parameters)
                made = tf1.gradients(loss, chosen, colocate_gradients_with_ops=together)
                pairs = list(zip(made, chosen, strict=True))
            between = len(graph.get_operations())
            if optimizer is None or all(gradient is None for gradient, _ in pairs):
                return pairs, graph.get_operations()[before:], [], None
            train = optimizer.apply_gradients(pairs, name="train")
            if program.model.updates:
                train = tf.group(train, *program.model.updates, name="train_and_update")
    except (ValueError, LookupError, TypeError) as error:
        raise TflabError(
            f"The loss '{loss.name}' of the model '{program.name}' cannot be differentiated: "
            f"{str(error).splitlines()[0]}"
        ) from error
    ops = graph.get_operations()
    return pairs, ops[before:between], ops[between:], train.name


def with_lines(
    forward: tuple[Node, ...], program: Program, pairs: list, ops: Iterable[tf.Operation]
) -> Iterable[Node]:
    """Yield the added nodes, each with the user's line that it belongs to. This is the line of the
    op that the node differentiates, or whose gradients it adds up; of the variable whose gradients
    it adds up; of its first input with a line; or of the loss. An update has the line that made the
    optimiser."""
    lines = {node.name: node.line for node in forward}
    for gradient, variable in pairs:
        for name in gradients.names_of(gradient):
            lines.setdefault(node_of(name), lines.get(variable.op.name))
    for op in ops:
        node, origin = nodes.from_operation(op), graphs.derived_from(op)
        if node.phase == UPDATE:
            node = replace(node, source=program.optimizer_line)
        elif origin is not None:
            node = replace(node, source=lines.get(origin.name, node.line))
        else:
            names = (op.name, *map(node_of, node.inputs), program.loss.op.name)
            line = next(lines[name] for name in names if name in lines)
            node = replace(node, source=line, phase=BACKWARD)
        lines[op.name] = node.source
        yield replace(node, forward_source=None)


def added_functions(
    frontend: Frontend, listed: Iterable[Node], graph: tf.Graph
) -> Iterable[Function]:
    """Yield the functions that differentiation added: gradients of branches and loops, and variants
    of forward functions that keep what gradients need. A node may have the line of its caller."""
    before = {function.name for function in frontend.functions}
    lines: dict[tuple[str | None, str], Source | None] = {}
    lines |= {(None, node.name): node.line for node in listed}
    for function in functions.of_graph(graph):
        sources = (lines.get((call.function, call.node)) for call in function.called_by)
        caller = next((source for source in sources if source), None)
        body = [
            replace(node, source=node.forward_source or caller, forward_source=None)
            if node.source and node.source.file == __file__
            else node
            for node in function.nodes
        ]
        lines |= {(function.name, node.name): node.line for node in body}
        if function.name not in before:
            yield replace(function, nodes=tuple(body))
