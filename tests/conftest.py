"""What the tests share: which data they see, and the stages of every model, walked once."""

import functools
import os
import signal
from pathlib import Path

import pytest

from tflab.runtime import dumps

SHARED_MNIST = Path(__file__).parents[2] / "shared" / "mnist"

dumps.prepare()  # before a test imports TensorFlow
# A shell gives its background jobs an ignored Ctrl-C, which children would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data():
    """Data from where the user says, else from beside the repository, else the stand-in."""
    given = os.environ.get("TFLAB_DATA_DIR")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFLAB_OFFLINE", "1")  # CIFAR-10 is 170 MB, and no test needs it
        if given or SHARED_MNIST.is_dir():
            # Absolute, because some tests run commands in other folders.
            patch.setenv("TFLAB_DATA_DIR", str(Path(given or SHARED_MNIST).absolute()))
        yield


@pytest.fixture(scope="session")
def walked(data):
    """`walked("lenet")["backward"]`: the stages of a model, each walked only once."""
    from tflab import lifecycle
    from tflab.records import Options

    @functools.cache
    def stages(model, devices=1):
        options = Options(steps=5, devices=devices)
        return dict(zip(lifecycle.STAGES, lifecycle.walk(model, options), strict=True))

    return stages


@pytest.fixture(scope="session")
def captured(walked):
    """`captured("lenet")`: what TensorBoard would show of a model, taken only once."""
    from tflab.lifecycle import captures
    from tflab.records import Options

    @functools.cache
    def taken(model, devices=1):
        options = Options(devices=devices)
        return captures.take(walked(model, devices)["placement"], options)[0]

    return taken


def pytest_collection_modifyitems(items):
    """Tests of many made-up examples are slow, each of them a bit."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.slow)
