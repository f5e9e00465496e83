"""Words: how sources, tensors, counts and shares of a roof are written."""

import pytest

from tflab.views import words


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, ""), (0.125, "12.5 %"), (1.0, "100.0 %"), (1.001, "above"), (7.83, "above")],
)
def test_an_op_above_the_roof_is_said_to_be_there_and_not_how_far(share, text):
    assert words.of_roof(share) == text
