"""Scaling, as a user asks for it: what does not go together."""

import pytest

from tflab.compare import __main__ as compare
from tflab.errors import UsageError

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("other", [["--plots", "new"], ["--configs", "xla"], ["--format", "csv"]])
def test_what_does_not_go_with_numbers_of_tasks_is_said(other):
    with pytest.raises(UsageError, match=r"^--cluster compares numbers of tasks, as text, JSON or"):
        compare.run(["--cluster", "1", *other])
