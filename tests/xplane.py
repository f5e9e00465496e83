"""XSpace files, read by protobuf itself: every field is declared here, so no TensorFlow is needed.

The numbers are those of tsl/profiler/protobuf/xplane.proto. The fields are optional as in proto2,
which tells a 0 that was written from a field that was left out.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT64, UINT64, STRING, BYTES = 3, 4, 9, 12  # descriptor_pb2.FieldDescriptorProto.Type
ONCE, REPEATED = 1, 3  # descriptor_pb2.FieldDescriptorProto.Label

MESSAGES: dict[str, dict[str, tuple[int, int | str, int]]] = {
    "XSpace": {"planes": (1, "XPlane", REPEATED), "hostnames": (4, STRING, REPEATED)},
    "XPlane": {
        "name": (2, STRING, ONCE),
        "lines": (3, "XLine", REPEATED),
        "event_metadata": (4, "EventEntry", REPEATED),  # a map is a list of keys and values
        "stat_metadata": (5, "StatEntry", REPEATED),
        "stats": (6, "XStat", REPEATED),
    },
    "EventEntry": {"key": (1, INT64, ONCE), "value": (2, "XEventMetadata", ONCE)},
    "StatEntry": {"key": (1, INT64, ONCE), "value": (2, "XStatMetadata", ONCE)},
    "XEventMetadata": {
        "id": (1, INT64, ONCE),
        "name": (2, STRING, ONCE),
        "display_name": (4, STRING, ONCE),
        "stats": (5, "XStat", REPEATED),
    },
    "XStatMetadata": {"id": (1, INT64, ONCE), "name": (2, STRING, ONCE)},
    "XLine": {
        "id": (1, INT64, ONCE),
        "name": (2, STRING, ONCE),
        "events": (4, "XEvent", REPEATED),
    },
    "XEvent": {
        "metadata_id": (1, INT64, ONCE),
        "offset_ps": (2, INT64, ONCE),
        "duration_ps": (3, INT64, ONCE),
        "stats": (4, "XStat", REPEATED),
    },
    "XStat": {
        "metadata_id": (1, INT64, ONCE),
        "uint64_value": (3, UINT64, ONCE),
        "int64_value": (4, INT64, ONCE),
        "bytes_value": (6, BYTES, ONCE),
        "ref_value": (7, UINT64, ONCE),
    },
}


def message_class(name: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x", syntax="proto2")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for field, (number, kind, label) in fields.items():
            declared = described.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                declared.type_name = f".x.{kind}"
            else:
                declared.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"x.{name}"))


XSpace = message_class("XSpace")


def read(encoded: bytes) -> dict[str, Any]:
    """The fields of an XSpace that were written, all the way down; none but those above."""
    space = XSpace.FromString(encoded)
    size = space.ByteSize()
    space.DiscardUnknownFields()
    assert space.ByteSize() == size
    return plain(space)


def plain(message: Any) -> Any:
    if not hasattr(message, "ListFields"):
        return message
    labels = {name: label for name, (_, _, label) in MESSAGES[message.DESCRIPTOR.name].items()}
    return {
        field.name: plain(value) if labels[field.name] == ONCE else [plain(item) for item in value]
        for field, value in message.ListFields()
    }


def planes(encoded: bytes) -> dict[str, dict[str, Any]]:
    return {plane["name"]: plane for plane in read(encoded)["planes"]}


def lines(plane: dict[str, Any]) -> list[tuple[int, str, list[tuple[Any, ...]]]]:
    """Number, name and events of each line; an event is its name, start, duration in ps and stats.

    An event whose name has another one for display is named by both.
    """
    events = names(plane["event_metadata"])
    return [
        (
            line["id"],
            line["name"],
            [
                (
                    events[event["metadata_id"]],
                    event["offset_ps"],
                    event["duration_ps"],
                    stats(plane, event.get("stats", ())),
                )
                for event in line.get("events", ())
            ],
        )
        for line in plane.get("lines", ())
    ]


def names(entries: list[dict[str, Any]]) -> dict[int, Any]:
    """The names in a plane's table, by number; of events with another name for display, both."""
    numbers = [entry["key"] for entry in entries]
    assert numbers == [entry["value"]["id"] for entry in entries]
    assert len(numbers) == len(set(numbers))
    values = [entry["value"] for entry in entries]
    return {
        value["id"]: (value["name"], value["display_name"])
        if "display_name" in value
        else value["name"]
        for value in values
    }


def stats(plane: dict[str, Any], numbered: list[dict[str, Any]]) -> dict[str, Any]:
    """Stats by their names; those that refer to a text have it as their value."""
    texts = names(plane.get("stat_metadata", []))
    values: dict[str, Any] = {}
    for stat in numbered:
        (kind, value) = next((key, stat[key]) for key in stat if key != "metadata_id")
        assert len(stat) == 2
        values[texts[stat["metadata_id"]]] = texts[value] if kind == "ref_value" else value
    assert len(values) == len(numbered)
    return values
