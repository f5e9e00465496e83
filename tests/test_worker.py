"""Worker: where a task listens, what is no address, and what a cluster cannot do."""

import argparse

from tests.approval import approve, refused
from tflab import worker
from tflab.cli import arguments

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
