"""What stands in a figure, read back from matplotlib: for the tests of plots."""

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation


def title(figure: Figure) -> str:
    return plain(" ".join(t.get_text() for t in figure.texts if t.get_weight() == "bold"))


def caption(figure: Figure) -> str:
    return plain(" ".join(t.get_text() for t in figure.texts if t.get_weight() != "bold"))


def plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ")


def points(line: Line2D) -> list[tuple]:
    return [tuple(point) for point in line.get_xydata().tolist()]


def words(axes: Axes) -> list[str]:
    """All that is written within a panel, in the order in which it was."""
    return [text.get_text() for text in axes.texts if text.get_text()]


def look(text: Annotation) -> tuple:
    """(words, point, offset, align, vertical align, size, colour, weight) of what is written at a
    point."""
    return (
        text.get_text(),
        text.xy,
        text.get_position(),
        text.get_ha(),
        text.get_va(),
        text.get_size(),
        text.get_color(),
        text.get_weight(),
    )


def stroke(line: Line2D) -> tuple:
    """(colour, width, dashes, marker, its size, its edge, clipped, layer) of a line."""
    return (
        line.get_color(),
        line.get_linewidth(),
        line.get_linestyle(),
        line.get_marker(),
        line.get_markersize(),
        line.get_markeredgecolor(),
        line.get_clip_on(),
        line.get_zorder(),
    )


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """(place, label) of every tick that can be seen."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [(float(at), label.get_text()) for at, label in pairs if low <= at <= high]


def bars(axes: Axes) -> list[tuple]:
    """(place, left end, length, colour, hatch) of every bar that lies, top to bottom."""
    return [
        (
            bar.get_y() + bar.get_height() / 2,
            bar.get_x(),
            bar.get_width(),
            to_hex(bar.get_facecolor()).upper(),
            bar.get_hatch(),
        )
        for bar in axes.patches
    ]
