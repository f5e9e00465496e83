"""Train: from a model's recipe to weights, in a training that can be interrupted and resumed."""
