"""Arrays: the user's .npy files, and whether their shapes fit the tensors that they are fed to.

The claims of a header are checked before memory is allocated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from typing import BinaryIO

import numpy as np
import tensorflow as tf

from tflab import untrusted
from tflab.errors import UsageError
from tflab.units import size

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0}
LATER_HEADER = np.lib.format.read_array_header_2_0  # 3.0 differs only in the encoding of names


def load(name: str, file: str) -> np.ndarray:
    """The array to feed to `name`. Raises UsageError if the file does not contain one array."""
    try:
        with untrusted.opened(file) as stream:
            check_length(stream)
            values = np.load(stream, allow_pickle=False)
    except OSError as error:
        raise UsageError(
            f"'{file}' cannot be fed to '{name}': {error.strerror or error}. Give a .npy file that "
            "you may read."
        ) from error
    except (ValueError, EOFError) as error:
        raise UsageError(f"'{file}' cannot be fed to '{name}': {error}") from error
    except MemoryError as error:
        raise UsageError(
            f"'{file}' cannot be fed to '{name}': it needs more memory than is available."
        ) from error
    if not isinstance(values, np.ndarray):
        raise UsageError(
            f"'{file}' contains several arrays. Feed '{name}' from a .npy file with one array."
        )
    return values


def check_length(stream: BinaryIO) -> None:
    """Raise ValueError, before memory is allocated, if a header declares more data than the file
    has."""
    prefix = stream.read(len(np.lib.format.MAGIC_PREFIX))
    stream.seek(0)
    if prefix != np.lib.format.MAGIC_PREFIX:
        return
    version = np.lib.format.read_magic(stream)
    shape, _, dtype = HEADERS.get(version, LATER_HEADER)(stream)
    claimed, available = (
        prod(shape) * dtype.itemsize,
        os.fstat(stream.fileno()).st_size - stream.tell(),
    )
    stream.seek(0)
    if claimed > available and not dtype.hasobject:
        raise ValueError(f"its header declares {size(claimed)}, but {size(available)} follow.")


def check_shape(
    tensor: tf.Tensor, files: Mapping[str, str], given: Mapping[str, np.ndarray]
) -> None:
    """Raise UsageError if the array does not have a shape that the tensor accepts."""
    name = tensor.name
    if name in given and not tensor.shape.is_compatible_with(given[name].shape):
        takes = ", ".join("any" if dim is None else str(dim) for dim in tensor.shape.as_list())
        raise UsageError(
            f"'{files[name]}' has the shape {list(given[name].shape)}, but '{name}' takes "
            f"[{takes}]. Feed it an array of that shape."
        )
