"""Train: from a model's recipe to weights, with all that a long run needs to be cut short."""
