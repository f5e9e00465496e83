"""What the tests share: a home of their own, the data they see, and every model, walked once."""

import contextlib
import functools
import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

from tests.levels import REPRESENTATIVES, THOROUGH
from tflab.cli import confined
from tflab.runtime import dumps

# A walk writes thousands of small files. On a disk they take a third of its processor time, and in
# memory next to nothing. Linux has such a folder, which is small in some containers.
MEMORY = Path("/dev/shm")
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 2**32
):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # pytest has asked for one already

# No test reads or writes anything of the user's own: without these variables, all that tflab and
# what it imports would keep goes to the home, and that is a folder of this process.
HOME = tempfile.TemporaryDirectory(prefix="home-of-tests-", ignore_cleanup_errors=True)
for name in [*os.environ]:
    if name.startswith(("XDG_", "JUPYTER_", "IPYTHON", "MPL", "KERAS_HOME")):
        del os.environ[name]
os.environ["HOME"] = HOME.name

# The same kernels on every processor: TensorFlow uses oneDNN only where it expects a gain
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# An example of Hypothesis may take as long as a busy machine needs.
hypothesis.settings.register_profile("unhurried", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("unhurried")

os.environ["TFLAB_OFFLINE"] = "1"  # the tests download nothing
if os.environ.get("TFLAB_DATA_DIR"):
    # Absolute, because some tests run commands in other folders.
    os.environ["TFLAB_DATA_DIR"] = os.path.abspath(os.environ["TFLAB_DATA_DIR"])
MNIST = os.environ.get("TFLAB_DATA_DIR")

LONG = ("tensorflow", "slow", "browser")  # marks of what may take long
# Files that one process of xdist runs together: what they share takes long to make. What takes
# longest begins first
TOGETHER = {
    "pages": (
        *("browser/test_profile", "browser/test_graphs", "browser/test_life"),
        *("browser/test_report_page", "browser/test_report_looks", "browser/test_chart"),
        *("browser/test_trained", "browser/test_explore"),
    ),
    "tasks": (
        *("lifecycle/test_cluster_command", "lifecycle/test_over_tasks"),
        *("compare/test_over_tasks", "runtime/test_cluster"),
    ),
    "walks": (
        *("analysis/test_whole_accounts", "analysis/test_critical_path"),
        *("analysis/test_memory", "analysis/test_timeline", "convert/test_read"),
        *("exporters/test_chrome_trace", "exporters/xspace/test_xspace", "follow/test_command"),
        *("lifecycle/test_backward", "lifecycle/test_logdir"),
        *("lifecycle/test_command", "lifecycle/test_derivatives"),
        *("lifecycle/test_execution", "lifecycle/test_experiments"),
        *("lifecycle/test_frontend", "lifecycle/test_maps", "lifecycle/test_gradients"),
        *("lifecycle/test_placement", "lifecycle/test_values"),
        *("report/test_command", "runtime/test_costs", "runtime/test_devices"),
    ),
}
DEAREST = (  # of the others
    *("run/test_advice", "explore/test_worker_pool", "models/test_wall", "run/test_watched"),
    *("project/test_examples", "cli/test_interrupts", "models/test_models", "cli/test_confined"),
)
GROUPS = {f"tests/{file}.py": name for name, files in TOGETHER.items() for file in files}

gc.disable()  # what is imported stays: looking through it again and again takes seconds
dumps.prepare()  # before a test imports TensorFlow
# Commands that a test calls run in this process; those that it starts are confined as always.
confined.ENABLED = False
# A shell gives its background jobs an ignored Ctrl-C, and nohup an ignored SIGHUP: children would
# inherit both.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextlib.contextmanager
def as_for_users():
    """Walks check as many elements, and compile the code of as many graphs, as for a user, however
    busy the machine is."""
    from tflab.lifecycle import gradient_check, placement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradient_check, "ELEMENTS", 80)
        patch.setattr(gradient_check, "SECONDS", 600)
        patch.setattr(placement, "SMALL", 100)
        yield


@pytest.fixture
def whole_walks():
    with as_for_users():
        yield


@pytest.fixture(scope="session")
def walked():
    """`walked("lenet")["backward"]`: the stages of a model, each walked only once."""
    from tflab import lifecycle
    from tflab.records.options import Options

    @functools.cache
    def stages(model, devices):
        options = Options(steps=5, devices=devices)
        with as_for_users():
            return dict(zip(lifecycle.STAGES, lifecycle.walk(model, options), strict=True))

    # The cache has one key for a device that is given and for one by default
    return lambda model, devices=1: stages(model, devices)


@pytest.fixture(scope="session")
def two_tasks():
    """The addresses of two tasks on this machine, which starting takes seconds."""
    from tflab.runtime import cluster

    with cluster.tasks(2) as addresses:
        yield addresses


@pytest.fixture(scope="session")
def walked_over_tasks(two_tasks):
    """`walked_over_tasks("lenet")["placement"]`: a walk over two tasks, once each."""
    from tflab import lifecycle
    from tflab.records.options import Options

    @functools.cache
    def stages(model):
        options = Options(steps=5, cluster=two_tasks)
        return dict(zip(lifecycle.STAGES, lifecycle.walk(model, options), strict=True))

    return stages


@pytest.fixture(scope="session")
def captured(walked):
    """`captured("lenet")`: what TensorBoard would show of a model, taken only once."""
    from tflab.lifecycle import logdir
    from tflab.records.options import Options

    @functools.cache
    def taken(model, devices):
        options = Options(devices=devices)
        return logdir.take(walked(model, devices)["placement"], options).captured

    return lambda model, devices=1: taken(model, devices)


def pytest_runtest_setup(item):
    """No width of the output is set: other libraries that a test uses leave one behind. That of
    readline is in the environment of the process but not in `os.environ`.

    Only tests with the mark `mnist` have MNIST: all others see the same few data everywhere."""
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")
    os.environ.pop("TFLAB_DATA_DIR", None)
    if MNIST and item.get_closest_marker("mnist"):
        os.environ["TFLAB_DATA_DIR"] = MNIST


def pytest_collection_finish():
    gc.enable()
    gc.freeze()
    # Half of the time of a walk: finite differences of many elements, and code that XLA compiles
    # for small graphs
    if checking := sys.modules.get("tflab.lifecycle.gradient_check"):
        checking.ELEMENTS = 6
    if placing := sys.modules.get("tflab.lifecycle.placement"):
        placing.SMALL = 0


def pytest_collection_modifyitems(items):
    """Tests of many made-up examples are slow, each of them a bit. Where nobody says where MNIST
    is, what wants it is skipped."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("mnist") and not MNIST:
            reason = "This wants MNIST: set TFLAB_DATA_DIR to a folder with its four files."
            item.add_marker(pytest.mark.skip(reason))
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        if file.startswith(THOROUGH) and item.name not in REPRESENTATIVES:
            item.add_marker(pytest.mark.thorough)
    # Processes take files in this order: what is quick comes last, so that all end together
    long = {item.path for item in items if any(map(item.get_closest_marker, LONG))}
    first = [*TOGETHER, *(f"tests/{file}.py" for file in DEAREST)]

    def order(item):
        file = item.nodeid.partition("::")[0]
        unit = GROUPS.get(file, file)
        return first.index(unit) if unit in first else len(first), item.path not in long

    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A process takes a whole file, or all files of a group."""
    from xdist.scheduler import LoadFileScheduling

    class Grouped(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return GROUPS.get(file, file)

    config.option.loadscopereorder = False  # the order of the collection is kept
    return Grouped(config, log)


def pytest_unconfigure():
    HOME.cleanup()  # a worker of xdist ends without doing so
