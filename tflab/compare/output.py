"""Output: a comparison as text, as data for other programs, and as pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from tflab.cli import output_paths, terminal
from tflab.escaping import visible
from tflab.records.measured import Comparison


def stream_of(args: argparse.Namespace) -> TextIO:
    """The stream for notes: that of a text for readers, but not that of data for programs."""
    return sys.stdout if args.format == "text" else sys.stderr


def plots_of(args: argparse.Namespace) -> AbstractContextManager[Path | None]:
    """The folder for the plots, created before anything is measured."""
    return output_paths.new_folder(Path(args.plots), "--plots") if args.plots else nullcontext()


def say_plots(args: argparse.Namespace) -> None:
    """Print where the plots are, if there are any."""
    if args.plots:
        terminal.say(f"\nThe plots are in {visible(args.plots)}", stream_of(args))


def draw(comparison: Comparison, folder: Path) -> None:
    """Draw each batch size by itself and, if there are several, a comparison of them."""
    from tflab.exporters import plots

    for size, rows in comparison.tables.items():
        bars = plots.op_bars.draw(rows, comparison.by)
        plots.save(bars, folder / f"batch-{size}-{comparison.by}s")
    if len(comparison.tables) > 1:
        plots.save(plots.batch_sizes.draw(comparison), folder / "batch_sizes")


def show(comparison: Comparison, args: argparse.Namespace, about: Mapping[str, Any]) -> None:
    from tflab.compare import view
    from tflab.exporters import csv, json, text

    text.show_in_format(
        args.format,
        f"{comparison.model} by batch size",
        about,
        view.blocks(comparison, args.top, args.full),
        json=lambda: json.comparison(comparison, dict(about)),
        csv=lambda: csv.comparison(comparison),
    )
