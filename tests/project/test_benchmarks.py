"""Benchmarks: each can be imported, and those with options answer --help; nothing is measured."""

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

FOLDER = Path(__file__).parents[2] / "benchmarks"
PROGRAMS = {"torch_lenet", "torch_peer", "watched_program"}  # run by the others
NAMES = sorted({file.stem for file in FOLDER.glob("*.py")} - {"__init__"} - PROGRAMS)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_still_finds_what_it_measures(name):
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
