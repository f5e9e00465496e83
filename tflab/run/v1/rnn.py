"""tf.contrib.rnn: cells, which are those of tf.nn.rnn_cell, and loops, which are those of tf.nn."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

cells = tf.nn.rnn_cell
BasicLSTMCell, BasicRNNCell = cells.BasicLSTMCell, cells.BasicRNNCell
GRUCell, LSTMCell, LSTMStateTuple = cells.GRUCell, cells.LSTMCell, cells.LSTMStateTuple
DeviceWrapper, DropoutWrapper = cells.DeviceWrapper, cells.DropoutWrapper
MultiRNNCell, ResidualWrapper = cells.MultiRNNCell, cells.ResidualWrapper
RNNCell: Any = cells.RNNCell
static_rnn, static_state_saving_rnn = tf.nn.static_rnn, tf.nn.static_state_saving_rnn
static_bidirectional_rnn = tf.nn.static_bidirectional_rnn


class OutputProjectionWrapper(RNNCell):
    """A cell whose outputs go through a linear layer, `output_projection_wrapper`."""

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(_reuse=reuse, name="output_projection_wrapper")
        self._cell, self._size, self._activation = cell, output_size, activation

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> int:
        return self._size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        outputs, state = self._cell(inputs, state)
        shape = [outputs.shape.as_list()[-1], self._size]
        weights = tf.get_variable("kernel", shape, outputs.dtype)
        biases = tf.get_variable(
            "bias", [self._size], outputs.dtype, initializer=tf.zeros_initializer()
        )
        projected = tf.matmul(outputs, weights) + biases
        return projected if self._activation is None else self._activation(projected), state


class InputProjectionWrapper(RNNCell):
    """A cell whose inputs come through a linear layer."""

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name="input_projection_wrapper")
        self._cell, self._size, self._activation = cell, num_proj, activation

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> int:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        shape = [inputs.shape.as_list()[-1], self._size]
        weights = tf.get_variable("kernel", shape, inputs.dtype)
        biases = tf.get_variable(
            "bias", [self._size], inputs.dtype, initializer=tf.zeros_initializer()
        )
        projected = tf.matmul(inputs, weights) + biases
        return self._cell(
            projected if self._activation is None else self._activation(projected), state
        )


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional loops, each of which gets both outputs of the one before."""
    forward, backward = [], []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for at, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with tf.variable_scope(f"cell_{at}"):
                outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    inputs,
                    sequence_length=sequence_length,
                    initial_state_fw=initial_states_fw and initial_states_fw[at],
                    initial_state_bw=initial_states_bw and initial_states_bw[at],
                    dtype=dtype,
                    parallel_iterations=parallel_iterations,
                    time_major=time_major,
                )
                inputs = tf.concat(outputs, 2)
                forward.append(state_fw)
                backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


__all__ = [
    *("BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell"),
    *("InputProjectionWrapper", "LSTMStateTuple", "MultiRNNCell", "OutputProjectionWrapper"),
    *("RNNCell", "ResidualWrapper", "stack_bidirectional_dynamic_rnn", "static_rnn"),
    *("static_bidirectional_rnn", "static_state_saving_rnn"),
]
