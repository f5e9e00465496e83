"""Which files are libraries', so that a node has a line of the program."""

import sys
from types import SimpleNamespace

import pytest

from tflab.run import sampler
from tflab.runtime import libraries

# It looks for TensorFlow, without importing it
pytestmark = pytest.mark.tensorflow

INSTALLED = "/opt/lib/python3.12/site-packages"


def test_installed_packages_are_libraries_and_programs_are_not():
    files = {
        f"{INSTALLED}/optree/ops.py": True,
        "/usr/lib/python3/dist-packages/six.py": True,
        "/programs/train.py": False,
        "/programs/keras/train.py": False,
    }
    assert {file: libraries.includes(file) for file in files} == files
    assert {file: not sampler.Sampler(0).is_program(file) for file in files} == files
    assert not libraries.includes(f"{libraries.TFLAB}/models/lenet.py")
    assert libraries.includes(f"{libraries.TFLAB}/models/keras.py")


def test_an_installed_program_is_no_library(monkeypatch):
    file = f"{INSTALLED}/mine/layers.py"
    main = SimpleNamespace(__file__=f"{INSTALLED}/mine/train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not libraries.includes(file)
    assert sampler.Sampler(0).is_program(file)
    assert libraries.includes(f"{INSTALLED}/others/layers.py")
    assert not sampler.Sampler(0).is_program(f"{INSTALLED}/others/layers.py")


def test_the_package_of_a_model_is_no_library(monkeypatch):
    monkeypatch.setattr(libraries, "PROGRAMS", set())
    file = f"{INSTALLED}/models/net.py"
    assert libraries.includes(file)
    code = SimpleNamespace(co_filename=file)
    libraries.add_program(SimpleNamespace(__code__=code))
    assert not libraries.includes(file)
    libraries.add_program(len)  # a function in C
