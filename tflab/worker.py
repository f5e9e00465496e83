"""A task of a cluster: it runs the part of a graph that a command with --cluster gives it.

    python -m tflab.worker 127.0.0.1:2222
    python -m tflab.lifecycle --cluster 127.0.0.1:2222,127.0.0.1:2223

It runs until Ctrl-C. Without a host, and with 127.0.0.1 or localhost, only this machine can reach
it. Connections are neither encrypted nor authenticated: anyone who reaches the port can run any
code as you. Use another address only in a network where you trust everyone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence

from tflab.cli import arguments, command, environment, terminal
from tflab.runtime import tf_import

WATCHED = "--watched"  # by the process that started this one: it ends with standard input


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("worker", __doc__)
    parser.add_argument(
        "address",
        type=arguments.address_to_listen_at,
        metavar="HOST:PORT",
        help="address to listen on, or a port alone: then only this machine can connect; port 0 "
        "picks a free port",
    )
    parser.add_argument(WATCHED, action="store_true", help=argparse.SUPPRESS)
    return parser


def run(args: argparse.Namespace) -> int:
    if args.watched:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who watches
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    tf_import.load()
    from tflab.runtime import cluster

    address, local = cluster.start(args.address)
    if args.watched:
        print(address, flush=True)
        sys.stdin.buffer.read()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)  # a server cannot be stopped, also in a step
    reach = "this machine only" if local else "every address of this machine"
    terminal.say(
        f"This task of TensorFlow {environment.version('tensorflow')} listens at {address} and is "
        f"open to {reach}."
    )
    terminal.say(f"Its connections are {cluster.OPEN}. Ctrl-C ends the task.")
    sys.stdout.flush()
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print("\ntflab: the task has ended.", file=sys.stderr)
        return command.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
