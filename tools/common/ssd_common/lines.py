# SPDX-License-Identifier: GPL-2.0
"""The line on stderr that tells the progress of a run, and times for eyes."""
import contextlib
import os
import sys

from ssd_common.output import is_terminal, say


class Line:
    """A line on stderr that says what runs now; on a terminal it is written again and again."""
    # Seconds after which it is written again there.
    AGAIN_S = 0.2

    def __init__(self, quiet: bool):
        self.quiet, self.terminal = quiet, is_terminal(sys.stderr)

    def fitted(self, text: str) -> str:
        """Return what of a text fits: a line that is wrapped could not be written over."""
        columns = 0
        with contextlib.suppress(OSError):
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        return text[:(columns or 80) - 1]

    def put(self, text: str, end: str):
        """Print over the last line of a terminal."""
        before = "\r\033[K" if self.terminal else ""
        say(before + text, end)

    def clear(self):
        """Remove an unfinished line."""
        if self.terminal and not self.quiet:
            self.put("", "")


def duration(seconds: float) -> str:
    """Return a time for eyes."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
