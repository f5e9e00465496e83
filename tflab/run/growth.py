"""Growth: the resident memory of the process over its time, and the lines at which it rose.

Memory is said to grow only if it rose in each part of the later time: allocators, caches and first
epochs fill, and then stay. The time is that of the processor, so what else runs does not matter.
This imports nothing that a file of the program may be named like.
"""

from __future__ import annotations

import os
from itertools import pairwise

from tflab.run.sampler import place

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable

    from tflab.run.sampler import Line

FILE = "/proc/self/statm"  # Linux; elsewhere nothing is known
MOST_SPANS = 64  # of time; then each becomes twice as long
SPAN_NS = 25_000_000  # at first
PARTS = 8  # of the time, of which the last ones but FIRST have to grow
FIRST = 3
LEAST = 8 * 2**20  # bytes that it has grown by, and the share of the memory
LEAST_SHARE = 0.02
EVEN = 1 / 3  # of the median rise of a part: the smallest
NOTED = 2**18  # bytes of a rise whose line is noted
MOST_OF = 0.8  # of the rises: the least at a line that is named


class Span:
    """A time: the least memory in it, what it rose by at each line, and what it fell by."""

    def __init__(self, size: int) -> None:
        self.size, self.fell = size, 0
        self.rises: dict[Line | None, int] = {}

    def join(self, other: Span) -> None:
        self.size, self.fell = min(self.size, other.size), self.fell + other.fell
        for line, rise in other.rises.items():
            self.rises[line] = self.rises.get(line, 0) + rise


class Memory:
    """The resident memory since tflab watches TensorFlow."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.span_ns = SPAN_NS
        self.since_ns = self.last = 0
        self.page = os.sysconf("SC_PAGE_SIZE") if os.path.exists(FILE) else 0

    def look(self, now_ns: int, line: Callable[[], Line | None]) -> None:
        """Note how much memory the process has; `line` returns where the program is."""
        if not self.page:
            return
        file = os.open(FILE, os.O_RDONLY)
        try:
            size = int(os.read(file, 64).split()[1]) * self.page
        finally:
            os.close(file)
        self.since_ns = self.since_ns or now_ns
        while (now_ns - self.since_ns) // self.span_ns >= MOST_SPANS:
            for span, other in zip(self.spans[::2], self.spans[1::2], strict=False):
                span.join(other)
            self.spans = self.spans[::2]
            self.span_ns *= 2
        new, rise = Span(size), size - (self.last or size)
        if rise >= NOTED:
            new.rises[line()] = rise
        new.fell, self.last = max(0, -rise), size
        at = (now_ns - self.since_ns) // self.span_ns
        if at < len(self.spans):
            self.spans[-1].join(new)
        else:  # the spans between were not looked at
            self.spans += [*(Span(size) for _ in range(at - len(self.spans))), new]

    def segment(self) -> dict[str, object] | None:
        """Return the fields of `GrownMemory`; None if it did not grow late."""
        spans = list(self.spans)
        if len(spans) < 2 * PARTS:
            return None
        ends = [len(spans) * part // PARTS for part in range(PARTS + 1)]
        least = [min(span.size for span in spans[start:end]) for start, end in pairwise(ends)]
        late = least[FIRST:]
        rises = sorted(after - before for before, after in pairwise(late))
        grown = late[-1] - late[0]
        if rises[0] <= EVEN * rises[len(rises) // 2] or grown < max(LEAST, LEAST_SHARE * late[-1]):
            return None
        whole = Span(0)
        for span in spans[ends[FIRST] :]:
            whole.join(span)
        moved = sum(whole.rises.values()) + whole.fell
        most = max(whole.rises, key=whole.rises.__getitem__, default=None)
        known = most and whole.rises[most] >= MOST_OF * moved
        at = place(*most) if most and known else ""
        return {"first_bytes": late[0], "last_bytes": late[-1], "place": at}
