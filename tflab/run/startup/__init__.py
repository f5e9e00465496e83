"""The folder that is put on PYTHONPATH of a watched program."""
