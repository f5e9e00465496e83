"""A session whose variables have their initial values."""

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.records.options import Options, Start
from tflab.runtime import session


@contextmanager
def opened(graph: tf.Graph, start: Start | None = None) -> Iterator[tf1.Session]:
    with session.fresh(graph, Options()) as live:
        session.begin(live, start or Start(session.initializers(graph)))
        yield live
