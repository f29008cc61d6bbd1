# SPDX-License-Identifier: GPL-2.0
"""The formats of traces, in the order in which they are preferred if several fit."""
import collections.abc
import dataclasses

from trace_to_fio import Options, Request

# What a parser returns: a request, NO_REQUEST for a record that is none, None for a line that
# belongs to the format and is no record (a header, a comment, a summary).
Found = Request | tuple | None


class Parser:
    """Reads the lines of one file."""

    def request(self, line: str) -> Found:
        """Return what a line says. Malformed: it is of another format; LeftOut: a replay has no
        request for it"""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return what has been assumed, for the user."""
        return []


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of traces in text.

    @name: word of --format
    @text: what writes it
    @make: function from (options, first lines, True if the format is a guess) to a parser; None if
           the lines cannot be of the format
    @unit: the unit of its times, None: --time-unit may name another
    """
    name: str
    text: str
    make: collections.abc.Callable[[Options, list[str], bool], Parser | None]
    unit: str | None = None
