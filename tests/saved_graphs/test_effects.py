"""Effects: what a node would touch is told from its definition, unless somebody has looked."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.fuzz.random_graphs import op_defs
from tflab.saved_graphs import effects

pytestmark = pytest.mark.tensorflow

OPS = op_defs()


def unreviewed(ops):
    """The types that are gated, but for no reason that anybody has written down."""
    return [
        op
        for op, op_def in ops.items()
        if (what := effects.of_type(op, op_def)) and what not in effects.GATED
    ]


def test_somebody_has_looked_at_every_type_that_tensorflow_registers():
    """Where a new version fails this: find out what the op does, and say so in effects.py."""
    assert len(OPS) > 1000
    assert unreviewed(OPS) == []


def op_def(name, stateful=False, string_input=None, attribute=None, words=()):
    """A definition as a new version of TensorFlow might bring it."""
    made = type(OPS["NoOp"])(name=name, is_stateful=stateful)
    if string_input:
        made.input_arg.add(name=string_input, type=tf.string.as_datatype_enum)
    if attribute:
        made.attr.add(name=attribute, type="string").allowed_values.list.s.extend(words)
    return made


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ({"stateful": True}, "is stateful"),
        ({"string_input": "where"}, "takes the string 'where'"),
        ({"attribute": "filename"}, "takes the string attribute 'filename'"),
        ({"attribute": "padding"}, None),
        ({"attribute": "anything", "words": (b"SAME", b"VALID")}, None),
        ({}, None),
    ],
)
def test_a_type_that_a_new_version_brings_is_judged_by_its_definition(definition, what):
    new = op_def("Brandnew", **definition)
    assert effects.of_type("Brandnew", new) == what
    assert unreviewed({"Brandnew": new}) == (["Brandnew"] if what else [])


def test_a_type_that_nobody_knows_is_not_harmless():
    assert effects.of_type("Addons>Foo", None) == "has an op that TensorFlow does not know"


def test_no_type_is_called_harmless_and_gated():
    gates = effects.PATTERNS.values()
    both = [op for op in effects.HARMLESS if any(gate.fullmatch(op) for gate in gates)]
    assert both == []


def test_what_needed_no_review_is_not_listed():
    known = effects.HARMLESS & OPS.keys()
    assert [op for op in known if effects.by_definition(OPS[op]) is None] == []


@pytest.mark.parametrize(
    ("op", "what"),
    [
        ("MatMul", None),
        ("AssignVariableOp", None),
        ("StringToNumber", None),
        ("ReadFile", "reads files"),
        ("ExperimentalDatasetToTFRecord", "writes files"),
        ("DebugNanCount", "writes files"),
        ("ExperimentalSqlDataset", "reads files"),
        ("ImmutableConst", "reads files"),
        ("MatchingFilesDataset", "reads files"),
        ("RecordInput", "reads files"),
        ("FixedUnigramCandidateSampler", "reads files"),
        ("DumpTensor", "writes files"),
        ("LMDBDataset", "reads files"),
        ("SnapshotDatasetV2", "writes files"),
        ("Skipgram", "reads files"),
        ("DTensorRestoreV2", "reads files"),
        ("RegisterDatasetV2", "connects to other machines"),
        ("EagerPyFunc", "calls Python"),
        ("XlaCustomCallV2", "runs a program that is not in the graph"),
        ("Abort", "ends the process"),
    ],
)
def test_the_effect_of_a_type_is_known_by_what_it_does(op, what):
    assert effects.of_type(op, OPS[op]) == what


@pytest.mark.parametrize(
    ("op", "attribute", "value", "what"),
    [
        ("DecodeProtoV2", "descriptor_source", None, None),  # its default is "local://"
        ("DecodeProtoV2", "descriptor_source", b"bytes://\n\x01", None),
        ("DecodeProtoV2", "descriptor_source", b"/etc/hostname", "reads files"),
        ("EncodeProto", "descriptor_source", b"", None),
        ("PrintV2", "output_stream", None, None),
        ("PrintV2", "output_stream", b"log(info)", None),
        ("PrintV2", "output_stream", b"stdout", "writes files"),
        ("PrintV2", "output_stream", b"file:///x", "writes files"),
        ("FixedUnigramCandidateSampler", "vocab_file", None, None),
        ("FixedUnigramCandidateSampler", "vocab_file", b"/etc/passwd", "reads files"),
        ("UnicodeDecode", "input_encoding", b"UTF-16-BE", None),
        ("UnicodeDecode", "input_encoding", b"../../x", "reads files"),
    ],
)
def test_what_a_node_is_told_decides_where_its_type_leaves_it_open(op, attribute, value, what):
    node = tf1.NodeDef(name="n", op=op)
    if value is not None:
        node.attr[attribute].s = value
    never = lambda tensor: False  # noqa: E731
    assert effects.of_node(node, OPS[op], never, never) == what


def test_a_reader_is_harmless_with_a_path_that_tflab_feeds_and_a_cache_in_memory():
    restore = tf1.NodeDef(name="n", op="RestoreV2", input=["path", "names", "slices"])
    cache = tf1.NodeDef(name="n", op="CacheDataset", input=["data", "file"])
    write = tf1.NodeDef(name="n", op="WriteFile", input=["path", "content"])

    def of(node, empty=(), given=()):
        return effects.of_node(node, OPS[node.op], empty.__contains__, given.__contains__)

    assert of(restore, given=("path",)) is None
    assert of(restore, given=("names",)) == "reads files"
    assert of(cache, empty=("file",)) is None
    assert of(cache) == "writes files"
    assert of(write, given=("path",), empty=("path",)) == "writes files"


def test_inputs_are_counted_behind_arguments_of_several_tensors():
    definition = op_def("New")
    definition.input_arg.add(name="some", type=7, number_attr="N")
    definition.input_arg.add(name="any", type_list_attr="T")
    definition.input_arg.add(name="path", type=7)
    node = tf1.NodeDef(name="n", op="New", input=["a", "b", "c", "d", "e", "f", "^g"])
    node.attr["N"].i = 2
    node.attr["T"].list.type.extend([1, 1, 7])
    assert effects.input_of(node, definition, "path") == "f"
    assert effects.input_of(node, definition, "some") is None
    node.attr["N"].i = 3  # the control input is nobody's argument
    assert effects.input_of(node, definition, "path") is None
    del node.attr["N"]
    assert effects.input_of(node, definition, "path") is None


def test_effects_are_told_with_node_and_type():
    told = effects.effects_text(
        [effects.Effect("a", "ReadFile", "reads files"), effects.Effect("b", "New", "is stateful")]
    )
    assert told == "a (ReadFile) reads files; b (New) is stateful"
