"""Runtime: whether TensorFlow and TensorBoard's Profile plugin really load.

Each is loaded in a process of its own with a time limit, so that a crash or a hang becomes a
finding.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from tflab import folders
from tflab.cli import environment
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding, sentence
from tflab.errors import TflabError
from tflab.runtime import child

SECONDS = 90  # time limit; an import takes 2 to 5, much more on a busy machine
NVIDIA = Path("/dev/nvidiactl")  # exists where a driver of NVIDIA's is loaded
REINSTALL = "python -m pip install --force-reinstall -r requirements.txt"
REMEDIES = {  # a part of an error message -> what helps
    "gencode": "TensorFlow was made for a newer protobuf: python -m pip install --upgrade protobuf",
    "protobuf": "TensorFlow and protobuf do not agree: python -m pip install --upgrade protobuf",
    "Descriptors cannot": "protobuf is too new: python -m pip install -r requirements.txt",
    "numpy": "TensorFlow and NumPy do not agree: python -m pip install -r requirements.txt",
    "status -4": "Most likely the processor lacks instructions (AVX); run it on another machine.",
    "status -9": "It was killed, most likely for want of memory; close other programs.",
    "did not end": "Try again when the machine is less busy.",
}

# TensorFlow


def devices() -> Iterator[Finding]:
    """Whether TensorFlow can be imported, and the devices that it sees."""
    answer = answer_of("imported")
    if error := answer.get("error"):
        yield Finding("TensorFlow", "import", error, WRONG, remedy(error))
        return
    yield Finding("TensorFlow", "import", f"works, in {answer['seconds']:.1f} s")
    for name, about in answer["devices"]:
        yield Finding("TensorFlow", name, about)
    if any(name.startswith("GPU") for name, _ in answer["devices"]):
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
        yield Finding("TensorFlow", "GPU", "none; everything but --configs gpu works without one")


def imported() -> dict[str, Any]:
    """In a process of its own: how long the import took, and (name, details) of each device."""
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
    except Exception as error:  # an import may raise anything
        return {"error": sentence(error)}


def details(tf: Any, device: Any) -> str:
    if device.device_type == "CPU":
        return f"{environment.describe()['cpus']} processors"
    return tf.config.experimental.get_device_details(device).get("device_name", device.device_type)


# The Profile plugin


def profile_plugin() -> Iterator[Finding]:
    """Whether TensorBoard can load the plugin, and whether the plugin can read a trace."""
    answer = answer_of("loaded")
    error = answer.get("error") or answer.get("plugin_error")
    yield Finding(
        "TensorBoard",
        "Profile plugin",
        error or "loads",
        WRONG if error else FINE,
        remedy(error) if error else "",
    )
    if error := answer.get("converter_error"):
        yield Finding("TensorBoard", "trace converter", error, WRONG, remedy(error))
    elif "tools" in answer:
        yield Finding("TensorBoard", "trace converter", f"works, with {answer['tools']} tools")


def loaded() -> dict[str, Any]:
    """In a process of its own: load the plugin with TensorBoard's own loader."""
    answer: dict[str, Any] = {}
    with folders.temporary("logdir") as empty:
        try:
            profile_plugin_in(str(empty))
        except Exception as error:
            answer["plugin_error"] = sentence(error)
        try:
            answer["tools"] = count_tools(str(empty))
        except Exception as error:
            answer["converter_error"] = sentence(error)
    return answer


def profile_plugin_in(logdir: str) -> Any:
    """The Profile plugin as TensorBoard loads it. Raises TflabError where there is none."""
    from tensorboard import default
    from tensorboard.plugins import base_plugin

    default.get_dynamic_plugins()  # raises where a plugin would keep TensorBoard from starting
    for entry in metadata.entry_points(group="tensorboard_plugins", name="profile"):
        parser, loader = ArgumentParser(), entry.load()()
        loader.define_flags(parser)
        context = base_plugin.TBContext(logdir=logdir, flags=parser.parse_args([]))
        if plugin := loader.load(context):
            return plugin
    raise TflabError("TensorBoard gets no plugin: its loader is missing or gives up")


def count_tools(folder: str) -> int:
    """How many tools the plugin's compiled library offers for a trace without events."""
    from xprof.convert import raw_to_tool_data

    trace = Path(folder, "host.xplane.pb")
    trace.touch()
    return len(raw_to_tool_data.xspace_to_tool_names([str(trace)]))


# Both


def answer_of(function: str) -> dict[str, Any]:
    try:
        return child.call(f"{__name__}:{function}", seconds=SECONDS)
    except TflabError as error:
        return {"error": str(error)}


def remedy(error: str) -> str:
    return next((help_ for said, help_ in REMEDIES.items() if said in error), REINSTALL)
