"""Child: results and errors come back from the other process, and so does news of its death."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tflab.errors import TflabError
from tflab.runtime import child

pytestmark = pytest.mark.slow

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def this_module_can_be_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def call(name, *args):
    return child.call(f"{__name__}:{name}", *args)


def failure(name, *args):
    """The sentence that the caller gets when it goes wrong."""
    with pytest.raises(TflabError) as error:
        call(name, *args)
    return str(error.value)


# What the other process is asked to do


def pair(first, second):
    return first, second


def process():
    return os.getpid()


def talk():
    print("on Python's standard output")
    os.write(1, b"on that of C\n")
    os.write(2, b"on standard error\n")
    return "the answer"


def complain():
    raise TflabError("No such node.")


def fail():
    raise ValueError("of something unforeseen")


def leave(status):
    os._exit(status)


def abort():
    os.write(2, b"    @     0x7f3d2c  tensorflow::Kernel::Compute()\n")
    os.abort()


def variables():
    return {name: os.environ.get(name) for name in ("TF_DUMP_GRAPH_FMT", "TFLAB_TEST")}


# Results


def test_the_result_of_the_function_comes_back():
    assert call("pair", {"a": 1}, (b"\0", None)) == ({"a": 1}, (b"\0", None))


def test_it_was_computed_in_another_process():
    assert call("process") != os.getpid()


def test_a_large_argument_and_a_large_result_go_through():
    large = bytes(10_000_000)
    assert call("pair", large, large) == (large, large)


def test_what_the_function_prints_does_not_get_into_the_answer():
    assert call("talk") == "the answer"


def test_the_other_process_is_ready_to_dump_and_has_the_environment_of_this_one(monkeypatch):
    monkeypatch.setenv("TFLAB_TEST", "1")
    assert call("variables") == {"TF_DUMP_GRAPH_FMT": "BIN", "TFLAB_TEST": "1"}


# Failures


def test_a_tflab_error_is_passed_on_as_it_is():
    assert failure("complain") == "No such node."


def test_a_process_that_is_killed_is_a_sentence_without_its_stack():
    assert failure("abort") == (
        "The process that ran tests.runtime.test_child:abort ended with status -6 (SIGABRT)."
    )


def test_a_process_that_leaves_without_a_word_has_none_in_its_sentence():
    assert (
        failure("leave", 3)
        == "The process that ran tests.runtime.test_child:leave ended with status 3."
    )


def test_the_last_words_of_a_process_are_passed_on():
    assert failure("fail") == (
        "The process that ran tests.runtime.test_child:fail ended with status 1: "
        "ValueError: of something unforeseen"
    )


def test_a_function_that_is_not_there_is_a_sentence():
    assert failure("nothing").endswith(
        "AttributeError: module 'tests.runtime.test_child' has no attribute 'nothing'"
    )


# Streams


def stream(name, *args, **more):
    return child.stream(f"{__name__}:{name}", *args, **more)


def squares(path, first):
    """Notes in a file which of them was begun."""
    for number in range(first, 100):
        with open(path, "a") as notes:
            notes.write(f"{number} ")
        yield os.getpid(), number**2


def one_and_an_error():
    yield 1
    raise TflabError("No second one.")


def one_and_an_end():
    yield 1
    os._exit(3)


def surroundings():
    while True:
        print("not an item")
        yield os.environ.get("TFLAB_TEST")


def test_a_stream_stands_still_until_the_next_item_is_asked_for(tmp_path):
    notes = tmp_path / "notes"
    with stream("squares", notes, 3) as numbers:
        (process, first), (same_process, second) = next(numbers), next(numbers)
        assert notes.read_text() == "3 4 "
    assert (first, second) == (9, 16)
    assert process == same_process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert notes.read_text() in ("3 4 ", "3 4 5 ")  # what is begun at the end is thrown away


def test_two_streams_live_side_by_side(tmp_path):
    with (
        stream("surroundings", environment={"TFLAB_TEST": "a"}) as first,
        stream("surroundings", environment={"TFLAB_TEST": "b"}) as second,
    ):
        items = [next(process) for process in (first, second, second, first)]
    assert items == ["a", "b", "b", "a"]


def test_an_error_comes_where_the_item_is_asked_for():
    with stream("one_and_an_error") as items, pytest.raises(TflabError, match="No second one"):
        assert next(items) == 1
        next(items)


def test_a_stream_that_dies_is_a_sentence_with_its_status():
    with stream("one_and_an_end") as items, pytest.raises(TflabError, match="with status 3"):
        assert next(items) == 1
        next(items)


def test_a_stream_that_is_killed_between_two_items_is_a_sentence_with_its_status(tmp_path):
    with (
        pytest.raises(TflabError, match="ended with status -9") as error,
        stream("squares", tmp_path / "notes", 0) as numbers,
    ):
        process, _ = next(numbers)
        os.kill(process, signal.SIGKILL)
        os.waitid(
            os.P_PID, process, os.WEXITED | os.WNOWAIT
        )  # it has ended, and still has its status
        next(numbers)
    assert "tests.runtime.test_child:squares" in str(error.value)


def test_a_stream_that_never_began_says_so_for_its_first_item(monkeypatch):
    monkeypatch.setattr(child, "command", lambda *_: [sys.executable, "-c", "exit('no room')"])
    with (
        pytest.raises(TflabError, match="ended with status 1: no room"),
        stream("squares", "x" * 1_000_000, 0) as numbers,
    ):
        next(numbers)


def test_an_exception_ends_the_process_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt), stream("squares", tmp_path / "notes", 0) as numbers:
        process, _ = next(numbers)
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
