# SPDX-License-Identifier: GPL-2.0
"""How tests call trace-to-fio: in this process, which takes no second for each call."""
import contextlib
import io
import pathlib
import sys
import typing

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/trace-to-fio"
sys.path[:0] = [str(TOOL), str(PROJECT / "tools/common")]

from trace_to_fio import command  # noqa: E402  (in a folder added above)


class Done(typing.NamedTuple):
    """What a call did. @requests: (us since the first, read or write, offset, size)"""
    status: int
    requests: list[tuple[int, str, int, int]]
    output: str
    said: str


def requests_of(log: str) -> list[tuple[int, str, int, int]]:
    """Return the requests of a replay log of version 3."""
    rows = [line.split() for line in log.splitlines()]
    return [(int(row[0]) - 1, row[2], int(row[3]), int(row[4]))
            for row in rows if len(row) == 5]


def convert(*words) -> Done:
    """Call trace-to-fio with these words."""
    output, said = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["trace-to-fio", *map(str, words)]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(said):
            status = command.main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = before
    log = output.getvalue()
    return Done(status, requests_of(log) if log.startswith("fio version 3") else [], log,
                said.getvalue())
