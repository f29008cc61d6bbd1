# SPDX-License-Identifier: GPL-2.0
"""The standard output and error of ssd-probe and of ssdctl. Either is None if the caller closed
it."""
import io
import os
import sys
import unicodedata


def prepare():
    """Print a name that has no characters in the locale's encoding, rather than fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def plain(text: str) -> str:
    """Return a text of others without what a terminal takes for a command, what is not seen, and
    what turns the direction of the text around."""
    return "".join(char if char == " " or unicodedata.category(char)[0] not in "CZ" else "?"
                   for char in text)


def say(text: str, end: str = "\n"):
    """Print on stderr. Its terminal may be gone: what the program does, or restores then, does not
    depend on it."""
    try:
        if sys.stderr:
            print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def is_terminal(stream) -> bool:
    """Return true if a stream, such as sys.stderr, is a terminal."""
    return bool(stream and stream.isatty())


def flush():
    """Write what is left; an error belongs to the command, not to the interpreter's end."""
    if sys.stdout:
        sys.stdout.flush()


def discard(stream):
    """Have the interpreter write nothing to a stream at its end, after an error of it."""
    if stream:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
