# SPDX-License-Identifier: GPL-2.0
"""The standard output and error of a program. Either is None if the caller closed it."""
import contextlib
import io
import json
import os
import select
import signal
import sys
import unicodedata
from collections.abc import Callable

FAILED = 1


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


def as_json(report: dict) -> str:
    """Return a report for a file."""
    return json.dumps(report, indent=1) + "\n"


def is_terminal(stream) -> bool:
    """Return true if a stream, such as sys.stderr, is a terminal."""
    return bool(stream and stream.isatty())


def reader_ended() -> bool:
    """Return true if standard output is a pipe whose reader has ended, as head does."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return any(events & select.POLLERR for _, events in watched.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


def finish(program: str, main: Callable[[], int]) -> int:
    """Call the main function of a program; return the exit status, after all output is written: an
    error of it belongs to the program and not to the interpreter's end, also after --help. Quiet if
    the reader of the output has ended. @program: its name, for errors."""
    try:
        try:
            status = main()
        except SystemExit as error:
            status = error.code
        if sys.stdout:
            sys.stdout.flush()
        return status
    except OSError as error:
        if not (isinstance(error, BrokenPipeError) and reader_ended()):
            say(f"{program}: {error.filename or 'the output'}: {error.strerror}")
        discard(sys.stdout)
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def discard(stream):
    """Have the interpreter write nothing to a stream at its end, after an error of it."""
    # One that is no file, as in a test, is not written to then.
    with contextlib.suppress(AttributeError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
