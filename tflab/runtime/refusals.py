"""Refusals: what the runtime said, as a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

from tflab.errors import RanDryError, RefusedError
from tflab.runtime import health

TIME_LIMIT_S = 120  # of one step
END_OF_DATA = "End of sequence"  # what an iterator of tf.data says at its end


def refused(
    error: tf.errors.OpError, soft_placement: bool = False, tasks: Sequence[str] = ()
) -> RefusedError:
    """What the runtime said, as a sentence, and what would help where that is known and was not
    done yet."""
    if tasks and (lost := health.refused(error, tasks)):
        return lost
    if isinstance(error, tf.errors.DeadlineExceededError):
        return RefusedError(
            f"A step did not end within {TIME_LIMIT_S} s, and was given up: something in the graph "
            "waits for ever, such as a queue that nobody fills. --fetch chooses what is run."
        )
    message = sentence(error.message)
    if isinstance(error, tf.errors.OutOfRangeError) and message.startswith(END_OF_DATA):
        return RanDryError(
            f"The data that the graph reads by itself ran dry: {message}. There are more steps to "
            "take than batches; let the data begin anew with tf.data's `repeat()`, or take fewer "
            "steps."
        )
    if "explicitly assigned to" in message and not soft_placement:
        message += " Give --soft-placement to let another device do it."
    if message.startswith("Multiple CPU devices"):
        message += ": XLA put nodes of several devices into one cluster. Give --devices 1."
    refusal = RefusedError(f"The runtime refused the step: {message}")
    refusal.nodes = tuple(re.findall(r"\[\[(?:\{\{node )?([^\s\]{}]+)", error.message))
    return refusal


def sentence(message: str) -> str:
    """The first line of what the runtime said, without its marks for nodes.

    Of an error that came through `Session.run`, TensorFlow first says where the node was made.
    """
    _, made, rest = message.rpartition("\nNode: ")
    message = rest.partition("\n")[2] if made else message
    lines = [line.strip() for line in message.splitlines() if line.strip(" =")]
    if len(lines) > 1 and "root error(s) found" in lines[0]:
        lines = [line.partition(": ")[2] or line for line in lines[1:]]
    lines = [line for line in lines if not line.endswith(":")] or lines  # headings
    first = lines[0].partition(" [[")[0] if lines else "no message"
    first = re.sub(r"\{\{function_node \S*?\}\} ?", "", first)
    return re.sub(r"\{\{node (.*?)\}\}", r"'\1'", first)
