"""Child: a process of its own, for what has to be set before TensorFlow is imported.

`call` runs a function of this package in a new Python, one that is ready to dump graphs, and
brings its result back. It works from the command line, from a test and from a notebook alike.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tflab.errors import TflabError
from tflab.runtime import dumps


def call(
    function: str,
    *args: Any,
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> Any:
    """The result of `module:function(*args)`, computed in a process of its own.

    `environment` is set for it, besides what every child has; after `seconds` it is ended.

    Arguments and result travel as pickles, over pipes that only the two processes see. Raises
    the TflabError that the function raised, or one that says how the process ended.
    """
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tflab.runtime.child", function],
            input=pickle.dumps(args),
            env={**os.environ, **(environment or {}), "PYTHONPATH": path},
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise TflabError(
            f"The process that ran {function} did not end within {seconds} s."
        ) from None
    try:
        worked, result = pickle.loads(done.stdout)
    except (pickle.UnpicklingError, EOFError):
        last = done.stderr.decode(errors="backslashreplace").strip().splitlines()[-1:]
        raise TflabError(
            f"The process that ran {function} ended with status {done.returncode}"
            f"{': ' + last[0] if last else '.'}"
        ) from None
    if not worked:
        raise TflabError(result)
    return result


def main() -> None:
    """Answer the parent: (True, result) or (False, message), pickled, on standard output."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may get into the answer
    dumps.prepare()
    module, _, name = sys.argv[1].partition(":")
    args = pickle.load(sys.stdin.buffer)  # may import TensorFlow, so only now
    try:
        outcome = (True, getattr(importlib.import_module(module), name)(*args))
    except TflabError as error:
        outcome = (False, str(error))
    with answer:
        pickle.dump(outcome, answer)


if __name__ == "__main__":
    main()
