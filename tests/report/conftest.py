"""What the tests of the chapters share: pictures that are not drawn."""

import dataclasses

import pytest

from tflab.exporters.plots import style
from tflab.report import contents


def described(record) -> str:
    """What is drawn in a picture: the names in a list, or a record by its first field."""
    if isinstance(record, list | tuple):
        names = (getattr(item, "name", getattr(item, "key", "")) for item in record)
        return " ".join(names)
    if dataclasses.is_dataclass(record):
        first = getattr(record, dataclasses.fields(record)[0].name)
        return f"{type(record).__name__} {getattr(first, 'model', first)}"
    return str(record)


@pytest.fixture
def undrawn(monkeypatch):
    """A picture has what would be drawn in it as its caption."""

    def picture(name, draw, *records):
        what = "; ".join(map(described, records))
        english = style.translation.get() is str
        caption = f"{draw.__module__.rpartition('.')[2]} of {what}" if english else "图"
        return contents.Picture(name, caption, "<svg/>", b"")

    monkeypatch.setattr(contents, "picture", picture)
