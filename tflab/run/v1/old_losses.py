"""Old losses: those of tf.nn that took logits and labels without their names before 1.0.

Each is noted only where it is called as it was then.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1 import note

NOTE_THEMSELVES = True


def softmax_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.softmax_cross_entropy_with_logits(logits, labels, dim=-1, name=None)."""
    return loss("softmax_cross_entropy_with_logits", ("dim", "name"), given, named)


def sparse_softmax_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.sparse_softmax_cross_entropy_with_logits(logits, labels, name=None)."""
    return loss("sparse_softmax_cross_entropy_with_logits", ("name",), given, named)


def sigmoid_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.sigmoid_cross_entropy_with_logits(logits, targets, name=None)."""
    if "targets" in named:
        named["labels"] = named.pop("targets")
    return loss("sigmoid_cross_entropy_with_logits", ("name",), given, named)


def loss(name: str, others: tuple[str, ...], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A loss that takes only named arguments from TensorFlow 1.0 on, where it got others."""
    if given and given[0] is not None:
        note(f"nn.{name}(logits, labels)")
        named = {**dict(zip(("logits", "labels", *others), given, strict=False)), **named}
        given = ()
    return getattr(tf.nn, name)(*given, **named)


__all__ = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]
