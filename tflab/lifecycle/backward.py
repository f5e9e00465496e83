"""Backward: for each forward op, its registered gradient function adds the ops of its derivative.

`tf.gradients` walks the graph from the loss back to the variables and calls one Python function
per op. Still nothing is computed: the graph has grown its other half.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import tensorflow as tf

from tflab.analysis import access_order, chain_rule, gradient_nodes, gradient_stops
from tflab.analysis.gradient_graph import GradientGraph
from tflab.analysis.gradient_stops import RETURNED_NONE, ZEROS, Stops
from tflab.errors import RefusedError, TflabError
from tflab.lifecycle import check_points, derivatives, gradient_check, gradients
from tflab.lifecycle.frontend import step_of
from tflab.lifecycle.gradients import Pairs
from tflab.lifecycle.graph_copies import Copy
from tflab.records.gradients import Derivative, GradientStop
from tflab.records.graph import (
    BACKWARD,
    UPDATE,
    Function,
    Node,
    Source,
    node_of,
    with_dependents,
    with_makers,
)
from tflab.records.options import Model, Options, Program
from tflab.records.stages import Backward, Frontend, Gradient
from tflab.runtime import functions, nodes, phases, private
from tflab.views.words import grouped, place

# What an optimiser's nodes, and the nodes of `tf.gradients`, are called
UPDATES = re.compile(r"(Resource)?(Sparse)?Apply\w+")
GRADIENTS = re.compile(r"(^|/)gradients(_\d+)?/")
NOT_NEEDED = "the loss does not depend on it"
NO_PATH = "no path of tensors leads from it to the loss"
UNKNOWN = "tflab could not confirm which tensor is its gradient"
NO_VARIABLE = "it does not depend on a trainable variable"
NOT_REGISTERED = "no gradient function is registered for its op"
NO_INPUTS = "it has no inputs, so its gradient goes no further"
NOT_DIFFERENTIABLE = "its op is registered as not differentiable"
PASSED_ON = "its gradient function passes the gradient on unchanged"
NO_FLOATS = "its result is no floating-point number"
NOT_CALLED = "no gradient reaches it"
NONE_MADE = "its gradient function adds no node"
GRADIENT_TYPES = ("float", "bfloat", "complex", "resource", "variant")  # prefixes of types
STOPS_AT = "its gradient stops at"
MOST_ON_PATH = 100  # nodes of a path that are kept
NO_GRADIENT = "no variable has a gradient"


def differentiate(frontend: Frontend, options: Options) -> Backward:
    """Add gradients and the optimiser's updates to the graph, and record what came from what.

    A model without a loss or an optimiser passes unchanged. Raises TflabError if the loss cannot be
    differentiated.
    """
    program = frontend.live
    if program.model.loss is None or not (program.model.optimizer or program.model.parameters):
        return unchanged(frontend)
    # TensorFlow does not do so by default; over several devices a gradient follows its forward op.
    with private.gradient_calls() as calls:
        derived = derive(program, together=options.devices > 1 or bool(options.cluster))
    pairs, gradient_ops, update_ops, train_op = derived
    added = gradient_ops + update_ops
    program.graph.finalize()  # from here on the graph must not change
    rows, stops = gradients_of(program, frontend.nodes, gradient_ops, calls, pairs)
    new_nodes = with_lines(frontend.nodes, program, pairs, added)
    grown = phases.phased((*frontend.nodes, *new_nodes), program.graph.get_operations())
    new = tuple(added_functions(frontend, grown, program.graph))
    stage = Backward(
        program=replace(program, train_op=train_op, model=fetching(program.model, pairs, train_op)),
        nodes=tuple(with_outputs(grown, program.graph)) if frontend.functions else grown,
        functions=(*frontend.functions, *new),
        added_functions=tuple(function.name for function in new),
        added_nodes=tuple(op.name for op in added),
        update_nodes=tuple(op.name for op in update_ops),
        shared_nodes=tuple(op.name for op in gradient_ops if private.original_op(op) is None),
        gradients=rows,
        gradient_stops=stops,
        data=program.dataset("train").name,
        variable_count=len(pairs),
    )
    step = step_of(stage.program, stage.nodes, options)
    found = access_order.unordered(step, stage.functions)
    stage = replace(stage, unordered=tuple(row for row in found if row not in frontend.unordered))
    if all(gradient is None for gradient, _ in pairs):
        return replace(stage, unchecked=NO_GRADIENT)
    return explained(stage, pairs, calls, options) if options.explained else stage


def unchanged(frontend: Frontend) -> Backward:
    """Return the stage of a graph to which nothing is added. Which of its nodes are gradients is
    not looked for: only that it has some."""
    program = frontend.live
    program.graph.finalize()
    return Backward(
        program=program,
        nodes=frontend.nodes,
        functions=frontend.functions,
        update_nodes=tuple(
            node.name
            for node in frontend.nodes
            if node.phase == UPDATE or UPDATES.fullmatch(node.op)
        ),
        inferred=any(
            node.phase == BACKWARD or GRADIENTS.search(node.name) or node.op.endswith("Grad")
            for node in frontend.nodes
        ),
    )


def explained(stage: Backward, pairs: Pairs, calls: gradients.Calls, options: Options) -> Backward:
    """Return the stage with formulas, the purpose of each gradient node, and checks of the
    gradients: without checks if a graph from a file cannot, or may not, run."""
    model, graph = stage.program.model, gradients.graph_of(stage, calls)
    what, why = "no step can be run", model.unready
    if why is None:
        try:
            with gradient_check.opened(stage.program, graph, pairs, options) as copy:
                return described(stage, graph, pairs, copy, options)
        except RefusedError as error:
            if model.optimizer is not None:
                raise
            what, why = "a run of the loss and its gradients failed", error
    reason = f"{what}. {str(why).rstrip('.')}"
    return described(stage, graph, pairs, reason, options)


def described(
    stage: Backward, graph: GradientGraph, pairs: Pairs, copy: Copy | str, options: Options
) -> Backward:
    """Return the stage with what its gradient nodes are, checked in a copy of the graph. Without a
    copy, the reason is given instead."""
    program = stage.program
    checked, rows = gradient_check.Checked((), str(copy)), tuple[Derivative, ...]()
    no_formula = str(copy)
    if isinstance(copy, Copy):
        graph = replace(graph, points=check_points.computed(copy, program, graph, options))
    loss_pairs = gradients.of_loss(graph, pairs)
    if isinstance(copy, Copy):
        # What no gradient function made is the gradient of the loss if finite differences agree.
        candidates = [
            (own if own is not None else g, v)
            for (g, v), (own, _) in zip(pairs, loss_pairs, strict=True)
        ]
        checked = gradient_check.check(copy, program, candidates)
        size = options.batch_size
        rows, no_formula = derivatives.read(copy, program, loss_pairs, graph, size, checked)
    made = {v.op.name for own, v in loss_pairs if own is not None}
    checks = tuple(check for check in checked.checks if check.confirms or check.tensor in made)
    # Finite differences include what a stop_gradient ends: where they agree, it ended only zeros.
    doubtful = [check.tensor for check in checks if not check.agrees]
    every = (g for g, _ in (*loss_pairs, *pairs))  # of the loss, and what the optimiser receives
    ends = list(dict.fromkeys(tensor for g in every for tensor in gradients.tensors_of(g)))
    return replace(
        stage,
        gradient_nodes=gradient_nodes.described(graph, ends),
        chain_rule=chain_rule.links(graph, ends),
        gradient_checks=checks,
        unchecked=checked.reason or ("" if checks else UNKNOWN),
        stopped=chain_rule.stopped(graph, doubtful),
        custom_gradients=tuple(gradients.custom(program.graph, graph)),
        derivatives=rows,
        no_formula=no_formula,
    )


def derive(program: Program, together: bool) -> tuple[list, list, list, str | None]:
    """Return the (gradient, variable) pairs, the ops that gradients and updates added, the train
    op."""
    graph, loss, optimizer = program.graph, program.loss, program.model.optimizer
    before = len(graph.get_operations())
    try:
        with graph.as_default():
            pairs = gradient_pairs(program.model, together)
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


def gradient_pairs(model: Model, together: bool) -> list:
    """Return (gradient, variable) pairs: of the optimiser's variables, otherwise of the chosen
    parameters."""
    if model.optimizer is not None:
        return model.optimizer.compute_gradients(model.loss, colocate_gradients_with_ops=together)
    parameters = list(model.parameters)
    made = tf.compat.v1.gradients(model.loss, parameters, colocate_gradients_with_ops=together)
    return list(zip(made, parameters, strict=True))


def fetching(model: Model, pairs: Pairs, train_op: str | None) -> Model:
    """Return the fetches of a step that computes the gradients, if no optimiser uses them."""
    if train_op or model.loss is None:
        return model
    known = (gradient for gradient, _ in pairs if gradient is not None)
    # Of a gradient that is only some rows, fetch those rows: a sum would be another node.
    names = [g.values.name if isinstance(g, tf.IndexedSlices) else g.name for g in known]
    return replace(model, fetches=(model.loss.name, *names))


def with_lines(
    forward: tuple[Node, ...], program: Program, pairs: list, ops: Iterable[tf.Operation]
) -> Iterable[Node]:
    """Yield the added nodes, each with the user's line that it belongs to.

    Nodes that differentiate an op, or add up its gradients, have the line of that op; nodes that
    add up the gradients of a variable have the line of the variable. Other gradients have the line
    of their inputs, and the first gradient that of the loss. An update has the line that made the
    optimiser.
    """
    lines = {node.name: node.line for node in forward}
    for gradient, variable in pairs:
        for tensor in (getattr(gradient, "values", gradient), getattr(gradient, "indices", None)):
            if tensor is not None:
                lines.setdefault(tensor.op.name, lines.get(variable.op.name))
    for op in ops:
        node, origin = nodes.from_operation(op), private.derived_from(op)
        if node.phase == UPDATE:
            node = replace(node, source=program.optimizer_line)
        elif origin is not None:
            node = replace(node, source=lines.get(origin.name, node.line))
        else:
            sources = [lines[name] for name in (op.name, *parents(node)) if name in lines]
            line = (sources or [lines[program.loss.op.name]])[0]
            node = replace(node, source=line, phase=BACKWARD)
        lines[op.name] = node.source
        yield replace(node, forward_source=None)


def with_outputs(listed: Iterable[Node], graph: tf.Graph) -> Iterable[Node]:
    """Yield the nodes, with what a gradient made a branch or a loop take and return."""
    for node in listed:
        if functions.calling(node.op):
            now = nodes.from_operation(graph.get_operation_by_name(node.name))
            node = replace(now, source=node.source, forward_source=node.forward_source)
        yield node


def added_functions(
    frontend: Frontend, listed: Iterable[Node], graph: tf.Graph
) -> Iterable[Function]:
    """Yield the functions that differentiation added: gradients of branches and loops, and variants
    of forward functions that keep what those need.

    A node without a user's line has the line of the node that calls its function.
    """
    before = {function.name for function in frontend.functions}
    lines: dict[tuple[str | None, str], Source | None] = {}
    lines |= {(None, node.name): node.line for node in listed}
    for function in functions.of_graph(graph, frontend.live.model.lines):
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


def gradients_of(
    program: Program,
    forward: tuple[Node, ...],
    gradient_ops: Iterable[tf.Operation],
    calls: gradients.Calls,
    pairs: Pairs,
) -> tuple[tuple[Gradient, ...], tuple[GradientStop, ...]]:
    """Return for each forward node its gradient function and its gradient nodes, or why there are
    none; and where the gradients of variables stop.

    TensorFlow itself records which node came from which; names do not matter.
    """
    origins = ((private.original_op(op), op.name) for op in gradient_ops)
    derived = grouped((origin.name, name) for origin, name in origins if origin is not None)
    calls_of = grouped((call[0].name, call) for call in calls if call[0].graph is program.graph)
    by_name = {node.name: node for node in forward}
    operation = program.graph.get_operation_by_name
    functions_of = {name: gradients.registered(operation(name)) for name in by_name}
    needed = with_makers(forward, [program.loss.op.name])
    trained = trained_nodes(program, forward)
    listed = [node for node in forward if node.name in needed and node.name in trained]
    without = {  # why an op has no gradient; functions that nodes call have one of their own
        node.name: why
        for node in listed
        if node.name not in calls_of and not functions.calling(node.op)
        if (why := no_function_reason(node, *functions_of[node.name]))
    }
    stops = gradient_stops.stops(listed, program.loss.op.name, without, handed(calls_of))

    def reason(node: Node) -> str:
        """Return why a node has no gradient nodes."""
        if node.name not in needed:
            return NOT_NEEDED
        if node.name not in trained:
            return NO_VARIABLE
        if stops.at(node.name) and differentiable(node):
            ends = ((by_name[end], stops.reasons[end]) for end in stops.at(node.name))
            return f"{STOPS_AT} {'; '.join(f'{place_of(end)}: {why}' for end, why in ends)}"
        if not node.inputs:
            return NO_INPUTS
        if why := no_function_reason(node, *functions_of[node.name]):
            return why
        return no_nodes_reason(calls_of.get(node.name, ()))

    rows = []
    for node in forward:
        made, function = tuple(derived.get(node.name, ())), functions_of[node.name][0]
        rows.append(Gradient(node.name, node.op, function, made, None if made else reason(node)))
    return tuple(rows), tuple(of_variables(by_name, pairs, stops, needed))


def handed(calls_of: Mapping[str, gradients.Calls]) -> dict[tuple[str, str], str]:
    """Return what is wrong with what gradient functions returned, by op and node of its input."""
    wrongs: dict[tuple[str, str], str] = {}
    for name, made in calls_of.items():
        for op, _, returned in made:
            for tensor, gradient in zip(op.inputs, returned, strict=False):
                wrong = RETURNED_NONE if gradient is None else ""
                wrong = ZEROS if gradients.only_zeros(gradient) else wrong
                wrongs[name, tensor.op.name] = wrongs.get((name, tensor.op.name), wrong) and wrong
    return wrongs


def of_variables(
    by_name: Mapping[str, Node], pairs: Pairs, stops: Stops, needed: Collection[str]
) -> Iterator[GradientStop]:
    """Yield where the gradients stop of the variables that get none, or only zeros."""
    for gradient, variable in pairs:
        name = variable.op.name
        ends = stops.at(name)
        if gradient is None and name not in needed:
            yield GradientStop(name, "", "", None, NO_PATH, ())
        elif gradient is None or all(stops.reasons[end] == ZEROS for end in ends):
            for end in ends:
                node, path = by_name[end], tuple(islice(stops.path(name, end), MOST_ON_PATH))
                yield GradientStop(name, end, node.op, node.line, stops.reasons[end], path)


def differentiable(node: Node) -> bool:
    """Return whether a node has an output through which a gradient can come."""
    return any(output.dtype.startswith(GRADIENT_TYPES) for output in node.outputs)


def place_of(node: Node) -> str:
    """Return a node with its type and line: `mask (Round, train.py:12)`."""
    return f"{node.name} ({', '.join(filter(None, (node.op, place(node.line))))})"


def no_function_reason(node: Node, function: str | None, registered: bool) -> str:
    """Return why an op has no gradient, whatever arrives at it; "" if it has one."""
    if not function:
        return NOT_DIFFERENTIABLE if registered else NOT_REGISTERED
    return "" if differentiable(node) else NO_FLOATS


def no_nodes_reason(calls: gradients.Calls) -> str:
    """Return why the calls of an op's gradient function made no nodes."""
    received = [gradient for _, given, _ in calls for gradient in given]
    known = [gradient for _, _, made in calls for gradient in made if gradient is not None]
    if known and all(any(gradient is one for one in received) for gradient in known):
        return PASSED_ON
    if calls:
        return NONE_MADE if known else RETURNED_NONE
    return NOT_CALLED


def parents(node: Node) -> list[str]:
    return [node_of(tensor) for tensor in node.inputs]


def trained_nodes(program: Program, forward: tuple[Node, ...]) -> set[str]:
    """Return the trainable variables or parameters, and everything that is computed from them."""
    variables = program.graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
    variables += program.model.parameters
    return with_dependents(forward, (variable.op.name for variable in variables))
