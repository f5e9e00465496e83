"""Pieces: what op runs asked for, what lies in it and when it is free, by hand."""

import pytest

from tests.records_by_hand import CPU_0, CPU_1
from tflab.analysis import pieces
from tflab.records.buffers import Output
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def run(name: str, start_us: int, *allocations: tuple[int, int], op="Op", device=CPU_0) -> OpRun:
    """It takes 2 us."""
    return OpRun(
        *(0, name, op, device, 1000 * start_us, 2000),
        allocations=tuple((time, size, "cpu") for time, size in allocations),
    )


def output(address: int, size: int, slot: int = 0, allocation: int = 1) -> Output:
    return Output(slot, size, address, size, allocation, "cpu")


def outside(address: int, size: int) -> Output:
    """Memory that no op asked for."""
    return Output(0, size, address, 0, 0, "cpu")


def lives(*steps: tuple[OpRun, list[Output]], nodes=(), transfers=()) -> list[tuple]:
    """(who asked, bytes, from, until, how that is known, in place, passed on, readers)"""
    runs, outputs = zip(*steps, strict=True)
    return [
        (
            *(piece.run.name, piece.bytes, piece.from_us, piece.until_us, piece.freed_by),
            [(user.name, size) for user, size in piece.in_place],
            [(user.name, size) for user, size in piece.passed_on],
            [reader.name for reader in piece.readers],
        )
        for piece in pieces.of_step(runs, outputs, nodes, transfers)
    ]


CHAIN = (
    Node("matmul", "MatMul", ("x", "w")),
    Node("tanh", "Tanh", ("matmul",)),
    Node("flat", "Reshape", ("tanh", "shape")),
    Node("relu", "Relu", ("flat",)),
    Node("sum", "Sum", ("relu", "axes")),
)


def test_a_buffer_is_followed_through_ops_that_work_in_it_to_its_release():
    matmul = (run("matmul", 10, (11, 64), (41, -64)), [output(0x1000, 64)])
    tanh = (run("tanh", 20, op="Tanh"), [output(0x1000, 64)])
    flat = (run("flat", 30, op="Reshape"), [output(0x1000, 64)])
    relu = (run("relu", 40, (40, 64), (52, -64)), [output(0x2000, 64)])
    total = (run("sum", 50, (51, 4)), [output(0x3000, 4)])
    assert lives(total, relu, matmul, flat, tanh, nodes=CHAIN) == [
        ("matmul", 64, 11, 41, "record", [("tanh", 64)], [("flat", 64)], ["tanh", "flat", "relu"]),
        ("relu", 64, 40, 52, "record", [], [], ["sum"]),
        ("sum", 4, 51, None, "kept", [], [], []),
    ]


def test_variables_constants_and_what_is_fed_are_no_pieces_of_the_step():
    read = (run("read", 0), [outside(0x9000, 64)])
    fed = (run("x", 1), [Output(0, 64, 0, 0, 0, "")])
    product = (run("mul", 3, (3, 64), (4, -64)), [output(0x1000, 64)])
    nodes = (Node("mul", "Mul", ("read", "x")),)
    assert lives(read, fed, product, nodes=nodes) == [
        ("mul", 64, 3, 4, "record", [], [], []),
    ]


def test_the_runtime_says_which_allocation_of_an_op_an_output_got():
    """As in a cross entropy: working memory of the same size was asked for first."""
    both = run("loss", 0, (0, 64), (1, 64), (2, -64), (9, -64))
    assert lives((both, [output(0x1000, 64, allocation=2)])) == [
        ("loss", 64, 0, 2, "order", [], [], []),
        ("loss", 64, 1, 9, "order", [], [], []),
    ]
    found = pieces.of_step([both], [[output(0x1000, 64, allocation=2)]], ())
    assert [piece.output is None for piece in found] == [True, False]


def test_of_one_size_working_memory_is_released_before_an_output_that_nobody_reads():
    split = run("split", 0, (0, 64), (1, 64), (2, -64), (3, -64))
    assert lives((split, [output(0x1000, 64)])) == [
        ("split", 64, 0, 3, "order", [], [], []),
        ("split", 64, 1, 2, "order", [], [], []),
    ]


