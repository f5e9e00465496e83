"""Chart: the rules that the events of every Chrome trace keep."""

from collections import Counter, defaultdict
from decimal import Decimal

# The rules of the format: which fields an event has, by its phase, and of which type.
NAMED = {"ph": str, "pid": int, "tid": int, "name": str, "args": dict}
FIELDS = {"M": NAMED, "X": {**NAMED, "ts": Decimal, "dur": Decimal, "cat": str}}
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def check(events: list[dict]) -> None:
    for event in events:
        assert {key: type(value) for key, value in event.items()} == FIELDS[event["ph"]]
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    assert min(times, default=0) >= 0
    check_names([event for event in events if event["ph"] == "M"], events)
    check_slices([event for event in events if event["ph"] == "X"])


def check_names(metadata: list[dict], events: list[dict]) -> None:
    """Whatever has events has a name and a place, once, and no number stands for two threads."""
    names_of_track = Counter((event["pid"], event["tid"], event["name"]) for event in metadata)
    assert set(names_of_track.values()) <= {1}
    for event in metadata:
        assert set(event["args"]) == {METADATA[event["name"]]}
    for event in events:
        if event["ph"] != "M":
            assert names_of_track[event["pid"], event["tid"], "thread_name"]
            assert names_of_track[event["pid"], event["tid"], "thread_sort_index"]
    threads = {(event["pid"], event["tid"]) for event in events}
    assert len({tid for _, tid in threads}) == len(threads)


def check_slices(slices: list[dict]) -> None:
    """Slices of a thread do not overlap; ours do not even nest, but for those of no duration."""
    over: dict[int, Decimal] = defaultdict(Decimal)
    for event in slices:
        assert event["dur"] >= 0
        assert event["ts"] >= over[event["tid"]]
        over[event["tid"]] = event["ts"] + event["dur"]
