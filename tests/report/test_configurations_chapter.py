"""The chapter of configurations: every sentence and cell, from a comparison worked out by hand."""

from tests.examples.lab import COMPARED, RACED, shown
from tests.shown import layout
from tflab.compare import view
from tflab.report import comparison_chapters
from tflab.report.contents import Method


def test_configurations_are_said_then_compared_and_the_command_tells_more():
    assert shown(comparison_chapters.configurations(RACED, 60)) == [
        "An untraced step of inference, with the runtime's defaults and with one setting "
        "changed. All use the same weights and images.",
        [
            "What was changed",
            ("configuration", "what it means"),
            ("default", "the runtime's default settings"),
            ("xla", "XLA compiles what it can into its own code"),
            0,
        ],
        [
            "The untraced step under other configurations, in turn with the default",
            ("batch", "configuration", "step, median", "default, median", "ratio", "control"),
            ("4", "xla", "2.10 ms", "1.05 ms", "2.00 x [1.80, 2.20]", "[0.99, 1.01]"),
            ("64", "xla", "7.95 ms", "7.95 ms", "cannot tell [0.90, 1.10]", "[0.99, 1.01]"),
            0,
        ],
        view.BASIS.format("7 observations"),
        Method(
            "The comparison has 7 observations, each in new processes that take turns. After 60 "
            "seconds no new observation started, except those that a verdict requires. The "
            "command takes longer and shows more.",
            "python -m tflab.compare --model lenet --batch-sizes 4 64 --configs xla",
        ),
    ]


def test_without_another_configuration_it_says_so():
    assert list(comparison_chapters.configurations(COMPARED, 60)) == [
        "No configuration was compared with the default."
    ]


def test_what_a_configuration_means_gives_way():
    _, table, *_ = comparison_chapters.configurations(RACED, 60)
    assert layout(table) == ["configuration", "what it means gives way to 16"]
