"""Escaping: untrusted names, written so that nothing in them controls what shows them.

A name may hold escape sequences, line ends and marks that turn the direction of writing. Each such
character is written as its code: `\\x1b`, `\\u202e`. Nothing is dropped and nothing is taken for
something else, so two names that differ are shown differently.
"""

from __future__ import annotations

import re

# Characters without width or that look like a space, which Unicode counts as printable
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# A backslash that looks like the beginning of such a code is escaped too.
CODE = re.compile(r"\\(?=x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def visible(text: str) -> str:
    """Return the text on one line, with codes for characters that would be invisible or act on the
    output.

    Exporters call it once for each text, because it also escapes the backslashes of codes.
    """
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    text = CODE.sub(r"\\x5c", text)
    if text.isprintable() and not UNSEEN.search(text):
        return text
    return "".join(
        character if character.isprintable() and not UNSEEN.match(character) else code(character)
        for character in text
    )


def with_full_stop(sentence: str) -> str:
    """Return the sentence with exactly one full stop at its end."""
    return f"{sentence.rstrip(' .')}."


def code(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
