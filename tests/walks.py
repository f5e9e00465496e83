"""Which models the tests walk through all stages; the others are walked to their placement."""

from tflab import models

WHOLE = ("toy", "lenet")
PLACED = tuple(name for name in models.MODELS if name not in WHOLE)
