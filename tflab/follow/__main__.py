"""Follow one node through every stage: from the line that made it to the time that it took.

    python -m tflab.follow conv1/Conv2D --model lenet

If the node was fused into another one, that node's device, kernel and times are shown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from tflab import models
from tflab.cli import arguments, command, confined, interrupts, terminal
from tflab.errors import UsageError
from tflab.records.options import BATCH_SIZES, Options
from tflab.records.stages import NodeHistory, Placement, Stage, find_stage
from tflab.runtime import dumps


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv), argv))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("follow", __doc__)
    add = parser.add_argument
    add("node", metavar="NODE", help="the name of a node, such as conv1/Conv2D")
    arguments.model(parser, models.MODELS)
    add(
        "--run",
        metavar="FILE",
        help="a watched program instead of a model: the file that `python -m tflab.run --save` "
        "wrote, or its logdir; nothing runs",
    )
    arguments.add(parser, "--data-dir")
    arguments.saved(parser)
    return parser


def run(args: argparse.Namespace, argv: Sequence[str] | None) -> int:
    if args.run:
        return run_recorded(args)
    if confined.is_wanted(models.is_file(args.model), args.trust):
        return confined.run("follow", argv, args, {})
    options = Options(
        soft_placement=models.is_file(args.model),  # the devices were another machine's
        data_dir=args.data_dir,
        saved=arguments.saved_of(args),
        first_run=False,
    )
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, options.saved)
    from tflab import lifecycle
    from tflab.follow import measurement, node_history
    from tflab.lifecycle import execution

    whose = f"{args.model} (for another graph: --model)"
    stages: list[Stage] = []
    histories, interrupted = node_history.Histories(), True
    with terminal.phase(args.model), interrupts.held():
        try:
            with interrupts.released():
                stages.extend(lifecycle.walk(args.model, options, stop="placement"))
                # A name that does not exist is refused before any step runs.
                node_history.find(args.node, node_history.histories(stages), whose)
                placed = find_stage(stages, Placement)
                assert placed  # and a graph may have a batch size of its own
                options = replace(options, batch_size=placed.batch_size)
                ran = execution.execute(placed, options)
                stages.append(ran)
                if not ran.interrupted:
                    histories, interrupted = measurement.follow(stages, BATCH_SIZES, options)
        except KeyboardInterrupt:
            if not stages:
                raise
        history = node_history.find(args.node, histories or node_history.histories(stages), whose)
        show(history, stages)
    return command.INTERRUPTED if interrupted else 0


def run_recorded(args: argparse.Namespace) -> int:
    """Follow a node of a program that was watched."""
    from tflab.follow import node_history, recorded
    from tflab.records import watched

    seen = watched.read(args.run)
    graph = seen.graph
    if graph is None:
        why = " ".join(seen.notes) or "The program ran no graph, or ended too early."
        raise UsageError(f"'{args.run}' keeps no graph. {why}")
    stages = recorded.stages(graph)
    histories = recorded.histories(graph, stages, seen.values)
    history = node_history.find(args.node, histories, f"the graph in '{args.run}'")
    show(history, stages, recorded.time(graph, history))
    return 0


def show(history: NodeHistory, stages: Sequence[Stage], recorded: str = "") -> None:
    """Print a history, with what differs from other nodes, and a `recorded` time."""
    from tflab.exporters import text
    from tflab.follow import node_history, view

    if placed := find_stage(stages, Placement):
        unlike = tuple(node_history.unlike_peers(placed, history.name))
        history = replace(history, unlike=unlike)
    text.show_blocks(view.blocks(history, recorded))


if __name__ == "__main__":
    sys.exit(main())
