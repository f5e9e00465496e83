"""Mutants: small mistakes planted in the code, one at a time; how many do tests notice?

    python -m tools.mutants [analysis] [--sample N]

mutmut plants them (a `<` for a `<=`, an argument left out, another word), in functions and methods
without decorators. Each runs against the quick tests of its own package; those of exporters, also
against the slow ones that need no TensorFlow. A mutant that makes a test fail or hang is killed;
those that are left say what no test looks at.

Verdicts are kept in mutants/: what was interrupted goes on, and only functions that changed are
tried again, and survivors after a change of code or tests. A killed mutant stays killed: remove
mutants/ to start afresh. With all packages the scores go to tools/MUTANTS.md; with one they
are only printed. The differences of all survivors are in mutants/<package>/survivors.txt.

All mutants take hours. --sample N tries N of each package, chosen at random, and gives the score
with its interval. They are the same in each run with the same --seed. Those of a seed whose
survivors were mended say no more how good the tests are: take another one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tflab.errors import TflabError
from tflab.exporters import markdown, text
from tflab.records.blocks import Block, Column, Table
from tflab.units import plural

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "mutants"
PAGE = Path(__file__).with_name("MUTANTS.md")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
MEMORY = 4 * 2**30  # bytes of a process, because a mutant may loop and allocate endlessly


@dataclass(frozen=True)
class Package:
    """Patterns of files in the repository; patterns without a match are ignored."""

    promise: float  # percentage of its mutants that must be killed
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    apart: tuple[str, ...] = ()  # modules that need TensorFlow, or a browser
    left: tuple[str, ...] = ("tensorflow", "slow")  # marks of tests that try no mutant


REPORTED = ("*chapter*", "contents", "graph_states", "questions", "viewer_data")
OF_RUN = ("view", "summary", "page", "groups", "sampler")
PACKAGES = {
    "analysis": Package(90, ("tflab/analysis/*.py",), ("tests/analysis/test_*.py",)),
    "views": Package(
        80,
        (
            "tflab/views/*.py",
            "tflab/units.py",
            "tflab/records/blocks.py",
            *(f"tflab/{command}/view.py" for command in ("compare", "follow", "train")),
            "tflab/convert/conversion.py",
            "tflab/compare/findings.py",
            *(f"tflab/report/{name}.py" for name in REPORTED),
        ),
        (
            "tests/views/test_*.py",
            "tests/records/test_*.py",
            *(f"tests/{command}/test_*view.py" for command in ("compare", "train")),
            "tests/convert/test_conversion.py",
            "tests/compare/test_findings.py",
            "tests/compare/test_diagnosis.py",
            "tests/follow/test_*.py",
            *(f"tests/report/test_{name}.py" for name in REPORTED),
        ),
    ),
    "run": Package(
        80,
        tuple(f"tflab/run/{name}.py" for name in OF_RUN),
        ("tests/run/test_*.py",),
    ),
    "exporters": Package(
        80,
        ("tflab/exporters/*.py", "tflab/exporters/plots/*.py"),
        (
            "tests/exporters/test_*.py",
            "tests/exporters/plots/test_*.py",
            "tests/exporters/xspace/test_*.py",
            "tests/compare/test_view.py",
        ),
        apart=("tflab/exporters/tensorboard.py", "tflab/exporters/xspace.py"),
        left=("tensorflow",),  # those that look at what is drawn are slow
    ),
}
SAID = (
    "Small mistakes that mutmut plants in the code, one at a time, and how many of them the tests "
    "notice that need no TensorFlow. A score is the share that was killed of those that can be: "
    "tools/equivalent_mutants.toml lists survivors that change nothing, with the reason. A "
    "mutant that never ends is killed too. Those that survived are in mutants, in survivors.txt of "
    "each package."
)
PROMISED = Column("promised", lambda row: f"{PACKAGES[row.label].promise:.0f} %", True)

NAME = re.compile(r"(.+)\.x(?:_(\w+)|ǁ(\w+)ǁ(\w+))__mutmut_\d+")  # module, function or class.method
# Mutmut's words for mutants that ended by a signal or a test
KILLED = ("killed", "timeout", "segfault")
UNTESTED = "no tests"
UNDECIDED = ("not checked", "check was interrupted by user")

SHOW = """
import sys
from mutmut.__main__ import cli
for name in sys.argv[1:]:
    cli.main(["show", name], standalone_mode=False)
