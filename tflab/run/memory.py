"""Memory: whether the resident memory of the program grows until its end, and at which line.

It is said to grow only if it rose in each part of the later time: allocators, caches and first
epochs fill, and then stay. The time is that of the processor, so what else runs does not matter.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from tflab.run.sampler import Line, Sampler, place

STATM = "/proc/self/statm"  # Linux; elsewhere nothing is known
MOST_SPANS = 64  # of time; then each becomes twice as long
SPAN_NS = 25_000_000  # at first
PARTS_OF_TIME = 8  # of which all but the first SKIPPED_PARTS have to grow
SKIPPED_PARTS = 3
LEAST_GROWTH = 8 * 2**20  # bytes that it has grown by, and the share of the memory
LEAST_SHARE = 0.05
LEAST_RISE = 1 / 3  # of the median rise of a part: the smallest
NOTED_RISE = 2**18  # bytes of a rise whose line is noted
MOST_OF = 0.8  # of the rises and falls: the least at a line that is named
MOST_LOOKS = 0.5  # that find the program at such a line: elsewhere, memory does not rise
FELL = "fell"


class Span(NamedTuple):
    """A span of time: the least memory in it, how much it rose at each line or fell (FELL), all in
    bytes; and how often the program was seen at each line."""

    size: int
    moved: Counter[Line | str | None]
    looks: Counter[Line | str | None]


def joined(spans: list[Span]) -> Span:
    moved, looks = Counter[Line | str | None](), Counter[Line | str | None]()
    for span in spans:
        moved += span.moved
        looks += span.looks
    return Span(min(span.size for span in spans), moved, looks)


class Memory:
    """The resident memory since the first run, or the last import before it."""

    def __init__(self) -> None:
        self.page = os.sysconf("SC_PAGE_SIZE") if os.path.exists(STATM) else 0
        self.begin(0)

    def begin(self, runs: int) -> None:
        """Begin anew: forget the memory so far. `runs` is the number of runs until now."""
        self.runs = runs
        self.spans: list[Span] = []
        self.span_ns = SPAN_NS
        self.since_ns = self.last = 0

    def look(self, now_ns: int, sampler: Sampler) -> None:
        """Note how much memory the process has, and where the program is."""
        if not self.page:
            return
        if sampler.importing or (sampler.inside[2] and not self.runs):
            self.begin(sampler.inside[2])
        with open(STATM, "rb", buffering=0) as file:
            size = int(file.read(64).split()[1]) * self.page
        self.since_ns = self.since_ns or now_ns
        while (now_ns - self.since_ns) // self.span_ns >= MOST_SPANS:
            self.spans = [joined(self.spans[at : at + 2]) for at in range(0, len(self.spans), 2)]
            self.span_ns *= 2
        rise, self.last = size - (self.last or size), size
        at = (now_ns - self.since_ns) // self.span_ns
        # The spans between were not looked at
        self.spans += [Span(size, Counter(), Counter()) for _ in range(at + 1 - len(self.spans))]
        span = self.spans[-1]
        if size < span.size:
            self.spans[-1] = span._replace(size=size)
        line = sampler.main_line()
        span.looks[line] += 1
        if rise < 0 or rise >= NOTED_RISE:
            span.moved[FELL if rise < 0 else line] += abs(rise)

    def segment(self) -> dict[str, object] | None:
        """Return the fields of `GrownMemory`; None if it did not grow until the end."""
        spans = list(self.spans)
        if len(spans) < 2 * PARTS_OF_TIME:
            return None
        ends = [len(spans) * part // PARTS_OF_TIME for part in range(PARTS_OF_TIME + 1)]
        late = [joined(spans[start:end]).size for start, end in pairwise(ends)][SKIPPED_PARTS:]
        rises = sorted(after - before for before, after in pairwise(late))
        grown = late[-1] - late[0]
        least = max(LEAST_GROWTH, LEAST_SHARE * late[-1])
        if rises[0] <= LEAST_RISE * rises[len(rises) // 2] or grown < least:
            return None
        _, moved, looks = joined(spans[ends[SKIPPED_PARTS] :])
        ((line, most),) = moved.most_common(1) or [(None, 0)]
        known = most >= MOST_OF * moved.total() and looks[line] <= MOST_LOOKS * looks.total()
        at = place(*line) if isinstance(line, tuple) and known else ""
        return {"first_bytes": late[0], "last_bytes": late[-1], "place": at}
