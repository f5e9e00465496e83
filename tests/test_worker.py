"""Worker: what is said of wrong addresses."""

import argparse

import pytest

from tflab import worker
from tflab.cli import arguments
from tflab.errors import UsageError


@pytest.mark.parametrize(
    "given, address",
    [
        ("2222", "127.0.0.1:2222"),
        (":2222", "127.0.0.1:2222"),
        ("localhost:2222", "localhost:2222"),
        ("[::1]:0", "[::1]:0"),
    ],
)
def test_where_it_listens(given, address):
    assert worker.parser().parse_args([given]).address == address


@pytest.mark.parametrize("given", ["", "here:", "here:port", "here:70000", "::1:22", "a:b:1"])
def test_what_is_no_address_is_said(given):
    with pytest.raises(UsageError, match=r"is not the address of a task; give it as HOST:PORT\.$"):
        arguments.address_to_listen_at(given)


@pytest.mark.parametrize(
    "given, tasks",
    [("2", 2), ("a:1,b:2", ("a:1", "b:2")), ("127.0.0.1:2222", ("127.0.0.1:2222",))],
)
def test_tasks_are_a_number_or_addresses(given, tasks):
    assert arguments.tasks(given) == tasks


@pytest.mark.parametrize(
    "given, said",
    [
        ("0", "The number of tasks is '0'; it has to be a whole number from 1 to 16."),
        ("1000", "The number of tasks is '1000'; it has to be a whole number from 1 to 16."),
        ("two", "The number of tasks is 'two'; it has to be a whole number from 1 to 16."),
        ("a:1,a:1", "The task a:1 is listed twice in 'a:1,a:1'; list each once."),
        ("a:1,b", "'b' is not the address of a task; give it as HOST:PORT."),
        ("a:0", "'a:0' is not the address of a task: its port cannot be 0."),
    ],
)
def test_what_is_no_cluster_is_said(given, said):
    with pytest.raises(UsageError) as error:
        arguments.tasks(given)
    assert str(error.value) == said


@pytest.mark.parametrize(
    "option, value, why",
    [
        ("devices", 2, "each task has one CPU device; give one of the two"),
        ("xla", True, "XLA compiles for the devices of one process"),
        ("experiments", 60, "the experiments run in one process"),
        ("configs", ["default", "xla"], "it measures the step in other processes"),
    ],
)
def test_what_does_not_go_together_is_said(option, value, why):
    usual = {"cluster": 2, "devices": 1, "xla": False, "experiments": None, "configs": ["default"]}
    arguments.check_cluster(argparse.Namespace(**usual))
    with pytest.raises(UsageError) as error:
        arguments.check_cluster(argparse.Namespace(**usual | {option: value}))
    assert str(error.value) == f"--cluster cannot be combined with --{option}: {why}."
