"""Names: what XProf counts as an op. That it does is tested with XProf, in test_xspace."""

from tests.approval import approve
from tflab.exporters import xspace

NODES = (
    *("conv1/Relu:_MklNativeFusedConv2D", "_arg_images_0_0:_Arg", "_SOURCE:NoOp", "__X_:NoOp"),
    *("a:b:Op", "Größe:Op", "日本:Op", "a b\nc:Op", "-x:Op", ":Op", "train:NoOp"),
    *("test_accuracy:Mean", "train/Adam:NoOp", "Iterator:IteratorV2"),
    *("IteratorGetNext:IteratorGetNext", "IDLE:NoOp", "x:Addons>Sparsemax", "x:unknown", "x:"),
)


def test_names_are_made_to_fit():
    rows = []
    for node, _, op in (name.rpartition(":") for name in NODES):
        (name,) = xspace.event_names([(node, op)]).values()
        rows.append(f"{node!r} {op!r} -> {name}")
    rows += ["", *map(xspace.display_name, ("a/conv1/Relu", "mul", "/x", "x/")), ""]
    approve("xspace-names.txt", "\n".join(rows))


def test_names_that_become_the_same_are_numbered_and_those_that_fit_stay():
    expected = {
        ("runtime/arg_x", "A"): "runtime/arg_x:A",
        ("__arg_x", "A"): "runtime/arg_x-2:A",
        ("_arg_x", "A"): "runtime/arg_x-3:A",
        ("a b", "A"): "a_b:A",
        ("a:b", "A"): "a_b-2:A",
        ("a", "Conv2D"): "a:Conv2D",  # and so are the types of one node
        ("a", "_FusedConv2D"): "a-2:_FusedConv2D",
    }
    for kinds in (sorted(expected), sorted(expected, reverse=True)):
        assert xspace.event_names(kinds) == expected
