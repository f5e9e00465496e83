"""Layers: the time of each, in the order of execution; those above a threshold are marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.analysis import quality
from tflab.exporters.plots import style
from tflab.records.measured import OpStats
from tflab.records.verdicts import Quality
from tflab.units import percent, time

THRESHOLD = 0.05  # of the time of all ops
MANY = 30  # layers; with more, bars are narrower
PITCH, NARROW = 0.27, 0.2  # inches from one bar to the next
BAR = 0.7  # of that
# The numbers right of the panel, with the distance to their right edges in points
COLUMNS = {"mean": 50, "median": 102, "± deviation": 168, "share": 212}
NARROW_COLUMNS = {"mean": 50, "median": 102, "share": 146}
LETTERS, NARROW_LETTERS = 46, 24  # letters of a layer's name; longer ones are shortened
FRAME = 1.6  # limit of the axis, in longest bars; a deviation may exceed it

# (singular, plural, types): a layer has the first kind with one of its types. The names of types
# may contain more, because of fusion and oneDNN: `_MklNativeFusedConv2D`, `Conv2DBackpropFilter`.
KINDS = (
    ("convolution", "convolutions", ("Conv2D", "Conv3D", "DepthwiseConv")),
    ("matrix product", "matrix products", ("MatMul", "Einsum")),
    ("normalisation", "normalisations", ("BatchNorm", "LRN")),
    ("pooling layer", "pooling layers", ("MaxPool", "AvgPool")),
    ("weight update", "weight updates", ("ResourceApply",)),
    ("feed or fetch", "feeds and fetches", ("_Arg", "_Retval")),
)
OTHER = ("layer of another kind", "layers of other kinds")

Kind = tuple[str, str]


@style.applied()
def draw(
    rows: Sequence[OpStats], threshold: float = THRESHOLD, judgement: Quality | None = None
) -> Figure:
    """A bar for each row: its mean time in a step, with the median and the deviation.

    Bars whose share is above the threshold are red and hatched. The title is the `sentence`, and
    the caption says whether the machine was quiet.
    """
    if not rows:
        return style.message("No layer ran", "There are no rows to draw.")
    pitch = PITCH if len(rows) < MANY else NARROW
    figure, (axes,) = style.canvas(
        sentence(rows, threshold), caption(rows, threshold, judgement), pitch * len(rows) + 0.8
    )
    longest = max(row.step_ns for row in rows) or 1
    reach = max(row.step_ns + (row.step_std_ns or 0) for row in rows)
    axes.set_xlim(0, min(1.03 * reach, FRAME * longest) or 1)
    axes.set_ylim(len(rows) - 0.4, -0.7)
    for place, row in enumerate(rows):
        bar(axes, place, row, row.share > threshold)
    write_numbers(axes, -1, {header: header for header in COLUMNS}, style.FAINT)
    axes.axvline(
        threshold * sum(row.step_ns for row in rows),
        color=style.INK,
        linewidth=1,
        linestyle=(0, (4, 3)),
        zorder=1,
    )
    letters = LETTERS if wide() else NARROW_LETTERS
    axes.set_yticks(range(len(rows)), style.distinct_names([row.key for row in rows], letters))
    axes.tick_params(axis="y", length=0, labelcolor=style.INK)
    style.ruled(axes.xaxis, axes.get_xlim()[1], time, 4)  # long names make the panel narrow
    axes.set_xlabel("time in a step")
    axes.grid(axis="x")
    style.settle(figure)
    return figure


def bar(axes: Axes, place: int, row: OpStats, marked: bool) -> None:
    """The bar, its deviation as a line with ends and its median as a mark, and the numbers right of
    the panel."""
    axes.barh(
        place,
        row.step_ns,
        BAR,
        color=style.VERMILION if marked else style.PALE,
        hatch="////" if marked else None,
        edgecolor="white",
        linewidth=0,
        zorder=2,
    )
    numbers = {"mean": time(row.step_ns), "share": percent(row.share)}
    if row.step_median_ns is not None:
        numbers["median"] = time(row.step_median_ns)
        axes.plot(row.step_median_ns, place, color=style.INK, marker="d", markersize=4, zorder=3)
    if row.step_std_ns is not None:
        numbers["± deviation"] = f"± {time(row.step_std_ns)}"
        axes.errorbar(
            row.step_ns,
            place,
            xerr=[[min(row.step_std_ns, row.step_ns)], [row.step_std_ns]],
            color=style.INK,
            linewidth=1,
            capsize=2.5,
        )
    weight = "bold" if marked else "normal"
    write_numbers(axes, place, numbers, style.INK, weight)


def wide() -> bool:
    return style.width() >= style.WIDTH


def write_numbers(
    axes: Axes, place: float, numbers: Mapping[str, str], color: str, weight: str = "normal"
) -> None:
    """Write the known numbers, by their headers, right of the panel."""
    for header, across in (COLUMNS if wide() else NARROW_COLUMNS).items():
        axes.annotate(
            numbers.get(header, ""),
            (1, place),
            (across, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            size=style.SMALL,
            color=color,
            weight=weight,
            annotation_clip=False,
        )


def kind(row: OpStats) -> Kind:
    """The kind of a layer, judged by the types that ran."""
    return next(
        (
            (singular, plural)
            for singular, plural, types in KINDS
            if any(part in op for op in row.ops for part in types)
        ),
        OTHER,
    )


def sentence(rows: Sequence[OpStats], threshold: float = THRESHOLD) -> str:
    """The kinds of the layers above the threshold, and whether that is all layers of the kind."""
    above = [row for row in rows if row.share > threshold]
    border = f"{100 * threshold:g} % of the time of all ops"
    if not above:
        return f"No layer takes more than {border}"
    kinds = Counter(map(kind, above))
    (first, count), *others = kinds.most_common()
    if others:
        counted = [
            f"{n} are {several}" if n > 1 else f"1 is a {one}"
            for (one, several), n in kinds.most_common()
        ]
        return f"Of the {len(above)} bars above {border}, {listed(counted)}"
    alike = sum(kind(row) == first for row in rows) - count
    rest = f"; {alike} more {'lies' if alike == 1 else 'lie'} below" if alike else ""
    if count == 1:
        return f"The one bar above {border} is a {first[0]}{rest}"
    return f"All {count} bars above {border} are {first[1]}{rest}"


def listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]])


def caption(rows: Sequence[OpStats], threshold: float, judgement: Quality | None) -> str:
    """How to read it, a warning if means are of a few steps, and how quiet the machine was."""
    known = [row for row in rows if row.step_std_ns is not None]
    wild = sum((row.step_std_ns or 0) > row.step_ns for row in known)
    parts = [
        "Layers in the order of execution: mean time in a step, and share of all ops.",
        f"Red and hatched: above {100 * threshold:g} % (broken line).",
        "Kinds follow from the ops that ran.",
    ]
    if any(row.step_median_ns is not None for row in rows):
        parts.append("Mark: the median over the steps.")
    if known:
        parts.append("Thin line and ±: standard deviation over the steps.")
    if len(known) < len(rows):
        parts.append("Without a line, it is not known.")
    if wild:
        parts.append(
            f"In {wild}, it is larger than the mean: a few steps were far slower than the others."
        )
    if judgement:
        parts.append(quality.verdict(judgement))
    return " ".join(parts)
