"""Refusals: the runtime's messages as sentences."""

from __future__ import annotations

import re

import tensorflow as tf

from tflab.cli import confined
from tflab.errors import RanDryError, RefusedError
from tflab.escaping import with_full_stop
from tflab.records.options import Options

TIME_LIMIT_S = 120  # of one step
END_OF_DATA = "End of sequence"  # what an iterator of tf.data says at its end
NAMED = re.compile(r"\[\[(?:\{\{node )?([^\s\]{}]+)")
INSIDE = re.compile(r"\[\[\{\{function_node (\S+?)\}\} ?\{\{node ([^\s{}]+)")
DENIED = "Permission denied"
MOST = 500  # letters of a message; a kernel may quote a tensor of any size
OF_EAGER = re.compile(r"( on /job:\S+( by allocator \w+)?)?( \[Op:\w+\].*)?$")


def refused(error: tf.errors.OpError, options: Options) -> RefusedError:
    """Return as a sentence what the runtime said of a run of this graph, and what would help, if
    that is known and was not done yet."""
    if options.cluster:
        from tflab.runtime import cluster

        if lost := cluster.refused(error, options.cluster):
            return lost
    if isinstance(error, tf.errors.DeadlineExceededError):
        return RefusedError(
            f"A step did not end within {TIME_LIMIT_S} s and was stopped: something in the graph "
            "waits forever, such as a queue that is never filled."
        )
    message = sentence(error.message)
    if isinstance(error, tf.errors.OutOfRangeError) and message.startswith(END_OF_DATA):
        return RanDryError(
            f"The input data of the graph ended: {message}. There are more steps than batches. "
            "Repeat the data with tf.data's `repeat()`, or run fewer steps."
        )
    nodes = tuple(NAMED.findall(error.message))
    if nodes and nodes[0] not in message:
        message += f" (in node '{nodes[0]}')"
    message = with_full_stop(message)
    if DENIED in message and confined.CONFINED is not None:
        message += " The graph runs confined; --trust runs it unconfined, if you trust it."
    refusal = RefusedError(f"The runtime refused the step: {message}")
    refusal.nodes = nodes
    refusal.inside = tuple(INSIDE.findall(error.message))
    return refusal


def sentence(message: str) -> str:
    """Return the first line of a message of the runtime, without its marks for nodes.

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
    if len(first) <= MOST:
        return first
    return (
        f"{first[:MOST].rstrip()} ... ({MOST} of {len(first):,} letters; with "
        "TF_CPP_MIN_LOG_LEVEL=0, TensorFlow logs more of them)"
    )
