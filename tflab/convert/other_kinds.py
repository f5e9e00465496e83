"""Other kinds: files that people take for traces of a session, and what to do with each."""

from __future__ import annotations

import re

WANTED = "convert takes the RunMetadata of a step"
# An XSpace begins with an XPlane (field 1): its number or its name, which is that of a device.
LENGTH = rb"[\x80-\xff]*[\x00-\x7f]"
PLANE = re.compile(rb"\x0a%b(\x08%b)?\x12.(/host:|/device:|Task )" % (LENGTH, LENGTH), re.DOTALL)
TIMELINE = re.compile(rb'\s*[\[{].*"(traceEvents|ph)"\s*:', re.DOTALL)


def of(head: bytes) -> str | None:
    """What a file is by its beginning, as the end of a sentence; None where that is not known."""
    if head.startswith(b"\x1f\x8b"):
        return f"is compressed with gzip; unpack it first: {WANTED}"
    if PLANE.match(head):
        return (
            "is an XSpace, as TensorBoard's profiler writes it; open its logdir in TensorBoard "
            f"Profile. {WANTED}"
        )
    if TIMELINE.match(head):
        return (
            "is a timeline in JSON; open it in ui.perfetto.dev or chrome://tracing. "
            f"{WANTED}, of which it was made"
        )
    return None
