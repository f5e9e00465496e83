"""Graphs at random: one op of any registered type, with whatever its definition lets it take.

Strings are names of files in the current folder, addresses and the like. The op stands in the graph
itself, in a function, in a branch, behind a variable's initialiser, or behind the op that a
SavedModel is initialised or restored by.
"""

from __future__ import annotations

import random
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf.message import Message
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

PLACES = ("graph", "function", "branch", "initialiser", "main op", "restore op")
STRINGS = (
    *("bait", "./bait", "new/file", "*", "", "file://bait", "bytes://x", "local://"),
    *("localhost:9", "grpc://localhost:9", "http://localhost:9/x", "tcp", "stdout", "x"),
)
RESOURCES = (
    *("VarHandleOp", "HashTableV2", "FIFOQueueV2", "MutexV2", "SummaryWriter", "TFRecordReaderV2"),
    *("WholeFileReaderV2", "StackV2", "TensorArrayV3", "AnonymousMemoryCache", "LMDBReader"),
)
REFERENCES = ("HashTable", "FIFOQueue", "Stack", "TensorArray", "TFRecordReader", "TextLineReader")
SHAPES = ([], [], [1], [2], [1, 2], [1, 2, 2, 1])


def op_defs() -> dict[str, Any]:
    """Every type that TensorFlow registers, with its definition."""
    listed = op_def_pb2.OpList()
    listed.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {op.name: op for op in listed.op}


