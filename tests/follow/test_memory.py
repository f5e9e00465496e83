"""Memory in a node's history: every sentence, of buffers made by hand."""

from dataclasses import replace

from tests.buffers_by_hand import BUFFERS, CONV, GRAD, LOSS, MASK, NEVER
from tests.follow.test_node_history import BACKWARD, EXECUTION, FRONTEND, PLACEMENT
from tflab.follow import node_history, values, view
from tflab.follow.view import NodeLink
from tflab.records.node_history import NodeHistory

PLAIN = NodeHistory("conv", "Conv2D", "forward", None, (), (), (), carrier="conv", ran_as="Conv")


def sentences(*buffers, carrier="conv") -> list:
    return list(values.memory_sentences(replace(PLAIN, carrier=carrier, buffers=buffers)))


def test_who_asked_for_the_memory_worked_in_it_and_read_it_last_is_said():
    assert sentences(CONV) == [
        (
            "its output conv was in 96.0 KiB at 0x7f1000000000, from 2.00 us to 51.0 us of the "
            "median traced step",
            (),
            "",
        ),
        ("worked in place in that memory: ", ("tanh", "grads/tanh_grad"), ""),
        (
            "the last reader of that memory was ",
            ("grads/conv_grad",),
            ": it stayed alive for the backward pass",
        ),
    ]


def test_who_had_it_before_and_who_got_it_is_said():
    assert sentences(replace(MASK, before=("x", "y:1")), carrier="pool") == [
        (
            "its output pool:1 was in 32.0 KiB at 0x7f1000030000, from 13.0 us to 33.0 us "
            "(inferred) of the median traced step",
            (),
            "",
        ),
        ("that memory was used before by ", ("x", "y:1"), ""),
        (
            "the last reader of that memory was ",
            ("grads/pool_grad",),
            ": it stayed alive for the backward pass",
        ),
        ("then it was reused by ", ("grads/conv_grad", "grads/b:1", "c"), ""),
    ]


def test_one_who_worked_in_place_says_whose_memory_it_was():
    first, others, last = sentences(CONV, carrier="grads/tanh_grad")
    assert first == (
        "worked in place in the median traced step: its output was in 96.0 KiB at 0x7f1000000000, "
        "requested by ",
        ("conv",),
        "",
    )
    assert others == ("worked in place in that memory: ", ("tanh",), "")
    assert last[1] == ("grads/conv_grad",)


def test_a_node_of_a_loop_that_worked_there_again_and_again_is_named_once():
    looped = replace(CONV, in_place=CONV.in_place * 2)
    assert sentences(looped)[1] == (
        "worked in place in that memory: ",
        ("tanh", "grads/tanh_grad"),
        "",
    )


def test_of_many_nodes_that_worked_there_only_some_are_named():
    """`n0` itself is not among the 14 others."""
    uses = tuple(replace(CONV.in_place[0], node=f"n{number}") for number in range(15))
    worked = sentences(replace(CONV, in_place=uses), carrier="n0")[1]
    named = tuple(f"n{number}" for number in range(1, 13))
    assert worked == ("worked in place in that memory: ", named, " and 2 more")


def test_one_who_passed_it_on_says_so():
    first, *_ = sentences(CONV, carrier="flat")
    assert first == (
        "passed its input on in the median traced step: 96.0 KiB at 0x7f1000000000, requested by ",
        ("conv",),
        "",
    )


def test_what_is_kept_has_no_end_and_what_nobody_read_no_reader():
    assert sentences(LOSS, carrier="loss") == [
        (
            "its output loss was in 4 B at 0x7f0f00000000, from 21.0 us to the end of "
            "the median traced step",
            (),
            "",
        ),
        ("the last reader of that memory was ", ("keep",), ""),
    ]
    assert sentences(NEVER, carrier="shape") == [
        (
            "its output shape was in 8 B at 0x7f0f00000004, from 22.0 us to 22.5 us of "
            "the median traced step",
            (),
            "",
        ),
    ]


def test_of_very_many_buffers_the_first_are_told_of():
    assert sentences(*[NEVER] * 4)[-1] == sentences(NEVER)[0]
    assert sentences(*[NEVER] * 6)[4:] == [("and 2 buffers more", (), "")]


def test_a_history_shows_them_as_lines_with_links():
    (*_, section) = view.sections(replace(PLAIN, buffers=(GRAD,), carrier="grads/conv_grad"))
    assert section.lines[-3:] == (
        (
            "its output grads/conv_grad was in 48.0 KiB at 0x7f1000030000, from 42.0 us to 62.0 "
            "us of the median traced step",
        ),
        ("that memory was used before by ", NodeLink("pool", "pool:1")),
        ("the last reader of that memory was ", NodeLink("update", "update")),
    )


def test_a_node_has_the_buffers_that_its_carrier_wrote_worked_in_or_passed_on():
    stages = (
        FRONTEND,
        BACKWARD,
        PLACEMENT,
        replace(
            EXECUTION,
            buffers=replace(
                BUFFERS,
                buffers=(
                    replace(CONV, tensor="relu"),
                    replace(MASK, tensor="relu:1"),
                    replace(LOSS, tensor="_arg_x"),
                    replace(CONV, tensor="else", passed_on=(replace(USE, node="relu"),)),
                    replace(CONV, tensor="other", in_place=(replace(USE, node="relu"),)),
                ),
            ),
        ),
    )
    by_name = node_history.histories(stages)
    tensors = {name: [buffer.tensor for buffer in by_name[name].buffers] for name in by_name}
    every = ["relu", "relu:1", "else", "other"]
    assert {name: held for name, held in tensors.items() if held} == {
        "x": ["_arg_x"],
        "matmul": every,
        "relu": every,
        "_arg_x": ["_arg_x"],
    }


USE = CONV.passed_on[0]


def test_where_the_runtime_gave_no_addresses_no_node_has_a_buffer():
    by_name = node_history.histories((FRONTEND, BACKWARD, PLACEMENT, EXECUTION))
    assert not any(history.buffers for history in by_name.values())
