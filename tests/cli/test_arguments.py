"""What commands are given: shapes, tasks, saved files that may come from strangers, free memory."""

import argparse

from tests.approval import approve, refused
from tflab import worker
from tflab.cli import arguments, environment
from tflab.records import codec

SHAPES = {
    "x=1,224,224,3": ("x", (1, 224, 224, 3)),
    "dequeue:1=16": ("dequeue:1", (16,)),
    "keep_prob=": ("keep_prob", ()),
}
NO_SHAPES = ("x", "=3", "x=3,-1", "x=three", "x=3,,4", "")
NO_OBJECTS = (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[1]")


def test_a_shape_is_a_name_and_sizes_or_none_for_a_scalar():
    assert {text: arguments.shape(text) for text in SHAPES} == SHAPES


def test_what_is_no_shape_and_what_is_no_object_in_json_is_refused(tmp_path):
    said = [refused(arguments.shape, text) for text in NO_SHAPES]
    for content in NO_OBJECTS:
        (tmp_path / "x").write_bytes(content)
        said.append(refused(codec.read_object, str(tmp_path / "x"), "give one"))
    approve("given-refused.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))


def test_free_memory_is_what_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "MEMINFO", tmp_path / "meminfo")
    assert environment.free_memory() is None
    environment.MEMINFO.write_text("MemTotal: 9 kB\nMemAvailable:   3 kB\nSwapFree: 1 kB\n")
    assert environment.free_memory() == 4096


# Tasks

ADDRESSES = {
    "2222": "127.0.0.1:2222",
    ":2222": "127.0.0.1:2222",
    "localhost:2222": "localhost:2222",
    "[::1]:0": "[::1]:0",
}
TASKS = {"2": 2, "a:1,b:2": ("a:1", "b:2"), "127.0.0.1:2222": ("127.0.0.1:2222",)}
NO_ADDRESSES = ("", "here:", "here:port", "here:70000", "::1:22", "a:b:1")
NO_TASKS = ("0", "1000", "two", "a:1,a:1", "a:1,b", "a:0")
ALONE = {"cluster": 2, "devices": 1, "xla": False, "experiments": None, "configs": ["default"]}
NOT_TOGETHER = {"devices": 2, "xla": True, "experiments": 60, "configs": ["default", "xla"]}


def test_where_it_listens():
    parse = worker.parser().parse_args
    assert {given: parse([given]).address for given in ADDRESSES} == ADDRESSES


def test_tasks_are_a_number_or_addresses():
    assert {given: arguments.tasks(given) for given in TASKS} == TASKS


def test_what_is_no_address_or_no_cluster_or_does_not_go_with_one_is_refused():
    said = [refused(arguments.address_to_listen_at, given) for given in NO_ADDRESSES]
    said += [refused(arguments.tasks, given) for given in NO_TASKS]
    arguments.check_cluster(argparse.Namespace(**ALONE))
    for option, value in NOT_TOGETHER.items():
        said.append(refused(arguments.check_cluster, argparse.Namespace(**ALONE | {option: value})))
    approve("clusters-refused.txt", "\n".join(said))
