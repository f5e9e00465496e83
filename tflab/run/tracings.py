"""Tracings of functions: which were avoidable, what they took, and why TensorFlow traced again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflab import units
from tflab.records.blocks import Column, Table, shortened
from tflab.records.watched import MadeAnew, TracedFunction, Tracing

TRACED = 15  # functions in the table
ANEW = 4  # lines that make functions again and again, in a sentence
CHANGES = 3  # arguments that differ, in a sentence


def traced_again(functions: Sequence[TracedFunction]) -> Iterator[str]:
    """`The function step was traced 5 times, in 1.20 s (700 ms after the first time); the last time
    at train.py:30, because ...`, of the function that took longest to trace again."""
    again = [function for function in functions if function.tracings > 1]
    if not again:
        return
    most = max(again, key=lambda function: function.ns - function.first_ns)
    times, last = units.plural(most.tracings, "time"), most.last
    traced = f"The function {label(most)} was traced {times}, in {units.time(most.ns)}"
    if last.created:
        yield (
            f"{traced}, {reason(last)}. If these exist before its first call, it is traced once; "
            "optimizer.build(variables) creates those of a Keras optimizer."
        )
    else:
        after = f"({units.time(most.ns - most.first_ns)} after the first time)"
        yield f"{traced} {after}; the last time at {last.place}, {reason(last)}."


def label(function: TracedFunction) -> str:
    """`step`, or `step (number 2 of 3)` if several functions were made of the same code."""
    number = f" (number {function.ordinal:,} of {function.alike:,})"
    return f"{function.name}{number if function.alike > 1 else ''}"


def made_anew(anew: Sequence[MadeAnew]) -> Iterator[str]:
    """The functions that were traced although they were made of the same lines."""
    costliest = sorted(anew, key=lambda functions: -functions.ns)
    for most in costliest[:1]:
        yield (
            f"{most.functions:,} functions made from the same lines ({most.made}) were called at "
            f"{most.place} with the same types, and each was traced: {units.time(most.ns)} in all. "
            "If they do the same, make the function once, outside the loop."
        )
    if others := costliest[1:]:
        listed = [
            f"{each.functions:,} from {each.made}, called at {each.place} ({units.time(each.ns)})"
            for each in others[:ANEW]
        ]
        if more := len(others) - ANEW:
            listed += [f"and {units.plural(more, 'other line')}"] if more > 0 else []
        yield f"So were others: {'; '.join(listed)}."


def reason(tracing: Tracing) -> str:
    """Which argument differed: `because x was float32 (8, 4) and is float32 (7, 4)`."""
    if not tracing.again:
        return ""
    if tracing.created:
        return "because its first tracing created variables"
    if not tracing.changed:
        return (
            "with the same arguments (TensorFlow also traces again for another graph, device or "
            "strategy)"
        )
    changes = [f"{name} was {was} and is {now}" for name, was, now in tracing.changed[:CHANGES]]
    more = len(tracing.changed) - CHANGES
    others = f", and {units.plural(more, 'other')} changed" if more > 0 else ""
    return f"because {', '.join(changes)}{others}"


def table(tracings: Sequence[Tracing], functions: Sequence[TracedFunction]) -> Table:
    known = {function.number: function for function in functions}
    numbered = {function.name for function in functions if function.tracings > 1}
    alike: dict[tuple[str, str, int, str], list[Tracing]] = {}  # tracings that read the same
    for tracing in tracings:
        name = known[tracing.number].name if tracing.number in known else tracing.function
        key = (name, tracing.place, tracing.way, reason(tracing))
        alike.setdefault(key, []).append(tracing)

    def function(row: tuple[tuple[str, str, int, str], list[Tracing]]) -> str:
        numbers = {tracing.number for tracing in row[1]}
        (name, *_), only = row[0], numbers.pop()
        return name if numbers or name not in numbered else label(known[only])

    columns: Sequence[Column] = (
        Column("function", function),
        Column("times", lambda row: f"{len(row[1]):,}", right=True),
        Column("time", lambda row: units.time(spent(row[1])), right=True),
        Column("called at", lambda row: row[0][1]),
        Column("traced again", lambda row: row[0][3], elastic=True),
    )
    costliest = sorted(alike.items(), key=lambda row: -spent(row[1]))
    return shortened("Functions that were traced", columns, costliest, TRACED)


def spent(tracings: Sequence[Tracing]) -> int:
    return sum(tracing.ns for tracing in tracings)
