"""Run: a program, unchanged, watched from its first line to its last.

Two processes take part. The command (`__main__`, `launch`, `summary`, `view`) starts the program in
a process of its own, waits, and speaks after its end. In the program's process Python imports
`startup/sitecustomize.py` before anything else; that begins `watcher`, whose `sampler` gives each
nanosecond an owner and whose `recorder` sees each run of a session. Both processes share a
temporary folder, in which the program's leaves what it measured, every few seconds and at its end.
"""
