"""The wheel: what `pip install` brings to somebody who has no clone works there, from any folder.

It is built from a copy of what it is made of, and installed into an environment of its own, which
finds all other packages where the tests do.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import tflab

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
MODEL = """
from dataclasses import replace
import tensorflow as tf
from tflab.models import toy

def build():
    model = toy.build()
    return replace(model, output=tf.square(model.output, name="square"))
"""


def run(*command, folder, **environment):
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "TFLAB_OFFLINE": "1", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built offline with the setuptools that TensorFlow brings along."""
    folder = tmp_path_factory.mktemp("source")
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tflab", folder / "tflab", ignore=leave)
    for name in ("pyproject.toml", "docs/package.md", "LICENSE"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist")
    run(sys.executable, "-m", "pip", "wheel", *offline, ".", folder=folder)
    (built,) = (folder / "dist").glob("tflab-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """`installed("doctor")`: what the script prints, run from a folder without a clone."""
    environment = tmp_path_factory.mktemp("environment")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "mine.py").write_text(MODEL)
    run(sys.executable, "-m", "venv", "--without-pip", environment, folder=elsewhere)
    python = environment / SCRIPTS / "python"
    offline = ("--no-index", "--no-deps", "--quiet")
    pip = (sys.executable, "-m", "pip", "--python", python, "install")
    run(*pip, *offline, wheel, folder=elsewhere)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", asked, folder=elsewhere).strip())
    # Behind its own packages; what is said in files .pth of that folder does not count there.
    others = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (packages / "others.pth").write_text("\n".join(others) + "\n")

    def script(*arguments):
        return run(environment / SCRIPTS / "tflab", *arguments, folder=elsewhere, PYTHONPATH="")

    script.folder, script.packages = elsewhere, packages
    return script


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    files = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "tflab").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    named = set(zipfile.ZipFile(wheel).namelist())
    assert "tflab/report/page/report.html.j2" in files
    assert {name for name in named if ".dist-info/" not in name} == files


def test_it_says_its_version_its_licence_and_that_it_is_typed(wheel, installed):
    assert installed("--version") == f"tflab {tflab.__version__}\n"
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    about = archive.read(metadata).decode()
    assert "# tflab" in about and "](" not in about  # a link would need a clone
    lines = about.splitlines()
    assert {"Classifier: Typing :: Typed", "License-File: LICENSE"} <= set(lines)
    assert (installed.packages / "tflab" / "py.typed").is_file()


def test_a_model_of_the_folder_one_works_in_is_found_with_its_lines_and_those_of_the_package(
    installed,
):
    options = ("--model", "mine:build", "--stage", "frontend", "--format", "json")
    printed = installed("lifecycle", *options)
    sources = [node["source"] for node in json.loads(printed)["stages"][0]["nodes"]]
    toy = installed.packages / "tflab" / "models" / "toy.py"
    assert {Path(source["file"]) for source in sources if source} == {
        toy,
        installed.folder / "mine.py",
    }
