"""Refusals: the runtime's messages as sentences.

Its kernels quote what they were given. Where a graph from a file may read other files, that may be
what is in them, so of what it says then only forms are repeated that hold names of the graph's
own. Not even sizes are, because a shape may have been read, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tflab.cli import confined
from tflab.errors import LateError, RanDryError, RefusedError, WithheldError
from tflab.escaping import with_full_stop
from tflab.records.options import Options
from tflab.runtime import server

TIME_LIMIT_S = 120  # of one step
END_OF_DATA = "End of sequence"  # what an iterator of tf.data says at its end
NAMED = re.compile(r"\[\[(?:\{\{node )?([^\s\]{}]+)")
INSIDE = re.compile(r"\[\[\{\{function_node (\S+?)\}\} ?\{\{node ([^\s{}]+)")
HARMLESS = re.compile(  # sentences of before anything ran, which quote the graph alone
    rf"{END_OF_DATA}|Multiple CPU devices.*"
    r"|You must feed a value for placeholder tensor '[^']*' with dtype.*"
    r"|(Cannot assign a device for operation|Could not satisfy explicit device spec).*"
    r"|No OpKernel was registered to support Op '\w+'.*|Op type not registered '\w+'.*"
)
OF_A_FILE = re.compile(
    r"(?P<path>.+); (?P<what>No such file or directory|Permission denied|Is a directory)"
)
WRITERS = re.compile("Write|Save|Merge")  # in the types of nodes that write files
OF_EAGER = re.compile(r"( on /job:\S+( by allocator \w+)?)?( \[Op:\w+\].*)?$")
OF_DEVICES = ("explicitly assigned to", "required incompatible device")  # another may do it


def refused(error: tf.errors.OpError, options: Options, graph: tf.Graph) -> RefusedError:
    """What the runtime said of a run of this graph, as a sentence, and what would help where that
    is known and was not done yet."""
    if options.cluster and (lost := server.refused(error, options.cluster)):
        return lost
    if isinstance(error, tf.errors.DeadlineExceededError):
        return LateError(
            f"A step did not end within {TIME_LIMIT_S} s and was stopped: something in the graph "
            "waits forever, such as a queue that is never filled."
        )
    message = sentence(error.message)
    if options.of_file.side_effects and not is_harmless(message, graph):
        return withheld(error, graph)
    if isinstance(error, tf.errors.OutOfRangeError) and message.startswith(END_OF_DATA):
        return RanDryError(
            f"The input data of the graph ended: {message}. There are more steps than batches. "
            "Repeat the data with tf.data's `repeat()`, or run fewer steps."
        )
    of_device = any(words in message for words in OF_DEVICES)
    if message.startswith("Multiple CPU devices"):
        message += ": XLA put nodes of several devices into one cluster"
    nodes = tuple(NAMED.findall(error.message))
    message = with_full_stop(message) + beyond_confinement(message, nodes, graph)
    refusal = RefusedError(f"The runtime refused the step: {message}")
    refusal.nodes, refusal.of_device = nodes, of_device
    refusal.inside = tuple(INSIDE.findall(error.message))
    return refusal


def beyond_confinement(message: str, nodes: Sequence[str], graph: tf.Graph) -> str:
    """The option that gives a confined process the folder that the kernel refused."""
    about_file = OF_A_FILE.fullmatch(message)
    if confined.CONFINED is None or not about_file or about_file["what"] != "Permission denied":
        return ""
    types = dict(types_of(graph))
    writes = any(WRITERS.search(types.get(node, "")) for node in nodes)
    folder = os.path.dirname(about_file["path"]) or "."
    return f" Give --allow-{'write' if writes else 'read'} {folder} if you trust the graph."


def is_harmless(message: str, graph: tf.Graph) -> bool:
    """Whether this quotes nothing but the graph: a path, too, may have been read from a file."""
    about_file = OF_A_FILE.fullmatch(message)
    if about_file:
        return about_file["path"].encode() in graph.as_graph_def().SerializeToString()
    return HARMLESS.fullmatch(message) is not None


def withheld(error: tf.errors.OpError, graph: tf.Graph) -> WithheldError:
    """That the step failed and where, without the runtime's words."""
    types = dict(types_of(graph))
    named = [name for name in NAMED.findall(error.message) if name in types]
    where = f"'{named[0]}' ({types[named[0]]})" if named else "It"
    refusal = WithheldError(
        f"The runtime refused the step: {where} ended in {type(error).__name__}. Its message is "
        "not shown, because with --allow-side-effects it may quote a file. TensorFlow itself "
        "shows it."
    )
    refusal.nodes = tuple(named)
    return refusal


def types_of(graph: tf.Graph) -> Iterator[tuple[str, str]]:
    """The nodes of a graph and of its functions, with their types."""
    graph_def = graph.as_graph_def()
    for nodes in (*(function.node_def for function in graph_def.library.function), graph_def.node):
        yield from ((node.name, node.op) for node in nodes)


def sentence(message: str) -> str:
    """The first line of a message of the runtime, without its marks for nodes.

    Of an error that came through `Session.run`, TensorFlow first says where the node was made.
    """
    _, node_line, rest = message.rpartition("\nNode: ")
    message = rest.partition("\n")[2] if node_line else message
    lines = [line.strip() for line in message.splitlines() if line.strip(" =")]
    if len(lines) > 1 and "root error(s) found" in lines[0]:
        lines = [line.partition(": ")[2] or line for line in lines[1:]]
    lines = [line for line in lines if not line.endswith(":")] or lines  # headings
    first = lines[0].partition(" [[")[0] if lines else "no message"
    first = re.sub(r"\{\{function_node \S*?\}\} ?", "", first)
    first = OF_EAGER.sub("", re.sub(r"\{\{node (.*?)\}\}", r"'\1'", first))
    return without_open_bracket(first)


def without_open_bracket(text: str) -> str:
    """The text as far as its brackets are closed: a message may go on in another line."""
    opened: list[int] = []
    for place, letter in enumerate(text):
        if letter in "([{":
            opened.append(place)
        elif letter in ")]}" and opened:  # a half-open interval ends with another kind
            opened.pop()
    return text[: opened[0]].rstrip(" ,:;") or text if opened else text
