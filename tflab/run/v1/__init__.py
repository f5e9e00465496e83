"""V1: what programs of TensorFlow 1 expect, in the process of such a program.

`imports` sees to it that `import tensorflow` gives `namespace`'s TensorFlow 1: all of
`tensorflow.compat.v1`, and beside it thin adapters for what is no longer there. Each adapter that
the program uses is noted here. This imports nothing, because it is there before the program: its
files may have the names of other modules.
"""

stood_in: dict[str, None] = {}  # what the program used of the adapters, in the order of its use
notes: dict[str, None] = {}  # sentences for the end


def note(name: str) -> None:
    stood_in[name] = None
