"""Lanes: hand-made runs in rows, where nothing partly overlaps."""

import pytest

from tests.examples.runs import runs
from tflab.analysis import timeline

# Overlapping groups: of five runs, of six after a pause, and of three
GROUPS = (
    "a 0 9; b 1 2; c 2 3; d 4 6; e 5 1; f 20 9; g 21 9; h 22 9; i 23 9; j 24 9; k 25 9; l 29 1;"
    "m 40 5; n 41 1; o 42 1"
)


@pytest.mark.parametrize(
    ("recorded", "names"),  # of each lane
    [
        ("b 10 5; a 0 10; c 20 5", "abc"),
        ("a 0 10; b 5 10; c 10 10", "ac b"),  # partly overlapping
        ("a 0 10; b 2 5; c 3 2; d 8 2", "a bd c"),  # one within another
        (GROUPS, "aflm bdgno ceh i j k"),  # the first lane that is free
        ("a 5 0; b 5 0", "ab"),  # a run of no duration opens no lane
        ("s 100 0; x 100 10", "sx"),
        ("x 100 10; s 100 0", "sx"),
        ("", ""),
    ],
)
def test_the_runs_in_each_lane(recorded, names):
    packed = ["".join(run.name for run in lane) for lane in timeline.pack(runs(recorded))]
    assert packed == names.split()
