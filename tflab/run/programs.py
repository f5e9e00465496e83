"""Programs: what a script needs, found in its code, which is read but not run.

A name counts as one of TensorFlow if the script has it from `import tensorflow`, under any name, or
from `from tensorflow import ...`.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflab.errors import UsageError
from tflab.run import v1

PACKAGE = "tensorflow"
MOST_FILES = 50  # files of the program that are read
ONLY_V1 = frozenset(  # paths in `tensorflow`, and below them, that version 2 does not have
    (
        *("placeholder", "Session", "InteractiveSession", "app", "flags", "contrib"),
        *("examples", "layers", "models", "get_variable", "variable_scope"),
        *("global_variables_initializer", "initialize_all_variables", "initialize_variables"),
        *("local_variables_initializer", "tables_initializer", "reset_default_graph"),
        *("get_default_graph", "get_collection", "add_to_collection", "GraphKeys"),
        *("ConfigProto", "GPUOptions", "RunOptions", "placeholder_with_default"),
        *("trainable_variables", "global_variables", "all_variables", "set_random_seed"),
        *("random_normal", "random_uniform", "truncated_normal", "random_normal_initializer"),
        *("to_float", "to_int32", "to_int64", "assign", "assign_add", "assign_sub", "py_func"),
        *("python_io", "gfile", "logging", "estimator", "mul", "sub", "neg", "pack", "unpack"),
        *("select", "scalar_summary", "histogram_summary", "image_summary", "merge_summary"),
        *("merge_all_summaries", "op_scope", "variable_op_scope", "nn.rnn_cell"),
        *("nn.dynamic_rnn", "nn.bidirectional_dynamic_rnn", "nn.static_rnn", "nn.rnn"),
        *("nn.seq2seq", "nn.softmax_cross_entropy_with_logits_v2", "nn.xw_plus_b"),
        *("summary.FileWriter", "summary.merge_all", "summary.merge"),
        *("train.AdadeltaOptimizer", "train.AdagradOptimizer", "train.AdamOptimizer"),
        *("train.FtrlOptimizer", "train.GradientDescentOptimizer", "train.MomentumOptimizer"),
        *("train.RMSPropOptimizer", "train.Saver", "train.SummaryWriter", "train.Supervisor"),
        *("train.MonitoredSession", "train.MonitoredTrainingSession"),
        *("train.exponential_decay", "train.get_or_create_global_step"),
        *("train.import_meta_graph", "train.start_queue_runners"),
        *("train.string_input_producer", "train.write_graph", "losses.add_loss"),
        *("losses.get_total_loss", "losses.softmax_cross_entropy", "losses.mean_squared_error"),
        *("losses.sparse_softmax_cross_entropy", "metrics.accuracy"),
    )
)

KERAS_2 = ("compat.v1.layers.", "compat.v1.nn.rnn_cell.")  # they need Keras 2
# Constructs of Python 2, and replacements of the same length that Python 3 can read
TRANSLATIONS = (
    (re.compile(r"\b(print|exec)\b(?=[ \t]*[\"'`]|[ \t]+[^\s=(.,)\]}:#>])"), "_="),
    (re.compile(r"\bexcept\s+([^:#]+?)\s*,\s*(\w+)\s*:"), r"except (\1, \2):"),
    (re.compile(r"\braise\s+([\w.]+)\s*,"), r"_= \1,"),
    (re.compile(r"`([^`\n]*)`"), r"(\1)"),
    (re.compile(r"<>"), "!="),
    (re.compile(r"\b0(\d+)\b"), r"0o\1"),
    (re.compile(r"\b(0[xX][\da-fA-F]+|\d+)[lL]\b"), r"\1"),
    (re.compile(r"\b[uU][rR](?=[\"'])"), "r"),
    (re.compile(r"(\bdef\s+\w+\s*\(.*|\blambda\s*)\((\w+(?:\s*,\s*\w+)*)\)"), r"\1_"),
)

VERSIONS = ("__version__", "version.VERSION")
MAJORS = ("1", "1.", "2", "2.", "2.0", "2.0.0")


@dataclass(frozen=True)
class UsedName:
    """A name of TensorFlow, and where the program uses it."""

    path: str  # "nn.rnn_cell.GRUCell"
    file: Path
    line: int

    def __str__(self) -> str:
        return f"tf.{self.path} ({self.file.name}:{self.line})"


def find_file(*program: str) -> Path | None:
    """The file that Python would run: the file `SCRIPT`, or for `-m` the module if it is in this
    folder. Raises UsageError if there is none."""
    if program[0] == "-":
        return None
    if program[0] == "-m":
        path = program[1].replace(".", "/")
        modules = (Path(f"{path}.py"), Path(path, "__main__.py"))
        return next((module for module in modules if module.is_file()), None)
    script = Path(program[0])
    if not os.path.lexists(script):
        raise UsageError(f"There is no script '{script}'; {nearest(script)}")
    if script.is_dir():
        if not (script / "__main__.py").exists():
            raise UsageError(f"'{script}' is a folder without a __main__.py; give a Python file.")
        return script / "__main__.py"
    if script.suffix == ".ipynb":
        raise UsageError(
            f"'{script}' is a notebook; convert it to a Python file: jupyter nbconvert --to script."
        )
    return script


def nearest(script: Path) -> str:
    """A suggestion for a script that does not exist."""
    if script.parent.is_dir():
        files = {file.stem: file for file in sorted(script.parent.glob("*.py"))}
        for stem in difflib.get_close_matches(script.stem, files, n=1):
            return f"did you mean '{files[stem]}'?"
    return f"give the name of a Python file, as seen from {Path.cwd()}."


def check_python(script: Path) -> None:
    """Raise UsageError if Python 3 cannot read a script because it is written in Python 2."""
    try:
        with tokenize.open(script) as file:
            source = file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return  # Python reports it better
    if line := python_2_line(source):
        code = source.splitlines()[line - 1].strip()
        raise UsageError(
            f"{script} is written in Python 2 (line {line}: {code}), and this is Python 3; "
            f"translate it first, for example with 2to3 or futurize."
        )


def version_1(script: Path) -> UsedName | None:
    """The first name that only TensorFlow 1 has, in a script or its own imports.

    In a file that also uses `tensorflow.compat.v1` or looks at the version, only packages count
    that no version has any more.
    """
    return next((use for use in uses(script) if is_version_1(use.path)), None)


def keras_2(script: Path) -> UsedName | None:
    """The first use of a part of `tensorflow.compat.v1` that Keras 3 does not have, in a script or
    its own imports."""
    return next((use for use in uses(script) if use.path.startswith(KERAS_2)), None)


def check_gone(script: Path) -> None:
    """Raise UsageError if a script of TensorFlow 1 uses a part that nothing replaces."""
    for use in uses(script):
        if use.file == script and (why := v1.reason(use.path)):
            raise UsageError(f"{script}, line {use.line}: {why}")


def is_version_1(path: str) -> bool:
    words = path.split(".")
    return any(".".join(words[:number]) in ONLY_V1 for number in range(1, len(words) + 1))


def uses(script: Path) -> Iterator[UsedName]:
    """The names of TensorFlow in a script and in the files of its folder that it imports."""
    waiting, seen = [script], {script}
    while waiting:
        file = waiting.pop(0)
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        names = Names(tree)
        yield from (UsedName(path, file, line) for path, line in names.used())
        for module in names.modules:
            found = [
                near
                for near in (script.parent, file.parent)
                for near in (near / f"{module}.py", near / module / "__init__.py")
                if near not in seen and near.is_file()
            ]
            if found and len(seen) < MOST_FILES:
                waiting.append(found[0])
                seen.add(found[0])


class Names:
    """What a file imports, and the names by which it uses TensorFlow."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.paths: dict[str, str] = {}  # a name in the file -> its path within tensorflow
        self.imported: list[tuple[str, int]] = []  # paths within tensorflow, and their lines
        self.modules: list[str] = []  # possibly its own modules, as paths of files
        self.knows_versions = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    self.take(name.name, name.asname, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                for name in node.names:
                    self.take_from(node, name)
            elif isinstance(node, ast.Assign) and chain(node.value).endswith("compat.v1"):
                self.knows_versions = True  # tf = tf.compat.v1
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                self.paths |= dict.fromkeys(names, "compat.v1")
        self.knows_versions |= any(map(self.asks_for_version, ast.walk(tree)))

    def asks_for_version(self, node: ast.AST) -> bool:
        """Whether an expression tells TensorFlow 1 from TensorFlow 2, such as
        `tf.__version__.startswith("1.")`; an assertion only refuses one of them."""
        if not isinstance(node, (ast.If, ast.IfExp, ast.Assign)):
            return False
        parts = list(ast.walk(node.value if isinstance(node, ast.Assign) else node.test))
        paths = (chain(part).partition(".") for part in parts)
        places = [part.slice for part in parts if isinstance(part, ast.Subscript)]
        return any(first in self.paths and rest in VERSIONS for first, _, rest in paths) and any(
            isinstance(part, ast.Constant) and str(part.value) in MAJORS and part not in places
            for part in parts
        )

    def take(self, module: str, name: str | None, line: int) -> None:
        package, _, path = module.partition(".")
        if package != PACKAGE:
            self.modules.append(module.replace(".", "/"))
            return
        self.note(path, line)
        if name:
            self.paths[name] = path
        else:
            self.paths[PACKAGE] = ""

    def take_from(self, node: ast.ImportFrom, name: ast.alias) -> None:
        module = node.module or ""
        package, _, path = module.partition(".")
        if package != PACKAGE or node.level:
            own = module.replace(".", "/")
            self.modules += [own, f"{own}/{name.name}".lstrip("/")]
            return
        whole = ".".join(filter(None, (path, name.name)))
        self.note(whole, node.lineno)
        self.paths[name.asname or name.name] = whole

    def note(self, path: str, line: int) -> None:
        if path.startswith("compat."):
            self.knows_versions = True
        elif path:
            self.imported.append((path, line))

    def used(self) -> Iterator[tuple[str, int]]:
        """Paths within `tensorflow` and their lines, in order."""
        found = list(self.imported)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                first, _, rest = chain(node).partition(".")
                path = ".".join(filter(None, (self.paths.get(first), rest)))
                explicit = path.startswith("compat.")
                if first in self.paths and rest and (explicit or not self.knows_versions):
                    found.append((path, node.lineno))
        yield from sorted(found, key=lambda use: (use[1], -len(use[0])))


def chain(node: ast.AST) -> str:
    """The dotted path of an expression, such as `tf.nn.relu`; empty for other expressions."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""


# Python 2: whether a script is written in it, judged by code that only Python 2 can read.
#
# If Python 3 cannot read a script, known constructs of Python 2 are translated at the position of
# the error. If Python 3 can read it then, the script is written in Python 2.


def python_2_line(source: str) -> int | None:
    """The first line that only Python 2 can read, if the script is written in Python 2; otherwise
    None."""
    error = error_in(source)
    first = error.lineno if error else None
    if isinstance(error, TabError):
        source = source.expandtabs()
        error = error_in(source)
    for _ in TRANSLATIONS:
        if error is None:
            return first
        lines = source.splitlines(keepends=True)
        line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
        for pattern, translation in TRANSLATIONS:
            if pattern.search(line):
                source = pattern.sub(translation, source)
        error = error_in(source)
    return first if error is None else None


def error_in(source: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError:  # a zero byte
        return None
    return None
