"""Small parts of tf.contrib: `framework` and `util`, whose functions are elsewhere in TensorFlow
today; `data`, which became tf.data in TensorFlow 1.4; `training.HParams`; the loss of `seq2seq`;
and the projector of `tensorboard`, which is TensorBoard's own today."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorboard.plugins import projector

get_global_step, get_or_create_global_step = (
    tf.train.get_global_step,
    tf.train.get_or_create_global_step,
)
create_global_step = tf.train.create_global_step
list_variables, load_variable = tf.train.list_variables, tf.train.load_variable
load_checkpoint, init_from_checkpoint = tf.train.load_checkpoint, tf.train.init_from_checkpoint
nest, sort, argsort, is_tensor = tf.nest, tf.sort, tf.argsort, tf.is_tensor
make_tensor_proto, make_ndarray = tf.make_tensor_proto, tf.make_ndarray
constant_value = tf.get_static_value
TINY = 1e-12  # keeps a sum of no weights from dividing by zero
Dataset, Iterator = tf.data.Dataset, tf.data.Iterator
TextLineDataset, TFRecordDataset = tf.data.TextLineDataset, tf.data.TFRecordDataset
FixedLengthRecordDataset = tf.data.FixedLengthRecordDataset
ProjectorConfig, EmbeddingInfo = projector.ProjectorConfig, projector.EmbeddingInfo


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = tf.GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a scope, and with `suffix` those of this name in any inner one."""
    name = getattr(scope, "name", scope) or ""
    if suffix is not None:
        name = f"{name}.*{suffix if ':' in suffix else f'{suffix}:'}"
    return tf.get_collection(collection, name or None)


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: Any = None, **_: Any
) -> Any:
    """A variable of this process, which is in no checkpoint."""
    return tf.Variable(
        initial_value,
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    return tf.ensure_shape(tensor, np.asarray(expected_shape).tolist())


class HParams:
    """Settings by name, which may be given as `name=value,...`.

    Each setting is an attribute, of the kind of its first value.
    """

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def values(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def add_hparam(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        kind = type(getattr(self, name))
        setattr(self, name, value if kind is bool or isinstance(value, kind) else kind(value))

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: str) -> HParams:
        """Take settings from `a=1,b=x`; ValueError where there is no such one."""
        for part in filter(None, values.split(",")):
            name, equals, text = part.partition("=")
            name = name.strip()
            if not equals or name not in self.__dict__:
                raise ValueError(f"Unknown hyperparameter or no value: {part}")
            is_flag = isinstance(getattr(self, name), bool)
            self.set_hparam(
                name, text.strip().lower() in ("true", "1") if is_flag else text.strip()
            )
        return self

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __repr__(self) -> str:
        return f"HParams({sorted(self.__dict__.items())})"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write where TensorBoard finds the embeddings: beside what the writer writes."""
    projector.visualize_embeddings(summary_writer.get_logdir(), config)


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The cross entropy of logits [batch, time, classes] and targets [batch, time], weighted, as in
    tensorflow/contrib/seq2seq/python/ops/loss.py, TensorFlow 1.15.

    Averaged over both axes it is a scalar, over one of them a vector of the other, else it is
    [batch, time]. Of the time the average is by weight; so is that of both, together.
    """
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat, labels = tf.reshape(logits, [-1, classes]), tf.reshape(targets, [-1])
        entropy = (
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
            if softmax_loss_function is None
            else softmax_loss_function(labels=labels, logits=flat)
        )
        if average_across_timesteps and average_across_batch:
            by_weight = entropy * tf.reshape(weights, [-1])
            return tf.reduce_sum(by_weight) / (tf.reduce_sum(weights) + TINY)
        losses = tf.reshape(entropy, tf.shape(logits)[:2]) * weights
        losses.set_shape(logits.shape[:2])
        if average_across_timesteps or average_across_batch:
            axis = 1 if average_across_timesteps else 0
            return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + TINY)
        return losses


# The names in each part
FRAMEWORK = [
    *("argsort", "constant_value", "create_global_step", "get_global_step", "get_variables"),
    *("get_or_create_global_step", "init_from_checkpoint", "is_tensor", "list_variables"),
    *("load_checkpoint", "load_variable", "local_variable", "make_ndarray", "make_tensor_proto"),
    *("nest", "sort", "with_shape"),
]
DATA_SETS = [
    *("Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset", "TextLineDataset")
]
SEQ2SEQ = ["sequence_loss"]
TRAINING = ["HParams"]
