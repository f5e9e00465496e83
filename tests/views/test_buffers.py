"""The view of the buffers: every sentence and every cell, of a step made by hand."""

from dataclasses import replace

import pytest

from tests.buffers_by_hand import BUFFERS, CONV, KB
from tests.records_by_hand import read
from tflab.records.buffers import Amount, AtPeak
from tflab.views import buffers


def shown(**changes) -> list:
    return list(map(read, buffers.blocks(replace(BUFFERS, **changes))))


SHARING = [
    "Memory of the tensors in the median step",
    ("tensors and buffers", "count", "bytes"),
    ("tensors that ops produced during the step", "8", "464 KiB"),
    ("  saved: output is the input's memory, unchanged", "1", "-96.0 KiB"),
    ("  saved: written over an input (in place)", "2", "-192 KiB"),
    ("requested, in buffers", "5", "176 KiB"),
    ("  saved: memory of an earlier buffer, reused", "1", "-32.0 KiB"),
    ("distinct buffers", "4", "144 KiB"),
    ("also: temporary memory of running ops (no addresses)", "3", "100 KiB"),
    "",
]


def test_the_view_says_where_tensors_lay_what_that_saved_and_whether_it_adds_up():
    assert shown() == [
        SHARING,
        [
            "The largest buffers by address",
            ("address", "bytes", "written by", "alive", "backward", "in place", "reused by"),
            ("0x7f1000000000", "96.0 KiB", "conv", "49.0 us", "28.0 us", "tanh +1", ""),
            ("0x7f1000030000", "48.0 KiB", "grads/conv_grad", "20.0 us", "", "", ""),
            (
                *("0x7f1000030000", "32.0 KiB", "pool:1", "20.0 us inferred", "16.0 us", ""),
                "grads/conv_grad +2",
            ),
            ("0x7f0f00000004", "8 B", "shape", "500 ns", "", "", ""),
            ("0x7f0f00000000", "4 B", "loss", "to the end", "", "", ""),
            "",
        ],
        "2 of 5 buffers, 128 KiB of 176 KiB, were written by forward ops and last read by "
        "gradients or updates, so that memory stayed allocated for the backward pass. The readers "
        "are inferred from the graph that ran.",
        "Check: memory peaked after 3.00 us at 196 KiB according to the allocators' records: "
        "96.0 KiB in these buffers, 100 KiB of working memory; nothing is missing. Each of 4 "
        "releases came while the last reader of its buffer ran. 1 buffer had the same size and "
        "came from the same op as another; which release belongs to which is inferred from their "
        "last readers.",
    ]


def test_what_does_not_add_up_is_said_with_how_much_and_whose():
    *_, check = shown(
        buffers=(CONV,),
        at_peak=AtPeak(3_000, 1_500, 1_000, 0, 24),
        unexpected=("a", "b:1", "c", "d", "e"),
    )
    assert check == (
        "Check: memory peaked after 3.00 us at 1.46 KiB according to the allocators' records: "
        "1000 B in these buffers, 24 B in no output; +476 B are not explained by any allocation "
        "in the trace. Of 1 release, 5 did not come while the last reader ran: a, b:1, c and 2 "
        "more. The trace does not say what kept them."
    )


@pytest.mark.parametrize(
    ("unexpected", "named"),
    [(("a",), "a."), (("a", "b", "c"), "a, b, c."), (("a", "b", "a", "a"), "a, b.")],
)
def test_few_unexpected_releases_are_all_named(unexpected, named):
    *_, check = shown(unexpected=unexpected)
    assert f"the last reader ran: {named} The trace" in check


def test_a_tensor_that_its_receiver_held_is_told_apart_from_what_nobody_can_explain():
    *_, check = shown(held_by_receiver=("a", "b:1", "c", "d"), unexpected=("e",))
    assert check.startswith(
        "Check: memory peaked after 3.00 us at 196 KiB according to the allocators' records: "
        "96.0 KiB in these buffers, 100 KiB of working memory; nothing is missing. Of 4 releases, "
        "4 came after the last reader ended, for tensors sent to another device: a, b:1, c and 1 "
        "more. The runtime holds a sent tensor until the thread that received it is done with "
        "it. Of 4 releases, 1 did not come while the last reader ran: e. The trace does not say "
        "what kept them. 1 buffer had"
    )
    *_, check = shown(held_by_receiver=("a",))
    assert "each while" not in check
    assert "did not come" not in check


def test_rounding_of_an_allocator_and_memory_in_no_output_have_rows_where_there_is_any():
    rounded, *_ = shown(requested=Amount(5, 177 * KB + 12), other=Amount(6, 7 * KB))
    assert rounded == [
        *SHARING[:5],
        ("  rounded up by allocators", "5", "1.00 KiB"),
        ("requested, in buffers", "5", "177 KiB"),
        *SHARING[6:9],
        ("also: memory kept longer, in no output (no addresses)", "6", "7.00 KiB"),
        "",
    ]


def test_ten_buffers_are_shown_and_of_one_size_the_first_ones():
    many = tuple(replace(CONV, tensor=f"t{n}", from_ns=100 - n) for n in range(12))
    table = shown(buffers=many)[1]
    assert [row[2] for row in table[2:-1]] == [f"t{n}" for n in range(11, 1, -1)]
    assert table[-1] == "... and 2 more"


def test_an_inference_keeps_nothing_for_a_backward_pass():
    assert shown(for_backward=Amount(0, 0))[2] == (
        "No buffer of a forward op was last read by a node of the backward pass."
    )
    assert shown(for_backward=Amount(1, 4))[2].startswith("1 of 5 buffers, 4 B of 176 KiB, was")


def test_without_addresses_there_is_nothing_to_say():
    assert list(buffers.blocks(None)) == []
