"""The watcher in the process of the program: what it keeps so that lines can be read at the end."""

from tflab.run import watcher

GIVEN = {"FOLDER": "", "OVERHEAD": "5", "STEPS": "0", "START": "0"}
CALLER = "def execute(keep, code):\n    keep('exec', (code,))"


def test_code_of_the_program_is_kept_and_that_of_libraries_is_not(monkeypatch):
    """TensorFlow reads the lines of an op from code that Python may have freed: that of a module
    once it is imported, and what `exec` got."""
    seen = watcher.Watcher(GIVEN)
    names = {}
    exec(compile(CALLER, "/lib/site-packages/library/base.py", "exec"), names)
    model, library, text = (
        compile("1", file, "exec") for file in ("/code/model.py", "/lib/site-packages/b.py", "<x>")
    )
    for code in (model, library, text):
        names["execute"](seen.keep_code, code)
    assert seen.codes == [model]
    seen.keep_code("exec", (text,))  # by this file, which is no library
    seen.keep_code("compile", (text, "<y>"))
    assert seen.codes == [model, text]
    assert seen.keeps_code()
    monkeypatch.setattr(watcher, "MOST_CODES", 2)
    seen.keep_code("exec", (model,))
    assert len(seen.codes) == 2
    assert not seen.keeps_code()


def test_code_from_before_the_import_of_tensorflow_is_kept(monkeypatch):
    """The code that runs, and that of the program's functions, which it may delete later."""
    hooks = []
    monkeypatch.setattr(watcher.sys, "addaudithook", hooks.append)
    names = {}
    for file in ("/code/model.py", "/lib/site-packages/b.py"):
        exec(compile("def f(keep):\n    keep()", file, "exec"), names)
        names[file] = names["f"]
    seen = watcher.Watcher(GIVEN)
    names["/lib/site-packages/b.py"](seen.keep_codes)
    codes = [names[file].__code__ for file in ("/code/model.py", "/lib/site-packages/b.py")]
    assert [any(code is at for at in seen.earlier) for code in codes] == [True, True]  # it runs
    again = watcher.Watcher(GIVEN)
    again.keep_codes()
    assert [any(code is at for at in again.earlier) for code in codes] == [True, False]
    assert hooks == [seen.keep_code, again.keep_code]


def test_a_fault_does_not_keep_the_program_from_executing_code():
    seen = watcher.Watcher(GIVEN)
    seen.keep_code("exec", (None,))
    assert seen.faults == ["AttributeError: 'NoneType' object has no attribute 'co_filename'"]
