# SPDX-License-Identifier: GPL-2.0
"""trace-to-fio: convert recorded block traces to fio's replay format, or describe them."""
import dataclasses

# A request of a trace: (ns since any moment, device, True if it writes, offset and size in bytes).
# The device is empty if the trace does not name it.
Request = tuple[int, str, bool, int, int]
# A record of the format that is no request, such as an event that was not asked for.
NO_REQUEST: tuple = ()


class TraceError(Exception):
    """An error that is reported to the user in one line."""


class NoTrace(TraceError):
    """A file is no trace that can be read; beside traces in an archive it is left out."""


class Malformed(Exception):
    """A line is malformed; the text says why."""


class LeftOut(Exception):
    """A record that a replay has no request for; the text names its kind in the plural."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user says about a trace.

    @event: letter of the event that is the request, None: the earliest one that the trace has
    @time_unit: ns of a unit of time, None: the format's
    @write: whether all requests write, for a trace without directions; None: it has them
    @columns: names of the columns, None: by header or format
    @layout: format string of blkparse -f, None: the default output
    @layouts: those of blkparse -F, (letter of the event, format string)
    @after: runs in a file follow each other instead of starting together
    """
    event: str | None = None
    time_unit: int | None = None
    write: bool | None = None
    columns: str | None = None
    layout: str | None = None
    layouts: tuple[tuple[str, str], ...] = ()
    after: bool = False
