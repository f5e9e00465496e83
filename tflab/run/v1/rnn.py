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


class Projection(RNNCell):
    """A cell beside a linear layer."""

    def __init__(
        self, cell: Any, size: int, activation: Any, reuse: bool | None, name: str
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        self._cell, self._size, self._activation = cell, size, activation

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def projected(self, values: Any) -> Any:
        shape = [values.shape.as_list()[-1], self._size]
        weights = tf.get_variable("kernel", shape, values.dtype)
        biases = tf.get_variable(
            "bias", [self._size], values.dtype, initializer=tf.zeros_initializer()
        )
        projected = tf.matmul(values, weights) + biases
        return projected if self._activation is None else self._activation(projected)


class OutputProjectionWrapper(Projection):
    """A cell whose outputs go through a linear layer, `output_projection_wrapper`."""

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, output_size, activation, reuse, "output_projection_wrapper")

    @property
    def output_size(self) -> int:
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        outputs, state = self._cell(inputs, state)
        return self.projected(outputs), state


class InputProjectionWrapper(Projection):
    """A cell whose inputs come through a linear layer."""

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, num_proj, activation, reuse, "input_projection_wrapper")

    @property
    def output_size(self) -> int:
        return self._cell.output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        return self._cell(self.projected(inputs), state)


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
