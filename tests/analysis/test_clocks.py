"""Clocks: offsets between machines, from messages whose true times are known."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflab.analysis import wires
from tflab.records.cluster import Offset


def messages(text):
    """`ab 0 30`: from a to b, sent and received by their clocks."""
    parts = [part.split() for part in text.split("; ")] if text else []
    return [(*pair, int(received) - int(sent)) for pair, sent, received in parts]


@pytest.mark.parametrize(
    ("sent", "offsets"),
    [
        # b is 1000 ahead; a message takes 30 one way and 10 the other: the middle of both bounds
        ("ab 0 1030; ba 1100 110", [Offset("b", 1010, 20, 1010)]),
        # The fastest of each direction counts
        ("ab 0 500; ba 0 400; ab 1000 1010; ba 1000 1010", [Offset("b", 0, 10)]),
        # a and c are far from one another, and both near b, which tightens the bounds
        (
            "ab 0 110; ba 100 10; bc 0 110; cb 100 10; ac 0 1200; ca 0 800",
            [Offset("b", 100, 10, 100), Offset("c", 200, 20, 200)],
        ),
        ("ab 0 10", [Offset("b", 0, inf)]),  # one direction says nothing certain
        ("", []),
        ("aa 5 3", []),  # within one clock
        # 100 ahead at first, at the end 100 behind: set meanwhile
        ("ba 1100 1010; ab 5000 4910", [Offset("b", 0, 90, 0, consistent=False)]),
        (
            "ba 1100 1010; ab 5000 4910; ac 0 10",
            [Offset("b", 0, 90, 0, consistent=False), Offset("c", 0, inf)],
        ),
        # Clocks that may be right are not corrected, but where one is wrong all are
        ("ab 0 90; ba 0 10", [Offset("b", 40, 50)]),
        (
            "ab 0 90; ba 0 10; ac 0 1030; ca 1100 110",
            [Offset("b", 40, 50, 40), Offset("c", 1010, 20, 1010)],
        ),
    ],
)
def test_offsets_to_the_clock_of_a(sent, offsets):
    assert wires.offsets(messages(sent), "a") == tuple(offsets)


TASKS = st.sampled_from("abcd")
AHEAD = st.fixed_dictionaries({task: st.integers(-(10**9), 10**9) for task in "abcd"})
SENT = st.tuples(TASKS, TASKS, st.integers(1, 10**5))  # and the delay


@given(AHEAD, st.lists(SENT, max_size=30))
def test_the_true_offset_is_within_the_uncertainty_and_no_message_arrives_before_it_was_sent(
    ahead, exchanged
):
    sent = [(a, b, delay + ahead[b] - ahead[a]) for a, b, delay in exchanged]
    known = {"a": 0.0}
    for offset in wires.offsets(sent, "a"):
        true = ahead[offset.clock] - ahead["a"]
        assert abs(true - offset.ahead_ns) <= offset.uncertainty_ns
        assert offset.consistent
        if offset.uncertainty_ns < inf:
            known[offset.clock] = offset.ahead_ns
    for start, end, took in sent:
        if start in known and end in known:
            assert took - known[end] + known[start] >= -1e-3
