"""Records by hand: what several tests of views share, and how they read what a view yields."""

from tflab.records import Source
from tflab.records.blocks import Block, Strip, Table

CPU_0 = "/job:localhost/replica:0/task:0/device:CPU:0"
CPU_1 = "/job:localhost/replica:0/task:0/device:CPU:1"


def source(line: int, code: str = "", file: str = "model.py") -> Source:
    return Source(f"project/models/{file}", line, "build", code)


def read(block: Block) -> str | list | Strip:
    """A table as title, headers, every row and what was left out; other blocks as they are."""
    if not isinstance(block, Table):
        return block
    headers = tuple(column.header for column in block.columns)
    return [block.title, headers, *block.cells(), block.rest()]
