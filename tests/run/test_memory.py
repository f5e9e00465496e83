"""Memory that grows, and memory that only fills: seen in spans of time, with a made clock."""

from types import SimpleNamespace

import pytest

from tflab.run import memory as growth

MIB = 2**20
LINE, OTHER, THIRD = (("/code/a.py", number, "main") for number in (3, 9, 12))


def sampler_at(line):
    return SimpleNamespace(importing=False, inside=(0, 0, 0), main_line=lambda: line)


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """Return what a process of these sizes in MiB looks like, one for each span of time; each size
    may come with the line at which the memory is looked at. It is looked at elsewhere, too."""
    file = tmp_path / "statm"
    monkeypatch.setattr(growth, "STATM", str(file))

    def of(*sizes, elsewhere=THIRD):
        seen = growth.Memory()
        for at, size in enumerate(sizes, 1):
            size, line = size if isinstance(size, tuple) else (size, LINE)
            file.write_text(f"1 {size * MIB // seen.page} 1")
            seen.look(at * growth.SPAN_NS, sampler_at(line))
            seen.look(at * growth.SPAN_NS, sampler_at(elsewhere))
        return seen

    file.write_text("1 1 1")
    return of


def test_memory_that_rises_in_each_part_grows_at_the_line_that_is_seen(memory):
    grown = memory(*range(100, 180)).segment()
    # 80 spans, of which two make one; three eighths of 40 are 15
    assert grown == {"first_bytes": 130 * MIB, "last_bytes": 170 * MIB, "place": "a.py:3 in main"}


STEADY = [100 + at % 3 for at in range(48)]


@pytest.mark.parametrize(
    "sizes",
    [
        STEADY,
        [*range(100, 124), *[124] * 24],  # a cache that is full
        [100 + round(40 * (1 - 0.8**at)) for at in range(48)],  # ever slower
        [*[100] * 40, *[200] * 8],  # once
        [1_000 + at // 8 for at in range(48)],  # less than 8 MiB
        [10_000 + 4 * at for at in range(48)],  # less than one part in fifty
        [100 + 10 * (at % 12) for at in range(48)],  # what is collected now and then
        range(100, 115),  # too few spans
    ],
)
def test_memory_that_fills_or_varies_does_not_grow(memory, sizes):
    assert memory(*sizes).segment() is None


def test_a_line_is_named_only_if_memory_rises_almost_only_there(memory):
    both = [(100 + at, LINE if at % 4 else OTHER) for at in range(48)]
    assert memory(*both).segment()["place"] == ""
    # 3 up at one line, 2 down at another: what is kept may be of either
    turns = [(100 + at // 2 + 2 * (at % 2), LINE) for at in range(60)]
    grown = memory(*turns).segment()
    assert (grown["last_bytes"] > grown["first_bytes"], grown["place"]) == (True, "")


def test_a_line_where_the_program_mostly_is_may_only_be_where_the_rise_is_seen(memory):
    grown = memory(*range(100, 180), elsewhere=LINE).segment()
    assert (grown["last_bytes"], grown["place"]) == (170 * MIB, "")


def test_spans_become_longer_so_that_they_stay_few(memory):
    seen = memory(*range(100, 1_100))
    assert (len(seen.spans) <= growth.MOST_SPANS, seen.span_ns) == (True, 16 * growth.SPAN_NS)
    assert seen.segment()["place"] == "a.py:3 in main"
    rare = memory(100, 101, 102)
    rare.look(1_000 * growth.SPAN_NS, sampler_at(LINE))  # after a long time without a look
    assert len(rare.spans) <= growth.MOST_SPANS


def test_elsewhere_than_on_linux_nothing_is_known(monkeypatch):
    monkeypatch.setattr(growth, "STATM", "/nowhere/statm")
    seen = growth.Memory()
    seen.look(1, sampler_at(LINE))
    assert seen.segment() is None
