"""Split: what cannot be cut by rows is refused before anything runs."""

import pytest
import tensorflow as tf

from tflab import lifecycle
from tflab.errors import UsageError
from tflab.lifecycle import frontend
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow

TASKS = ("127.0.0.1:1", "127.0.0.1:2")  # nobody is asked


def test_a_batch_of_fewer_rows_than_tasks_is_refused():
    options = Options(batch_size=1, cluster=TASKS, split="batch")
    with pytest.raises(UsageError, match=r"^A batch of 1 cannot be split over 2 tasks. Give a"):
        next(lifecycle.walk("lenet", options))


def no_feeds():
    return Model(output=tf.constant(1.0), feeds={}, data=None)


def test_a_model_that_is_fed_nothing_is_refused():
    options = Options(cluster=TASKS, split="batch")
    with pytest.raises(UsageError, match=r"the model 'mine' has no feeds\. Give --split layers\.$"):
        frontend.build(("mine", no_feeds), options)
