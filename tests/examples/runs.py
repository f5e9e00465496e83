"""A notation for op runs: `a 10 40; b 20 5 @CPU:1 #1 +64/2 -64/9`.

After the name are start and duration in ns; a run without a duration takes 5. `@` is the device,
`#` the step, `+64/2` are bytes that were allocated at 2 us, `-64/9` are bytes that were released.
"""

import re

from tflab.records.timed import OpRun

RUN = re.compile(r"(\S+) (-?[\d_e]+)(?: ([\d_e]+))?(?: @(\S+))?(?: #(\d+))?((?: [+-]\d+/\d+)*)")


def run(text: str) -> OpRun:
    match = RUN.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError(f"{text!r} is not in the notation of runs")
    name, start, duration, device, step, events = match.groups()
    pairs = [event.split("/") for event in events.split()]
    allocations = tuple((int(us), int(size), "cpu") for size, us in pairs)
    return OpRun(
        *(int(step or 0), name, "Op", device or "CPU:0", int(float(start))),
        *(int(float(duration or 5)), sum(max(0, size) for _, size, _ in allocations)),
        allocations,
    )


def runs(text: str) -> list[OpRun]:
    return [run(part) for part in text.split(";") if part.strip()]
