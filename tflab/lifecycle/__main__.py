"""Follow a graph through the four stages of its life: built, differentiated, placed, executed.

    python -m tflab.lifecycle --model lenet --stage backward

Without options, one screen shows the main results and all stages in short. --stage STAGE shows one
stage in detail, and stops after it; --full shows every stage until then, with every row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
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
        metavar="STAGE",
        help=f"stop after this stage, and show it in detail: {', '.join(STAGES)} (default: all)",
    )
    group.add_argument(
        "--full", action="store_true", help="show every stage up to STAGE, with every row of lists"
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


@dataclass(frozen=True)
class Choice:
    """What is shown and kept of a walk."""

    model: str
    stage: str  # the last one, shown in detail; or "all"
    full: bool
    format: str
    logdir: str | None

    @property
    def stop(self) -> str:
        return STAGES[-1] if self.stage == "all" else self.stage

    @property
    def in_short(self) -> bool:
        return self.stage == "all" and not self.full

    @property
    def kept(self) -> bool:
        """Return whether there is anything for TensorBoard."""
        return bool(self.logdir) or self.stop == STAGES[-1]


def run(args: argparse.Namespace, argv: Sequence[str] | None) -> int:
    arguments.check_cluster(args)
    choice = Choice(args.model, args.stage, args.full, args.format, args.logdir)
    if args.experiments and choice.stop != STAGES[-1]:
        raise UsageError(
            f"--experiments runs steps, but the stages up to {choice.stop} run none. Give --stage "
            f"{STAGES[-1]}, or omit --stage."
        )
    is_file, saved = models.is_file(args.model), arguments.saved_of(args)
    if confined.is_wanted(is_file, args.trust):
        folder = output_paths.choose_run_folder(args.logdir, args.model)
        places = {"--logdir": output_paths.place(folder, "logdir")} if choice.kept else {}
        return confined.run("lifecycle", argv, args, places)
    from tflab.runtime import dumps, tf_import

    dumps.prepare()
    models.find(args.model, saved)  # an error before a folder is created, or a task started
    options = Options(
        batch_size=args.batch_size,
        steps=args.steps,
        warmup=args.warmup,
        devices=args.devices,
        fetches=tuple(args.fetch),
        data_dir=args.data_dir,
        without=tuple(args.without),
        soft_placement=is_file,  # the devices were another machine's
        xla=args.xla,
        experiments=args.experiments or 0,
        values=args.values,
        saved=saved,
    )
    if not args.cluster:
        return run_on(choice, options)
    tf_import.load()
    from tflab.runtime import cluster

    with cluster.tasks(args.cluster) as addresses:
        return run_on(choice, replace(options, cluster=addresses))


def run_on(choice: Choice, options: Options) -> int:
    interrupted = cut_short = False
    left_out: list[str | None] = []
    stages: list[Stage] = []
    run_folder = output_paths.new_run(choice.logdir, choice.model) if choice.kept else nullcontext()
    phases = STAGES.index(choice.stop) + 1 + choice.kept  # the last one writes the files
    whole = terminal.phase(choice.model, phases, whole=True)
    with interrupts.held(), run_folder as place, whole:
        try:
            show(choice, walk(choice.model, options, choice.stop), stages)
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
            life = partial(stages_as_data.life_of, tuple(stages), choice.model)
            lack = environment.lack("TensorBoard's page Profile", "xprof")
            left_out = [*captured.left_out, lack, storage.keep(place.work, most, life)]
            # or by a signal during the writing, which is complete
            interrupted = captured.interrupted | interrupts.take()
    if place:
        is_text = choice.format == "text"
        stream = sys.stdout if is_text else sys.stderr
        with command.reader_may_leave():
            apart = "" if is_text and choice.in_short else "\n"
            line = output_paths.opening_line(place.final)
            terminal.say_command(f"{apart}Open it in TensorBoard:", line, stream)
            shown = choice.full or choice.stage == STAGES[2]
            if shown and (code := place.final / "code").exists():
                terminal.say_command("Complete generated code:", visible(str(code)), stream)
            for sentence in filter(None, left_out):
                terminal.say(visible(sentence), stream)
    ran = find_stage(stages, Execution)
    if ran and ran.failure:
        raise TflabError(ran.failure)
    if cut_short:  # there is a stage that was not reached
        raise KeyboardInterrupt
    return command.INTERRUPTED if interrupted or (ran and ran.interrupted) else 0


def show(choice: Choice, walked: Iterator[Stage], stages: list[Stage]) -> None:
    """Add the stages to a list, then print them, also after a failure, but not for a wrong
    argument: the result, which is known at the end, is printed first."""
    try:
        with interrupts.held():
            for stage in interrupts.interruptible(walked):
                stages.append(stage)
            show_stages(choice, stages, None)
    except (TflabError, KeyboardInterrupt) as failure:
        with interrupts.held():
            if stages and not isinstance(failure, UsageError):
                show_stages(choice, stages, str(failure) or "interrupted")
        raise


def show_stages(choice: Choice, stages: Sequence[Stage], error: str | None) -> None:
    from tflab.exporters import json, markdown, text
    from tflab.views import stages as views

    results = views.results(choice.model, stages) if choice.stage == "all" else []
    with command.reader_may_leave():
        if choice.format == "json":
            print(json.stages(choice.model, environment.describe(), stages, error))
        elif choice.format == "markdown":
            titled: dict[str, Sequence[Block]] = {"": results} if results else {}
            for stage in stages:
                summary = f"{views.facts(stage)[0].text}."
                titled[views.title(stage)] = blocks_of(choice, stage) or [summary]
            title = f"The stages of {choice.model}"
            print(markdown.page(title, environment.describe(), titled, error))
        else:
            out, first = text.console(), True
            for result in results:
                text.show_block(out, result, apart=False)
            for number, stage in enumerate(stages, 1):
                if blocks := blocks_of(choice, stage):
                    title = f"{number}  {views.title(stage)}"
                    text.show_section(out, title, blocks, first, apart=not choice.in_short)
                    first = False
            if choice.in_short:
                text.show_block(out, MORE, apart=False)


def blocks_of(choice: Choice, stage: Stage) -> list[Block] | None:
    """Return the blocks of a stage: all of them, those of the one screen, or only its summary."""
    from tflab.views import stages as views

    if choice.full or choice.stage == views.name(stage):
        said, every = "--full shows all", views.blocks(stage)
        return [in_full(block) if choice.full else offered(block, said) for block in every]
    return views.on_one_screen(stage) if choice.stage == "all" else None


if __name__ == "__main__":
    sys.exit(main())
