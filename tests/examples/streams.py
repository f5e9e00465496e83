"""Streams that commands may write to."""

import io


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