"""


@dataclass(frozen=True)
class Sample:
    number: int  # mutants of each package
    seed: int


@dataclass(frozen=True)
class Mutant:
    name: str
    status: str

    @property
    def module(self) -> str:
        return parts(self.name)[0]

    @property
    def where(self) -> str:
        """`fates.fates`, `statistics.Accumulator.add`: the same after a module moves."""
        module, function = parts(self.name)
        return f"{module.rpartition('.')[2]}.{function}"


@dataclass(frozen=True)
class Equivalent:
    """A change of a function that no test can notice."""

    where: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class Score:
    label: str
    mutants: int
    killed: int
    timeouts: int
    survived: int
    untested: int
    equivalent: int  # survivors that no test can notice

    @property
    def percent(self) -> float:
        """The percentage of the mutants that could be killed that were killed."""
        possible = self.mutants - self.equivalent
        return 100 * (self.killed + self.timeouts) / possible if possible else 100.0

    @property
    def interval(self) -> str:
        """`93.1 to 97.0 %`"""
        from scipy.stats import binomtest

        found = binomtest(self.killed + self.timeouts, self.mutants - self.equivalent)
        low, high = found.proportion_ci(method="wilson")
        return f"{100 * low:.1f} to {100 * high:.1f} %"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("package", nargs="?", choices=PACKAGES, help="default: all of them")
    parser.add_argument(
        "--children",
        type=int,
        default=os.cpu_count() or 2,
        metavar="N",
        help="mutants that are tried at the same time (default: one for each CPU)",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants of each package")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones (default: 0)")
    args = parser.parse_args(argv)
    names = [args.package] if args.package else list(PACKAGES)
    try:
        page = PAGE if args.package is None else None
        sample = None if args.sample is None else Sample(args.sample, args.seed)
        return measure(names, args.children, page, sample)
    except TflabError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1


def measure(names: Sequence[str], children: int, page: Path | None, sample: Sample | None) -> int:
    listed = equivalents(EQUIVALENT.read_text())
    packages = {name: verdicts(name, PACKAGES[name], children, sample) for name in names}
    shown = {
        name: differences(
            FOLDER / name, [m.name for m in mutants if m.status not in (*KILLED, UNTESTED)]
        )
        for name, mutants in packages.items()
    }
    everything = [mutant for mutants in packages.values() for mutant in mutants]
    diffs = {name: diff for own in shown.values() for name, diff in own.items()}
    excused, stale = matched(listed, everything, diffs, whole=len(packages) == len(PACKAGES))
    for package, own in shown.items():
        untested = (f"# {m.name}: {UNTESTED}\n" for m in packages[package] if m.status == UNTESTED)
        survivors = (diff for name, diff in own.items() if name not in excused)
        (FOLDER / package / "survivors.txt").write_text("".join((*survivors, *untested)))
    if sample is not None:
        stale = []  # the mutant of an entry may not be in the sample
    told = [*(tried(packages, excused, sample) if sample else blocks(packages, excused, stale))]
    out = text.console()
    for block in told:
        text.show_block(out, block)
    if page:
        page.write_text("\n\n".join(["# Mutants", *map(markdown.rendered, told)]) + "\n")
    kept = all(score(n, packages[n], excused).percent >= PACKAGES[n].promise for n in names)
    return 0 if kept and not stale else 1


def blocks(
    packages: Mapping[str, Sequence[Mutant]], excused: Iterable[str], stale: Sequence[Equivalent]
) -> list[Block]:
    """A table of the packages, a table of the modules of each, and errors in the list."""
    excused = set(excused)
    told: list[Block] = [f"{SAID} To repeat it: make mutants"]
    scores = tuple(score(name, mutants, excused) for name, mutants in packages.items())
    told.append(Table("Packages", (*columns("package"), PROMISED), scores))
    for name, mutants in packages.items():
        modules = sorted({mutant.module for mutant in mutants})
        by_module = tuple(
            score(module, [mutant for mutant in mutants if mutant.module == module], excused)
            for module in modules
        )
        told.append(Table(f"Modules of {name}", columns("module"), by_module))
    told += [
        f"In equivalent_mutants.toml, but no mutant that survived: {entry.where}, where "
        f"{entry.before!r} becomes {entry.after!r}."
        for entry in stale
    ]
    return told


def tried(
    packages: Mapping[str, Sequence[Mutant]], excused: Iterable[str], sample: Sample
) -> Iterator[Block]:
    """The scores of packages of which a sample was tried."""
    yield (
        f"{SAID} This is a random sample of the mutants of each package, with the 95 % interval of "
        f"Wilson. To repeat it: python -m tools.mutants --sample {sample.number} "
        f"--seed {sample.seed}"
    )
    scores = tuple(score(name, mutants, excused) for name, mutants in packages.items())
    interval = Column("interval", lambda row: row.interval, True)
    yield Table("Packages", (*columns("package"), interval, PROMISED), scores)


def columns(label: str) -> tuple[Column, ...]:
    return (
        Column(label, lambda row: row.label),
        Column("mutants", lambda row: f"{row.mutants:,}", True),
        Column("killed", lambda row: f"{row.killed:,}", True),
        Column("timeouts", lambda row: f"{row.timeouts:,}", True),
        Column("survived", lambda row: f"{row.survived:,}", True),
        Column("no tests", lambda row: f"{row.untested:,}", True),
        Column("equivalent", lambda row: f"{row.equivalent:,}", True),
        Column("score", lambda row: f"{row.percent:.1f} %", True),
    )


def score(label: str, mutants: Sequence[Mutant], excused: Iterable[str]) -> Score:
    """Survivors are all mutants that are not killed, endless or without a test, whatever mutmut's
    verdict."""
    excused = set(excused)
    statuses = [mutant.status for mutant in mutants]
    killed = statuses.count("killed")
    timeouts = sum(status in KILLED for status in statuses) - killed
    untested = statuses.count(UNTESTED)
    survived = len(mutants) - killed - timeouts - untested
    equivalent = sum(mutant.name in excused for mutant in mutants)
    return Score(label, len(mutants), killed, timeouts, survived, untested, equivalent)


def parts(name: str) -> tuple[str, str]:
    """The module and the function of a mutant, from mutmut's name for it."""
    match = NAME.fullmatch(name)
    if match is None:
        raise TflabError(f"mutmut named a mutant {name!r}, which is not how it names them")
    module, function, owner, method = match.groups()
    return module, function or f"{owner}.{method}"


