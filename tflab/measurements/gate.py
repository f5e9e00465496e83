"""Gate: whether a step is proven to be slower by a given percentage.

A slowdown is proven if the verdict is "slower" and its interval lies above the percentage, with all
batch sizes of all measurements tested together. An undecided comparison is no proof; an option
gives it an exit status of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflab.analysis import two_samples
from tflab.errors import SlowerError, TflabError, UndecidedError
from tflab.measurements import contrast
from tflab.measurements.comparable import Named
from tflab.records.measurements import Contrast, Gate
from tflab.units import time
from tflab.views.abreast import ratio_text


def judge(measurements: Named, held: Contrast, percent: float) -> Gate:
    sizes = sorted({row.batch_size for row in held.steps})
    factor = 1 + percent / 100
    pairs = contrast.step_pairs(measurements, sizes)
    proven = dict(zip(pairs, two_samples.proven_slower(list(pairs.values()), factor), strict=True))
    slower, undecided = [], []
    usual = {row.batch_size: row for row in held.steps if row.config == held.measurements[0]}
    for row in held.steps:
        if row.config == held.measurements[0]:
            continue
        verdict, pair = row.verdict, (row.config, row.batch_size)
        where = f"'{row.config}' at batch {row.batch_size}"
        assert verdict is not None
        if verdict.word == "slower" and proven[pair]:
            before = time(usual[row.batch_size].untraced_ns.median)
            after = time(row.untraced_ns.median)
            slower.append(f"{where}, {ratio_text(verdict)} ({after} after {before})")
        elif verdict.word == "withheld" or verdict.high > factor:
            undecided.append(f"{where}, {ratio_text(verdict)}")
    return Gate(percent, tuple(slower), tuple(undecided))


def failure(gate: Gate, first: str, if_undecided: bool) -> TflabError | None:
    """The error with which the command ends, if any: slower takes precedence over undecided."""
    if gate.slower:
        return SlowerError(sentence(gate, first))
    if gate.undecided and if_undecided:
        return UndecidedError(sentence(gate, first))
    return None


def sentence(gate: Gate, first: str) -> str:
    """The result of the gate, for the view and the error."""
    share = f"{gate.percent:g} %"
    if gate.slower:
        text = f"Proven to be slower than '{first}' by more than {share}: {listed(gate.slower)}."
    elif gate.undecided:
        text = f"Nothing is proven to be slower than '{first}' by more than {share}."
    else:
        text = f"Nothing is slower than '{first}' by more than {share}."
    if gate.undecided:
        text += f" Not enough to tell: {listed(gate.undecided)}."
    return text


def listed(items: Sequence[str]) -> str:
    return "; ".join(items)
