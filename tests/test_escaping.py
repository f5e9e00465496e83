"""Escaping: what would act or not be seen is written as its code, and two names stay two."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.approval import approve
from tflab.escaping import visible

NAMES = (
    *("conv1/Relu", "größe 日本 …", "a\x1b[31mb", "a\nb\tc\r"),
    "a\x7f\x9b",  # the second begins an escape sequence by itself
    *("a\u061c\u200e\u202e\u2066b", "a\u2028b\u2029", "a\u00a0b\u200b\ufeff\u3164\ufe0f"),
    *("a\ud800\U000e0041", r"C:\new\x1b", r"\u202e \u20 \xg0"),
)


def test_each_kind_of_character_that_would_act_is_written_as_its_code():
    approve("escaped.txt", "\n".join(map(visible, NAMES)))


CODE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


@given(st.text(st.characters() | st.sampled_from("\\xuU01b\x1b\u202e")))
def test_what_is_shown_is_one_line_and_says_which_name_it_was(name):
    shown = visible(name)
    assert shown.isprintable()
    assert CODE.sub(lambda code: chr(int(code[1] or code[2] or code[3], 16)), shown) == name
