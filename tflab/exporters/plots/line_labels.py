"""Line labels: a label at the right end of each line of a panel, instead of a legend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from tflab.exporters.plots import style

AWAY = 10  # points from a line's end to its label
GAP = 1.3 * style.SMALL  # points from one label to the next
NEAR = 3  # points that a label may move before it needs a leader line


def label(axes: Axes, point: tuple[float, float], words: str, color: str, glyph: str) -> Annotation:
    """A label right of a line's last point: the line's marker as a glyph in its colour, and words.

    `spread` the labels of a panel when the layout of the figure is final; the words move with the
    glyph.
    """
    first = axes.annotate(
        glyph,
        point,
        (AWAY, 0),
        textcoords="offset points",
        va="center",
        size=style.SMALL,
        color=color,
        annotation_clip=False,
    )
    axes.annotate(
        words,
        (0, 0.5),
        (13, 0),
        xycoords=first,
        textcoords="offset points",
        va="center",
        size=style.SMALL,
        annotation_clip=False,
    )
    return first


def spread(axes: Axes, labels: Sequence[Annotation]) -> None:
    """Move labels up or down, as little as possible, until none overlap; draw leader lines to those
    that moved."""
    points = style.POINTS / axes.figure.dpi
    targets = [float(axes.transData.transform(label.xy)[1]) * points for label in labels]
    for label, before, after in zip(labels, targets, spread_positions(targets, GAP), strict=True):
        label.set_position((AWAY, after - before))
        if abs(after - before) > NEAR:
            leader(axes, label.xy, (AWAY, after - before))


def leader(axes: Axes, point: tuple[float, float], offset: tuple[float, float]) -> None:
    """Draw a thin line from a point to its label, which is `offset` away (in points)."""
    axes.annotate(
        "",
        point,
        offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": style.FAINT, "linewidth": 0.6, "shrinkB": 2},
        annotation_clip=False,
    )


def spread_positions(targets: Sequence[float], gap: float) -> list[float]:
    """Positions at least `gap` apart, in the order of the targets and as near to them as possible.

    Without the gaps that is isotonic regression.
    """
    from scipy.optimize import isotonic_regression  # slow to import, and few plots have such labels

    order = np.argsort(targets, kind="stable")
    above = gap * np.arange(len(targets))
    positions = np.array(targets, float)
    if len(targets):
        positions[order] = isotonic_regression(positions[order] - above).x + above
    return positions.tolist()
