"""Buffers: a step of four ops, accounted for by hand; and the reuse of addresses."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records_by_hand import CPU_0, CPU_1
from tflab.analysis import buffers
from tflab.analysis.pieces import Piece
from tflab.records.buffers import Amount, AtPeak, Buffer, Buffers, Output, Use
from tflab.records.graph import Node
from tflab.records.placed import Fate, Transfer
from tflab.records.timed import OpRun, StepTime

STEP = StepTime(3, start_ns=100_000, wall_ns=90_000)


def run(name: str, op: str, start_us: int, end_us: int, *allocations: tuple[int, int]) -> OpRun:
    return OpRun(
        *(3, name, op, CPU_0, 1000 * start_us, 1000 * (end_us - start_us)),
        allocations=tuple((time, size, "cpu") for time, size in allocations),
    )


def output(address: int, size: int, allocated: int | None = None) -> Output:
    return Output(0, size, address, size if allocated is None else allocated, 1, "cpu")


# Forward: conv (with working memory), tanh in place, loss. Backward: grad gets the addresses of
# the working memory's successor `flat`, and reads what tanh left.
NODES = (
    Node("conv", "Conv2D", ("x", "w")),
    Node("tanh", "Tanh", ("conv",)),
    Node("flat", "Reshape", ("tanh",)),
    Node("loss", "Mean", ("flat",)),
    Node("keep", "_Retval", ("loss",)),
    Node("square", "Square", ("flat",)),
    Node("grad", "TanhGrad", ("tanh", "square")),
    Node("update", "Apply", ("grad",)),
)
RAN = (
    (
        run("conv", "Conv2D", 101, 110, (102, 96), (103, 500), (109, -500), (151, -96)),
        [(0x100, 90)],
    ),
    (run("tanh", "Tanh", 111, 113), [(0x100, 90)]),
    (run("flat", "Reshape", 114, 115), [(0x100, 90)]),
    (run("square", "Square", 116, 119, (117, 64), (140, -64)), [(0x400, 64)]),
    (run("loss", "Mean", 120, 123, (121, 4)), [(0x200, 4)]),
    (run("keep", "_Retval", 124, 125), []),
    (run("grad", "TanhGrad", 141, 150, (142, 32), (163, -32)), [(0x420, 32)]),
    (run("update", "Apply", 155, 160), []),
)
RUNS = [ran for ran, _ in RAN]
OUTPUTS = [
    [output(address, size, 96 if address == 0x100 else None) for address, size in outputs]
    for _, outputs in RAN
]


def account(**changes) -> Buffers:
    backward = {"grad", "update"}
    return buffers.buffers(RUNS, OUTPUTS, NODES, STEP, **{"backward": backward, **changes})


CONV = Buffer(
    tensor="conv",
    op="Conv2D",
    phase="forward",
    device=CPU_0,
    allocator="cpu",
    address=0x100,
    bytes=96,
    from_ns=2_000,
    until_ns=51_000,
    freed_by="record",
    in_place=(Use("tanh", 11_000, "forward"),),
    passed_on=(Use("flat", 14_000, "forward"),),
    readers=("tanh", "flat", "square", "loss", "grad"),
    last_reader="grad",
    backward_ns=23_000,
    before=(),
    after=(),
)
SQUARE = replace(
    CONV,
    tensor="square",
    op="Square",
    address=0x400,
    bytes=64,
    from_ns=17_000,
    until_ns=40_000,
    in_place=(),
    passed_on=(),
    readers=("grad",),
    backward_ns=19_000,
    after=("grad",),
)
LOSS = replace(
    SQUARE,
    tensor="loss",
    op="Mean",
    address=0x200,
    bytes=4,
    from_ns=21_000,
    until_ns=None,
    freed_by="kept",
    readers=("keep",),
    last_reader="keep",
    backward_ns=None,
    after=(),
)
GRAD = replace(
    SQUARE,
    tensor="grad",
    op="TanhGrad",
    phase="backward",
    address=0x420,
    bytes=32,
    from_ns=42_000,
    until_ns=63_000,
    readers=("update",),
    last_reader="update",
    backward_ns=None,
    before=("square",),
    after=(),
)


def test_a_step_is_accounted_for_by_address():
    assert account() == Buffers(
        step=3,
        wall_ns=90_000,
        buffers=(CONV, SQUARE, LOSS, GRAD),
        made=Amount(6, 90 + 90 + 90 + 64 + 4 + 32),
        passed_on=Amount(1, 90),
        in_place=Amount(1, 90),
        requested=Amount(4, 96 + 64 + 4 + 32),
        reused=Amount(1, 32),
        distinct=Amount(3, 96 + 64 + 4),
        working=Amount(1, 500),
        other=Amount(0, 0),
        for_backward=Amount(2, 96 + 64),
        at_peak=AtPeak(3_000, 596, 96, 500, 0),
        held_by_receiver=(),
        unexpected=("grad",),
    )


def test_an_inference_keeps_nothing_for_a_backward_pass():
    account_of_inference = account(backward=())
    assert {item.phase for item in account_of_inference.buffers} == {"forward"}
    assert {item.backward_ns for item in account_of_inference.buffers} == {None}
    assert account_of_inference.for_backward == Amount(0, 0)


def test_what_only_an_update_reads_is_not_kept_for_the_backward_pass():
    """A learning rate, for example; what a gradient reads is, also if an update reads it last."""
    only_updates = account(updates={"grad", "update"})
    assert {item.backward_ns for item in only_updates.buffers} == {None}
    assert only_updates.for_backward == Amount(0, 0)
    assert {item.phase for item in only_updates.buffers} == {"forward", "backward"}
    assert account(updates={"update"}) == account()


def test_where_the_runtime_gives_no_address_there_are_no_buffers():
    assert buffers.buffers(RUNS, [[] for _ in RUNS], NODES, STEP) is None
    assert buffers.buffers([], [], NODES, STEP) is None


def test_memory_that_is_no_outputs_and_outlives_its_op_is_not_called_working_memory():
    runs = [run("assign", "Assign", 101, 110, (102, 96), (111, 0)), *RUNS[1:]]
    listed = buffers.buffers(runs, [[], *OUTPUTS[1:]], NODES, STEP)
    assert (listed.working, listed.other) == (Amount(0, 0), Amount(1, 96))
    assert listed.at_peak == AtPeak(21_000, 164, 68, 0, 96)


def test_what_the_records_have_beyond_all_pieces_is_said():
    """A release without its allocation."""
    runs = [replace(RUNS[0], allocations=((102, 96, "cpu"), (102, -6, "cpu"))), *RUNS[1:]]
    peak = buffers.buffers(runs, OUTPUTS, NODES, STEP).at_peak
    assert peak == AtPeak(21_000, 90 + 64 + 4, 96 + 64 + 4, 0, 0)
    assert peak.unexplained_bytes == -6


@pytest.mark.parametrize(
    ("released_us", "expected"), [(139, False), (140, True), (150, True), (151, True), (152, False)]
)
def test_a_release_is_expected_while_the_last_reader_runs_to_the_microsecond(released_us, expected):
    reader = run("grad", "TanhGrad", 141, 150)
    piece = Piece(RUNS[0], 96, 102, released_us, readers=[reader, RUNS[1]])
    assert buffers.is_expected(piece) is expected


def test_a_sent_tensor_may_be_held_after_its_last_reader_but_never_released_before():
    """What another device read is `grad`, whose last reader ended at 160."""
    sent = Transfer("grad", "send", "recv", CPU_0, CPU_1, "float", (8,), 32)
    nodes = [*NODES[:-1], Node("recv", "_Recv"), Node("update", "Apply", ("recv",))]
    runs = [*RUNS[:-1], run("recv", "_Recv", 151, 154), RUNS[-1]]
    listed = buffers.buffers(runs, [*OUTPUTS, []], nodes, STEP, transfers=[sent])
    assert (listed.held_by_receiver, listed.unexpected) == (("grad",), ())
    early = replace(RUNS[6], allocations=((142, 32, "cpu"), (150, -32, "cpu")))
    runs[6] = early
    listed = buffers.buffers(runs, [*OUTPUTS, []], nodes, STEP, transfers=[sent])
    assert (listed.held_by_receiver, listed.unexpected) == ((), ("grad",))


@pytest.mark.parametrize(("released_us", "working"), [(110, True), (111, True), (112, False)])
def test_working_memory_is_released_before_its_op_ends(released_us, working):
    assert buffers.is_working(Piece(RUNS[0], 500, 103, released_us)) is working
    assert not buffers.is_working(Piece(RUNS[0], 500, 103, None))


# Reuse


def held(*ranges: tuple[int, int], device: str = CPU_0) -> list[Piece]:
    """Pieces at these addresses, of so many bytes."""
    return [
        Piece(OpRun(0, f"op{n}", "Op", device, n, 1), size, n, output=Output(0, 1, at, 1, 1, "cpu"))
        for n, (at, size) in enumerate(ranges)
    ]


def earlier(*ranges: tuple[int, int]) -> tuple[list[list[int]], int]:
    """For each range, which ones had its addresses before; and the bytes of all addresses."""
    listed = held(*ranges)
    before, total = buffers.reuse(listed)
    numbers = {id(piece): number for number, piece in enumerate(listed)}
    return [[numbers[id(owner)] for owner in before[id(piece)]] for piece in listed], total


@pytest.mark.parametrize(
    ("ranges", "before", "total"),
    [
        ([(10, 5), (15, 5)], [[], []], 10),  # neighbours
        ([(10, 5), (10, 5)], [[], [0]], 5),
        ([(10, 5), (14, 5)], [[], [0]], 9),
        ([(14, 5), (10, 5)], [[], [0]], 9),
        ([(10, 9), (12, 3)], [[], [0]], 9),  # within
        ([(10, 9), (12, 3), (10, 9)], [[], [0], [0, 1]], 9),  # the one before knows but its edges
        ([(10, 9), (12, 3), (12, 3)], [[], [0], [1]], 9),
        ([(10, 2), (14, 2), (8, 12)], [[], [], [0, 1]], 12),  # two at once
        ([(10, 9), (12, 3), (18, 4)], [[], [0], [0]], 12),
    ],
)
def test_a_buffer_gets_the_addresses_of_those_before(ranges, before, total):
    assert earlier(*ranges) == (before, total)


def test_the_same_addresses_on_another_machine_are_other_memory():
    here, there = held((10, 5)), held((10, 5), device=CPU_0.replace("task:0", "task:1"))
    (neighbour,) = held((10, 5), device=CPU_1)
    before, total = buffers.reuse([*here, *there, neighbour])
    assert (before[id(there[0])], before[id(neighbour)], total) == ([], here, 10)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=12))
def test_reuse_is_that_of_a_memory_in_which_every_byte_has_a_last_owner(ranges):
    owners: dict[int, int] = {}
    expected = []
    for number, (start, size) in enumerate(ranges):
        addresses = range(start, start + size)
        expected.append(list(dict.fromkeys(owners[at] for at in addresses if at in owners)))
        owners |= dict.fromkeys(addresses, number)
    assert earlier(*ranges) == (expected, len(owners))


# Which nodes are of the backward pass

USERS = (Node("mul", "Mul"), Node("grad", "Mul"), Node("shape", "Shape"))
RAN_NODES = (
    Node("mul", "Mul"),
    Node("grad", "Mul", ("mul", "made")),
    Node("fused", "_Fused", ("mul",)),
    Node("mixed", "_Fused", ("grad",)),
    Node("sum", "AddN", ("grad", "mul")),
    Node("again", "AddN", ("sum:1",)),
    Node("retval", "_Retval", ("mul",)),
)


def test_what_the_runtime_made_is_of_the_backward_pass_with_what_it_does_or_takes():
    ledger = (
        Fate("shape", "fused", "remapper", "fused"),
        Fate("grad", "executed", None, None),
        Fate("mul", "fused", "remapper", "mixed"),
        Fate("shape", "fused", "remapper", "mixed"),
    )
    assert buffers.backward_nodes(RAN_NODES, USERS, ("grad", "shape"), ledger) == {
        *("grad", "fused", "sum", "again"),
    }


def test_what_is_inlined_from_a_loop_is_of_the_pass_that_the_loop_is_of():
    users = (Node("while", "While"), Node("gradients/while_grad", "While"))
    ran = (
        Node("gradients/while_grad/body/_7/Mul", "Mul"),
        Node("while/body/_1/Push", "Push", ("gradients/while_grad/body/_7/Mul",)),
        Node("other/body", "Mul"),
    )
    assert buffers.backward_nodes(ran, users, ("gradients/while_grad",), ()) == {
        "gradients/while_grad/body/_7/Mul"
    }


def test_a_graph_without_gradients_has_no_backward_pass():
    assert buffers.backward_nodes(RAN_NODES, USERS, (), ()) == frozenset()
