"""Curves: means of blocks, worked out by hand."""

from tflab.exporters.plots import curves


def test_a_block_is_its_mean_at_its_middle_and_the_remainder_joins_the_blocks():
    points = [(1, 1.0), (2, 3.0), (4, 11.0), (6, 21.0), (8, 31.0)]
    assert curves.means(points, 2) == [(7 / 3, 5.0), (7.0, 26.0)]
    assert curves.means(points, 9) == [(4.2, 13.4)]
    assert curves.means(points, 1) == points
