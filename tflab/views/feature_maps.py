"""View of feature maps: the sentences beside the picture."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.records import Maps
from tflab.units import plural


def left_out(maps: Maps) -> Iterator[str]:
    if maps.left_out:
        yield (
            f"{plural(maps.left_out, 'more map')} {'is' if maps.left_out == 1 else 'are'} too many "
            "or too large to be drawn."
        )
