# SPDX-License-Identifier: GPL-2.0
"""How a program of this project ends, whatever happens to its output."""
import os
import select
import signal
import sys
from collections.abc import Callable


def reader_ended() -> bool:
    """Return true if standard output is a pipe whose reader has ended, as head does."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return any(events & select.POLLERR for _, events in watched.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


def finish(main: Callable[[], int | None]):
    """Call a program's main function and exit with its status. If the reader of its output has
    ended, end quietly, with the status of a program that SIGPIPE has ended: main() cleans up
    before."""
    try:
        try:
            status = main()
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:
        if not reader_ended():
            raise
        # The interpreter writes the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + signal.SIGPIPE
    sys.exit(status)
