"""Output: the files of a walk in its logdir, for TensorBoard, Perfetto and Model Explorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflab.cli import ending, new_files
from tflab.records.options import Options
from tflab.records.stages import Execution, Placement, Stage
from tflab.records.timed import Capture

if TYPE_CHECKING:
    from tflab.lifecycle.captures import Captures

CHART = "trace.json"


def write(folder: Path, stages: Sequence[Stage], options: Options, seconds: float) -> Captures:
    """Write what TensorBoard shows, from further steps that take about this many seconds, and
    generated code."""
    from tflab.exporters import tensorboard
    from tflab.lifecycle import captures

    placement = next((stage for stage in stages if isinstance(stage, Placement)), None)
    execution = stages[-1] if whole_walk(stages) else None
    captured = captures.Captures(())
    if placement and isinstance(execution, Execution) and not ending.is_pending():
        captured = captures.take(placement, options, execution, seconds)
    if ending.take_pending():
        captured = replace(captured, interrupted=True)
    tensorboard.write(folder, stages[-1], placement, captured.captured)
    for stage in stages:
        if isinstance(stage, Execution) and placement and stage.step_times:
            write_steps(folder, stage, placement, profile=execution is None)
    for code in placement.generated if placement else ():
        new_files.write_listings(folder / "code" / code.cluster, code.listings)
    return captured


def write_steps(folder: Path, stage: Execution, placement: Placement, profile: bool) -> None:
    """Write the traced steps themselves: those of several tasks on one time axis, for Perfetto;
    with `profile` those of a walk that ended early, for which no others were captured."""
    from tflab.exporters import chrome_trace, xspace

    runs = (*stage.runs, *stage.wires)
    capture = Capture(placement.program.name, stage.step_times, runs)
    if stage.network:
        with (folder / CHART).open("w", encoding="utf-8") as stream:
            chrome_trace.write(stream, [capture], stage.nodes, placement.transfers)
    if profile:
        xspace.write(folder, [capture])


def write_explorer(folder: Path, model: str, stages: Sequence[Stage], captured: Captures) -> None:
    from tflab.exporters import model_explorer

    runs = {steps.batch_size: steps.capture.runs for steps in captured.captured}
    model_explorer.write(folder / model_explorer.FOLDER, model, stages, runs)


def explorer_line(folder: Path) -> str:
    from tflab.exporters import model_explorer

    return model_explorer.opening_line(folder / model_explorer.FOLDER)


def whole_walk(stages: Sequence[Stage]) -> bool:
    """Whether the last stage was reached, and measured completely."""
    last = stages[-1]
    return isinstance(last, Execution) and not (last.interrupted or last.failure)
