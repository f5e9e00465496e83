"""Roofline: the roof rises with the intensity, and is higher where tensors fit into a cache."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import roofline
from tflab.records.measured import Level, Peaks

MEASURED = Peaks(gflops=100.0, gigabytes_per_s=20.0)
CACHED = Peaks(
    gflops=100.0,
    gigabytes_per_s=20.0,
    levels=(Level(16, 50.0, 80.0), Level(64, 60.0, 40.0), Level(256, 15.0, 30.0)),
)


@pytest.mark.parametrize(
    ("intensity", "gflops"), [(0, 0), (1, 20), (4.5, 90), (5, 100), (1000, 100), (math.inf, 100)]
)
def test_the_roof_rises_with_intensity_up_to_the_peak(intensity, gflops):
    assert roofline.roof(MEASURED, intensity) == gflops


@pytest.mark.parametrize(
    ("size", "rate"),
    [
        (0, 80),
        (16, 80),
        (16.5, 60),
        (64, 60),
        (65, 30),
        (256, 30),
        (257, 20),
        (None, 20),
    ],
)
def test_bytes_come_from_the_smallest_level_that_they_fit(size, rate):
    assert roofline.bandwidth(CACHED, size) == rate
    assert roofline.roof(CACHED, 0.5, size) == rate / 2
    assert roofline.roof(CACHED, 50, size) == 100


def test_without_levels_all_bytes_come_from_memory():
    assert roofline.roof(MEASURED, 2, 16) == roofline.roof(MEASURED, 2) == 40


def test_a_small_working_set_is_no_slower_than_a_larger_one():
    disturbed = Peaks(100.0, 20.0, (Level(16, 5.0, 4.0), Level(64, 60.0, 40.0)))
    assert roofline.bandwidth(disturbed, 16) == 60
    slow = Peaks(100.0, 20.0, (Level(16, 5.0, 4.0),))
    assert roofline.bandwidth(slow, 16) == 20


POSITIVE = st.floats(1e-6, 1e6)


@settings(max_examples=30)
@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_the_roof_is_never_above_the_peaks_and_never_falls(gflops, gigabytes, first, second):
    peaks = Peaks(gflops, gigabytes)
    low, high = sorted((first, second))
    assert 0 < roofline.roof(peaks, low) <= roofline.roof(peaks, high) <= gflops
    assert roofline.roof(peaks, low) <= low * gigabytes


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 99), POSITIVE, POSITIVE)), POSITIVE, POSITIVE)
def test_more_bytes_never_raise_the_roof(levels, first, second):
    peaks = Peaks(1e6, 1.0, tuple(Level(*level) for level in sorted(levels)))
    small, large = sorted((first, second))
    assert roofline.bandwidth(peaks, small) >= roofline.bandwidth(peaks, large) >= 1
