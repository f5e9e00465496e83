"""First run: the runtime's log of the first run of a step in a new session."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from tflab.analysis import first_run as log_of
from tflab.cli import temporary
from tflab.errors import TflabError
from tflab.records.placed import FirstRun
from tflab.runtime import measure, private, session, tf_import

MOST_NODES = 10_000  # of a graph; a larger one takes long to prepare once more


class UnknownError(TflabError):
    """The parts of the first run cannot be told."""


def measured(job: measure.Job, values: Sequence[np.ndarray]) -> FirstRun:
    """Run a step for the first time in a new session of this process, neither traced nor dumped.

    The variables get their values in between, which does not count. Raises UnknownError if the
    graph is too large or this TensorFlow has no log that can be set, TflabError if a step fails.
    """
    if (size := len(job.graph.get_operations())) > MOST_NODES:
        raise UnknownError(f"The first run of a graph of {size:,} nodes is not broken down.")
    try:
        log = private.Log()
    except TflabError as error:
        raise UnknownError(f"The first run is not broken down. {error}") from error
    with (
        temporary.file() as file,
        session.fresh(job.graph, job.options) as live,
    ):
        with tf_import.stderr_into(file), log.detailed(log_of.LEVELS):
            began = time.time_ns()
            run = job.step.callable(live)
            built = time.time_ns()
        session.begin(live, job.start)
        with tf_import.stderr_into(file), log.detailed(log_of.LEVELS):
            started = time.time_ns()
            run(*values)
            ended = time.time_ns()
        file.seek(0)
        said = file.read().decode(errors="backslashreplace")
    return log_of.broken_down(said, (began, built), (started, ended))
