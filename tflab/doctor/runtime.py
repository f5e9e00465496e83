"""Runtime: whether TensorFlow and TensorBoard's Profile plugin really load.

Each is asked in a process of its own with a time limit, so that one that is broken, crashes or
hangs is a line here.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tflab.cli import environment
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding, sentence
from tflab.errors import TflabError
from tflab.runtime import child

SECONDS = 90  # an import takes 2 to 5, much more on a busy machine
NVIDIA = Path("/dev/nvidiactl")  # there with a driver of NVIDIA's
REINSTALL = "python -m pip install --force-reinstall -r requirements.txt"
REMEDIES = {  # what an import error says -> what helps
    "gencode": "TensorFlow was made for a newer protobuf: python -m pip install --upgrade protobuf",
    "protobuf": "TensorFlow and protobuf do not agree: python -m pip install --upgrade protobuf",
    "Descriptors cannot": "protobuf is too new: python -m pip install -r requirements.txt",
    "numpy": "TensorFlow and NumPy do not agree: python -m pip install -r requirements.txt",
    "status -4": "The processor lacks instructions (AVX) that it uses; run it on another machine.",
    "status -9": "It was killed, most likely for want of memory; close other programs.",
    "did not end": "Try again when the machine is less busy.",
}

# TensorFlow


def devices() -> Iterator[Finding]:
    """Whether it can be imported, and the devices that it sees."""
    found = asked("imported")
    if error := found.get("error"):
        yield Finding("TensorFlow", "import", error, WRONG, remedy(error))
        return
    yield Finding("TensorFlow", "import", f"works, in {found['seconds']:.1f} s")
    for name, about in found["devices"]:
        yield Finding("TensorFlow", name, about)
    if any(name.startswith("GPU") for name, _ in found["devices"]):
        return
    if NVIDIA.exists():
        yield Finding(
            "TensorFlow",
            "GPU",
            "none that TensorFlow can use, though there is a driver of NVIDIA's",
            NOTE,
            'For steps on it: python -m pip install "tensorflow[and-cuda]"',
        )
    else:
        yield Finding("TensorFlow", "GPU", "none; all works without one")


def imported() -> dict[str, Any]:
    """In the process of its own: how long the import took, and (name, about) of each device."""
    start = time.perf_counter()
    try:
        import tensorflow as tf

        seconds = time.perf_counter() - start
        seen = [(device.name, device) for device in tf.config.list_physical_devices()]
        return {
            "seconds": seconds,
            "devices": [
                (name.removeprefix("/physical_device:"), details(tf, device))
                for name, device in seen
            ],
        }
    except Exception as error:  # whatever an import of strangers raises
        return {"error": sentence(error)}


def details(tf: Any, device: Any) -> str:
    if device.device_type == "CPU":
        return f"{environment.describe()['cpus']} processors"
    return tf.config.experimental.get_device_details(device).get("device_name", device.device_type)


# The Profile plugin


def profile_plugin() -> Iterator[Finding]:
    """Whether TensorBoard gets a plugin, and whether that can read a trace."""
    found = asked("loaded")
    error = found.get("error") or found.get("plugin_error")
    yield Finding(
        "TensorBoard",
        "Profile plugin",
        error or "loads",
        WRONG if error else FINE,
        remedy(error) if error else "",
    )
    if error := found.get("converter_error"):
        yield Finding("TensorBoard", "trace converter", error, WRONG, remedy(error))
    elif "tools" in found:
        yield Finding("TensorBoard", "trace converter", f"works, with {found['tools']} tools")


def loaded() -> dict[str, Any]:
    """In the process of its own: what TensorBoard's own loader makes of the plugin."""
    found: dict[str, Any] = {}
    with TemporaryDirectory(prefix="tflab-") as empty:
        try:
            plugin_of(empty)
        except Exception as error:
            found["plugin_error"] = sentence(error)
        try:
            found["tools"] = tools_of(empty)
        except Exception as error:
            found["converter_error"] = sentence(error)
    return found


def plugin_of(logdir: str) -> Any:
    """The Profile plugin as TensorBoard gets it. TflabError where it gets none."""
    from tensorboard import default
    from tensorboard.plugins import base_plugin

    default.get_dynamic_plugins()  # one that fails keeps TensorBoard from starting
    for entry in metadata.entry_points(group="tensorboard_plugins", name="profile"):
        parser, loader = ArgumentParser(), entry.load()()
        loader.define_flags(parser)
        context = base_plugin.TBContext(logdir=logdir, flags=parser.parse_args([]))
        if plugin := loader.load(context):
            return plugin
    raise TflabError("TensorBoard gets no plugin: its loader is missing or gives up")


def tools_of(folder: str) -> int:
    """How many tools the plugin's compiled library offers for a trace without events."""
    from xprof.convert import raw_to_tool_data

    trace = Path(folder, "host.xplane.pb")
    trace.touch()
    return len(raw_to_tool_data.xspace_to_tool_names([str(trace)]))


# Both


def asked(function: str) -> dict[str, Any]:
    try:
        return child.call(f"{__name__}:{function}", seconds=SECONDS)
    except TflabError as error:
        return {"error": str(error)}


def remedy(error: str) -> str:
    return next((help_ for said, help_ in REMEDIES.items() if said in error), REINSTALL)
