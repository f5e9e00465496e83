"""Keras archives: whether it is safe to give a .keras file to Keras, which would load all of its
content.

The file is a zip archive that contains the weights as HDF5. Both may declare far more data than
they have. This module checks the declared sizes before anything is unpacked.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from tflab import atomic
from tflab.cli.environment import free_memory
from tflab.errors import TflabError, UsageError
from tflab.units import size

UNPACKED, RATIO = 64 * 2**20, 20  # limits for unpacking: bytes, and multiple of its size
WEIGHTS, PLAIN_WEIGHTS = "model.weights.h5", "model.weights.npz"

# What a model is compiled with, and the modules that Keras saves for its own classes
COMPILED = ("optimizer", "loss", "loss_weights")
OF_KERAS = ("builtins", "keras.losses", "keras.optimizers", "keras.optimizers.schedules")


def check(path: Path) -> None:
    """Raise UsageError if this is not a Keras model, or one that would not fit into memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(path, archive)
            claimed = dict(weights_of(path, archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise UsageError(f"'{path}' is a damaged zip archive: {error}.") from error
    available, required = free_memory(), sum(claimed.values())
    if available is not None and required > available:
        largest = max(claimed, key=lambda name: claimed[name])
        raise UsageError(
            f"'{path}' declares {size(required)} of weights ('{largest}' has "
            f"{size(claimed[largest])}), but {size(available)} of memory is free. Load it on a "
            "machine with more memory."
        )


def check_entries(path: Path, archive: zipfile.ZipFile) -> None:
    if "config.json" not in archive.namelist():
        raise UsageError(
            f"'{path}' is a zip archive, but not a Keras model: it has no config.json. Give a "
            ".keras file that Keras saved."
        )
    unpacked, packed = sum(entry.file_size for entry in archive.infolist()), path.stat().st_size
    if unpacked > max(UNPACKED, RATIO * packed):
        raise UsageError(
            f"'{path}' unpacks from {size(packed)} to {size(unpacked)}, so Keras did not write "
            "it: Keras does not compress its files. Save it with Keras again."
        )


def weights_of(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, int]]:
    """The declared arrays of the weights, and their bytes."""
    names = archive.namelist()
    if PLAIN_WEIGHTS in names:
        with zipfile.ZipFile(io.BytesIO(archive.read(PLAIN_WEIGHTS))) as arrays:
            yield from ((entry.filename, entry.file_size) for entry in arrays.infolist())
    if WEIGHTS in names:
        with atomic.temporary("keras") as folder:
            file = Path(folder, WEIGHTS)
            with archive.open(WEIGHTS) as packed, file.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
            yield from hdf5_arrays(path, file)


def hdf5_arrays(path: Path, file: Path) -> list[tuple[str, int]]:
    """The data sets of an HDF5 file. Their declared sizes are not limited by the file: missing data
    are filled in, and compressed data may unpack to any size."""
    import h5py

    claimed: list[tuple[str, int]] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Group):
            links = (item.get(child, getlink=True) for child in item)
            foreign = any(isinstance(link, h5py.ExternalLink) for link in links)
        else:
            foreign = bool(item.external or item.is_virtual)
            claimed.append((name, prod(item.shape or (0,)) * item.dtype.itemsize))
        if foreign:
            raise UsageError(
                f"'{path}' takes weights from other files: '{name or '/'}' points outside it. "
                "Save it with Keras again."
            )

    try:
        with h5py.File(file, "r") as weights:
            visit("", weights)
            weights.visititems(visit)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        first = str(error).partition(" (")[0]
        raise UsageError(f"'{path}' is damaged: its {WEIGHTS} cannot be read: {first}.") from error
    return claimed


def compile_config(path: Path) -> dict[str, Any]:
    """The loss and the optimiser with which the model in a .keras file is compiled, as Keras writes
    them. Empty if it is not compiled, or for another file."""
    if not (path.is_file() and zipfile.is_zipfile(path)):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(path, archive)
            config = json.loads(archive.read("config.json"))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError):
        return {}  # loading the model reports the error
    compiled = config.get("compile_config") if isinstance(config, dict) else None
    if not (isinstance(compiled, dict) and compiled.get("loss") and compiled.get("optimizer")):
        return {}
    return {key: compiled[key] for key in COMPILED if key in compiled}


def check_compile_config(config: Any) -> None:
    """Raise TflabError if a part of it is not Keras's own."""
    if isinstance(config, Mapping):
        if "class_name" in config and config.get("module") not in OF_KERAS:
            raise TflabError(f"{quoted(config)} is not part of Keras.")
        for value in config.values():
            check_compile_config(value)
    elif isinstance(config, list | tuple):
        for value in config:
            check_compile_config(value)


def compiled_with(config: Mapping[str, Any]) -> str:
    """`the loss 'mse' and the optimiser 'Adam'`"""
    return f"the loss {quoted(config.get('loss'))} and the optimiser {quoted(config['optimizer'])}"


def quoted(config: Any) -> str:
    """The name of a loss or an optimiser, in quotes; for several outputs a list."""
    if isinstance(config, Mapping):
        if "class_name" not in config:
            return ", ".join(map(quoted, config.values()))
        function = config["class_name"] == "function"
        return f"'{config.get('config') if function else config['class_name']}'"
    return ", ".join(map(quoted, config)) if isinstance(config, list | tuple) else f"'{config}'"
