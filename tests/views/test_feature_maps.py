"""View of feature maps: what is said of maps that are not there."""

from dataclasses import replace

from tests.maps_by_hand import GONE, MAPS
from tflab.records import Fate
from tflab.views import feature_maps


def gone(*fates):
    return list(feature_maps.gone(replace(MAPS, gone=fates)))


def test_what_a_pass_fused_away_is_named_with_what_brings_it_back():
    assert gone(*GONE) == [
        "Without maps, because the pass remapper fused them: conv/Conv2D and conv/BiasAdd with "
        "conv/Relu. --without remapper brings back those that no other pass fuses then."
    ]


def test_what_no_switch_of_tflab_reaches_says_so():
    assert gone(
        Fate("a", "fused", "MklLayoutRewritePass", "b"), Fate("c", "fused", "OtherPass", "d")
    ) == [
        "Without maps, because the pass MklLayoutRewritePass fused them: a with b. "
        "TF_ENABLE_ONEDNN_OPTS=0 in the environment switches that pass off.",
        "Without maps, because the pass OtherPass fused them: c with d. No option of tflab "
        "switches that pass off.",
    ]


def test_what_xla_compiled_comes_back_without_it():
    (sentence,) = gone(Fate("a", "compiled", None, "cluster_0"))
    assert sentence == (
        "Without maps, because a pass compiled them: a into cluster_0. They come back without "
        "--xla."
    )


def test_of_many_nodes_three_are_named_and_the_rest_counted():
    many = [Fate(f"conv{n}", "fused", "remapper", f"relu{n}") for n in range(5)]
    (sentence,) = gone(*many)
    assert "conv0 with relu0; conv1 with relu1; conv2 with relu2 and 2 more. " in sentence


def test_maps_that_are_too_many_are_counted():
    def left_out(count):
        return list(feature_maps.left_out(replace(MAPS, left_out=count)))

    assert left_out(0) == []
    assert left_out(1) == ["1 more map is too many or too large to be drawn."]
    assert left_out(1_234) == ["1,234 more maps are too many or too large to be drawn."]
