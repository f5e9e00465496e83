"""Compare what the ops of a step cost at several batch sizes, and under several configurations.

    python -m tflab.compare --model lenet --batch-sizes 1 16 64

Inference uses all test images (or --images N), training uses training images. Every batch size
processes the same images, in alternating traced and untraced steps, after warm-up.

    python -m tflab.compare --model lenet --save here.json.gz
    python -m tflab.compare there.json.gz here.json.gz

--save writes the measurement to a file. It also measures the step in several processes, so that
the file can be compared with one of another machine or day. Each further file is compared with the
first; a single file is shown as it was measured.

Exit status of --fail-if-slower: 1 if a file is proven slower, 2 for a wrong argument or file, 3 if
it is undecided and --fail-if-undecided is given, otherwise 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

from tflab import models
from tflab.cli import (
    arguments,
    command,
    confined,
    confinement,
    ending,
    environment,
    new_files,
    terminal,
)
from tflab.compare import output
from tflab.compare.command_line import KEEP_S, OF_SEVERAL, as_typed, build_parser, named_arguments
from tflab.compare.configurations import DEFAULT
from tflab.errors import RefusedError, UsageError
from tflab.measurements import files
from tflab.records.measured import Comparison
from tflab.records.options import Options
from tflab.runtime import dumps, quiet_import
from tflab.units import plural


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(sys.argv[1:] if argv is None else argv))


def parser() -> argparse.ArgumentParser:
    return build_parser(__doc__)


def run(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    names = named_arguments(parser(), argv, args)
    if args.fail_if_undecided and args.fail_if_slower is None:
        raise UsageError("--fail-if-undecided needs --fail-if-slower PERCENT; give both.")
    if args.files:
        from tflab.compare import saved_measurements

        return saved_measurements.run(args, names)
    for name in names:
        if name in OF_SEVERAL:
            raise UsageError(
                f"{as_typed(name)} compares saved measurements; give their files, the baseline "
                f"first."
            )
    sizes = sorted(args.batch_sizes)
    if len(set(sizes)) < len(sizes):
        raise UsageError(f"The batch sizes {sizes} contain duplicates; list each once.")
    check_cluster(args)
    if confinement.is_wanted(models.is_file(args.model)):
        return confinement.run("compare", argv, args, outputs(args))
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, arguments.saved_of(args))
    if args.save and not confined.CONFINED:
        new_files.check(Path(args.save), files.WHAT)
    if not args.cluster:
        return run_on(args, sizes, ())
    quiet_import.load()
    from tflab.runtime import cluster

    with cluster.tasks(args.cluster) as addresses:
        return run_on(args, sizes, addresses)


def check_cluster(args: argparse.Namespace) -> None:
    """Refuse what cannot be combined with --cluster, before anything starts."""
    arguments.check_cluster(args)
    if args.cluster and (args.save or args.configs != [DEFAULT]):
        name = "save" if args.save else "configs"
        raise UsageError(
            f"--cluster cannot be combined with --{name}: it measures the step in other processes."
        )


def run_on(args: argparse.Namespace, sizes: Sequence[int], tasks: tuple[str, ...]) -> int:
    options = options_of(args, tasks)
    with terminal.phase(args.model), ending.deferred():
        with output.plots_of(args) as folder:
            comparison = measured(args, sizes, options)
            output.show(comparison, args, environment.describe())
            if folder:
                output.draw(comparison, folder)
        output.say_plots(args)
        if args.save:
            keep(comparison, options, Path(args.save), output.stream_of(args))
    if comparison.failure:
        raise RefusedError(comparison.failure)
    return command.INTERRUPTED if comparison.interrupted else 0


def outputs(args: argparse.Namespace) -> dict[str, AbstractContextManager[new_files.Run]]:
    """The files that a confined process writes."""
    places: dict[str, AbstractContextManager[new_files.Run]] = {}
    if args.plots:
        places["--plots"] = new_files.folder_place(Path(args.plots), output.new_plots(args.plots))
    if args.save:
        places["--save"] = new_files.file_place(Path(args.save), files.WHAT)
    return places


def keep(comparison: Comparison, options: Options, path: Path, stream: TextIO) -> None:
    """Write the measurement, unless it ended before its first process: it would have nothing to
    compare."""
    from tflab.compare import observing

    if comparison.calls_python:
        raise RefusedError(
            f"Nothing was saved to {path}: --save needs observations of the step from other "
            f"processes, but the node {comparison.calls_python} calls a Python function that only "
            "this process has."
        )
    if comparison.observed is None or not comparison.observed.processes:
        terminal.say(
            f"\nNothing was saved to {path}: the command ended before the first observation.",
            stream,
        )
        return
    files.write(path, observing.measurement(comparison, options))
    count = plural(len(comparison.observed.processes), "observation")
    terminal.say(f"\nThe measurement is in {path}, with {count} from separate processes", stream)


def options_of(args: argparse.Namespace, tasks: tuple[str, ...]) -> Options:
    return Options(
        data_dir=args.data_dir,
        saved=arguments.saved_of(args),
        cluster=tasks,
        without=tuple(args.without),
        soft_placement=args.soft_placement,
        experiments=args.experiments or 0,
        even_if_busy=args.even_if_busy,
    )


def measured(args: argparse.Namespace, sizes: Sequence[int], options: Options) -> Comparison:
    from tflab.compare import comparison

    chosen = comparison.SweepOptions(
        phase=args.phase,
        by=args.by,
        images=args.images,
        steps=args.steps,
        trace_every=args.trace_every,
        keep_s=KEEP_S if args.save else None,
    )
    configs = tuple(dict.fromkeys([DEFAULT, *args.configs]))
    return comparison.compare_configurations(
        args.model, tuple(sizes), chosen, comparison.RaceOptions(configs), options=options
    )


if __name__ == "__main__":
    sys.exit(main())
