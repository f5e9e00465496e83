"""Pictures: a plot becomes both formats, with its caption."""

from matplotlib.figure import Figure

from tflab.report import pictures
from tflab.report.contents import Picture


def test_a_picture_is_a_figure_with_its_label_in_both_formats():
    figure = Figure(label="What it shows.")
    drawn = pictures.picture("roofline", figure)
    assert (drawn.name, drawn.caption) == ("roofline", "What it shows.")
    assert drawn == Picture("roofline", "What it shows.", drawn.svg, drawn.png)
    assert drawn.svg.startswith("<svg ")
    assert drawn.png.startswith(b"\x89PNG")
