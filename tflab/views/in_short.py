"""In short: a whole walk in a few sentences, from the numbers of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tflab.analysis import quality
from tflab.records import Backward, Execution, Frontend, Placement, Stage, edge_count
from tflab.records.blocks import Frame, Strip
from tflab.units import percent, plural, short_device, time
from tflab.views.chain_rule import total
from tflab.views.values import number

DEVICES = 3  # that are named
DERIVATIVES = 2  # that are written down, in numbers too


def strip(stages: Sequence[Stage]) -> Strip:
    """A frame for each stage."""
    frames = (
        Frame(f"{place}  {type(stage).__name__}", "", tuple(TOLD[type(stage)](stage)))
        for place, stage in enumerate(stages, 1)
    )
    return Strip("In short", tuple(frames))


def built(stage: Frontend) -> Iterator[str]:
    lines = {(node.source.file, node.source.line) for node in stage.nodes if node.source}
    made = f"{plural(len(lines), 'line')} of the program made" if lines else "The file holds"
    yield f"{made} {plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}."


def derived(stage: Backward) -> Iterator[str]:
    if stage.inferred:
        yield "The graph came with its gradients."
    elif not stage.added_nodes:
        yield "Nothing to differentiate, and nothing added."
    else:
        functions = sum(bool(gradient.nodes) for gradient in stage.gradients)
        yield (
            f"The gradient functions of {plural(functions, 'forward op')} and the optimiser added "
            f"{plural(len(stage.added_nodes), 'node')}."
        )
    if len(stage.derivatives) <= DERIVATIVES:
        for known in stage.derivatives:
            value = number(known.value) if isinstance(known.value, float) else ""
            batch = f", for the first batch {value}" if value else ""
            yield f"{total(known.variable)} = {known.formula}{batch}"


def placed(stage: Placement) -> Iterator[str]:
    devices = sorted(short_device(part.device) for part in stage.partitions)
    where = ", ".join(devices) if len(devices) <= DEVICES else plural(len(devices), "device")
    fates = Counter(row.fate for row in stage.ledger)
    executed = fates.pop("executed", 0)
    others = ", ".join(f"{count:,} {fate}" for fate, count in fates.most_common())
    if stage.ledger:
        yield (
            f"Of {plural(len(stage.user_nodes), 'node')} {executed:,} run under their own name"
            + (f"; {others}." if others else ".")
        )
    yield (
        f"With {len(stage.origins):,} that the runtime made, {plural(len(stage.nodes), 'node')} "
        f"run on {where}."
    )


def executed(stage: Execution) -> Iterator[str]:
    busy = " on a machine that was busy" if quality.mark(stage.quality) else ""
    step = stage.untraced_step_ns
    yield (
        f"A step of batch size {stage.batch_size} took {time(step.median)} untraced{busy}, the "
        f"median of {stage.steps:,} (p10 {time(step.p10)}, p90 {time(step.p90)})."
    )
    if stage.top_types:
        most = stage.top_types[0]
        yield f"Of the time of all ops {percent(most.share)} went to {most.key}, the most of all."
    recorded = stage.recorded_step
    if recorded and len(recorded.path) > 1:
        first, last = recorded.path[0], recorded.path[-1]
        moves = (
            f"{name} from {number(start)} to {number(last.variables[name])}"
            for name, start in first.variables.items()
        )
        yield f"{plural(last.step, 'step')} moved {' and '.join(moves)}."


TOLD: dict[type, Callable[[Any], Iterator[str]]] = {
    Frontend: built,
    Backward: derived,
    Placement: placed,
    Execution: executed,
}
