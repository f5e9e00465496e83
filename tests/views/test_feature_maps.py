"""View of feature maps: what is said of maps that are not there."""

from dataclasses import replace

from tests.maps_by_hand import MAPS
from tflab.views import feature_maps


def test_maps_that_are_too_many_are_counted():
    def left_out(count):
        return list(feature_maps.left_out(replace(MAPS, left_out=count)))

    assert left_out(0) == []
    assert left_out(1) == ["1 more map is too many or too large to be drawn."]
    assert left_out(1_234) == ["1,234 more maps are too many or too large to be drawn."]
