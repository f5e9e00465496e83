"""View of values: the program's values in one step, and the origins of NaN and Inf."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.records.blocks import Block, Column, Table, numbers, table
from tflab.records.graph import FORWARD, Shape, graph_def_name, grouped
from tflab.records.stages import Execution
from tflab.records.values import (
    COMPUTED,
    CONSTANT,
    FED,
    UPDATE,
    VARIABLE,
    NotFinite,
    Statistics,
    Value,
)
from tflab.units import plural
from tflab.views.words import listed, place

FEW = 16  # elements of each tensor of a step whose numbers are all shown in full
FIRST = 4  # numbers of a tensor otherwise
SHORT = 64  # tensors of such a step
ROWS = 12  # of a table of statistics
CODE = 72  # characters of a line of code in a sentence
MOST_ORIGINS = 8  # origins of NaN and Inf that have a sentence
KINDS = {FED: "fed", CONSTANT: "a constant", VARIABLE: "a variable, before the step"}


def not_finite(stage: Execution) -> Iterable[str]:
    """Yield the first sentences of the stage: the origins of NaN and Inf among the values."""
    if stage.values_step is None or not stage.not_finite:
        return
    yield from origins(stage.not_finite[:MOST_ORIGINS])
    if (more := len(stage.not_finite) - MOST_ORIGINS) > 0:
        yield f"Other origins: {more:,} (--format json lists all)."
    yield consequence(stage.values_step.not_finite)


def origins(records: Iterable[NotFinite]) -> Iterator[str]:
    """Yield `Inf began at m.py:2, `y = log(x)`: in log, 4 of 9 elements.` for each line."""
    alike = grouped(((bool(r.nan), bool(r.infinite), r.source), r) for r in records)
    for (nan, infinite, source), own in alike.items():
        code = f", `{source.code}`" if source and len(source.code) <= CODE else ""
        at = f" at {place(source)}{code}:" if source else ""
        nodes = [record.node for record in own]
        counts = grouped((elements_of(record), where(record, nodes)) for record in own)
        parts = (
            f"in {' and in '.join(n)}, {of}{' each' * (len(n) > 1)}" for of, n in counts.items()
        )
        yield f"{' and '.join(['NaN'] * nan + ['Inf'] * infinite)} began{at} {'; '.join(parts)}."


def elements_of(record: NotFinite) -> str:
    both = f"NaN in {record.nan:,}, Inf in {record.infinite:,}"
    count = both if record.nan and record.infinite else f"{record.nan or record.infinite:,}"
    return f"{count} of {plural(record.size, 'element')}"


def where(record: NotFinite, nodes: Sequence[str]) -> str:
    """Return the name of an origin, with what it is; `nodes` began at the same line."""
    name = graph_def_name(record.tensor)
    if record.kind == UPDATE:
        return f"{record.node}, which updates {record.tensor}"
    if record.derives in nodes:
        return f"its gradient {name.removeprefix('gradients/')}"
    about = [KINDS.get(record.kind, "" if record.op.lower() in name.lower() else record.op)]
    about += [f"of the gradient of {record.derives}"] if record.derives else []
    return f"{name} ({', '.join(filter(None, about))})".removesuffix(" ()")


def consequence(results: Sequence[str]) -> str:
    """Return a sentence that names the results of the step that are not finite."""
    if not results:
        return "It reached no fetched tensor and no variable."
    return f"Not finite after the step: {', '.join(map(graph_def_name, results))}."


def tables(stage: Execution) -> Iterator[Block]:
    """Yield the program's values: all numbers if they are few, otherwise statistics."""
    step, values = stage.values_step, stage.values
    if step is None:
        return
    small = all(value.values is not None and len(value.values) <= FEW for value in values)
    if small and 0 < len(values) <= SHORT:
        yield every_number(values, step.which)
    else:
        yield from statistics(values, step.which)
    yield from step.notes


def every_number(values: Sequence[Value], step: str) -> Table:
    """Return a table of the first numbers of the program's nodes, with variables before and after
    the step; in full, of every number of every node."""
    own = [value for value in values if value.phase == FORWARD]
    shown, whole = [*number_rows(own, FIRST)], [*number_rows(values, FEW)]
    columns = (
        Column("node", lambda row: row[0], name=True),
        Column("op type", lambda row: row[1], spare=1),
        Column("shape", lambda row: row[2]),
        Column("values", lambda row: row[3], hanging=True, least=34),
    )
    everything = None if shown == whole else lambda: whole
    title, more = f"What the nodes compute in {step}", len(values) - len(own)
    return Table(title, columns, tuple(shown), more=more, everything=everything)