class Maker:
    """Makes graphs, the same ones from the same seed."""

    def __init__(self, seed: int) -> None:
        self.ops = op_defs()
        self.seed = seed

    def graph(self, number: int) -> tuple[str, str, Any]:
        """The op, its place, and a MetaGraphDef whose node `out` leads to it where it runs last."""
        self.random = random.Random(f"{self.seed} {number}")
        self.shape = self.random.choice(SHAPES)
        op = sorted(self.ops)[number % len(self.ops)]
        place = self.random.choice(PLACES)
        meta = tf1.MetaGraphDef()
        graph_def = meta.graph_def
        graph_def.versions.producer = 1882
        add(graph_def.node, "zero", "Const", dtype=tf.float32, value=np_tensor(0.0, tf.float32))
        self.function(graph_def, "plain", [])
        within: list[Any] = []
        self.node(within, self.ops[op], "op")
        last = "op"
        if [arg.type for arg in self.ops[op].output_arg] == [tf.variant.as_datatype_enum]:
            last = "taken"  # of a data set, which does nothing by itself
            add(within, last, "DatasetToSingleElement", ["op"], output_types=[tf.string])
            within[-1].attr["output_shapes"].list.shape.add(unknown_rank=True)
        if place in ("function", "branch"):
            self.function(graph_def, "inside", within)
            call(graph_def, place)
        else:
            graph_def.node.extend(within)
        last = "call" if place in ("function", "branch") else last
        if place == "initialiser":
            variable(graph_def, f"^{last}")
        elif place in ("main op", "restore op"):
            add(graph_def.node, "begin", "NoOp", [f"^{last}"])
            variable(graph_def, "")
        else:
            add(graph_def.node, "out", "Identity", ["zero", f"^{last}"], T=tf.float32)
        if place == "main op":
            meta.collection_def["saved_model_main_op"].node_list.value.append("begin")
        if place == "restore op":
            meta.saver_def.restore_op_name = "begin"
            add(graph_def.node, "path", "Const", dtype=tf.string, value=np_tensor("", tf.string))
            meta.saver_def.filename_tensor_name = "path:0"
        return op, place, meta

    def function(self, graph_def: Any, name: str, nodes: list[Any]) -> None:
        function = graph_def.library.function.add()
        function.signature.name = name
        function.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
        for node in nodes:  # outputs are named by their arguments in a function, which are few
            copy = function.node_def.add()
            copy.CopyFrom(node)
            copy.input[:] = [i if ":" in i else self.first_output(i, nodes) for i in node.input]
        control = [f"^{node.name}" for node in nodes]
        value = np_tensor(1.0, tf.float32)
        add(function.node_def, "one", "Const", control, dtype=tf.float32, value=value)
        function.ret["y"] = "one:output:0"

    def first_output(self, name: str, nodes: list[Any]) -> str:
        op = next(node.op for node in nodes if node.name == name)
        return f"{name}:{self.ops[op].output_arg[0].name}:0"

    def node(self, nodes: list[Any], op_def: Any, name: str, depth: int = 0) -> str:
        """Add a node of this type, after those that its inputs come from."""
        node = tf1.NodeDef(name=name, op=op_def.name)
        types: dict[str, list[Any]] = {}
        for attribute in op_def.attr:
            self.attribute(node.attr[attribute.name], attribute, types)
        for position, argument in enumerate(op_def.input_arg):
            for copy, dtype in enumerate(self.types(argument, node, types)):
                maker = f"{name}_{position}_{copy}"
                made = self.reference if argument.is_ref else self.value
                node.input.append(made(nodes, dtype, maker, depth))
        nodes.append(node)
        return name

    def types(self, argument: Any, node: Any, types: dict[str, list[Any]]) -> list[Any]:
        """The types of the tensors that go into an argument."""
        if argument.type_list_attr:
            return [tf.as_dtype(known).base_dtype for known in types[argument.type_list_attr]]
        count = node.attr[argument.number_attr].i if argument.number_attr else 1
        known = types[argument.type_attr][0] if argument.type_attr else argument.type
        return [tf.as_dtype(known).base_dtype] * count

    def value(self, nodes: list[Any], dtype: Any, name: str, depth: int) -> str:
        """A constant of a type; of handles and the like, a node that makes one."""
        if dtype in (tf.resource, tf.variant) and depth < 3:
            makers = RESOURCES if dtype == tf.resource else self.variants()
            known = [op for op in makers if op in self.ops]
            return self.node(nodes, self.ops[self.random.choice(known)], name, depth + 1)
        if dtype in (tf.resource, tf.variant):
            return self.node(nodes, self.ops["EmptyTensorMap"], name, depth)
        if dtype == tf.string:
            value: Any = self.random.choice(STRINGS)
        else:
            value = self.random.choice((0, 1, 2))
        shape = self.random.choice((self.shape, self.shape, self.random.choice(SHAPES)))
        if dtype == tf.string and self.random.random() < 0.8:
            shape = []  # as the names of files are
        constant = np_tensor(value, dtype, shape)
        if self.random.random() < 0.5:
            add(nodes, name, "Const", dtype=dtype, value=constant)
            return name
        add(nodes, f"{name}_value", "Const", dtype=dtype, value=constant)
        add(nodes, name, "PlaceholderWithDefault", [f"{name}_value"], dtype=dtype)  # of any shape
        nodes[-1].attr["shape"].shape.unknown_rank = True
        return name

    def reference(self, nodes: list[Any], dtype: Any, name: str, depth: int) -> str:
        """A variable of a type; of strings, mostly something that is known by a string."""
        if dtype == tf.string and self.random.random() < 0.8:
            return self.node(nodes, self.ops[self.random.choice(REFERENCES)], name, depth)
        add(nodes, name, "VariableV2", dtype=dtype)
        nodes[-1].attr["shape"].shape.CopyFrom(tf.TensorShape(self.shape).as_proto())
        return name

    def variants(self) -> list[str]:
        """Types that make a data set, or another variant, of plain inputs."""
        return [
            name
            for name, op in self.ops.items()
            if [arg.type for arg in op.output_arg] == [tf.variant.as_datatype_enum]
            and not any(arg.type == tf.variant.as_datatype_enum for arg in op.input_arg)
        ]

    def attribute(self, value: Any, attribute: Any, types: dict[str, list[Any]]) -> None:
        """Choose what an attribute holds; of types also note it, for the inputs."""
        kind = attribute.type
        allowed = attribute.allowed_values.list
        if attribute.HasField("default_value") and self.random.random() < 0.5:
            value.CopyFrom(attribute.default_value)
        elif kind.startswith("list("):
            value.list.SetInParent()
            for _ in range(max(attribute.minimum, self.random.choice((1, 1, 2)))):
                self.one(value.list, kind[5:-1], allowed, attribute.minimum, True)
        else:
            self.one(value, kind, allowed, attribute.minimum, False)
        types[attribute.name] = [*value.list.type] if "list" in kind else [value.type]

    def one(self, value: Any, kind: str, allowed: Any, least: int, several: bool) -> None:
        field = {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(kind, kind)
        plain: Any = {
            "string": self.random.choice([*allowed.s] or [s.encode() for s in STRINGS]),
            "int": max(least, self.random.choice((0, 1, 2))),
            "float": 0.5,
            "bool": self.random.random() < 0.5,
            "type": self.random.choice(
                [*allowed.type] or [t.as_datatype_enum for t in (tf.float32, tf.string, tf.int64)]
            ),
        }.get(kind)
        if kind in ("shape", "func", "tensor"):
            inner = getattr(value, field).add() if several else getattr(value, field)
            inner.SetInParent()
            if kind == "shape":
                inner.CopyFrom(tf.TensorShape([2]).as_proto())
            elif kind == "func":
                inner.name = "plain"
            else:
                inner.CopyFrom(np_tensor(1.0, tf.float32))
        elif several:
            getattr(value, field).append(plain)
        else:
            setattr(value, field, plain)


def np_tensor(value: Any, dtype: Any, shape: Any = ()) -> Any:
    """A tensor that holds one value everywhere; strings and numbers alike."""
    if dtype == tf.string:
        return tf.make_tensor_proto(value, tf.string, shape)
    tensor = tf1.make_tensor_proto(0.0, tf.float32, shape)
    tensor.ClearField("float_val")
    tensor.dtype = dtype.as_datatype_enum
    if value:
        tensor.CopyFrom(tf.make_tensor_proto(tf.cast(value, dtype).numpy(), dtype, shape))
    return tensor


def add(nodes: Any, name: str, op: str, inputs: Any = (), **attributes: Any) -> None:
    node = tf1.NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        if isinstance(value, tf.DType):
            node.attr[key].type = value.as_datatype_enum
        elif isinstance(value, str):
            node.attr[key].func.name = value
        elif isinstance(value, list):
            node.attr[key].list.type.extend(t.as_datatype_enum for t in value)
        elif isinstance(value, Message):
            node.attr[key].tensor.CopyFrom(value)
    nodes.append(node)


def call(graph_def: Any, place: str) -> None:
    """A node `call` that calls the function `inside`, by itself or as a branch."""
    types = {"Tin": [], "Tout": [tf.float32]}
    if place == "function":
        add(graph_def.node, "call", "StatefulPartitionedCall", f="inside", **types)
    else:
        add(graph_def.node, "yes", "Const", dtype=tf.bool, value=np_tensor(1, tf.bool))
        branches = {"then_branch": "inside", "else_branch": "plain"}
        add(graph_def.node, "call", "If", ["yes"], Tcond=tf.bool, **branches, **types)
    graph_def.node[-1].attr["Tin"].list.SetInParent()


def variable(graph_def: Any, wait: str) -> None:
    """A variable `v` whose value `out` is; its initialiser waits for a node."""
    shape = tf.TensorShape([]).as_proto()
    add(graph_def.node, "v", "VarHandleOp", dtype=tf.float32)
    graph_def.node[-1].attr["shape"].shape.CopyFrom(shape)
    add(graph_def.node, "v/Assign", "AssignVariableOp", ["v", "zero", *([wait] if wait else [])])
    graph_def.node[-1].attr["dtype"].type = tf.float32.as_datatype_enum
    add(graph_def.node, "out", "ReadVariableOp", ["v"], dtype=tf.float32)
