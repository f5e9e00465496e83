"""Observing: the additional measurements and facts that a saved measurement needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import tflab
from tflab import models
from tflab.cli import ending as signals
from tflab.cli import environment
from tflab.compare import processes, sweep
from tflab.compare.batch_tables import Tables
from tflab.errors import RefusedError, TflabError
from tflab.records import Comparison, Measurement, Observed, Options, Process, Program
from tflab.runtime import fingerprint, hardware, measure, session

# Variables that affect a measurement and are read by TensorFlow or its libraries
VARIABLES = (
    *("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    *("TF_OVERRIDE_GLOBAL_THREADPOOL", "TF_XLA_FLAGS", "TF_DETERMINISTIC_OPS"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "OMP_NUM_THREADS", "KMP_AFFINITY"),
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "TF_FORCE_GPU_ALLOW_GROWTH"),
)


def observe(
    program: Program,
    step: session.Step,
    options: Options,
    split: str,
    trace_every: int,
    batches: Mapping[int, sweep.MeasuredBatch],
    tables: Tables,
    budget_s: float,
) -> tuple[Observed, measure.Outcome]:
    """The step in several processes, together with the measurements so far; and how that ended.
    Ctrl-C and a process that fails keep those that have ended."""
    columns = list(session.feed_columns(program, split).values())
    keys = {size: {row.key: row.nodes for row in tables[size]} for size in batches}
    ended: list[Process] = []
    ending = measure.Outcome()
    try:
        job = measure.job_of(program, step, options)
        with signals.released():
            ended.extend(processes.run(job, columns, keys, budget_s))
    except KeyboardInterrupt:
        ending = measure.Outcome(interrupted=True)
    except TflabError as error:
        ending = measure.Outcome(failure=RefusedError(str(error)))
    observed = Observed(
        fingerprint=fingerprint.of_step(program, step, split),
        untraced_ns={size: batch.untraced_rounds() for size, batch in batches.items()},
        traced_ns={
            size: sweep.in_rounds(
                batch.traced_ns,
                (sum(number % trace_every == 0 for number in steps) for steps in batch.rounds),
            )
            for size, batch in batches.items()
        },
        processes=tuple(ended),
    )
    return observed, ending


def measurement(comparison: Comparison, options: Options) -> Measurement:
    """A comparison with its observations, place and time."""
    assert comparison.observed is not None
    here = dict(hardware.inspected())
    set_here = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return Measurement(
        tflab=tflab.__version__,
        when=environment.now(),
        environment=here | set_here,
        options=chosen(options),
        comparison=replace(comparison, observed=None),
        observed=comparison.observed,
    )


def chosen(options: Options) -> dict[str, str]:
    """The options of a run, in words, without names of folders and files."""
    saved = options.saved
    words = {
        "devices": str(options.devices),
        "graph passes off": ", ".join(options.without) or "none",
        "warm-up steps": str(options.warmup),
        "signature": saved.signature or "",
        "derived tensor": saved.loss or "",
        "fed from files": ", ".join(name for name, _ in saved.feeds),
        "shapes": ", ".join(f"{name}={shape}" for name, shape in saved.shapes),
    }
    return {what: value for what, value in words.items() if value}


def without_folders(model: str) -> str:
    """The name of a model, without its folder."""
    return Path(model).name if models.is_file(model) else model
