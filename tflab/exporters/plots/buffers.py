"""Buffers: the addresses of tensors over one step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tflab.analysis import timeline
from tflab.analysis.pieces import address_space
from tflab.exporters.plots import style
from tflab.exporters.plots.timeline import LETTERS
from tflab.records.buffers import BACKWARD, FORWARD, Buffer, Buffers
from tflab.units import plural, size, time

HEIGHT = 4.6  # inches
MANY = 1_500  # buffers; if there are more, the largest are drawn
PADDING = 6  # points, on both sides of a name
LINE = 1.25 * LETTERS  # height of a line, in points
FRAMED = 3  # points; a frame would hide a smaller box

WAITING = "waiting"  # written by a forward op, and needed only by the backward pass
LOOKS = {  # (colour, hatch, colour of the name)
    FORWARD: (style.BLUE, None, "white"),
    WAITING: (style.PALE, "///", style.INK),
    BACKWARD: (style.ORANGE, None, style.INK),
}


@dataclass(frozen=True)
class Part:
    """A time in which a buffer contained the output of one node."""

    node: str
    look: str  # a key of LOOKS
    from_ns: int
    until_ns: int
    low: int  # its range of addresses in bytes, without gaps
    high: int
    named: bool  # whether it is the longest part of its node, which has the name


@style.applied()
def draw(buffers: Buffers) -> Figure:
    """A box for each buffer: its width is its lifetime, its height its size.

    If an op worked in place, a new part of the box begins. Addresses without buffers are omitted,
    so that height is memory.
    """
    shown = sorted(buffers.buffers, key=lambda item: -item.bytes)[:MANY]
    if not shown:
        return style.message("No op requested memory", f"Step {buffers.step} has no buffers.")
    figure, (axes,) = style.canvas(headline(buffers), caption(buffers, len(shown)), HEIGHT)
    end, below = last_moment(buffers.buffers), placed(buffers.buffers)
    style.ruled(axes.xaxis, end, time)
    style.ruled(axes.yaxis, buffers.distinct.bytes, size)
    axes.set_xlim(0, end)  # as in the curve of memory above
    axes.set_ylim(0, buffers.distinct.bytes)
    axes.set_xlabel("time since the step's start")
    axes.set_ylabel("addresses (gaps omitted)")
    style.settle(figure)
    for part in (part for item in shown for part in parts(item, below(item), end)):
        draw_box(axes, part)
        if part.named:
            write_name(axes, part)
    return figure


def last_moment(buffers: Iterable[Buffer]) -> int:
    """The time of the last event of a buffer."""
    return max(max(item.from_ns + 1, item.until_ns or 0) for item in buffers)


def placed(buffers: Iterable[Buffer]) -> Callable[[Buffer], int]:
    """A function from a buffer to the number of used bytes at lower addresses."""
    spans: dict[str, list[timeline.Span]] = {}
    for item in buffers:
        span = (item.address, item.address + item.bytes)
        spans.setdefault(address_space(item.device), []).append(span)
    united = [
        (space, start, end)
        for space in sorted(spans)
        for start, end in timeline.union(spans[space])
    ]
    below = [0, *accumulate(end - start for _, start, end in united)]
    starts = [(space, start) for space, start, _ in united]

    def bytes_below(item: Buffer) -> int:
        span = bisect_right(starts, (address_space(item.device), item.address)) - 1
        return below[span] + item.address - united[span][1]

    return bytes_below


def parts(item: Buffer, low: int, end_ns: int) -> Iterator[Part]:
    """The outputs of nodes in a buffer, one after the other."""
    writers = [(item.tensor, item.from_ns, item.phase)]
    writers += [(use.node, use.ns, use.phase) for use in item.in_place]
    until_ns = end_ns if item.until_ns is None else item.until_ns
    ends = [*(ns for _, ns, _ in writers[1:]), until_ns]
    for (node, start, phase), end in zip(writers, ends, strict=True):
        waits = end
        if phase == FORWARD and item.backward_ns is not None:
            waits = min(max(start, item.backward_ns), end)
        spans = [(phase, start, waits), (WAITING, waits, end)]
        longest = max(spans, key=lambda span: span[2] - span[1])
        for look, since, until in spans:
            if until > since or look == phase == longest[0]:
                named = look == longest[0]
                yield Part(node, look, since, until, low, low + item.bytes, named)


def draw_box(axes: Axes, part: Part) -> None:
    """Draw the part as a box, with a white frame unless it is tiny."""
    color, hatch, _ = LOOKS[part.look]
    corner = (part.from_ns, part.low)
    sides = (part.until_ns - part.from_ns, part.high - part.low)
    hatched = style.BLUE if hatch else color
    axes.add_patch(
        Rectangle(
            corner, *sides, facecolor=color, edgecolor=hatched, hatch=hatch, linewidth=0.3, zorder=2
        )
    )
    if min(in_points(axes, part)) > FRAMED:
        axes.add_patch(
            Rectangle(corner, *sides, fill=False, edgecolor="white", linewidth=1, zorder=2)
        )


def in_points(axes: Axes, part: Part) -> tuple[float, float]:
    """Width and height of a box on the page."""
    points = style.POINTS / axes.figure.dpi
    width = (part.until_ns - part.from_ns) / axes.get_xlim()[1] * axes.bbox.width
    height = (part.high - part.low) / axes.get_ylim()[1] * axes.bbox.height
    return width * points, height * points


def write_name(axes: Axes, part: Part) -> None:
    """Write the longest form of the name that fits into the box, vertically if only that fits."""
    width, height = in_points(axes, part)
    words, turned = fitting(part.node, width - PADDING, int(height / LINE)), False
    if not words:
        words, turned = fitting(part.node, height - PADDING, int(width / LINE)), True
    if not words:
        return
    color, hatch, ink = LOOKS[part.look]
    axes.text(
        (part.from_ns + part.until_ns) / 2,
        (part.low + part.high) / 2,
        words,
        rotation=90 if turned else 0,
        ha="center",
        va="center",
        size=LETTERS,
        linespacing=1.15,
        color=ink,
        bbox={"facecolor": color, "linewidth": 0, "pad": 1} if hatch else None,
        zorder=3,
    )


def fitting(name: str, room: float, lines: int) -> str:
    """The longest form of a name that fits into `lines` lines of `room` points, broken only between
    its scopes; "" if none does."""
    for form in (name, style.without_inner_scopes(name), name.rpartition("/")[2]):
        form = style.short_name(form, 80)
        if style.text_width(max(form.split("/"), key=len) + "/", LETTERS) <= room:
            folded = style.folded_name(form, room, LETTERS)
            if 0 < len(folded) <= lines:
                return "\n".join(folded)
    return ""


def headline(buffers: Buffers) -> str:
    return (
        f"{size(buffers.requested.bytes)} in {plural(buffers.requested.count, 'buffer')}, at "
        f"{size(buffers.distinct.bytes)} of addresses"
    )


def caption(buffers: Buffers, shown: int) -> str:
    parts = [
        f"Step {buffers.step}. Each box is a buffer: its width is its lifetime, its height its "
        "size. The next box at the same height reuses its addresses. Blue: written by forward "
        "ops."
    ]
    if buffers.for_backward.count:
        parts.append("Hatched: only the backward pass still needs it.")
    if any(item.phase == BACKWARD for item in buffers.buffers):
        parts.append("Orange: written by gradients or updates.")
    if buffers.in_place.count:
        saved = size(buffers.in_place.bytes)
        parts.append(f"A line within a box: an op worked in place, which saved {saved}.")
    if shown < len(buffers.buffers):
        parts.append(f"The largest {shown:,} of {len(buffers.buffers):,} are drawn.")
    return " ".join(parts)
