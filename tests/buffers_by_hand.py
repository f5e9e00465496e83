"""The buffers of a step of five, by hand: what the tests of table, picture and history share."""

from dataclasses import replace

from tests.records_by_hand import CPU_0
from tflab.records.buffers import Amount, AtPeak, Buffer, Buffers, Use

KB = 1024
CONV = Buffer(
    tensor="conv",
    op="_FusedConv2D",
    phase="forward",
    device=CPU_0,
    allocator="mklcpu",
    address=0x7F10_0000_0000,
    bytes=96 * KB,
    from_ns=2_000,
    until_ns=51_000,
    freed_by="record",
    in_place=(Use("tanh", 11_000, "forward"), Use("grads/tanh_grad", 40_000, "backward")),
    passed_on=(Use("flat", 14_000, "forward"),),
    readers=("tanh", "flat", "loss", "grads/tanh_grad", "grads/conv_grad"),
    last_reader="grads/conv_grad",
    backward_ns=23_000,
    before=(),
    after=(),
)
MASK = replace(
    CONV,
    tensor="pool:1",
    op="MaxPool",
    address=0x7F10_0003_0000,
    bytes=32 * KB,
    from_ns=13_000,
    until_ns=33_000,
    freed_by="order",
    in_place=(),
    passed_on=(),
    readers=("grads/pool_grad",),
    last_reader="grads/pool_grad",
    backward_ns=17_000,
    after=("grads/conv_grad", "grads/b:1", "c"),
)
LOSS = replace(
    MASK,
    tensor="loss",
    op="Mean",
    address=0x7F0F_0000_0000,
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
    MASK,
    tensor="grads/conv_grad",
    op="Conv2DBackpropInput",
    phase="backward",
    bytes=48 * KB,
    from_ns=42_000,
    until_ns=62_000,
    freed_by="record",
    readers=("update",),
    last_reader="update",
    backward_ns=None,
    before=("pool:1",),
    after=(),
)
NEVER = replace(
    LOSS,
    tensor="shape",
    op="Shape",
    address=0x7F0F_0000_0004,
    bytes=8,
    from_ns=22_000,
    until_ns=22_500,
    freed_by="record",
    readers=(),
    last_reader=None,
)
BUFFERS = Buffers(
    step=7,
    wall_ns=90_000,
    buffers=(CONV, MASK, LOSS, NEVER, GRAD),
    made=Amount(8, 464 * KB + 12),
    passed_on=Amount(1, 96 * KB),
    in_place=Amount(2, 192 * KB),
    requested=Amount(5, 176 * KB + 12),
    reused=Amount(1, 32 * KB),
    distinct=Amount(4, 144 * KB + 12),
    working=Amount(3, 100 * KB),
    other=Amount(0, 0),
    for_backward=Amount(2, 128 * KB),
    at_peak=AtPeak(3_000, 196 * KB, 96 * KB, 100 * KB, 0),
    held_by_receiver=(),
    unexpected=(),
)