def equivalents(source: str) -> list[Equivalent]:
    return [Equivalent(**entry) for entry in tomllib.loads(source).get("equivalent", [])]


def matched(
    listed: Sequence[Equivalent],
    mutants: Sequence[Mutant],
    diffs: Mapping[str, str],
    whole: bool,
) -> tuple[set[str], list[Equivalent]]:
    """The names of the survivors that are listed, and the entries that match none.

    Unless all packages were tried (`whole`), an entry for an untried function may have its survivor
    in another package, because modules of two packages may share a name.
    """
    survivors = {
        (mutant.where, *changed(diffs[mutant.name])): mutant.name
        for mutant in mutants
        if mutant.name in diffs
    }
    keys = {(entry.where, entry.before, entry.after): entry for entry in listed}
    excused = {
        mutant.name
        for mutant in mutants
        if mutant.name in diffs and (mutant.where, *changed(diffs[mutant.name])) in keys
    }
    tried = {mutant.where for mutant in mutants}
    stale = [
        entry
        for key, entry in keys.items()
        if key not in survivors and (whole or entry.where in tried)
    ]
    return excused, stale


def changed(diff: str) -> tuple[str, str]:
    """The lines before and after, without indentation; several are joined by spaces."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    before, after = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return before, after


def verdicts(name: str, package: Package, children: int, sample: Sample | None) -> list[Mutant]:
    """Let mutmut try mutants without a verdict, and after a change also earlier survivors."""
    folder = FOLDER / name
    prepare(folder, package)
    if sample is not None:
        return sampled(folder, children, sample)
    seen = folder / "seen"
    state = fingerprint()
    again = seen.is_file() and seen.read_text() != state
    if again or not seen.is_file():
        learn_callers(folder)
    if not again:
        seen.write_text(state)
    run = ("run", "--max-children", str(children))
    mutmut(folder, *run)
    if again:
        survivors = [mutant.name for mutant in results(folder) if mutant.status not in KILLED]
        if survivors:
            mutmut(folder, *run, *survivors)
        seen.write_text(state)
    found = results(folder)
    undecided = [mutant for mutant in found if mutant.status in UNDECIDED]
    if undecided or not found:
        raise TflabError(
            f"{plural(len(undecided), 'mutant')} of {len(found):,} in {name} without a verdict; "
            "the same command goes on with them"
        )
    return found


def learn_callers(folder: Path) -> None:
    """Make the mutants, and learn which functions each test calls, which may have changed."""
    file = folder / "mutants" / "mutmut-stats.json"
    file.unlink(missing_ok=True)
    with contextlib.suppress(TflabError):  # mutmut finds no mutant of this name
        mutmut(folder, "run", "none")
    if not file.is_file():
        raise TflabError(f"the tests of {folder.name} do not pass as they are")
    stats = json.loads(file.read_text())
    callers, tests = stats["tests_by_mangled_function_name"], stats["duration_by_test"]
    file.write_text(
        json.dumps(stats | {"tests_by_mangled_function_name": with_files(callers, tests)})
    )


def with_files(callers: Mapping[str, Iterable[str]], tests: Iterable[str]) -> dict[str, list[str]]:
    """For each function, all tests of the files with a test that calls it: what a fixture of a file
    calls counts as a call by the first test, and the others look at the result."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    return {
        function: [
            test
            for file in sorted({name.partition("::")[0] for name in names})
            for test in files.get(file, ())
        ]
        for function, names in callers.items()
    }


