"""Which files are libraries', so that a node has a line of the program."""

import functools
import sys
from types import SimpleNamespace

import pytest

from tflab.run import sampler
from tflab.runtime.private import source_lines

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
    assert {file: source_lines.is_library(file) for file in files} == files
    assert {file: sampler.Sampler(0).kind_of(file) != sampler.PROGRAM for file in files} == files
    assert not source_lines.is_library(f"{source_lines.TFLAB}/models/lenet.py")
    assert source_lines.is_library(f"{source_lines.TFLAB}/models/keras.py")


def test_an_installed_program_is_no_library(monkeypatch):
    file = f"{INSTALLED}/mine/layers.py"
    main = SimpleNamespace(__file__=f"{INSTALLED}/mine/train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not source_lines.is_library(file)
    assert sampler.Sampler(0).kind_of(file) == sampler.PROGRAM
    assert source_lines.is_library(f"{INSTALLED}/others/layers.py")
    assert sampler.Sampler(0).kind_of(f"{INSTALLED}/others/layers.py") != sampler.PROGRAM


def test_the_package_of_a_model_is_no_library(monkeypatch):
    monkeypatch.setattr(source_lines, "PROGRAMS", set())
    file = f"{INSTALLED}/models/net.py"
    assert source_lines.is_library(file)
    code = SimpleNamespace(co_filename=file)
    source_lines.add_program(SimpleNamespace(__code__=code))
    assert not source_lines.is_library(file)
    source_lines.add_program(len)  # a function in C
