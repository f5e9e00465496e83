"""What the tests of the chapters share: pictures that are not drawn."""

import pytest

from tflab.exporters import plots
from tflab.report import contents


@pytest.fixture
def undrawn(monkeypatch):
    """A picture is its name and what is drawn in it."""
    names = ("batch_sizes", "curves", "feature_maps", "memory")
    for name in (*names, "timeline", "op_bars"):
        monkeypatch.setattr(getattr(plots, name), "draw", lambda *drawn, name=name: (name, *drawn))
    monkeypatch.setattr(contents, "picture", lambda name, draw, *drawn: (name, draw(*drawn)))
