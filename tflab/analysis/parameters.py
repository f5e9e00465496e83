"""Parameters: how many numbers a graph learns, by its variables and the ops that update them.

A graph does not say which of its variables are trained. Where it has the ops of an optimiser, those
are the ones that these update; slots and counters are variables of other inputs. No TensorFlow in
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tflab.records import Node, Shape, node_of

UPDATE = re.compile(r"(Resource)?(Sparse)?Apply\w+")  # their first input is what is trained


@dataclass(frozen=True)
class Variable:
    """A node that is a variable. Nodes of one shared name are one variable."""

    name: str
    shared_name: str
    shape: Shape


@dataclass(frozen=True)
class Parameters:
    """The variables of a graph, and their elements. Trained are those that optimiser ops update."""

    variables: int
    elements: int  # of those whose shape the graph says
    trained_variables: int
    trained_elements: int
    without_shape: int  # variables whose elements nobody can count
    ran: bool  # the graph is the one that ran: it has only variables that its steps used


def count(nodes: Iterable[Node], variables: Iterable[Variable]) -> Parameters:
    nodes = list(nodes)
    updated = {
        node_of(node.inputs[0]) for node in nodes if node.inputs and UPDATE.fullmatch(node.op)
    }
    of_name: dict[str, Variable] = {}
    trained: dict[str, Variable] = {}
    for variable in variables:
        of_name.setdefault(variable.shared_name, variable)
        if variable.name in updated:
            trained[variable.shared_name] = variable
    return Parameters(
        variables=len(of_name),
        elements=elements(of_name.values()),
        trained_variables=len(trained),
        trained_elements=elements(trained.values()),
        without_shape=sum(size(variable) is None for variable in of_name.values()),
        ran=all(node.device for node in nodes),
    )


def elements(variables: Iterable[Variable]) -> int:
    return sum(size(variable) or 0 for variable in variables)


def size(variable: Variable) -> int | None:
    """How many elements it has; None where its shape leaves that open."""
    dims = [dim for dim in variable.shape or () if dim is not None]
    whole = variable.shape is not None and len(dims) == len(variable.shape)
    return prod(dims) if whole else None
