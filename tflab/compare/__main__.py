"""Compare what the ops of a step cost at several batch sizes, and under several configurations. All
batch sizes process the same images, in alternating traced and untraced steps, after warm-up.

    python -m tflab.compare --model lenet --batch-sizes 1 16 64
    python -m tflab.compare before.json after.json --fail-if-slower 10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tflab import models
from tflab.cli import (
    arguments,
    command,
    confined,
    environment,
    interrupts,
    output_paths,
    saved_files,
    terminal,
)
from tflab.compare import output
from tflab.compare.command_line import OF_FILES, WHAT, as_typed, build_parser, named_arguments
from tflab.compare.configurations import DEFAULT
from tflab.errors import RefusedError, UsageError
from tflab.escaping import visible
from tflab.records.measured import Comparison
from tflab.records.options import Options
from tflab.runtime import dumps, quiet_import


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(sys.argv[1:] if argv is None else argv))


def parser() -> argparse.ArgumentParser:
    return build_parser(__doc__)


def run(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    names = named_arguments(parser(), argv, args)
    if args.files:
        return compare_files(args, names)
    if args.fail_if_slower is not None:
        raise UsageError("--fail-if-slower compares two saved comparisons; give their files.")
    sizes = sorted(args.batch_sizes)
    if len(set(sizes)) < len(sizes):
        raise UsageError(f"The batch sizes {sizes} contain duplicates; list each once.")
    check_cluster(args)
    if confined.is_wanted(models.is_file(args.model), args.trust):
        return confined.run("compare", argv, args, outputs(args))
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, arguments.saved_of(args))
    if args.save and not confined.CONFINED:
        output_paths.check(Path(args.save), WHAT)
    if not args.cluster:
        return run_on(args, sizes, ())
    quiet_import.load()
    from tflab.runtime import cluster

    with cluster.tasks(args.cluster) as addresses:
        return run_on(args, sizes, addresses)


def check_cluster(args: argparse.Namespace) -> None:
    """Refuse what cannot be combined with --cluster, before anything starts."""
    arguments.check_cluster(args)
    if args.cluster and args.configs != [DEFAULT]:
        raise UsageError(
            "--cluster cannot be combined with --configs: it measures the step in other processes."
        )


def run_on(args: argparse.Namespace, sizes: Sequence[int], tasks: tuple[str, ...]) -> int:
    options = options_of(args, tasks)
    from tflab.exporters import json

    with terminal.phase(args.model), interrupts.held():
        with output.plots_of(args) as folder:
            comparison = measured(args, sizes, options)
            with command.reader_may_leave():
                output.show(comparison, args, environment.describe())
            if folder:
                output.draw(comparison, folder)
        with command.reader_may_leave():
            output.say_plots(args)
        if args.save:
            content = json.comparison(comparison, environment.describe())
            output_paths.write(Path(args.save), content.encode(), WHAT, "--save")
            terminal.say(f"\nThe comparison is in {visible(args.save)}", output.stream_of(args))
    if comparison.failure:
        raise RefusedError(comparison.failure)
    return command.INTERRUPTED if comparison.interrupted else 0


def outputs(args: argparse.Namespace) -> dict[str, AbstractContextManager[output_paths.Run]]:
    """The files that a confined process writes."""
    places: dict[str, AbstractContextManager[output_paths.Run]] = {}
    if args.plots:
        places["--plots"] = output_paths.folder_place(Path(args.plots), "--plots")
    if args.save:
        places["--save"] = output_paths.file_place(Path(args.save), WHAT)
    return places


def compare_files(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Compare two saved comparisons, or the programs that `tflab.run --save` watched."""
    for name in names:
        if name not in OF_FILES:
            raise UsageError(
                f"{as_typed(name)} applies to a new measurement, but '{args.files[0]}' is a file; "
                "give either files or measuring options."
            )
    from tflab.compare import saved, watched_runs

    if saved_files.is_run(saved.read_content(args.files[0])):
        return watched_runs.run(args)
    return saved.run(args)


def options_of(args: argparse.Namespace, tasks: tuple[str, ...]) -> Options:
    return Options(
        data_dir=args.data_dir,
        saved=arguments.saved_of(args),
        cluster=tasks,
        without=tuple(args.without),
        soft_placement=models.is_file(args.model),  # the devices were another machine's
        experiments=args.experiments or 0,
    )


def measured(args: argparse.Namespace, sizes: Sequence[int], options: Options) -> Comparison:
    from tflab.compare import comparison

    chosen = comparison.SweepOptions(
        phase=args.phase,
        by=args.by,
        images=args.images,
        steps=args.steps,
    )
    configs = tuple(dict.fromkeys([DEFAULT, *args.configs]))
    return comparison.compare_configurations(
        args.model, tuple(sizes), chosen, comparison.RaceOptions(configs), options=options
    )


if __name__ == "__main__":
    sys.exit(main())
