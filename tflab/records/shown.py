"""Shown: what shows itself in a notebook, which asks a value for `_repr_html_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HTML: dict[type, Callable[[Any], str]] = {}  # filled by the commands, which know record and view


class Shown:
    """A result that a notebook shows as sentences and tables, once a command has said how."""

    def _repr_html_(self) -> str | None:
        html = HTML.get(type(self))
        return html(self) if html else None
