"""Plain: signs for an output whose encoding does not have ours, such as ASCII, Latin-1 or GBK.

A sign is as wide as the one that it stands for, so that tables and drawings keep their shape.
"""

from __future__ import annotations

import codecs
import sys
import unicodedata

HANDLER = "tflab.plain"  # as an `errors` of a text stream

SIGNS = {
    **dict.fromkeys("─━", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰", "+"),
    **dict.fromkeys("●■◆", "*"),
    "…": "~",
    "±": "~",
    "▲": "^",
    "▼": "v",
    "✖": "x",
    "✚": "+",
    "µ": "u",
}


def replace(error: UnicodeError) -> tuple[str, int]:
    """What is printed instead of letters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(sign, error.object[error.start : error.end])), error.end


def sign(letter: str) -> str:
    """`-` for a rule, `e` for an accented e, and `?` for what has nothing like it."""
    return SIGNS.get(letter) or unicodedata.normalize("NFD", letter)[0].encode(
        "ascii", "replace"
    ).decode("ascii")


def prepare() -> None:
    """Let what standard output and error cannot encode be printed in plain signs."""
    codecs.register_error(HANDLER, replace)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a notebook's stream has none
        if reconfigure:
            reconfigure(errors=HANDLER)