def sampled(folder: Path, children: int, sample: Sample) -> list[Mutant]:
    """The verdicts of some mutants, which are the same in each run on the same code."""
    learn_callers(folder)
    names = sorted(mutant.name for mutant in results(folder))
    chosen = random.Random(sample.seed).sample(names, min(sample.number, len(names)))
    mutmut(folder, "run", "--max-children", str(children), *chosen)
    return [mutant for mutant in results(folder) if mutant.name in set(chosen)]


def prepare(folder: Path, package: Package) -> None:
    """A folder in which mutmut sees the project, with the settings of this package.

    mutmut reads its settings from one pyproject.toml, and writes to a folder next to it.
    """
    whole = re.compile(rf"^pytestmark = .*pytest\.mark\.({'|'.join(package.left)})", re.M)
    tests = [name for name in files(package.tests) if not whole.search((ROOT / name).read_text())]
    modules = [name for name in files(package.modules) if name not in files(package.apart)]
    if not modules or not tests:
        raise TflabError(
            f"a package without modules or tests: {', '.join(package.modules + package.tests)}"
        )
    settings = {
        "source_paths": ["tflab"],
        "only_mutate": modules,
        "also_copy": ["README.md", "docs", "examples"],
        "pytest_add_cli_args": [
            "-m",
            f"not ({' or '.join(package.left)})",
            "-p",
            "no:cacheprovider",
        ],
        "pytest_add_cli_args_test_selection": tests,
        "timeout_multiplier": 5.0,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    project = "\n".join([(ROOT / "pyproject.toml").read_text(), "[tool.mutmut]", *lines, ""])
    file = folder / "pyproject.toml"
    if file.is_file() and file.read_text() != project:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tflab", "tests", *settings["also_copy"]):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..", "..", name))
    file.write_text(project)
    # mutmut does not remove copies of deleted files.
    copies = folder / "mutants"
    for copy in [*copies.glob("tflab/**/*.py"), *copies.glob("tests/**/*.py")]:
        if not (ROOT / copy.relative_to(copies)).is_file():
            copy.unlink()


def files(patterns: Iterable[str]) -> list[str]:
    """Paths from the repository's root."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def fingerprint() -> str:
    """A hash of all code and tests: if it is unchanged, survivors would survive again."""
    content = hashlib.sha256()
    for name in files(("tflab/**/*.py", "tests/**/*.py")):
        content.update(f"{name}\n".encode() + (ROOT / name).read_bytes())
    return content.hexdigest()


def results(folder: Path) -> list[Mutant]:
    pairs = [line.strip().rpartition(": ") for line in mutmut(folder, "results", "--all", "true")]
    return [Mutant(name, status) for name, _, status in pairs if name]


def differences(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """mutmut's difference for each mutant, with its name and verdict as heading."""
    if not names:
        return {}
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *names], cwd=folder, capture_output=True, text=True, check=True
    )
    shown = re.split(r"^(?=# \S+: )", done.stdout, flags=re.M)[1:]
    return dict(zip(names, shown, strict=True))


def mutmut(folder: Path, *arguments: str) -> list[str]:
    """The lines that mutmut prints; those of a run are shown immediately."""
    run = arguments[0] == "run"
    done = subprocess.run(
        [Path(sys.executable).with_name("mutmut"), *arguments],
        cwd=folder,
        stdout=None if run else subprocess.PIPE,
        text=True,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    if done.returncode:
        raise TflabError(f"mutmut {arguments[0]} in {folder.name} ended with {done.returncode}")
    return [] if run else done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
