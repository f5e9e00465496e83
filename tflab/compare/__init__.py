"""Compare: what the ops of a step cost at several batch sizes and under several configurations."""
