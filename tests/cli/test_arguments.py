"""Arguments: what the types of several commands' options take, and what they say of the rest."""

import argparse
from contextvars import ContextVar

import pytest

from tflab.cli import arguments, command
from tflab.errors import UsageError
from tflab.saved_graphs import effects


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x=1,224,224,3", ("x", (1, 224, 224, 3))),
        ("dequeue:1=16", ("dequeue:1", (16,))),
        ("keep_prob=", ("keep_prob", ())),
    ],
)
def test_a_shape_is_a_name_and_sizes_or_none_for_a_scalar(text, shape):
    assert arguments.shape(text) == shape


@pytest.mark.parametrize("text", ["x", "=3", "x=3,-1", "x=three", "x=3,,4", ""])
def test_what_is_no_shape_is_told_how_to_give_one(text):
    with pytest.raises(UsageError) as error:
        arguments.shape(text)
    assert str(error.value) == (
        f"'{text}' is not a shape; give it as NAME=1,224,224,3, or NAME= for a scalar."
    )


@pytest.mark.parametrize(
    "option", [["--allow-read", "."], ["--allow-write", "."], ["--allow-network"]]
)
def test_each_option_allows_an_effect_that_is_refused_without_it(option, monkeypatch):
    monkeypatch.setattr(command, "MAY_QUOTE", ContextVar("may quote"))
    parser = argparse.ArgumentParser()
    arguments.saved(parser)
    chosen = arguments.saved_of(parser.parse_args(["--allow-side-effects", *option]))
    assert len(chosen.allowed) == 1
    assert {*chosen.allowed} <= {*effects.GATED}
