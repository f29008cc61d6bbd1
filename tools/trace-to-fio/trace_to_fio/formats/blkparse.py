# SPDX-License-Identifier: GPL-2.0
"""The output of blkparse."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.events import GAPS, TERMINAL, Events
from trace_to_fio.values import SECTOR

EVENT = re.compile(r"\s*(?:\^C)?\s*(\d+,\d+)\s+\d+\s+\d+\s+(\d+)\.(\d{9})\s+\d+\s+([A-Z]+)\s+"
                   r"([A-Z]+)\s*(.*)", re.ASCII)
MESSAGE = re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+m\s", re.ASCII)
PLACE = re.compile(r"(\d+) \+ (\d+)(?:\s|$)", re.ASCII)
# Sums of a CPU, a process or all follow the events: a line "NAME (WHAT):" and the sums.
SUMS = re.compile(r"\S.* \([^()]*\):?\s*$|Throughput \(R/W\)|Events \(|Skips:|"
                  r"\s*(?:PC )?(?:Reads?|Writes?|IO|Timer|Allocation|Dispatch|Completion) [\w .]+:")
LOST = re.compile(r"Skips: [1-9]")
INPUT = re.compile(r"\s*Input file \S.* added")


class Runs:
    """Outputs of several runs of blkparse in one file, each of which begins anew at time 0."""

    def __init__(self, options: Options):
        self.after = options.after
        self.number, self.sums, self.events = 1, False, False
        self.base = self.last = 0
        self.notes: list[str] = []

    def summed(self):
        """The sums of a run are printed: the next event is another run's."""
        self.sums = True

    def opened(self):
        """A binary file is opened, as each is before the events of a run: if there were some, the
        next event is another run's."""
        self.sums |= self.events

    def time(self, ns: int) -> int:
        """Return the time of an event in ns, of all runs."""
        if self.sums:
            self._begin()
        self.events = True
        self.last = max(self.last, self.base + ns)
        return self.base + ns

    def _begin(self):
        self.number, self.sums = self.number + 1, False
        self.base = self.last if self.after else 0
        how = "one after the other" if self.after else \
            "together, from one start (--runs after: one after the other)"
        self.notes[:] = [f"{self.number} runs of blkparse, replayed {how}"]


def is_noise(line: str, runs: Runs) -> bool:
    """Return true if a line is no event, but what else such a file has. Tells @runs where
    one begins or ends. LeftOut: it says that events were lost"""
    if not line.strip() or line.startswith("#") or TERMINAL.match(line):
        return True
    if INPUT.match(line):
        runs.opened()
        return True
    if SUMS.match(line):
        runs.summed()
        if LOST.match(line):
            raise LeftOut(GAPS)
        return True
    return False


class Blkparse(Events):
    """Reads the default output."""

    def __init__(self, options: Options, lines: list[str]):
        found = (EVENT.match(line) for line in lines)
        self.seen = {each[4] for each in found if each}
        super().__init__(options, self.seen)
        self.runs = Runs(options)

    def notes(self) -> list[str]:
        return [*self.assumed, *self.runs.notes]

    def request(self, line: str) -> Found:
        found = EVENT.match(line)
        if not found:
            if MESSAGE.match(line):
                return NO_REQUEST
            if is_noise(line, self.runs):
                return None
            raise Malformed("no event of blkparse")
        device, seconds, rest_ns, event, flags, rest = found.groups()
        ns = self.runs.time(int(seconds) * 10**9 + int(rest_ns))
        write = self.taken(event, flags, rest)
        if write is None:
            return NO_REQUEST
        place = PLACE.match(rest)
        if place:
            size = int(place[2]) * SECTOR
            if not size:
                raise LeftOut("flushes")
            return ns, device, write, int(place[1]) * SECTOR, size
        if flags.startswith("F"):
            raise LeftOut("flushes")
        if "(" in rest:
            raise LeftOut("passthrough commands")
        # The end of a flush or of a write with FUA.
        if event == "C" and re.match(r"\d+ \[", rest):
            raise LeftOut("ends of flushes")
        raise Malformed("no 'sector + sectors'")


FORMAT = Format("blkparse", "blkparse of a trace by blktrace",
                lambda options, lines, _: None if options.layout or options.layouts else
                Blkparse(options, lines),
                "s")
