"""Old summaries: the functions of before TensorFlow 1.0, which became tf.summary."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

SummaryWriter = tf.summary.FileWriter  # which was tf.train.SummaryWriter
merge_summary = tf.summary.merge


def merge_all_summaries(key: str = tf.GraphKeys.SUMMARIES) -> Any:
    """tf.summary.merge_all."""
    return tf.summary.merge_all(key)


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: Any = None) -> Any:
    """tf.summary.scalar, for one tag or as many as there are values."""
    if isinstance(tags, str):
        return tf.summary.scalar(tags, values, collections)
    parts = [
        tf.summary.scalar(tag, value, collections=[])
        for tag, value in zip(tags, tf.unstack(values, len(tags)), strict=True)
    ]
    return tf.summary.merge(parts, collections or [tf.GraphKeys.SUMMARIES], name)


def histogram_summary(tag: str, values: Any, collections: Any = None, name: Any = None) -> Any:
    """tf.summary.histogram."""
    return tf.summary.histogram(tag, values, collections)


def image_summary(
    tag: str, tensor: Any, max_images: int = 3, collections: Any = None, name: Any = None
) -> Any:
    """tf.summary.image, whose max_outputs were max_images."""
    return tf.summary.image(tag, tensor, max_images, collections)


def audio_summary(
    tag: str,
    tensor: Any,
    sample_rate: float,
    max_outputs: int = 3,
    collections: Any = None,
    name: Any = None,
) -> Any:
    """tf.summary.audio."""
    return tf.summary.audio(tag, tensor, sample_rate, max_outputs, collections)


__all__ = [
    *("SummaryWriter", "audio_summary", "histogram_summary", "image_summary"),
    *("merge_all_summaries", "merge_summary", "scalar_summary"),
]
