"""A task of a cluster, for other machines."""
