"""What the backward stage prints about programs at random, evaluated once more.

    python -m tools.fuzz.formulas [--programs 500] [--seed N]

Each program is of 5 to 40 ops (`tests/random_programs.py`). Prints how many programs were made,
how many formulas and sentences were checked, and each that is not true, with its program.
"""

from __future__ import annotations

import argparse
import os
import sys

from hypothesis import HealthCheck, Phase, given, seed, settings

from tools.fuzz import random_programs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.formulas", description=__doc__)
    parser.add_argument("--programs", type=int, default=500, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = parser.parse_args()
    counts = []
    false = []

    @seed(args.seed)
    @settings(
        max_examples=args.programs,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(random_programs.PROGRAMS)
    def tried(program: tuple) -> None:
        program = random_programs.sounded(program)
        checked, wrong = random_programs.false_statements(program)
        counts.append(checked)
        if wrong:
            false.append(program)
            print(f"{program}:", *wrong, sep="\n    ", flush=True)

    tried()
    print(
        f"{len(counts):,} programs, {sum(counts):,} formulas and sentences checked, "
        f"{len(false):,} programs with a false one (seed {args.seed})."
    )
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
