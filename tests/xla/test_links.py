"""Generated code: the records of a module that was put together by hand."""

from dataclasses import replace

from tflab import xla
from tflab.xla import links
from tflab.xla.listings import HloOperation, ObjectCode

CODE = ObjectCode("x86-64", 120, ())
FIRST = xla.XlaKernel("first", "first", "fusion", "kLoop", (), (), code=CODE)
EQUAL = replace(FIRST, name="equal")  # its function is that of the first
LIBRARY = xla.XlaKernel("conv", "", "convolution", "", (), ())


def test_a_function_that_two_kernels_share_has_its_bytes_once():
    module = xla.Module(3, "cluster_0", "", "", (FIRST, EQUAL, LIBRARY))
    (code,) = links.generated([module], ("loss:0",), 16)
    assert code.kernels == (("first", (), 120), ("equal", (), 0), ("conv", (), 0))


def test_owners_are_named_by_operation_and_node_and_each_once():
    shapes = {"shape": "f32[8]", "operands": ()}
    operations = [
        HloOperation("add.1", "add", node="dense/BiasAdd", **shapes),
        HloOperation("add.2", "add", node="dense/BiasAdd", **shapes),
        HloOperation("exp", "exponential", **shapes),
    ]
    assert links.operation_names(operations) == (
        "add of dense/BiasAdd",
        "exponential of XLA itself",
    )
