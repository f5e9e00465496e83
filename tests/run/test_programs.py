"""What a script needs is told by its code, which is read and not run."""

from pathlib import Path

import pytest

from tflab.errors import UsageError
from tflab.run import programs, v1


def use(tmp_path, source, **others):
    for name, text in others.items():
        (tmp_path / f"{name}.py").write_text(text)
    script = tmp_path / "script.py"
    script.write_text(source)
    found = programs.version_1(script)
    return found and (found.path, found.file.name, found.line)


@pytest.mark.parametrize(
    ("source", "path", "line"),
    [
        ("import tensorflow as tf\n\nx = tf.placeholder(tf.float32)", "placeholder", 3),
        ("import tensorflow as t; t.train.AdamOptimizer()", "train.AdamOptimizer", 1),
        ("import tensorflow\ntensorflow.Session()", "Session", 2),
        ("from tensorflow import Session", "Session", 1),
        ("from tensorflow import nn\nnn.rnn_cell.GRUCell(3)", "nn.rnn_cell.GRUCell", 2),
        ("import tensorflow.contrib.slim as slim", "contrib.slim", 1),
        ("from tensorflow.contrib import rnn\nrnn.GRUCell(3)", "contrib.rnn", 1),
        (
            "from tensorflow.examples.tutorials.mnist import input_data",
            "examples.tutorials.mnist.input_data",
            1,
        ),
        (  # of a program that knows its version, what no version has any more
            "import tensorflow.compat.v1 as tf\ntf.placeholder\n"
            "from tensorflow.examples.tutorials.mnist import input_data",
            "examples.tutorials.mnist.input_data",
            3,
        ),
    ],
)
def test_a_name_that_only_version_1_has_is_found(source, path, line, tmp_path):
    assert use(tmp_path, source) == (path, "script.py", line)


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf\ntf.keras.Model; tf.nn.relu; tf.function",
        "import tensorflow as tf\ntf.compat.v1.placeholder",
        "import tensorflow.compat.v1 as tf\ntf.placeholder",
        "import tensorflow as tf\ntf = tf.compat.v1\ntf.placeholder",
        "from tensorflow.compat import v1 as tf\ntf.placeholder",
        "import tensorflow as tf\nimport tensorflow.compat.v1 as v1\ntf.placeholder",
        "import other as tf\ntf.placeholder",
        "import tensorflow as tf\nplaceholder(tf)",
        "import tensorflow as tf\ntf.placeholder(",  # Python says what is wrong
        'import tensorflow as tf\nif tf.__version__.startswith("1."):\n    tf.Session()',
        'import tensorflow as tf\nif int(tf.__version__.split(".")[0]) < 2:\n    tf.Session()',
        'import tensorflow as tf\nold = tf.__version__[0] == "1"\nif old: tf.Session()',
        "import tensorflow as tf\ntf.Session() if tf.version.VERSION < '2' else None",
    ],
)
def test_other_programs_run_as_they_are(source, tmp_path):
    assert use(tmp_path, source) is None


@pytest.mark.parametrize(
    "line",
    [
        "print(tf.__version__)",
        'assert tf.__version__.startswith("1.")',
        'if LooseVersion(tf.__version__) < LooseVersion("1.4"): raise ImportError',
        'if int(tf.__version__.split(".")[1]) < 4: raise ImportError',
    ],
)
def test_a_program_of_version_1_may_look_at_its_version(line, tmp_path):
    source = f"import tensorflow as tf\n{line}\ntf.Session()"
    assert use(tmp_path, source) == ("Session", "script.py", 3)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 3)", 2),
        ("from tensorflow.compat import v1\nv1.nn.rnn_cell.GRUCell(3)", 2),
        ("import tensorflow as tf\n\ntf.compat.v1.layers.flatten(x)", 3),
        ("import tensorflow as tf\ntf = tf.compat.v1\ntf.layers.dense(x, 3)", 3),
        ("import tensorflow.compat.v1 as tf\ntf.nn.relu(tf.keras.layers.Dense(3)(x))", None),
        ("import other as tf\ntf.layers.dense(x, 3)", None),
    ],
)
def test_what_only_keras_2_has_is_found(source, line, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(source)
    found = programs.keras_2(script)
    assert (found and found.line) == line


def test_the_files_that_a_script_imports_are_read_too(tmp_path):
    model = "import tensorflow as tf\nimport script\ndef f():\n    return tf.get_variable('w')"
    assert use(tmp_path, "import loop", loop="import model", model=model) == (
        *("get_variable", "model.py"),
        4,
    )


def test_a_file_that_two_files_import_is_read_once(tmp_path):
    files = {
        "script": "import first, package.fourth\nfrom second import x\nfrom package.third import y",
        "first": "import second",
        "second": "import tensorflow as tf\ntf.Session()",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "third.py").write_text("import tensorflow as tf; tf.placeholder")
    (tmp_path / "package" / "fourth.py").write_text("import tensorflow as tf; tf.gfile")
    found = [(name.path, name.line) for name in programs.uses(tmp_path / "script.py")]
    assert found == [("gfile", 1), ("Session", 2), ("placeholder", 1)]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("estimator", "tf.estimator ended with TensorFlow 2.15; nothing stands in for it."),
        (
            "contrib.learn.DNNClassifier",
            "tf.contrib.learn.DNNClassifier is part of tf.contrib.learn, which ended with "
            "TensorFlow 1; nothing stands in for it.",
        ),
        ("contrib.learn.datasets.mnist", None),
        ("contrib.layers.flatten", None),
        ("estimators", None),
    ],
)
def test_what_is_gone_has_a_sentence(path, sentence):
    assert v1.reason(path) == sentence


