"""Wires: what tasks did in a step, worked out by hand from a step of two tasks."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import runs as notation
from tflab.analysis import wires
from tflab.records.placed import Transfer
from tflab.records.timed import Offset, OpRun, Received, StepTime

CLIENT, A, B = (
    "/job:client/replica:0/task:0",
    "/job:worker/replica:0/task:0",
    "/job:worker/replica:0/task:1",
)
ON_A, ON_B = (f"{task}/device:CPU:0" for task in (A, B))
STEP = StepTime(0, start_ns=1_000_000, wall_ns=100_000)


def runs(text):
    """Runs on tasks: `a 10 20 @A`."""
    return notation.runs(text.replace("@A", f"@{ON_A}").replace("@B", f"@{ON_B}"))


def wire(start, duration, step=0):
    return OpRun(step, "a_S2", "RecvTensor", "wire from task 0 to task 1", start, duration)


# a (task 0) makes a tensor that b (task 1) takes; on the true time axis:
# 1010..1030 us a, 1032..1052 us the wire, 1060..1080 us b
SENT = Transfer("a", "a_S1", "a_S2", ON_A, ON_B, "float32", (8,), 32, edge="edge_7_a")
RUNS = runs("a 1010e3 20e3 @A; b 1060e3 20e3 @B")
RECEIVED = Received(0, "edge_7_a", ON_A, ON_B, 1_032_000, 20_000)
ARRIVAL = (RECEIVED, SENT)
AHEAD_NS = 5_000_000  # of b's clock, in some of the tests


# Messages


def test_a_step_and_what_it_sends_are_messages_between_clocks():
    several = [*RUNS, *runs("c 1020e3 15e3 @A")]
    assert list(wires.messages(several, [ARRIVAL], [STEP])) == [
        (CLIENT, A, 10_000),  # from 1,000 us to 1,010 us
        (A, CLIENT, 65_000),  # 1,035 to 1,100
        (CLIENT, B, 60_000),  # 1,000 to 1,060
        (B, CLIENT, 20_000),  # 1,080 to 1,100
        (A, B, 23_000),  # 1,030 to 1,053: received within that microsecond
    ]


def test_a_node_that_ran_twice_in_a_step_says_nothing_about_when_it_sent():
    twice = [*RUNS, *runs("a 1040e3 1000 @A")]
    assert [A, B] not in [pair for *pair, _ in wires.messages(twice, [ARRIVAL], [STEP])]


def test_a_clock_ahead_is_found_from_one_step():
    """Its part of the step leaves b 4,980 to 5,060 us ahead, and a 70 us behind to 10 ahead; the
    tensor says that b is 5,023 us ahead of a at most."""
    own = [RUNS[0], wires.shifted(RUNS[1], -AHEAD_NS)]
    received = replace(RECEIVED, start_ns=6_032_000)
    axis = wires.one_axis(own, [received], [STEP], [SENT])
    assert axis.offsets == (
        Offset(A, -16_500, 26_500, -16_500),  # -43 to 10 us
        Offset(B, 5_006_500, 26_500, 5_006_500),  # 4,980 to 5,033 us
    )
    assert axis.runs == runs("a 1026500 20e3 @A; b 1053500 20e3 @B")
    # It was received just when a had ended, but for the microsecond in which it was
    assert axis.wires == [wire(1_045_500, 0)]


# Clocks: offsets between machines, from messages whose true times are known


def sent_messages(text):
    """`ab 0 30`: from a to b, sent and received by their clocks."""
    parts = [part.split() for part in text.split("; ")] if text else []
    return [(*pair, int(received) - int(sent)) for pair, sent, received in parts]


@pytest.mark.parametrize(
    ("sent", "offsets"),
    [
        # b is 1000 ahead; a message takes 30 one way and 10 the other: the middle of both bounds
        ("ab 0 1030; ba 1100 110", [Offset("b", 1010, 20, 1010)]),
        # The fastest of each direction counts
        ("ab 0 500; ba 0 400; ab 1000 1010; ba 1000 1010", [Offset("b", 0, 10, 0)]),
        # a and c are far from one another, and both near b, which tightens the bounds
        (
            "ab 0 110; ba 100 10; bc 0 110; cb 100 10; ac 0 1200; ca 0 800",
            [Offset("b", 100, 10, 100), Offset("c", 200, 20, 200)],
        ),
        ("ab 0 10", [Offset("b", 0, inf, 0)]),  # one direction says nothing certain
        ("", []),
        ("aa 5 3", []),  # within one clock
        # 100 ahead at first, at the end 100 behind: set meanwhile
        ("ba 1100 1010; ab 5000 4910", [Offset("b", 0, inf, 0)]),
        (
            "ba 1100 1010; ab 5000 4910; ac 0 10",
            [Offset("b", 0, inf, 0), Offset("c", 0, inf, 0)],
        ),
        # Clocks that may be right are not corrected, but where one is wrong all are
        ("ab 0 90; ba 0 10", [Offset("b", 40, 50, 0)]),
        (
            "ab 0 90; ba 0 10; ac 0 1030; ca 1100 110",
            [Offset("b", 40, 50, 40), Offset("c", 1010, 20, 1010)],
        ),
    ],
)
def test_offsets_to_the_clock_of_a(sent, offsets):
    assert wires.offsets(sent_messages(sent), "a") == tuple(offsets)


TASKS = st.sampled_from("abcd")
AHEAD = st.fixed_dictionaries({task: st.integers(-(10**9), 10**9) for task in "abcd"})
MESSAGE = st.tuples(TASKS, TASKS, st.integers(1, 10**5))  # and the delay


@given(AHEAD, st.lists(MESSAGE, max_size=30))
def test_the_true_offset_is_within_the_uncertainty_and_no_message_arrives_before_it_was_sent(
    ahead, exchanged
):
    sent = [(a, b, delay + ahead[b] - ahead[a]) for a, b, delay in exchanged]
    known = {"a": 0.0}
    for offset in wires.offsets(sent, "a"):
        true = ahead[offset.clock] - ahead["a"]
        assert abs(true - offset.ahead_ns) <= offset.uncertainty_ns
        if offset.uncertainty_ns < inf:
            known[offset.clock] = offset.ahead_ns
    for start, end, took in sent:
        if start in known and end in known:
            assert took - known[end] + known[start] >= -1e-3


# One axis


def test_a_run_of_a_clock_ahead_is_moved_back_with_its_allocations():
    (own,) = runs("b 6060e3 20e3 @B +64/6061")
    assert [wires.shifted(own, AHEAD_NS)] == runs("b 1060e3 20e3 @B +64/1061")


def test_what_was_received_is_a_run_named_as_the_node_that_received_it():
    for ended in ({}, wires.ends(RUNS)):  # where clocks agree, the end of its maker says nothing
        assert wires.run_on_wire(ARRIVAL, {}, ended) == wire(1_032_000, 20_000)
    unknown = wires.run_on_wire((RECEIVED, None), {}, {})
    assert (unknown.name, unknown.op) == ("edge_7_a", "RecvTensor")


def test_the_start_is_that_of_its_maker_s_end_where_clocks_differ():
    """The runtime mixes both clocks: with the sender's ahead, it leaves a microsecond."""
    mixed = (replace(RECEIVED, start_ns=6_051_000, duration_ns=1_000), SENT)
    ended = wires.ends(RUNS)
    assert wires.run_on_wire(mixed, {B: AHEAD_NS}, ended) == wire(1_030_000, 22_000)
