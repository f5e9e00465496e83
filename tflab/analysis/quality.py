"""Quality: whether the machine was quiet enough to draw conclusions from times.

Other programs only slow steps down, and not all steps equally, so a busy machine can reverse a
comparison of times. There are four signs: the load before the measurement began (later, the
measurement itself is the load), the time that the host of a virtual machine took during it,
untraced steps that differ widely, and untraced steps that take longer than traced ones, although
tracing only adds work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tflab.records.timed import Spread
from tflab.records.verdicts import Load, Quality
from tflab.units import percent, plural, time

STOLEN = 0.02  # LeNet on a quiet virtual machine: up to 0.8 %
WIDE = 3.0  # LeNet and x*y + z on a quiet machine: p90 up to 2.1 x p10
SLOWER = 1.05  # medians of the same step, taken in turn, differ by less on a quiet machine
SHORT_NS = 100_000  # shorter steps vary with the waking of a thread: up to 5.4 x on a quiet machine
# The untraced step reads larger feeds from memory, and the traced step after it from a cache.
CACHED_BYTES = 2**20
LEAST_STEPS = 10  # of fewer steps, p90 is the slowest, and p10 may be a smaller last batch

WITHHELD = "Conclusions are withheld; measure again on a quiet machine"
MARKED = "Conclusions are shown because of --even-if-busy; they may be wrong"


@dataclass(frozen=True)
class TakenTurns:
    """The steps of one batch size; untraced and traced ones took turns."""

    batch_size: int
    untraced: int
    traced: int
    untraced_ns: Spread
    traced_ns: Spread
    fed_bytes: int  # to each step


def judge(load: Load, steps: Iterable[TakenTurns], even_if_busy: bool = False) -> Quality:
    """Whether conclusions can be drawn from these steps. Unknown values are not a reason against
    it.

    With `even_if_busy` conclusions are shown in any case, and marked.
    """
    many = [
        batch
        for batch in steps
        if batch.untraced >= LEAST_STEPS and batch.fed_bytes <= CACHED_BYTES
    ]
    long = [batch for batch in many if batch.untraced_ns.median >= SHORT_NS]
    traced = [batch for batch in many if batch.traced >= LEAST_STEPS]
    widest = max(long, key=width, default=None)
    slowest = max(traced, key=slowdown, default=None)
    reasons = (*of_load(load), *of_width(widest), *of_slowdown(slowest))
    return Quality(
        quiet=not reasons,
        reasons=reasons,
        cores=load.cores,
        load_average=load.average,
        stolen_share=load.stolen_share,
        p90_to_p10=width(widest) if widest else None,
        untraced_to_traced=slowdown(slowest) if slowest else None,
        even_if_busy=even_if_busy,
    )


def width(steps: TakenTurns) -> float:
    return steps.untraced_ns.p90 / steps.untraced_ns.p10


def slowdown(steps: TakenTurns) -> float:
    return steps.untraced_ns.median / steps.traced_ns.median


def of_load(load: Load) -> Iterator[str]:
    if load.average is not None and load.average > load.cores:
        yield (
            f"the load average before the measurement was {load.average:.2f} on "
            f"{plural(load.cores, 'core')}"
        )
    if load.stolen_share is not None and load.stolen_share > STOLEN:
        share = percent(load.stolen_share)
        yield f"during the measurement the host took {share} of the processor time"


def of_width(steps: TakenTurns | None) -> Iterator[str]:
    if steps and width(steps) > WIDE:
        spread = steps.untraced_ns
        yield (
            f"p90 of the untraced steps at batch {steps.batch_size} is {width(steps):.1f} x p10 "
            f"({time(spread.p90)} and {time(spread.p10)})"
        )


def of_slowdown(steps: TakenTurns | None) -> Iterator[str]:
    if steps and slowdown(steps) > SLOWER:
        yield (
            f"at batch {steps.batch_size} the untraced step took {slowdown(steps):.2f} x as long "
            f"as the traced step ({time(steps.untraced_ns.median)} and "
            f"{time(steps.traced_ns.median)}), though tracing only adds work"
        )


def sentence(judgement: Quality) -> str:
    """The sentence above a measurement on a busy machine. Steps may also vary by themselves."""
    wide = judgement.p90_to_p10 is not None and judgement.p90_to_p10 > WIDE
    own = ", or its step times vary naturally" if wide and len(judgement.reasons) == 1 else ""
    return (
        f"This machine was busy{own}: {'; '.join(judgement.reasons)}. "
        f"{MARKED if judgement.even_if_busy else WITHHELD}."
    )


def verdict(judgement: Quality) -> str:
    """Whether the machine was quiet enough, with the numbers that show it."""
    if not judgement.quiet:
        return sentence(judgement)
    cores = plural(judgement.cores, "core")
    numbers = []
    if judgement.load_average is not None:
        numbers.append(f"the load average before was {judgement.load_average:.2f} on {cores}")
    if judgement.stolen_share is not None:
        numbers.append(f"the host took {percent(judgement.stolen_share)} of the processor time")
    if judgement.p90_to_p10 is not None:
        numbers.append(f"p90 of untraced steps is {judgement.p90_to_p10:.1f} x p10")
    return f"This machine was quiet enough: {'; '.join(numbers) or 'no sign of other load'}."


def disturbed(quality: Quality | None) -> bool:
    """Whether conclusions are withheld; if quality was not judged, they are not."""
    return quality is not None and not quality.quiet and not quality.even_if_busy


def mark(quality: Quality | None) -> str:
    """The mark in the title of a conclusion that is shown although the machine was busy."""
    return " (the machine was busy)" if quality and not quality.quiet else ""
