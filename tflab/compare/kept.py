"""Kept: measurements from files, one shown as if it had just been made, several compared. No
TensorFlow in here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from tflab import models
from tflab.cli import environment
from tflab.compare import output
from tflab.compare.given import OF_SEVERAL, as_typed
from tflab.errors import UsageError
from tflab.exporters import csv, json, markdown, notebook, text
from tflab.measurements import contrast, files, gate, view
from tflab.measurements.comparable import Named
from tflab.records import Contrast, Measurement

OPTIONS = ("files", "top", "format", "fail_if_undecided", *OF_SEVERAL)  # that go with files

notebook.show_as(Contrast, view.blocks)


def run(args: argparse.Namespace, named: Sequence[str]) -> int:
    """Show or compare the files of a command line, in which these arguments were named. Raises the
    TflabError of the gate where that fails."""
    for name in named:
        if name not in OPTIONS:
            raise UsageError(
                f"{as_typed(name)} is for measuring, and '{args.files[0]}' was measured already; "
                "give files alone, or none."
            )
        if name in OF_SEVERAL and len(args.files) < 2:
            raise UsageError(
                f"{as_typed(name)} takes two measurements or more, the usual one first."
            )
    measurements = read_all(args.files)
    first, *others = measurements
    if not others:
        show_one(measurements[first], args)
        return 0
    held = contrast.contrast(measurements, args.other_graph)
    if args.fail_if_slower is not None:
        held = replace(held, gate=gate.judge(measurements, held, args.fail_if_slower))
    show(held, measurements, args)
    failure = held.gate and gate.failure(held.gate, first, args.fail_if_undecided)
    if failure:
        raise failure
    return 0


def read_all(paths: Sequence[str]) -> Named:
    """The measurements in these files, in this order, by what they are called."""
    return {name: read(path) for name, path in zip(contrast.named(paths), paths, strict=True)}


def read(path: str) -> Measurement:
    try:
        return files.read(path)
    except UsageError as error:
        if path in models.MODELS:
            raise UsageError(f"{error} Did you mean '--model {path}'?") from error
        raise


def show_one(measurement: Measurement, args: argparse.Namespace) -> None:
    output.show(measurement.comparison, args, measurement.environment)


def show(held: Contrast, measurements: Named, args: argparse.Namespace) -> None:
    blocks = view.blocks(held, args.top)
    if args.format == "json":
        about = {name: item.environment for name, item in measurements.items()}
        print(json.contrast(held, about))
    elif args.format == "csv":
        print(csv.contrast(held), end="")
    elif args.format == "markdown":
        title = f"{held.model}: {', '.join(held.measurements)}"
        print(markdown.page(title, environment.describe(), blocks))
    else:
        out = text.console()
        for block in blocks:
            text.show_block(out, block)
