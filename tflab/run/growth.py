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


class Memory:
    """The resident memory since tflab watches TensorFlow."""

    def __init__(self) -> None:
        # The least memory in each span of time, what it rose at each line, and what it fell
        self.spans: list[tuple[int, dict[Line | None, int], int]] = []
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
            self.spans = [*map(joined, self.spans[::2], [*self.spans[1::2], None])]
            self.span_ns *= 2
        at = (now_ns - self.since_ns) // self.span_ns
        rise = size - self.last if self.last else 0
        rises = {line(): rise} if rise >= NOTED else {}
        new = (size, rises, max(0, -rise))
        self.last = size
        if at < len(self.spans):
            self.spans[-1] = joined(self.spans[-1], new)
        else:  # the spans between were not looked at
            missing = at - len(self.spans)
            self.spans += [(size, {}, 0)] * missing + [new]

    def segment(self) -> dict[str, object] | None:
        """Return the fields of `GrownMemory`; None if it did not grow late."""
        spans = list(self.spans)
        if len(spans) < 2 * PARTS:
            return None
        ends = [len(spans) * part // PARTS for part in range(PARTS + 1)]
        least = [min(span[0] for span in spans[start:end]) for start, end in pairwise(ends)]
        late = least[FIRST:]
        rises = [after - before for before, after in pairwise(late)]
        grown = late[-1] - late[0]
        if min(rises) <= EVEN * sorted(rises)[len(rises) // 2] or grown < max(
            LEAST, LEAST_SHARE * late[-1]
        ):
            return None
        at_lines: dict[Line | None, int] = {}
        fallen = 0
        for _, rose, fell in spans[ends[FIRST] :]:
            fallen += fell
            for line, size in rose.items():
                at_lines[line] = at_lines.get(line, 0) + size
        most = max(at_lines, key=at_lines.__getitem__, default=None)
        known = most and at_lines[most] >= MOST_OF * (sum(at_lines.values()) + fallen)
        at = place(*most) if most and known else ""
        return {"first_bytes": late[0], "last_bytes": late[-1], "place": at}


def joined(
    span: tuple[int, dict[Line | None, int], int],
    other: tuple[int, dict[Line | None, int], int] | None,
) -> tuple[int, dict[Line | None, int], int]:
    """Return two spans as one."""
    if other is None:
        return span
    rises = dict(span[1])
    for line, rise in other[1].items():
        rises[line] = rises.get(line, 0) + rise
    return min(span[0], other[0]), rises, span[2] + other[2]
