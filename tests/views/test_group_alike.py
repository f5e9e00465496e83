"""Names that differ only in their numbers, told once."""

from tflab.views import group_alike


def test_a_number_belongs_to_a_name_and_not_to_a_formula():
    names = ["dense", "dense_1", "block_12/conv2d_3", "3/kernel", "2 * a - 4 / b"]
    assert [group_alike.pattern(name) for name in names] == [
        "dense",
        "dense",
        "block/convd",
        "/kernel",
        "2 * a - 4 / b",
    ]


def test_of_many_lines_each_pattern_is_told_once_with_its_number():
    lines = ["merged with a: b", *(f"folded into c_{n}: d_{n}" for n in range(40))]
    assert group_alike.shortened(lines, 41) == tuple(lines)
    assert group_alike.shortened(lines, 40) == (
        "merged with a: b",
        "folded into c_0: d_0 (40 alike)",
    )
    assert group_alike.shortened(["a", "b", "c", "d"], 3) == ("a", "b", "c", "... and 1 more")


def test_of_many_names_the_first_are_listed_and_the_others_counted():
    assert group_alike.listed(["a", "b", "c"], 3) == "a, b, c"
    assert group_alike.listed(["a", "b", "c"], 1) == "a and 2 more"


def test_many_names_that_are_numbered_alike_are_told_once():
    names = ["loss", "step_1/add", "step_1/mul", "step_2/add", "step_3/add", "step_2/mul"]
    assert group_alike.listed(names, 5) == (
        "loss, step_1/add ... step_3/add (3 alike), step_1/mul ... step_2/mul (2 alike)"
    )
    assert group_alike.listed(names, 2) == "loss, step_1/add ... step_3/add (3 alike) and 2 more"
    assert group_alike.listed(names, 6) == ", ".join(names)
