"""Planes: every field of a plane, as protobuf reads it."""

import numpy as np

from tests import xplane
from tflab.exporters.xspace import plane as planes
from tflab.exporters.xspace.plane import Events, Plane, column


def read(plane: Plane) -> dict:
    (only,) = xplane.read(b"".join(plane.parts()))["planes"]
    return only


def test_every_field_of_a_plane_with_two_events_of_two_stats():
    plane = Plane("/host:CPU")
    conv, relu = plane.event("a/conv:Conv2D", "conv (a/conv)"), plane.event("relu:Relu")
    cpu, gpu = plane.text("cpu"), plane.text("gpu")
    plane.line(
        "CPU:0",
        Events(
            column([relu, conv]),
            column([5, 200]),
            column([7, 0]),
            {"group_id": column([0, 3])},
            {"allocator": column([gpu, cpu])},
        ),
    )
    plane.stat("profile_start_time", 2**63 + 9)
    assert read(plane) == {
        "name": "/host:CPU",
        "lines": [
            {
                "id": 1,
                "name": "CPU:0",
                "events": [
                    {
                        "metadata_id": 2,
                        "offset_ps": 5_000,
                        "duration_ps": 7_000,
                        "stats": [
                            {"metadata_id": 3, "int64_value": 0},
                            {"metadata_id": 4, "ref_value": 2},
                        ],
                    },
                    {
                        "metadata_id": 1,
                        "offset_ps": 200_000,
                        "duration_ps": 0,
                        "stats": [
                            {"metadata_id": 3, "int64_value": 3},
                            {"metadata_id": 4, "ref_value": 1},
                        ],
                    },
                ],
            }
        ],
        "event_metadata": [
            {
                "key": 1,
                "value": {"id": 1, "name": "a/conv:Conv2D", "display_name": "conv (a/conv)"},
            },
            {"key": 2, "value": {"id": 2, "name": "relu:Relu"}},
        ],
        "stat_metadata": [
            {"key": 1, "value": {"id": 1, "name": "cpu"}},
            {"key": 2, "value": {"id": 2, "name": "gpu"}},
            {"key": 3, "value": {"id": 3, "name": "group_id"}},
            {"key": 4, "value": {"id": 4, "name": "allocator"}},
            {"key": 5, "value": {"id": 5, "name": "profile_start_time"}},
        ],
        "stats": [{"metadata_id": 5, "uint64_value": 2**63 + 9}],
    }


def test_a_name_has_one_number_and_another_one_for_each_display():
    plane = Plane("p")
    assert [plane.event("a"), plane.event("b"), plane.event("a")] == [1, 2, 1]
    assert [plane.event("a", "x"), plane.event("a", "x"), plane.event("a", "y")] == [3, 3, 4]
    assert [plane.text("t"), plane.text("u"), plane.text("t")] == [1, 2, 1]
    assert xplane.names(read(plane)["event_metadata"]) == {
        1: "a",
        2: "b",
        3: ("a", "x"),
        4: ("a", "y"),
    }
    assert xplane.names(read(plane)["stat_metadata"]) == {1: "t", 2: "u"}


def test_stats_of_a_name_are_bytes_and_stand_in_its_table():
    plane = Plane("p")
    plane.event("module", stats={"Hlo Proto": b"\x08\x01", "other": b""})
    assert read(plane) == {
        "name": "p",
        "event_metadata": [
            {
                "key": 1,
                "value": {
                    "id": 1,
                    "name": "module",
                    "stats": [
                        {"metadata_id": 1, "bytes_value": b"\x08\x01"},
                        {"metadata_id": 2, "bytes_value": b""},
                    ],
                },
            }
        ],
        "stat_metadata": [
            {"key": 1, "value": {"id": 1, "name": "Hlo Proto"}},
            {"key": 2, "value": {"id": 2, "name": "other"}},
        ],
    }


def test_lines_are_counted_from_1_and_one_with_a_number_keeps_it():
    plane = Plane("p")
    plane.line("first")
    plane.line("apart", number=-9)
    plane.line("zero", number=0)
    plane.line("fourth")
    assert read(plane)["lines"] == [
        {"id": 1, "name": "first"},
        {"id": -9, "name": "apart"},
        {"id": 0, "name": "zero"},
        {"id": 4, "name": "fourth"},
    ]


def test_events_of_one_line_may_have_different_stats():
    plane = Plane("p")
    name = plane.event("e")
    plain = Events(column([name]), column([1]), column([2]))
    grouped = Events(column([name]), column([3]), column([4]), {"group_id": column([6])})
    plane.line("line", plain, grouped)
    assert xplane.lines(read(plane)) == [
        (1, "line", [("e", 1_000, 2_000, {}), ("e", 3_000, 4_000, {"group_id": 6})])
    ]


def test_more_events_than_are_encoded_together_are_all_written_once_and_in_order(monkeypatch):
    monkeypatch.setattr(planes, "CHUNK", 3)
    plane = Plane("p")
    texts = [plane.text(f"t{number}") for number in range(7)]
    events = Events(
        column(plane.event(f"e{number}") for number in range(7)),
        column(range(10, 17)),
        column(range(20, 27)),
        {"group_id": column(range(30, 37))},
        {"op": column(texts)},
    )
    plane.line("line", events)
    ((_, _, events_of_line),) = xplane.lines(read(plane))
    assert events_of_line == [
        (
            f"e{number}",
            (10 + number) * 1000,
            (20 + number) * 1000,
            {"group_id": 30 + number, "op": f"t{number}"},
        )
        for number in range(7)
    ]


def test_a_column_is_of_64_bits():
    assert column([2**62, -1]).tolist() == [2**62, -1]
    assert column([]).dtype == column([1]).dtype == np.int64
