"""CIFAR-10 in a model: what is fed to ResNet-20 are the rows of the files."""

import numpy as np
import pytest

from tests.datasets.test_cifar10 import FILES, assert_is_small_cifar10, small, write
from tflab.lifecycle import frontend
from tflab.models import resnet20
from tflab.records.options import Options
from tflab.runtime import session

__all__ = ["small"]  # a fixture: twelve images are the publication
pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


def test_resnet_is_fed_the_rows_of_the_files(tmp_path):
    folder = write(tmp_path / "data", FILES)
    options = Options(batch_size=4, data_dir=str(folder))
    program = frontend.build(("resnet20", resnet20.build), options).program
    for split in ("train", "test"):
        assert_is_small_cifar10(program.dataset(split), split)
    batch = next(session.feed_batches(program, 4))
    fed = dict(zip(session.step_of(program, ()).feeds, batch, strict=True))
    columns = program.dataset("train").columns
    assert np.array_equal(fed["images:0"], columns["images"][:4])
    assert np.array_equal(fed["labels:0"], columns["labels"][:4])
