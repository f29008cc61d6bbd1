# SPDX-License-Identifier: GPL-2.0
"""What is shown on stderr while a drive is measured."""
import os
import sys
import time


class Shown:
    """A line on stderr that says what is done now; on a terminal it is written again and again,
    otherwise every EACH_S."""
    EACH_S = 10

    def __init__(self, quiet: bool):
        self.quiet, self.terminal = quiet, sys.stderr.isatty()
        self.last = 0.0

    def __call__(self, text: str, now: bool = False):
        moment = time.monotonic()
        least = 0.2 if self.terminal else self.EACH_S
        if self.quiet or (moment - self.last < least and not now):
            return
        self.last = moment
        if self.terminal:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            print(f"\r\033[K{text[:columns - 1]}", end="", file=sys.stderr, flush=True)
        else:
            print(f"ssdctl: {text}", file=sys.stderr, flush=True)

    def clear(self):
        """Remove an unfinished line."""
        if self.terminal and not self.quiet:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
