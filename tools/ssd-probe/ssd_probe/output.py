# SPDX-License-Identifier: GPL-2.0
"""The end of the standard output of ssd-probe and of ssdctl. There is none if the caller closed
it."""
import os
import sys


def flush():
    """Write what is left; an error belongs to the command, not to the interpreter's end."""
    if sys.stdout:
        sys.stdout.flush()


def discard():
    """Have the interpreter write nothing at its end, after an error of the output."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
