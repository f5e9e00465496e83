"""Which files are libraries', so that a node has a line of the program."""

import functools
import sys
from types import SimpleNamespace

import pytest

from tflab.run import sampler
from tflab.runtime import nodes

# It looks for TensorFlow, without importing it
pytestmark = pytest.mark.tensorflow

INSTALLED = "/opt/lib/python3.12/site-packages"


def test_installed_packages_are_libraries_and_programs_are_not():
    files = {
        f"{INSTALLED}/optree/ops.py": True,
        "/usr/lib/python3/dist-packages/six.py": True,
        functools.__file__: True,
        "/programs/train.py": False,
        "/programs/keras/train.py": False,
    }
    assert {file: nodes.includes(file) for file in files} == files
    assert {file: sampler.Sampler(0).kind_of(file) != sampler.PROGRAM for file in files} == files
    assert not nodes.includes(f"{nodes.TFLAB}/models/lenet.py")
    assert nodes.includes(f"{nodes.TFLAB}/models/keras.py")


def test_an_installed_program_is_no_library(monkeypatch):
    file = f"{INSTALLED}/mine/layers.py"
    main = SimpleNamespace(__file__=f"{INSTALLED}/mine/train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not nodes.includes(file)
    assert sampler.Sampler(0).kind_of(file) == sampler.PROGRAM
    assert nodes.includes(f"{INSTALLED}/others/layers.py")
    assert sampler.Sampler(0).kind_of(f"{INSTALLED}/others/layers.py") != sampler.PROGRAM


def test_the_package_of_a_model_is_no_library(monkeypatch):
    monkeypatch.setattr(nodes, "PROGRAMS", set())
    file = f"{INSTALLED}/models/net.py"
    assert nodes.includes(file)
    code = SimpleNamespace(co_filename=file)
    nodes.add_program(SimpleNamespace(__code__=code))
    assert not nodes.includes(file)
    nodes.add_program(len)  # a function in C
