"""Software: installed versions against those that tflab and the packages themselves require, and
whether TensorFlow and TensorBoard's Profile plugin load.

The ranges are read from where they are declared: the project's pyproject.toml, or the metadata of
an installed tflab. So they cannot differ from those that an installation uses.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tflab
from tflab import atomic
from tflab.cli.environment import version
from tflab.doctor.checks import INSTALL, NOTE, Finding, sentence
from tflab.errors import TflabError
from tflab.runtime import child

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROJECT = Path(tflab.__file__).parents[1]
SECONDS = 90  # time limit; an import takes 2 to 5, much more on a busy machine
NVIDIA = Path("/dev/nvidiactl")  # exists where a driver of NVIDIA's is loaded
REINSTALL = "python -m pip install --force-reinstall -r requirements.txt"
INSTALL_TFLAB = "python -m pip install --no-deps -e . in the folder of tflab"
REMEDIES = {  # a part of an error message -> what helps
    "gencode": "TensorFlow needs a newer protobuf: python -m pip install --upgrade protobuf",
    "protobuf": "TensorFlow and protobuf conflict: python -m pip install --upgrade protobuf",
    "Descriptors cannot": "protobuf is too new: python -m pip install -r requirements.txt",
    "numpy": "TensorFlow and NumPy conflict: python -m pip install -r requirements.txt",
    "status -4": "The processor probably lacks instructions (AVX); use another machine.",
    "status -9": "It was killed, probably because memory ran out; close other programs.",
    "did not end": "Try again when the machine is less busy.",
}


def declared() -> tuple[str, ...]:
    """What tflab requires, such as `numpy>=2.0,<3`."""
    try:
        text = (PROJECT / "pyproject.toml").read_text("utf-8")
    except OSError:
        own = metadata.distribution("tflab")
        return tuple(line for line in own.requires or () if "extra ==" not in line)
    # Python 3.10 has no parser for TOML, and the form of our own file is known.
    block = re.findall(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)
    return tuple(re.findall(r'"(.+?)"', block[0]))


def needed() -> Iterator[Finding]:
    """Packages that are missing or out of their range."""
    from packaging.requirements import Requirement

    for line in declared():
        requirement = Requirement(line)
        if not fits(requirement):
            installed = version(requirement.name) or "missing"
            state = f"{installed} (required: {line.removeprefix(requirement.name)})"
            yield Finding("Packages", requirement.name, state, f'python -m pip install "{line}"')


def fits(requirement: Requirement) -> bool:
    """Whether what is installed satisfies a requirement."""
    from packaging.version import InvalidVersion

    installed = version(requirement.name)
    try:
        return installed is not None and requirement.specifier.contains(installed, prereleases=True)
    except InvalidVersion:
        return False


def agreement() -> Iterator[Finding]:
    """What packages that tflab requires miss of others, by `pip check`."""
    names = {re.split("[<>=]", line)[0].lower() for line in declared()}
    check = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    for line in subprocess.run(check, capture_output=True, text=True).stdout.splitlines():
        if line.partition(" ")[0].lower() in names:
            yield Finding("Packages", "compatibility", line, INSTALL)


def profile_plugins() -> Iterator[Finding]:
    """Several packages that provide TensorBoard's Profile plugin: it takes one of them."""
    entries = metadata.entry_points(group="tensorboard_plugins", name="profile")
    packages = {entry.dist.name: entry.dist.version for entry in entries if entry.dist}
    if len(packages) > 1:
        named = " and ".join(f"{name} {packages[name]}" for name in sorted(packages))
        extra = " ".join(sorted(packages.keys() - {"xprof"}))
        advice = f"python -m pip uninstall {extra} && python -m pip install --force-reinstall xprof"
        yield Finding(
            "Packages",
            "Profile plugin",
            f"{named} provide it and cannot be installed together",
            advice,
        )


# What loads: each is tried in a process of its own with a time limit, so that a crash or a hang
# becomes a finding.


def tensorflow() -> Iterator[Finding]:
    """TensorFlow that cannot be imported, or that does not see a GPU which has a driver."""
    answer = answer_of("imported")
    if error := answer.get("error"):
        yield Finding("TensorFlow", "import", error, remedy(error))
    elif NVIDIA.exists() and not any("GPU" in name for name in answer["devices"]):
        state = "TensorFlow sees none, although an NVIDIA driver is loaded"
        advice = 'To use it: python -m pip install "tensorflow[and-cuda]"'
        yield Finding("TensorFlow", "GPU", state, advice, NOTE)


def imported() -> dict[str, Any]:
    """In a process of its own: the names of the devices, or what the import raised."""
    try:
        import tensorflow as tf

        return {"devices": [device.name for device in tf.config.list_physical_devices()]}
    except Exception as error:  # an import may raise anything
        return {"error": sentence(error)}


def profile_plugin() -> Iterator[Finding]:
    """A Profile plugin that TensorBoard cannot load, or that cannot read a trace."""
    answer = answer_of("loaded")
    for key, what in (
        ("error", "Profile plugin"),
        ("plugin_error", "Profile plugin"),
        ("converter_error", "trace converter"),
    ):
        if error := answer.get(key):
            yield Finding("TensorBoard", what, error, remedy(error))
    if error := answer.get("life_error"):
        yield Finding("TensorBoard", "tab Life", error, INSTALL_TFLAB, NOTE)


def loaded() -> dict[str, Any]:
    """In a process of its own: load the plugin with TensorBoard's own loader."""
    answer: dict[str, Any] = {}
    with atomic.temporary("logdir") as empty:
        for key, function in (
            ("plugin_error", profile_plugin_in),
            ("converter_error", convert),
            ("life_error", life_plugin_in),
        ):
            try:
                function(str(empty))
            except Exception as error:
                answer[key] = sentence(error)
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
    raise TflabError("TensorBoard loads no plugin: the loader is missing or fails")


def life_plugin_in(logdir: str) -> Any:
    """The tab Life as TensorBoard loads it. Raises TflabError where it does not find it."""
    from tensorboard.plugins import base_plugin

    for entry in metadata.entry_points(group="tensorboard_plugins", name="tflab_life"):
        return entry.load()().load(base_plugin.TBContext(logdir=logdir))
    raise TflabError("TensorBoard does not find it, because tflab is not installed")


def convert(folder: str) -> None:
    """Have the plugin's compiled library read a trace without events."""
    from xprof.convert import raw_to_tool_data

    trace = Path(folder, "host.xplane.pb")
    trace.touch()
    raw_to_tool_data.xspace_to_tool_names([str(trace)])


def answer_of(function: str) -> dict[str, Any]:
    try:
        return child.call(f"{__name__}:{function}", seconds=SECONDS)
    except TflabError as error:
        return {"error": str(error)}


def remedy(error: str) -> str:
    return next((help_ for message, help_ in REMEDIES.items() if message in error), REINSTALL)
