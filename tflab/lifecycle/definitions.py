"""Definitions: the tensors of a program as it defines them, and the tensors that ran with the same
values.

Compares the recorded step with the reference step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.lifecycle import recorded_step, reference_step
from tflab.records.graph import graph_def_name, node_of, output_name
from tflab.records.options import Options
from tflab.records.stages import Placement
from tflab.records.values import COMPUTED, Defined, Value
from tflab.runtime import debugger, session
from tflab.units import plural

LISTED = 3  # names in a note
# limit for the tensors of the reference step, as a multiple of those of the recorded step
MOST_TIMES = 3


def reference_of(
    folder: str, placement: Placement, ran: recorded_step.Ran, options: Options
) -> tuple[recorded_step.Ran | None, tuple[str, ...]]:
    """The reference step of the step that ran; or None and the reason."""
    graph = placement.program.graph
    drawn: dict[str, np.ndarray] = {}
    for name, tensors in reference_step.draws(graph).items():
        arrays = [ran.array(graph_def_name(tensor)) for tensor in tensors]
        once = all(len(ran.files.get(graph_def_name(tensor), ())) == 1 for tensor in tensors)
        if once and name in ran.us:
            drawn |= {t: a for t, a in zip(tensors, arrays, strict=True) if a is not None}
    step = session.step_of(placement.program, placement.fetches)
    batch = [ran.fed[name] for name in step.feeds]
    files = sum(map(len, ran.files.values())) * MOST_TIMES
    try:
        if reason := debugger.refusal((), 0, files, folder):
            raise TflabError(reason)
        start = ran.before
        return reference_step.run(folder, placement.program, step, batch, start, drawn, options), ()
    except (TflabError, OSError) as error:
        return None, (
            "No value was compared with a step without graph passes, because that step could not "
            f"be recorded: {error}",
        )


@dataclass(frozen=True)
class Both:
    """The recorded step combined with the reference step."""

    defined: tuple[Defined, ...] = ()
    # tensor of a row -> whether both agree
    agrees: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def compared(placement: Placement, ran: recorded_step.Ran, reference: recorded_step.Ran) -> Both:
    """The tensors of the program by definition, and the tensors of the graph that ran with the
    same values. Tensors that depend on random numbers drawn anew in the reference step are
    omitted."""
    users = {node.name: node for node in placement.user_nodes}
    fates = {fate.name: fate for fate in placement.ledger}
    anew = redrawn(placement, reference)
    random = reference_step.with_dependents(placement.user_nodes, anew)
    outputs: dict[str, list[str]] = {}
    for tensor in ran.files:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    defined, agrees, left_out = [], {}, 0
    for node in placement.user_nodes:
        if node.op in (*session.HANDLES, *session.REFERENCES, "Placeholder"):
            continue
        fate = fates.get(node.name)
        for number in range(len(node.outputs)):
            tensor = output_name(node.name, number)
            array = reference_step.value(tensor, users, reference)
            if array is None or fate is None or fate.fate == "unreached":
                continue
            holders = [tensor] if tensor in ran.files else []
            if fate.outputs:
                holders += [now for own, now in fate.outputs if own == tensor]
            else:
                holders += outputs.get(fate.into or "", ())
            holder = next((name for name in holders if arrays_equal(ran.array(name), array)), None)
            if holder is None and node.name in random:
                left_out += 1
                continue
            if tensor in ran.files:
                agrees[f"{node.name}:{number}"] = holder == tensor
            value = value_of(
                array,
                tensor=f"{node.name}:{number}",
                node=node.name,
                op=node.op,
                kind=COMPUTED,
            )
            defined.append(Defined(**vars(value), held_by=holder))
    notes = (
        f"{plural(left_out, 'tensor')} depend on random numbers that differ in each run, so "
        "their values were not compared with those of the program "
        f"({', '.join(sorted(anew)[:LISTED])}).",
    )
    return Both(tuple(defined), agrees, notes if left_out else ())


def arrays_equal(first: np.ndarray | None, other: np.ndarray) -> bool:
    return first is not None and analysis.agree(first, other)


def redrawn(placement: Placement, reference: recorded_step.Ran) -> list[str]:
    """The nodes of the program that drew other numbers in the reference step, or may have."""
    graph = placement.program.graph
    drawing = [
        name
        for name, tensors in reference_step.draws(graph).items()
        if not any(tensor in reference.fed for tensor in tensors)
    ]
    if reference_step.draws_inside(graph):
        types = (*reference_step.CALLS, *reference_step.CHOICES)
        drawing += [node.name for node in placement.user_nodes if node.op in types]
    return drawing


def value_of(array: np.ndarray, calls: int = 1, **known: Any) -> Value:
    """A row of a tensor; its type is that of the array, unless `known` has it."""
    statistics = vars(analysis.statistics(array))
    known.setdefault("dtype", dtype(array))
    return Value(**statistics, **known, shape=array.shape, calls=calls, after=None, moved=None)


def dtype(array: np.ndarray) -> str:
    return tf.dtypes.as_dtype(array.dtype).name