def test_a_script_that_uses_what_is_gone_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import tensorflow as tf\n\ntf.estimator.Estimator(model)")
    with pytest.raises(UsageError, match=r"script.py, line 3: tf.estimator.Estimator is part of"):
        programs.check_gone(script)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('print "hello"', ""),
        ("if x: print x, y", ""),
        ('print"hello %s" % (x,\n    y)', ""),
        ("exec code in names", ""),
        ("try:\n    pass\nexcept (A, B), error:\n    pass", ""),
        ('raise ValueError, "text"', ""),
        ("x = `y`", ""),
        ("x = 1 <> 2", ""),
        ("x = 0777 + 10L + 0xFFL", ""),
        ('x = ur"text"', ""),
        ("def f(a, (b, c)):\n    pass", ""),
        ("if x:\n        y\n\tz", ""),
        ("print x\nprint\nprint >>f, y, 'text'\nprint(x)", 'def print_all():\n    "print it"'),
    ],
)
def test_a_script_in_python_2_is_told_from_a_wrong_one(line, other):
    source = f"import os\n{line}\n{other}\n"
    assert programs.python_2_line(source) in range(2, 6)
    assert programs.python_2_line(f"{source}x = = 1\n") is None


@pytest.mark.parametrize("source", ["print('x')", "x = = 1", "def f(:\n  pass", "x = '\0'", ""])
def test_other_scripts_are_not_in_python_2(source):
    assert programs.python_2_line(source) is None


def test_a_script_in_python_2_is_refused(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("# -*- coding: latin-1 -*-\nimport os\nprint 'x'\n")
    with pytest.raises(UsageError, match=r"old.py is written in Python 2 \(line 3: print 'x'\), "):
        programs.check_python(script)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("trian.py", "There is no script 'trian.py'; did you mean 'train.py'?"),
        ("x/y.py", "There is no script 'x/y.py'; give the name of a Python file, as seen from"),
        ("empty", "'empty' is a folder without a __main__.py; give a Python file."),
        (
            "notes.ipynb",
            "'notes.ipynb' is a notebook; convert it to a Python file: jupyter nbconvert",
        ),
    ],
)
def test_what_is_no_script_is_said_with_what_would_be_right(
    program, sentence, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    for name in ("train.py", "notes.ipynb"):
        Path(name).write_text("")
    with pytest.raises(UsageError) as refused:
        programs.find_file(program)
    assert sentence in str(refused.value)


def test_the_file_of_a_program_is_found_without_importing_anything(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("package").mkdir()
    for name in ("train.py", "package/__main__.py", "package/inner.py"):
        Path(name).write_text("1 / 0")
    assert programs.find_file("train.py", "x.py") == Path("train.py")
    assert programs.find_file("package") == Path("package/__main__.py")
    assert programs.find_file("-m", "package") == Path("package/__main__.py")
    assert programs.find_file("-m", "package.inner") == Path("package/inner.py")
    assert programs.find_file("-m", "json.tool") is None
    assert programs.find_file("-") is None
