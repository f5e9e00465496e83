"""View of values: the program's values in one step, and the origins of NaN and Inf."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tflab.records.blocks import Block, Column, Fact, Table, shortened
from tflab.records.graph import Shape, graph_def_name
from tflab.records.stages import Execution
from tflab.records.values import (
    COMPUTED,
    CONSTANT,
    FED,
    UPDATE,
    VARIABLE,
    Entered,
    NotFinite,
    Statistics,
    Value,
    ValuesStep,
)
from tflab.units import plural, time
from tflab.views.words import place

FEW = 16  # elements of each tensor of a step whose numbers are all shown
SHORT = 64  # tensors of such a step
NUMBERS = 4  # in a line
BRIEF = 2  # in a box of a drawing
WIDTH = 9  # characters of each of them
ROWS = 12  # of a table of statistics
CODE = 72  # characters of a line of code in a sentence
IN_JSON = "--format json"
MOST_ORIGINS = 8  # origins of NaN and Inf that have a sentence
ABOUT = {
    FED: "{what} was fed to {it}",
    VARIABLE: "The variable {it} contained {what} before the step",
    CONSTANT: "The constant {it} contains {what}",
    COMPUTED: "{what} came from {it}, {inputs}",
    UPDATE: "{it}, {inputs}, wrote {what} into the variable {tensor}",
}


def not_finite(stage: Execution) -> Iterable[str]:
    """Yield the first sentences of the stage: the origins of NaN and Inf among the values."""
    if stage.values_step is None or not stage.not_finite:
        return
    yield from map(origin, stage.not_finite[:MOST_ORIGINS])
    if len(stage.not_finite) > MOST_ORIGINS:
        more = len(stage.not_finite) - MOST_ORIGINS
        yield f"Other nodes that independently produced NaN or Inf: {more:,} ({IN_JSON} lists all)."
    yield consequence(stage.values_step.not_finite)


def origin(record: NotFinite) -> str:
    """Return `Inf came from log (Log, model.py:12: ...), whose inputs were all finite. ...`"""
    what = "NaN" if not record.infinite else "NaN and Inf" if record.nan else "Inf"
    name = record.tensor if record.kind in (FED, VARIABLE) else record.node
    if record.tensor.rpartition(":")[2] not in ("0", record.tensor) and record.kind == COMPUTED:
        name += f":{record.tensor.rpartition(':')[2]}"
    about = [record.op] if record.kind in (COMPUTED, UPDATE) else []
    if record.derives:
        about.append(f"of the gradient of {record.derives}")
    if record.source:
        code = record.source.code
        about.append(place(record.source) + (f": {code}" if len(code) <= CODE else ""))
    it = f"{name} ({', '.join(about)})" if about else name
    # The inputs of an origin are finite, or infinite because of a constant of the program.
    infinite = any(math.isinf(one.min) or math.isinf(one.max) for one in record.entered)
    inputs = "which had Inf as input" if infinite else "whose inputs were all finite"
    sentence = ABOUT[record.kind].format(what=what, it=it, tensor=record.tensor, inputs=inputs)
    bad = f"{record.nan:,} are NaN and {record.infinite:,} infinite"
    sentence += f". Of its {plural(record.size, 'element')} {bad}"
    sentence += f": too large for {record.dtype}." if record.overflow else "."
    if record.entered:
        sentence += f" Its inputs: {'; '.join(map(input_text, record.entered))}."
    return sentence


def input_text(record: Entered) -> str:
    """`x: 2 of 64 elements (1 zero, 1 negative), from -3 to 0`"""
    name = graph_def_name(record.tensor)
    signs = f"{record.zeros:,} zero, {record.negative:,} negative"
    ends = f"from {number(record.min)} to {number(record.max)}"
    return f"{name}: {record.elements:,} of {plural(record.size, 'element')} ({signs}), {ends}"


def consequence(results: Sequence[str]) -> str:
    """Which results of the step are not finite."""
    if not results:
        return "It reached no fetched tensor and no variable."
    names = ", ".join(map(graph_def_name, results[:MOST_ORIGINS]))
    more = len(results) - MOST_ORIGINS
    return f"Not finite after the step: {names}{f' and {more:,} more' if more > 0 else ''}."


def facts(stage: Execution) -> Iterator[Fact]:
    """Yield which step the values are of, and how far training moved the variables."""
    step = stage.values_step
    if step is None or step.ns is None:
        return
    how = f"graph passes off, untimed; its session took {time(step.ns)}"
    yield Fact("the program's values", f"in {step.which}", how, detail=True)
    if not stage.values:
        yield Fact("tensors with a value", "none that can be shown", detail=True)
    if len(step.path) > 1:
        first, *_, last = step.path
        moves = (
            f"{name} from {number(start)} to {number(last.variables[name])}"
            for name, start in first.variables.items()
        )
        yield Fact("training", ", ".join(moves), f"in {plural(last.step, 'step')}")


def tables(stage: Execution) -> Iterator[Block]:
    """Yield the program's values: all numbers if they are few, otherwise statistics."""
    step = stage.values_step
    if step is None:
        return
    if step.ns is not None and step.path:
        yield path(step)
    if step.ns is not None and stage.values:
        if all(map(is_small, stage.values)) and len(stage.values) <= SHORT:
            yield numbers(stage.values)
        else:
            yield from statistics(stage.values)
    yield from step.notes


def is_small(value: Value) -> bool:
    return value.values is not None and len(value.values) <= FEW


