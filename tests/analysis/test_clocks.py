"""Clocks: offsets between machines, from messages whose true times are known."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from tflab.analysis import clocks
from tflab.records.cluster import Message, Offset


def test_the_offset_is_the_middle_of_what_messages_both_ways_allow():
    # b is 1000 ahead; a message takes 30 one way and 10 the other
    messages = [Message("a", "b", 0, 1030), Message("b", "a", 1100, 110)]
    assert clocks.offsets(messages, "a") == (Offset("b", 1010, 20, 1010),)


def test_the_fastest_message_of_each_direction_counts():
    slow = [Message("a", "b", 0, 500), Message("b", "a", 0, 400)]
    fast = [Message("a", "b", 1000, 1010), Message("b", "a", 1000, 1010)]
    assert clocks.offsets(slow + fast, "a") == (Offset("b", 0, 10),)


def test_a_third_clock_tightens_the_bounds():
    """a and c are far from one another, and both near b."""
    near = [
        *(Message("a", "b", 0, 110), Message("b", "a", 100, 10)),
        *(Message("b", "c", 0, 110), Message("c", "b", 100, 10)),
    ]
    far = [Message("a", "c", 0, 1200), Message("c", "a", 0, 800)]
    assert clocks.offsets(near + far, "a") == (Offset("b", 100, 10, 100), Offset("c", 200, 20, 200))


def test_messages_in_one_direction_say_nothing_certain():
    assert clocks.offsets([Message("a", "b", 0, 10)], "a") == (Offset("b", 0, inf),)


def test_no_messages_have_no_offsets():
    assert clocks.offsets([], "a") == ()


def test_a_message_within_one_clock_says_nothing():
    assert clocks.offsets([Message("a", "a", 5, 3)], "a") == ()


def test_a_clock_that_was_set_meanwhile_is_not_consistent():
    # 100 ahead at first, at the end 100 behind
    messages = [Message("b", "a", 1100, 1010), Message("a", "b", 5000, 4910)]
    assert clocks.offsets(messages, "a") == (Offset("b", 0, 90, 0, consistent=False),)


def test_clocks_that_may_be_right_are_not_corrected():
    messages = [Message("a", "b", 0, 90), Message("b", "a", 0, 10)]
    assert clocks.offsets(messages, "a") == (Offset("b", 40, 50),)


def test_where_one_clock_is_wrong_all_are_corrected_for_only_together_they_fit():
    messages = [
        *(Message("a", "b", 0, 90), Message("b", "a", 0, 10)),
        *(Message("a", "c", 0, 1030), Message("c", "a", 1100, 110)),
    ]
    assert clocks.offsets(messages, "a") == (Offset("b", 40, 50, 40), Offset("c", 1010, 20, 1010))


TASKS = ("a", "b", "c", "d")
ahead = st.fixed_dictionaries({task: st.integers(-(10**9), 10**9) for task in TASKS})
sent = st.tuples(
    *(st.sampled_from(TASKS), st.sampled_from(TASKS)),
    *(st.integers(0, 10**6), st.integers(1, 10**5)),  # true time, delay
)


@given(ahead, st.lists(sent, max_size=30))
def test_the_true_offset_always_lies_within_the_uncertainty(ahead, exchanged):
    messages = [
        Message(a, b, time + ahead[a], time + delay + ahead[b]) for a, b, time, delay in exchanged
    ]
    for offset in clocks.offsets(messages, "a"):
        true = ahead[offset.clock] - ahead["a"]
        assert abs(true - offset.ahead_ns) <= offset.uncertainty_ns
        assert offset.consistent


@given(ahead, st.lists(sent, max_size=30))
def test_with_all_offsets_taken_away_no_message_arrives_before_it_was_sent(ahead, exchanged):
    messages = [
        Message(a, b, time + ahead[a], time + delay + ahead[b]) for a, b, time, delay in exchanged
    ]
    estimated = {offset.clock: offset for offset in clocks.offsets(messages, "a")}
    known = {"a": 0.0} | {
        name: o.ahead_ns for name, o in estimated.items() if o.uncertainty_ns < inf
    }
    for message in messages:
        if message.from_clock in known and message.to_clock in known:
            sent_ns = message.sent_ns - known[message.from_clock]
            assert message.received_ns - known[message.to_clock] >= sent_ns - 1e-3
