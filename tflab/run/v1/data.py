"""tf.contrib.data: the data sets that became tf.data in TensorFlow 1.4."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

Dataset, Iterator = tf.data.Dataset, tf.data.Iterator
TextLineDataset, TFRecordDataset = tf.data.TextLineDataset, tf.data.TFRecordDataset
FixedLengthRecordDataset = tf.data.FixedLengthRecordDataset

__all__ = [
    *("Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset", "TextLineDataset")
]