def number_rows(values: Iterable[Value], most: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield the cells of each value. Numbers that a row above has are its name."""
    known: dict[str, str] = {}
    for value in values:
        name, amounts = graph_def_name(value.tensor), amounts_of(value, value.shape, most)
        if elements(value.shape) > FIRST and not amounts.startswith("all "):
            same = known.setdefault(repr(value.values), name)
            amounts = amounts if same == name else f"as {same}"
        yield name, value.op, dims(value), amounts
        if value.after:
            yield "  after the step", "", "", amounts_of(value.after, value.shape, most)


def statistics(values: Sequence[Value], step: str, results: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the fed and computed tensors: the results of the step, those with NaN or Inf, then the
    largest; and the largest variables before and after the step."""
    values = sorted(values, key=lambda value: -elements(value.shape))
    variables = [value for value in values if value.kind == VARIABLE]
    # A node that reads a variable, or is one, has values that the second table has
    stored = {value.node for value in variables}
    tensors = [
        value
        for value in values
        if value.kind in (FED, COMPUTED) and value.node not in stored
        if value.op != "ReadVariableOp" and (elements(value.shape) or value.tensor in results)
        # The shapes of gradients
        if not (value.node.startswith("gradients/") and value.dtype.startswith("int"))
    ]
    tensors.sort(key=lambda value: (value.tensor not in results, not value.not_finite))
    both = []
    for value in variables[: ROWS // 2]:
        after = value.after and replace(value, **vars(value.after), tensor="  after", shape=())
        both += [value, *filter(None, [after])]
    what = "Results and largest tensors" if results else "The largest tensors"
    for title, rows in (
        (f"{what} of {step}", tensors),
        ("The largest variables before and after the step", both),
    ):
        bad = any(value.not_finite for value in rows)
        first = "not finite first; " * (rows is tensors)
        title += f" ({first}mean, min and max of the finite elements)" * bad
        if rows:
            yield table(title, rows, COLUMNS[0], *[BAD] * bad, *COLUMNS[1:], most=ROWS)


COLUMNS = (
    Column("tensor", lambda value: graph_def_name(value.tensor), elastic=True, name=True),
    Column("shape", lambda value: dims(value), spare=1),
    numbers("mean", lambda value: number(value.mean)),
    numbers("min", lambda value: number(value.min)),
    numbers("max", lambda value: number(value.max)),
)
BAD = numbers("not finite", lambda value: f"{value.not_finite:,}")


def elements(shape: Shape) -> int:
    return math.prod(dim or 0 for dim in shape or ())


def amounts_of(value: Statistics, shape: Shape, most: int = FEW) -> str:
    """Return a tensor in one line: its first numbers if they are few, otherwise statistics; or
    `all 0.5 (16)` if all elements are exactly equal."""
    size = elements(shape)
    values = value.values or ()
    if len(values) > 1 and len(set(map(repr, values))) == 1:
        return f"all {number(values[0])} ({size:,})"
    if value.values is not None and size <= FEW:
        return listed([*map(number, values)], most) or "no elements"
    statistics = (("mean", value.mean), ("min", value.min), ("max", value.max))
    parts = [f"{name} {number(amount)}" for name, amount in statistics if amount is not None]
    if value.not_finite:
        parts.append(f"not finite {value.not_finite:,}")
    return ", ".join((plural(size, "element"), *parts))


def brief(value: Statistics, shape: Shape) -> str:
    """Return the first two parts of `amounts_of`: `4.2`, `[1.2, 3.4, …]`, `[16 elements, …]`."""
    first, *others = amounts_of(value, shape).split(", ")
    return f"[{', '.join([first, others[0], *(['…'] * bool(others[1:]))])}]" if others else first


def dims(value: Value) -> str:
    """Return `16 x 28 x 28 x 6`; "" for one number."""
    return " x ".join(map(str, value.shape or ()))


def number(value: object) -> str:
    """Return a number with up to three digits; text unchanged."""
    if not isinstance(value, float):
        return "" if value is None else str(value)
    digits = f"{value + 0.0:.3g}"  # -0.0 is 0 too
    return digits.replace("nan", "NaN").replace("inf", "Inf")
