"""Arrays: the user's .npy files, and whether they have the shape of the tensor they are for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from tflab.errors import UsageError


def load(name: str, file: str) -> np.ndarray:
    try:
        values = np.load(file, allow_pickle=False)
    except OSError as error:
        raise UsageError(
            f"'{file}' cannot be fed to '{name}': {error.strerror or error}. Give a .npy file that "
            "you may read."
        ) from error
    except ValueError as error:
        raise UsageError(f"'{file}' cannot be fed to '{name}': {error}") from error
    if not isinstance(values, np.ndarray):
        raise UsageError(f"'{file}' holds several arrays; feed '{name}' from a .npy file of one.")
    return values


def check_shape(
    tensor: tf.Tensor, files: Mapping[str, str], given: Mapping[str, np.ndarray]
) -> None:
    """Raise UsageError where the array for a tensor does not have a shape that it takes."""
    name = tensor.name
    if name in given and not tensor.shape.is_compatible_with(given[name].shape):
        takes = ", ".join("any" if dim is None else str(dim) for dim in tensor.shape.as_list())
        raise UsageError(
            f"'{files[name]}' has the shape {list(given[name].shape)}, and '{name}' takes "
            f"[{takes}]; feed it an array of that shape."
        )
