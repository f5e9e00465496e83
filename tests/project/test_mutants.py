"""Mutants: scores and the list of equivalent ones, from a few verdicts by hand."""

import ast

import pytest

from benchmarks import mutants
from benchmarks.mutants import Equivalent, Mutant, Package, Score
from tflab.errors import TflabError
from tflab.records.blocks import Table

DIFF = """\
# tflab.analysis.ledger.x_fates__mutmut_3: survived
--- tflab/analysis/ledger.py
+++ tflab/analysis/ledger.py
@@ -7,3 +7,3 @@
     \"\"\"One Fate for each node.\"\"\"
-    gone, folded = events(passes)
+    gone, folded = events(None)
     return gone

"""
FATES = "tflab.analysis.ledger.x_fates__mutmut_3"
ADD = "tflab.analysis.op_stats.xǁOpStatsǁ_fold__mutmut_12"
FATES_ENTRY = Equivalent(
    "ledger.fates", "gone, folded = events(passes)", "gone, folded = events(None)", "a reason"
)


def diff(before: str, after: str) -> str:
    return f"# name: survived\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-    {before}\n+    {after}\n"


def test_a_mutant_tells_its_module_and_its_function():
    assert [(m.module, m.where) for m in (Mutant(FATES, ""), Mutant(ADD, ""))] == [
        ("tflab.analysis.ledger", "ledger.fates"),
        ("tflab.analysis.op_stats", "op_stats.OpStats._fold"),
    ]


def test_a_package_whose_name_begins_with_an_x_is_not_taken_for_a_function():
    assert mutants.parts("tflab.xla.x_x_code__mutmut_1") == ("tflab.xla", "x_code")


def test_a_name_that_mutmut_would_not_give_is_refused():
    with pytest.raises(TflabError, match="which is not how it names them"):
        mutants.parts("tflab.ledger.fates")


def test_a_score_counts_every_verdict_and_leaves_out_what_is_equivalent():
    statuses = ("killed", "killed", "timeout", "segfault", "survived", "suspicious", "no tests")
    verdicts = [Mutant(f"m{number}", status) for number, status in enumerate(statuses)]
    found = mutants.score("package", verdicts, {"m4", "m5", "another"})
    assert found == Score(
        "package", mutants=7, killed=2, timeouts=2, survived=2, untested=1, equivalent=2
    )
    assert found.percent == 80


def test_a_package_of_nothing_but_equivalents_has_all_of_them():
    assert mutants.score("package", [Mutant("m", "survived")], {"m"}).percent == 100


def test_a_change_is_told_by_its_lines_without_their_indentation():
    assert mutants.changed(DIFF) == (FATES_ENTRY.before, FATES_ENTRY.after)
    assert mutants.changed("-    a(\n-        1,\n+    a(\n c\n") == ("a( 1,", "a(")


def test_survivors_that_are_listed_are_excused_and_entries_without_one_are_told():
    verdicts = [
        Mutant(FATES, "survived"),
        Mutant("tflab.analysis.ledger.x_heir__mutmut_1", "killed"),
        Mutant("tflab.analysis.ledger.x_heir__mutmut_2", "survived"),
    ]
    diffs = {FATES: DIFF, verdicts[2].name: diff("a = 1", "a = 2")}
    killed = Equivalent("ledger.heir", "a = 0", "a = 1", "was killed since")
    elsewhere = Equivalent("ledger.fates", "a = 1", "a = 2", "of another function")
    untried = Equivalent("ledger.render", "a = 1", "a = 2", "of another package's module ledger")
    listed = [FATES_ENTRY, killed, elsewhere, untried]
    stale = [killed, elsewhere]
    assert mutants.matched(listed, verdicts, diffs, whole=False) == ({FATES}, stale)
    assert mutants.matched(listed, verdicts, diffs, whole=True) == ({FATES}, [*stale, untried])


def test_equal_changes_of_one_function_share_an_entry():
    twins = [Mutant(f"tflab.a.x_b__mutmut_{number}", "survived") for number in (1, 2)]
    diffs = {mutant.name: diff("a = 1", "a = 2") for mutant in twins}
    entry = Equivalent("a.b", "a = 1", "a = 2", "a reason")
    assert mutants.matched([entry], twins, diffs, whole=True) == (set(diffs), [])


def test_the_list_is_read_entry_by_entry_and_the_one_of_the_project_is_complete():
    source = '[[equivalent]]\nwhere = "a.b"\nbefore = "c"\nafter = "d"\nwhy = "e"\n'
    assert mutants.equivalents(source) == [Equivalent("a.b", "c", "d", "e")]
    assert mutants.equivalents("# none\n") == []
    listed = mutants.equivalents(mutants.EQUIVALENT.read_text())
    assert all(entry.before != entry.after and entry.why for entry in listed)
    assert len({(entry.where, entry.before, entry.after) for entry in listed}) == len(listed)


def functions(source: str, name: str) -> dict[str, str]:
    """By how a list of mutants calls it, each function's lines without their indentation."""

    def within(node: ast.AST, called: str):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                of_inner = lines[inner.lineno - 1 : inner.end_lineno]
                yield f"{called}.{inner.name}", " ".join(map(str.strip, of_inner))
                yield from within(inner, f"{called}.{inner.name}")

    lines = source.splitlines()
    return dict(within(ast.parse(source), name))


