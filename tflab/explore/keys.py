"""Keys: the questions about a program with their answers, for those who teach with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tflab.errors import TflabError
from tflab.explore.asked import Asked
from tflab.explore.warm import Message, Warm
from tflab.records.blocks import Block, Frame, Strip


def questions_about(process: Warm, text: str) -> Sequence[Mapping[str, Any]]:
    """The questions about a program with the switches as they are at first. Raises TflabError if
    it does not run to its end."""
    questions: Sequence[Mapping[str, Any]] = ()
    for message in process.life("keys", 1, Asked(text, predict=True)):
        check(message)
        questions = message.get("questions", questions)
    return questions


def check(message: Message) -> None:
    """Raise TflabError for the error of a program."""
    if error := message.get("error"):
        where = f"Line {error['line']}: " if error["line"] else ""
        raise TflabError(f"{where}{error['message']}")


def blocks(name: str, questions: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Each question with its choices, its answer and the reason."""
    if not questions:
        yield f"There is no question about {name}."
        return
    yield Strip(
        f"Questions about {name}, with the answers of this run",
        tuple(Frame(question["text"], "", tuple(lines(question))) for question in questions),
    )


def lines(question: Mapping[str, Any]) -> Iterator[str]:
    if question["options"]:
        yield f"choices: {', '.join(question['options'])}"
    unit = f" {question['unit']}" if question["unit"] else ""
    yield f"answer: {question['answer']}{unit}"
    yield question["reason"]