def test_releases_of_one_size_go_in_the_order_of_the_last_readers():
    split = run("split", 0, (0, 8), (1, 8), (12, -8), (22, -8))
    nodes = (Node("late", "Neg", ("split",)), Node("early", "Neg", ("split:1",)))
    steps = (
        (split, [output(0x10, 8), output(0x20, 8, 1, allocation=2)]),
        (run("early", 10), []),
        (run("late", 20), []),
    )
    assert lives(*steps, nodes=nodes) == [
        ("split", 8, 0, 22, "order", [], [], ["late"]),
        ("split", 8, 1, 12, "order", [], [], ["early"]),
    ]


@pytest.mark.parametrize("keeper", ["_Retval", "AssignVariableOp"])
def test_of_one_size_what_is_fetched_or_becomes_a_variables_is_the_one_that_is_kept(keeper):
    norm = run("norm", 0, (0, 8), (1, 8), (22, -8))
    nodes = (Node("keep", keeper, ("norm",)), Node("grad", "Grad", ("norm:1",)))
    steps = (
        (norm, [output(0x10, 8), output(0x20, 8, 1, allocation=2)]),
        (run("keep", 10, op=keeper), []),
        (run("grad", 20), []),
    )
    assert lives(*steps, nodes=nodes) == [
        ("norm", 8, 0, None, "kept", [], [], ["keep"]),
        ("norm", 8, 1, 22, "order", [], [], ["grad"]),
    ]


def test_a_tensor_that_is_received_lies_where_it_was_sent_from():
    transfer = Transfer("mul", "send", "recv", CPU_0, CPU_1, "float32", (16,), 64)
    steps = (
        (run("mul", 0, (0, 64), (12, -64)), [output(0x1000, 64)]),
        (run("neg", 10, device=CPU_1), [output(0x1000, 64)]),
    )
    nodes = (Node("neg", "Neg", ("recv",)),)
    assert lives(*steps, nodes=nodes, transfers=[transfer]) == [
        ("mul", 64, 0, 12, "record", [("neg", 64)], [], ["neg"]),
    ]


def test_where_the_graph_shows_no_input_the_address_says_whose_memory_it_is():
    steps = (
        (run("old", 0, (0, 64), (2, -64)), [output(0x1000, 64)]),
        (run("mul", 4, (4, 64), (12, -64)), [output(0x1000, 64)]),
        (run("neg", 10, device=CPU_1), [output(0x1000, 64)]),
        (run("abs", 11, device=GPU), [output(0x1000, 64)]),
    )
    assert lives(*steps) == [
        ("old", 64, 0, 2, "record", [], [], []),
        ("mul", 64, 4, 12, "record", [("neg", 64)], [], ["neg"]),
    ]


def test_an_op_that_takes_a_tensor_twice_reads_it_once():
    steps = ((run("x", 0, (0, 8), (11, -8)), [output(0x10, 8)]), (run("square", 10), []))
    ((*_, readers),) = lives(*steps, nodes=(Node("square", "Mul", ("x", "x")),))
    assert readers == ["square"]


def test_every_iteration_of_a_loop_has_memory_of_its_own():
    nodes = (Node("body", "Mul", ("body",)),)
    steps = [(run("body", 10 * n, (10 * n, 8)), [output(0x10 * (n + 1), 8)]) for n in range(3)]
    assert [(start, readers) for _, _, start, *_, readers in lives(*steps, nodes=nodes)] == [
        (0, ["body"]),
        (10, ["body"]),
        (20, []),
    ]


def test_an_iteration_whose_output_lies_elsewhere_leaves_the_memory_of_the_one_before():
    steps = (
        (run("merge", 0, (0, 8)), [output(0x10, 8)]),
        (run("use", 5), []),
        (run("merge", 10), [outside(0x9000, 8)]),
        (run("use", 15), []),
    )
    runs = [ran for ran, _ in steps]
    (piece,) = pieces.of_step(runs, [given for _, given in steps], [Node("use", "Op", ("merge",))])
    assert piece.readers == [runs[1]]


def test_a_piece_is_alive_from_the_microsecond_that_it_is_asked_for_until_that_of_its_release():
    piece = pieces.Piece(run("a", 0), 8, 3, 5)
    assert [piece.held_by(at) for at in range(2, 7)] == [False, True, True, False, False]
    piece.until_us = None
    assert [piece.held_by(at) for at in (2, 3, 900)] == [False, True, True]


def test_processors_of_a_process_share_their_memory_and_gpus_do_not():
    assert pieces.address_space(CPU_0) == pieces.address_space(CPU_1)
    assert pieces.address_space(GPU) != pieces.address_space(GPU.replace("GPU:0", "GPU:1"))
    assert pieces.address_space(CPU_0) != pieces.address_space(CPU_0.replace("task:0", "task:1"))