def test_every_entry_names_a_function_that_is_there_and_a_line_of_it():
    known: dict[str, list[str]] = {}
    for package in mutants.PACKAGES.values():
        for pattern in package.modules:
            for path in mutants.ROOT.glob(pattern):
                name = path.parent.name if path.stem == "__init__" else path.stem
                for where, content in functions(path.read_text("utf-8"), name).items():
                    known.setdefault(where, []).append(content)
    moved = [
        (entry.where, entry.before)
        for entry in mutants.equivalents(mutants.EQUIVALENT.read_text("utf-8"))
        if not any(entry.before in content for content in known.get(entry.where, ()))
    ]
    assert moved == []


def test_the_page_has_a_table_of_packages_and_one_of_the_modules_of_each(monkeypatch):
    monkeypatch.setattr(mutants, "PACKAGES", {"analysis": Package(90, (), ())})
    verdicts = [
        Mutant(ADD, "killed"),
        Mutant(FATES, "survived"),
        Mutant("tflab.analysis.ledger.x_heir__mutmut_1", "timeout"),
        Mutant("tflab.analysis.ledger.x_heir__mutmut_2", "no tests"),
    ]
    told = mutants.blocks({"analysis": verdicts}, {FATES}, [FATES_ENTRY])
    tables = {block.title: block for block in told if isinstance(block, Table)}
    assert {title: list(table.cells()) for title, table in tables.items()} == {
        "Packages": [("analysis", "4", "1", "1", "1", "1", "1", "66.7 %", "90 %")],
        "Modules of analysis": [
            ("tflab.analysis.ledger", "3", "0", "1", "1", "1", "1", "50.0 %"),
            ("tflab.analysis.op_stats", "1", "1", "0", "0", "0", "0", "100.0 %"),
        ],
    }
    assert [column.header for column in tables["Packages"].columns] == [
        *("package", "mutants", "killed", "timeouts", "survived", "no tests"),
        *("equivalent", "score", "promised"),
    ]
    assert told[-1] == (
        "In equivalent_mutants.toml, but no mutant that survived: ledger.fates, where "
        "'gone, folded = events(passes)' becomes 'gone, folded = events(None)'."
    )


@pytest.mark.slow
def test_a_sample_has_one_table_with_the_interval_of_each_score(monkeypatch):
    monkeypatch.setattr(mutants, "PACKAGES", {"analysis": Package(90, (), ())})
    verdicts = [Mutant(ADD, "killed"), Mutant(FATES, "survived"), Mutant("m", "killed")]
    sentence, table = mutants.tried({"analysis": verdicts}, set(), mutants.Sample(3, 7))
    assert sentence.endswith(" To repeat it: python -m benchmarks.mutants --sample 3 --seed 7")
    row = ("analysis", "3", "2", "0", "1", "0", "0", "66.7 %", "20.8 to 93.9 %", "90 %")
    assert list(table.cells()) == [row]


def test_a_function_that_a_fixture_calls_is_tested_by_all_tests_of_that_file():
    tests = ["a.py::first", "a.py::second[1]", "b.py::third", "c.py::fourth"]
    callers = {"f": ["b.py::third", "a.py::first"], "g": ["c.py::fourth"], "h": []}
    assert mutants.with_files(callers, tests) == {"f": tests[:3], "g": tests[3:], "h": []}


def test_every_package_has_modules_and_quick_tests(tmp_path):
    for name, package in mutants.PACKAGES.items():
        mutants.prepare(tmp_path / "mutants" / name, package)
        settings = mutants.tomllib.loads(
            (tmp_path / "mutants" / name / "pyproject.toml").read_text()
        )
        own = settings["tool"]["mutmut"]
        assert set(own["only_mutate"]) == set(mutants.files(package.modules)) - set(package.apart)
        assert own["pytest_add_cli_args_test_selection"]


def test_a_package_without_modules_is_refused(tmp_path):
    with pytest.raises(TflabError, match=r"tflab/nowhere/\*\.py"):
        mutants.prepare(
            tmp_path / "package", Package(90, ("tflab/nowhere/*.py",), ("tests/test_*.py",))
        )


def test_new_settings_start_a_package_afresh_and_the_same_do_not(tmp_path):
    folder = tmp_path / "package"
    package = mutants.PACKAGES["analysis"]
    mutants.prepare(folder, package)
    (folder / "seen").write_text("before")
    mutants.prepare(folder, package)
    assert (folder / "seen").is_file()
    mutants.prepare(folder, Package(90, ("tflab/errors.py",), package.tests))
    assert not (folder / "seen").exists()


def test_a_copy_of_a_module_that_is_gone_goes_too(tmp_path):
    copies = tmp_path / "package" / "mutants" / "tflab"
    copies.mkdir(parents=True)
    (copies / "gone_long_ago.py").touch()
    (copies / "errors.py").touch()
    mutants.prepare(tmp_path / "package", mutants.PACKAGES["analysis"])
    assert [file.name for file in copies.iterdir()] == ["errors.py"]
