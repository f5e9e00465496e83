"""Follow a graph through the four stages of its life: built, differentiated, placed, executed.

    python -m tflab.lifecycle --model lenet --stage backward

Without options, one screen shows the main results and all stages in short. --stage STAGE shows one
stage in full, and stops after it; --full shows all of them, and every row of long lists.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from tflab import models
from tflab.cli import arguments, command, confined, environment, interrupts, output_paths, terminal
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible
from tflab.lifecycle import STAGES, walk
from tflab.records.blocks import Block, in_full, offered
from tflab.records.options import Options
from tflab.records.stages import Execution, Stage, find_stage

FORMATS = ("text", "json", "markdown")
MORE = "More: --stage STAGE, --full, python -m tflab.follow NODE, docs/reference.md."


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv), argv))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("lifecycle", __doc__)
    parser.usage = "%(prog)s [OPTION ...]"
    group = parser.add_argument_group("what runs")
    arguments.model(group, models.MODELS)
    arguments.add(group, "--data-dir")
    group.add_argument(
        "--fetch",
        nargs="+",
        default=(),
        metavar="NAME",
        help="nodes to compute (default: the nodes of a training step)",
    )
    arguments.add(group, "--batch-size")
    group.add_argument(
        "--steps",
        default=arguments.DEFAULTS.steps,
        type=command.count("number of steps"),
        metavar="N",
        help="traced and untraced steps to measure, N of each (default: %(default)s)",
    )
    group.add_argument(
        "--warmup",
        default=arguments.DEFAULTS.warmup,
        type=command.count("number of warm-up steps", 0),
        metavar="N",
        help="steps to run before, without measuring them (default: %(default)s)",
    )
    arguments.add(group, "--experiments")
    group = parser.add_argument_group("where and how it runs")
    arguments.add(group, "--devices", "--cluster", "--without")
    group.add_argument(
        "--xla",
        action="store_true",
        help="compile with XLA where possible, and show the generated code",
    )
    group = parser.add_argument_group("what is shown and kept")
    group.add_argument(
        "--stage",
        default="all",
        type=command.one_of("stage", (*STAGES, "all")),
        metavar="S",
        help=f"stop after this stage, and show it in full: {', '.join(STAGES)} (default: all)",
    )
    group.add_argument(
        "--full", action="store_true", help="show every stage in full, and every row of long lists"
    )
    arguments.add(group, "--no-values")
    arguments.choice(group, "--format", "format", FORMATS)
    group.add_argument(
        "--logdir",
        metavar="DIR",
        help="folder for TensorBoard (default, if steps run: runs/<model>-<time>)",
    )
    arguments.saved(parser)
    return parser


def run(args: argparse.Namespace, argv: Sequence[str] | None) -> int:
    arguments.check_cluster(args)
    stop = STAGES[-1] if args.stage == "all" else args.stage
    if args.experiments and stop != STAGES[-1]:
        raise UsageError(
            f"--experiments runs steps, but the stages up to {stop} run none. Give --stage "
            f"{STAGES[-1]}, or omit --stage."
        )
    kept = bool(args.logdir) or stop == STAGES[-1]  # whether there is anything for TensorBoard
    if confined.is_wanted(models.is_file(args.model), args.trust):
        folder = output_paths.choose_run_folder(args.logdir, args.model)
        places = {"--logdir": output_paths.place(folder, "logdir")} if kept else {}
        return confined.run("lifecycle", argv, args, places)
    from tflab.runtime import dumps, tf_import

    dumps.prepare()
    # A wrong name is an error before a folder is created, or a task started
    models.find(args.model, arguments.saved_of(args))
    tasks: AbstractContextManager[tuple[str, ...]] = nullcontext(())
    if args.cluster:
        tf_import.load()
        from tflab.runtime import cluster

        tasks = cluster.tasks(args.cluster)
    with tasks as addresses:
        return run_on(args, stop, kept, addresses)


def run_on(args: argparse.Namespace, stop: str, kept: bool, tasks: tuple[str, ...]) -> int:
    options = Options(
        batch_size=args.batch_size,
        steps=args.steps,
        warmup=args.warmup,
        devices=args.devices,
        fetches=tuple(args.fetch),
        data_dir=args.data_dir,
        without=tuple(args.without),
        soft_placement=models.is_file(args.model),  # the devices were another machine's
        xla=args.xla,
        experiments=args.experiments or 0,
        values=args.values,
        saved=arguments.saved_of(args),
        cluster=tasks,
    )
    interrupted = cut_short = False
    left_out: list[str | None] = []
    stages: list[Stage] = []
    run_folder = output_paths.new_run(args.logdir, args.model) if kept else nullcontext()
    phases = STAGES.index(stop) + 1 + kept  # the last one writes the files
    whole = terminal.phase(args.model, phases, whole=True)
    with interrupts.held(), run_folder as place, whole:
        try:
            show(args, walk(args.model, options, stop), stages)
        except KeyboardInterrupt:
            if not (place and stages):
                raise
            cut_short = True
        if place:
            from tflab.explore import stages_as_data
            from tflab.lifecycle import logdir
            from tflab.report import storage

            captured = logdir.write(place.work, stages, options)
            most = max(len(stage.nodes) for stage in stages)
            life = partial(stages_as_data.life_of, tuple(stages), args.model)
            lack = environment.lack("TensorBoard's page Profile", "xprof")
            left_out = [*captured.left_out, lack, storage.keep(place.work, most, life)]
            # or by a signal during the writing, which is complete
            interrupted = captured.interrupted | interrupts.take()
    if place:
        stream = sys.stdout if args.format == "text" else sys.stderr
        with command.reader_may_leave():
            below_more = args.format == "text" and args.stage == "all" and not args.full
            about = "Open it in TensorBoard:" if below_more else "\nOpen it in TensorBoard:"
            terminal.say_command(about, output_paths.opening_line(place.final), stream)
            for sentence in filter(None, left_out):
                terminal.say(visible(sentence), stream)
    ran = find_stage(stages, Execution)
    if ran and ran.failure:
        raise TflabError(ran.failure)
    if cut_short:  # there is a stage that was not reached
        raise KeyboardInterrupt
    return command.INTERRUPTED if interrupted or (ran and ran.interrupted) else 0


def show(args: argparse.Namespace, walked: Iterator[Stage], stages: list[Stage]) -> None:
    """Add the stages to a list and print them. Full text is printed stage by stage; the one screen
    and other formats are printed at the end, also after a failure, but not for a wrong argument."""
    from tflab.exporters import json, markdown, text
    from tflab.views import stages as views

    out = text.console()
    in_short = args.stage == "all" and not args.full

    def rest(error: str | None) -> None:
        with command.reader_may_leave():
            if stages and args.format == "json":
                print(json.stages(args.model, environment.describe(), stages, error))
            elif stages and args.format == "markdown":
                titled = {
                    views.title(stage): blocks_of(args, stage) or [f"{views.facts(stage)[0].text}."]
                    for stage in stages
                }
                title = f"The stages of {args.model}"
                print(markdown.page(title, environment.describe(), titled, error))
            elif stages and in_short:
                text.show_block(out, f"{args.model}: {views.headline(stages)}", apart=False)
                for number, stage in enumerate(stages, 1):
                    title, blocks = f"{number}  {views.title(stage)}", views.on_one_screen(stage)
                    text.show_section(out, title, blocks, first=number == 1, apart=False)
                text.show_block(out, MORE, apart=False)

    try:
        with interrupts.held():
            for number, stage in enumerate(interrupts.interruptible(walked), 1):
                stages.append(stage)
                if args.format == "text" and not in_short:
                    with command.reader_may_leave():
                        title, blocks = f"{number}  {views.title(stage)}", blocks_of(args, stage)
                        if blocks:
                            text.show_section(out, title, blocks, first=number == 1)
                        else:
                            text.show_in_passing(out, f"{title} ({views.facts(stage)[0].text}).")
            rest(None)
    except (TflabError, KeyboardInterrupt) as failure:
        with interrupts.held():
            if not isinstance(failure, UsageError):
                rest(str(failure) or "interrupted")
        raise


def blocks_of(args: argparse.Namespace, stage: Stage) -> list[Block] | None:
    """Return the blocks of a stage: all of them, those of the one screen, or only its summary."""
    from tflab.views import stages as views

    if args.full or args.stage == views.name(stage):
        every = views.blocks(stage)
        return [in_full(block) if args.full else offered(block, "--full") for block in every]
    return views.on_one_screen(stage) if args.stage == "all" else None


if __name__ == "__main__":
    sys.exit(main())
