"""Contents: a plot becomes both formats, with its caption."""

import pytest

from tflab.exporters.plots import style
from tflab.report import contents


@pytest.mark.slow
def test_a_picture_has_a_name_a_caption_and_both_formats():
    def draw(title, sentence):
        return style.canvas(title, sentence, 2.0)[0]

    drawn = contents.picture("memory", draw, "What it shows", "It is here.")
    assert (drawn.name, drawn.caption) == ("memory", "What it shows. It is here.")
    assert drawn.svg.startswith('<svg width="540pt"')
    assert drawn.png.startswith(b"\x89PNG")
