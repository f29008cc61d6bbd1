# SPDX-License-Identifier: GPL-2.0
"""What traces of the kernel's block events have in common: one request is several events, and the
text around them is a program's or a terminal's."""
import re

from trace_to_fio import LeftOut, Options
from trace_to_fio.formats import Parser
from trace_to_fio.values import rwbs

# Letters of events and what they mean, the one that counts first by default. Requests that bypass
# the scheduler are issued without having been inserted.
MEANINGS = {"Q": "queued", "D": "issued", "I": "inserted", "C": "completed"}
# What is left out where the program that recorded has lost events.
GAPS = "gaps of lost events"
# A prompt with a command, or ^C, of a captured terminal.
TERMINAL = re.compile(r"\^C|[^\s\d#]\S{0,80}[$#%>] |[$%>] ")
# What bpftrace and tools of BPF print before, between and after their records: a count of probes, a
# banner, lost events, warnings, and maps at the end.
TRACER = re.compile(r"Attach(?:ing|ed) \d+ probes?\b|Tracing\b|Lost \d+ events|WARNING: |"
                    r"@\w*(?:\[.*\])?: ")


def event_of(options: Options, seen: set[str]) -> tuple[str, list[str]]:
    """Return the letter of the event that is the request, with notes. @seen: letters of the first
    events of the trace"""
    if options.event:
        return options.event, []
    letter = next((each for each in MEANINGS if each in seen), "Q")
    if letter == "Q":
        return letter, []
    return letter, [f"without event Q, each {letter} ({MEANINGS[letter]}) is a request (--event)"]


def is_around(line: str) -> bool:
    """Return true if a line is of a terminal or of the program that traces, and no record."""
    return bool(TERMINAL.match(line) or TRACER.match(line))


class Events(Parser):
    """Takes one kind of event as the requests."""

    def __init__(self, options: Options, seen: set[str]):
        self.event, self.assumed = event_of(options, seen)
        self.write = options.write

    def notes(self) -> list[str]:
        return self.assumed

    def taken(self, event: str, flags: str | None, rest: str) -> bool | None:
        """Return whether an event is a request that writes; None if it is another event. @flags:
        None if the trace has no directions"""
        if event != self.event:
            return None
        if flags is None:
            return self.write
        try:
            return rwbs(flags)
        except LeftOut as error:
            raise LeftOut("passthrough commands" if "(" in rest else str(error)) from None
