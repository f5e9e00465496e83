"""Decoded: names that are told apart, op types, and the nodes of graphs."""

import io

import pytest

from tflab.analysis import tracks
from tflab.convert import decoded, protos
from tflab.records.graph import Node
from tflab.records.placed import Transfer


def graph(text: str):
    return protos.read_graph(io.BytesIO(text.encode()), text=True)


def test_a_name_is_its_text():
    assert decoded.NameTexts()["größe".encode()] == "größe"


def test_names_that_are_not_utf8_are_shown_and_kept_distinct():
    names = decoded.NameTexts()
    raw = [b"a\xff", b"a\xfe", "a\ufffd".encode(), b"a\xff"]
    assert [names[one] for one in raw] == [
        "a\ufffd",
        "a\ufffd (2)",
        "a\ufffd (3)",
        "a\ufffd",
    ]


@pytest.mark.parametrize(
    "kind, name, label, expected",
    [
        (tracks.OPS, "mul", "mul = Mul(x, y)", ("mul", "Mul")),
        (tracks.OPS, "relu", "relu = _FusedConv2D(x)", ("relu", "_FusedConv2D")),
        (tracks.OPS, "relu", "", ("relu", "Relu")),
        (tracks.OPS, "relu", "no type in here", ("relu", "Relu")),
        (tracks.OPS, "other", "no type in here", ("other", "unknown")),
        (tracks.LAUNCHES, "mul", "[gpu 1.2MB] mul = Mul(x, y)", ("mul", "Mul")),
        (tracks.OPS, "RecvTensor", "[4B] edge_3 from /job:a to b", ("RecvTensor", "RecvTensor")),
        (tracks.KERNELS, "relu:Relu", "void relu<float>()", ("relu", "Relu")),
        (tracks.KERNELS, "relu", "void relu<float>()", ("relu", "Relu")),
        (tracks.COPIES, "x:Const:MEMCPYHtoD", "MEMCPYHtoD 4 bytes", ("x", "MEMCPYHtoD")),
        (tracks.WAITS, "cuStreamSynchronize", "ThreadId 7", ("cuStreamSynchronize", "unknown")),
    ],
)
def test_the_label_knows_the_type_that_ran_and_the_graph_where_it_does_not(
    kind, name, label, expected
):
    labels = decoded.RowTypes(kind, decoded.NameTexts(), {"relu": "Relu"})
    assert labels[name.encode(), label.encode()] == expected


def test_nodes_have_their_inputs_apart_from_their_control_inputs():
    found = decoded.nodes(
        [
            graph(
                'node { name: "a" op: "Mul" input: "x" input: "y:1" input: "^c" device: "/cpu:0" }'
            ),
            graph('node { name: "a" op: "Add" } node { name: "b\\377" op: "Neg" input: "b\\377" }'),
        ],
        decoded.NameTexts(),
    )
    assert found == {
        "a": Node("a", "Mul", ("x", "y:1"), ("c",), "/cpu:0"),
        "b\ufffd": Node("b\ufffd", "Neg", ("b\ufffd",)),
    }


def test_a_send_and_the_receive_of_the_same_tensor_are_a_transfer():
    def node(name, op, inputs, tensor):
        attrs = {"send_device": "/cpu:0", "recv_device": "/cpu:1", "tensor_name": tensor}
        written = "".join(
            f'attr {{ key: "{key}" value {{ s: "{value}" }} }} ' for key, value in attrs.items()
        )
        return f'node {{ name: "{name}" op: "{op}" {inputs} {written} }} '

    graphs = [
        graph(
            node("x/_1", "_Send", 'input: "x"', "e1") + node("y/_3", "_Send", 'input: "y:1"', "e2")
        ),
        graph(node("y/_4", "_Recv", "", "e2") + node("x/_2", "_Recv", "", "e1")),
    ]
    assert list(decoded.transfers(graphs, decoded.NameTexts())) == [
        Transfer("x", "x/_1", "x/_2", "/cpu:0", "/cpu:1", "", None, None),
        Transfer("y:1", "y/_3", "y/_4", "/cpu:0", "/cpu:1", "", None, None),
    ]
