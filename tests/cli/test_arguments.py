"""Arguments: what the types of several commands' options take, and what they say of the rest."""

import pytest

from tflab.cli import arguments
from tflab.errors import UsageError


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x=1,224,224,3", ("x", (1, 224, 224, 3))),
        ("dequeue:1=16", ("dequeue:1", (16,))),
        ("keep_prob=", ("keep_prob", ())),
        *((wrong, None) for wrong in ("x", "=3", "x=3,-1", "x=three", "x=3,,4", "")),
    ],
)
def test_a_shape_is_a_name_and_sizes_or_none_for_a_scalar(text, shape):
    if shape:
        assert arguments.shape(text) == shape
        return
    with pytest.raises(UsageError) as error:
        arguments.shape(text)
    assert str(error.value) == (
        f"'{text}' is not a shape; give it as NAME=1,224,224,3, or NAME= for a scalar."
    )
