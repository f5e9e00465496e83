"""Gradients of files: gradients that a graph came with, found by its edges and names."""

from __future__ import annotations

from tflab.analysis import gradient_search
from tflab.lifecycle import meaning
from tflab.records import Backward, Frontend, Gradient, Options
from tflab.runtime import nodes


def read(frontend: Frontend, options: Options) -> Backward:
    """The backward stage of a graph to which nothing is added, with the gradients that it contains.

    Edges show which nodes lead from a loss to an update; names show which forward op they belong
    to.
    """
    program = frontend.live
    program.graph.finalize()
    found = gradient_search.search(frontend.nodes, nodes.ones(program.graph))
    order = [node.name for node in frontend.nodes]
    owners = gradient_search.owners(order, found.gradients)
    made: dict[str, list[str]] = {}
    for name, forward in owners.items():
        made.setdefault(forward, []).append(name)
    gradients = {*found.gradients, *filter(gradient_search.SCOPE.fullmatch, order)}
    updates = (name for training in found.trainings for name in training.updates)
    stage = Backward(
        program=program,
        nodes=frontend.nodes,
        functions=frontend.functions,
        gradients=tuple(
            Gradient(
                node.name,
                node.op,
                meaning.registered(program.graph.get_operation_by_name(node.name))[0],
                tuple(made[node.name]),
            )
            for node in frontend.nodes
            if node.name in made
        ),
        update_nodes=tuple(dict.fromkeys(updates)),
        shared_nodes=tuple(name for name in order if name in gradients - owners.keys()),
        losses=tuple(training.loss for training in found.trainings if training.loss),
        inferred=bool(owners or found.gradients),
    )
    return meaning.inferred(stage, options) if stage.inferred else stage
