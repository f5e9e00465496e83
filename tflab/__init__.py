"""tflab: the life of a TensorFlow graph, from the Python line to the measured nanosecond."""

__version__ = "0.1.0"
