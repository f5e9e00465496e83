"""Follow: the history of one node, from the line that made it to the time that it took."""
