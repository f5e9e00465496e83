"""XSpace files as plain data: the lines of a plane, with the names of their events and stats."""

from __future__ import annotations

from typing import Any

from tflab.runtime.private import watched_functions


def read(encoded: bytes) -> Any:
    return watched_functions.xspace(encoded)


def planes(encoded: bytes) -> dict[str, Any]:
    return {plane.name: plane for plane in read(encoded).planes}


def lines(plane: Any) -> list[tuple[int, str, list[tuple[Any, ...]]]]:
    """Number, name and events of each line; an event is its name, start, duration in ps and stats.

    An event whose name has another one for display is named by both.
    """
    events = names(plane.event_metadata)
    return [
        (
            line.id,
            line.name,
            [
                (events[one.metadata_id], one.offset_ps, one.duration_ps, stats(plane, one.stats))
                for one in line.events
            ],
        )
        for line in plane.lines
    ]


def names(table: Any) -> dict[int, Any]:
    """The names in a plane's table, by number; of events with another name for display, both."""
    assert all(number == about.id for number, about in table.items())
    return {
        number: (about.name, about.display_name)
        if getattr(about, "display_name", "")
        else about.name
        for number, about in sorted(table.items())
    }


def stats(plane: Any, numbered: Any) -> dict[str, Any]:
    """Stats by their names; those that refer to a text have it as their value."""
    texts = names(plane.stat_metadata)
    values: dict[str, Any] = {}
    for stat in numbered:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind)
        values[texts[stat.metadata_id]] = texts[value] if kind == "ref_value" else value
    assert len(values) == len(numbered)
    return values


def described(encoded: bytes) -> str:
    """Every host, plane, line, event and stat, a line of text each; times in ns."""
    space = read(encoded)
    rows = [f"hosts {', '.join(space.hostnames)}"]
    for plane in space.planes:
        rows += ["", f"plane {plane.name}"]
        rows += [f"  {name}={value!r}" for name, value in stats(plane, plane.stats).items()]
        for number, name, events in lines(plane):
            rows.append(f"  line {number} {name}")
            for event, start, duration, about in events:
                assert (start % 1000, duration % 1000) == (0, 0)
                shown = "{} ({!r})".format(*event) if isinstance(event, tuple) else event
                words = " ".join(f"{key}={value}" for key, value in about.items())
                rows.append(f"    {start // 1000} +{duration // 1000} {shown} {words}".rstrip())
    return "\n".join(rows)