def path(step: ValuesStep) -> Table:
    """The values of the variables step by step, and their goal."""
    names = list(step.path[0].variables)
    answer = ", ".join(f"{name} = {number(value)}" for name, value in step.answer.items())
    return Table(
        f"Training moves the variables towards those that the data were generated with: {answer}",
        (
            Column("after step", lambda point: str(point.step), right=True),
            *(variable_column(name) for name in names),
            Column("loss before it", lambda point: number(point.loss), right=True),
        ),
        step.path,
    )


def variable_column(name: str) -> Column:
    return Column(name, lambda point: number(point.variables.get(name)), right=True)


def numbers(values: Sequence[Value]) -> Table:
    """Return every number of a small step; variables before and after it."""
    return Table(
        "What every node computes",
        (
            Column("node", lambda row: row[0], elastic=True, name=True),
            Column("op", lambda row: row[1], elastic=True, name=True, spare=2),
            Column("shape", lambda row: row[2], spare=1),
            Column("values", lambda row: row[3], elastic=True, least=NUMBERS * WIDTH),
        ),
        tuple(row for value in values for row in lines_of(value)),
    )


def lines_of(value: Value) -> Iterator[tuple[str, str, str, str]]:
    """The rows of one tensor: its numbers, as many as fit on a line."""
    name, op, shape = graph_def_name(value.tensor), value.op, dims(value)
    for line in lines(value.values or ()):
        yield name, op, shape, line
        name = op = shape = ""
    if value.after:
        name = "  after the step"
        for line in lines(value.after.values or ()):
            yield name, "", "", line
            name = ""


def lines(values: Sequence[Any]) -> Iterator[str]:
    """Numbers in columns; a number that is the same everywhere is written once."""
    texts = list(map(number, values))
    if len(texts) > 1 and are_equal(values):
        yield f"all {texts[0]}"
    elif len(texts) < 2:
        yield texts[0] if texts else "none"
    else:
        for begin in range(0, len(texts), NUMBERS):
            yield "".join(text.rjust(WIDTH) for text in texts[begin : begin + NUMBERS])


def statistics(values: Sequence[Value]) -> Iterable[Block]:
    """The variables that changed most, and the largest computed tensors."""
    variables = [value for value in values if value.kind == VARIABLE]
    if any(value.moved for value in variables):
        most = sorted(variables, key=lambda value: -(value.moved or 0))
        yield shortened(
            "Variables before the step, and how far it moved them",
            (
                Column("variable", lambda value: value.tensor, elastic=True, name=True),
                *COLUMNS,
                Column("moved at most", lambda value: number(value.moved), right=True),
            ),
            most,
            ROWS,
        )
    tensors = [
        value
        for value in values
        if value.kind in (FED, COMPUTED) and value.op != "ReadVariableOp"  # which is a variable
    ]
    largest = sorted(tensors, key=lambda value: (not value.not_finite, -elements(value)))[:ROWS]
    shown = {id(value) for value in largest}
    bad = Column("not finite", lambda value: f"{value.not_finite:,}", right=True)
    yield Table(
        "The largest tensors of the step",
        (
            Column("tensor", lambda value: graph_def_name(value.tensor), elastic=True, name=True),
            *COLUMNS,
            *([bad] if any(value.not_finite for value in largest) else []),
        ),
        tuple(value for value in tensors if id(value) in shown),
        more=len(tensors) - len(largest),
        everything=(lambda: tensors) if len(tensors) > len(largest) else None,
    )
    yield "Mean, minimum and maximum are those of the finite elements."


COLUMNS = (
    Column("shape", lambda value: dims(value), spare=1),
    Column("mean", lambda value: number(value.mean), right=True),
    Column("min", lambda value: number(value.min), right=True),
    Column("max", lambda value: number(value.max), right=True),
)


def elements(value: Value) -> int:
    return math.prod(dim or 0 for dim in value.shape or ())


def brief(value: Statistics, shape: Shape) -> str:
    """A tensor in a few characters: `4.2`, `[1.2, 3.4, …]`, `all 0.5 (16)`, `mean 0.3 (1,024)`."""
    size = math.prod(dim or 0 for dim in shape or ())
    if value.values is None:
        return f"mean {number(value.mean)} ({size:,})" if value.mean is not None else f"({size:,})"
    texts = list(map(number, value.values))
    if len(texts) == 1:
        return texts[0]
    if len(texts) > BRIEF and are_equal(value.values):
        return f"all {texts[0]} ({size:,})"
    more = ", …" if len(texts) > BRIEF else ""
    return f"[{', '.join(texts[:BRIEF])}{more}]"


def amounts_of(value: Statistics, shape: Shape) -> str:
    """A tensor in one line: its numbers if they are few, otherwise statistics."""
    texts = list(map(number, value.values or ()))
    size = math.prod(dim or 0 for dim in shape or ())
    if len(texts) > 1 and are_equal(value.values or ()):
        return f"all {texts[0]} ({size:,})"
    if value.values is not None and size <= FEW:
        return ", ".join(texts) or "no elements"
    statistics = (("mean", value.mean), ("min", value.min), ("max", value.max))
    parts = [f"{name} {number(amount)}" for name, amount in statistics if amount is not None]
    if value.not_finite:
        parts.append(f"not finite {value.not_finite:,}")
    return ", ".join((plural(size, "element"), *parts))


def are_equal(values: Sequence[Any]) -> bool:
    """Whether all elements are equal to the last bit, and not only in the digits shown."""
    return len(set(map(repr, values))) == 1


def dims(value: Value) -> str:
    """`16 x 28 x 28 x 6`; "" for one number."""
    return " x ".join(map(str, value.shape or ()))


def number(value: Any) -> str:
    """A number with up to three digits; text unchanged."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return f"{value + 0.0:.3g}"  # -0.0 is 0 too
