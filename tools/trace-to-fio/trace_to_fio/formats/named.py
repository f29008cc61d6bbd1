# SPDX-License-Identifier: GPL-2.0
"""Block events whose fields have names and are numbers, as perf trace prints them, and babeltrace
those that LTTng has recorded."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.events import Events, is_around
from trace_to_fio.formats.ftrace import LETTERS, kernel_device
from trace_to_fio.values import SECTOR, UNITS, is_natural, nanoseconds, natural

NAMES = "|".join(LETTERS)
# "0.000 fio/697 block:block_rq_issue(dev: 8388608, sector: 2048, nr_sector: 8, rwbs: "R")": fields
# that are 0 are left out.
PERF = re.compile(rf"\s*(?P<time>\d+\.\d{{3}})\s.*?\bblock:(?P<event>{NAMES})\((?P<fields>.*)\)",
                  re.ASCII)
# "[10:00:00.000000000] (+0.000000300) host block_rq_issue: { cpu_id = 0 }, { dev = 8388608, ... }",
# with a date, or seconds instead, if babeltrace is asked to.
LTTNG = re.compile(rf"\[(?P<time>(?:[\d-]+ )?[\d:]+\.\d+)\].*?\s(?P<event>{NAMES}): (?P<fields>.*)",
                   re.ASCII)
# Any other event of them.
OTHER = {PERF: re.compile(r"\s*\d+\.\d{3}\s.*\w+[:(]", re.ASCII),
         LTTNG: re.compile(r"\[[\d :-]+\.\d+\].*: \{")}
FIELD = re.compile(r"\b(dev|sector|nr_sector|bytes|rwbs)(?: = |: )\"?(\w+)", re.ASCII)
# LTTng's bits of the direction, and what it has for reads and writes.
WRITE, DISCARD, READ, FLUSH, PREFLUSH = 1 << 0, 1 << 1, 1 << 2, 1 << 8, 1 << 10
DAY = 24 * 3600 * UNITS["s"]


def letters_of(bits: int) -> str:
    """Return LTTng's direction in the kernel's letters."""
    for bit, letter in ((DISCARD, "D"), (WRITE, "W"), (READ, "R"), (FLUSH | PREFLUSH, "F")):
        if bits & bit:
            return letter
    return "N"


class Named(Events):
    """Reads lines of a pattern, whose times have @unit ns."""

    def __init__(self, pattern: re.Pattern, unit: int, options: Options, lines: list[str]):
        self.pattern, self.unit = pattern, unit
        found = (pattern.match(line) for line in lines)
        super().__init__(options, {LETTERS[each["event"]] for each in found if each})
        # A clock on the wall begins anew at midnight.
        self.days, self.last = 0, 0

    def request(self, line: str) -> Found:
        found = self.pattern.match(line)
        if not found:
            if OTHER[self.pattern].match(line):
                return NO_REQUEST
            if not line.strip() or line.startswith("#") or is_around(line):
                return None
            raise Malformed("no event")
        ns = self.time(found["time"])
        fields = dict(FIELD.findall(found["fields"]))
        flags = fields.get("rwbs", "")
        if not flags or "dev" not in fields:
            raise Malformed(f"no dev and rwbs in {found['event']}")
        write = self.taken(LETTERS[found["event"]],
                           letters_of(int(flags)) if is_natural(flags) else flags, "")
        if write is None:
            return NO_REQUEST
        device, sector, sectors = (natural(fields.get(name, "0"), name)
                                   for name in ("dev", "sector", "nr_sector"))
        if not sectors:
            raise LeftOut("events without sectors")
        return ns, kernel_device(device), write, sector * SECTOR, sectors * SECTOR

    def time(self, text: str) -> int:
        """Return a time in ns: a number, or hours, minutes and seconds, maybe after a date."""
        clock = text.split()[-1].split(":")
        if len(clock) != 3:
            return nanoseconds(text, self.unit, "the time")
        minutes = natural(clock[0], "the hour") * 60 + natural(clock[1], "the minute")
        ns = minutes * 60 * UNITS["s"] + nanoseconds(clock[2], UNITS["s"], "the time")
        if ns < self.last - DAY // 2:
            self.days += 1
        self.last = ns
        return self.days * DAY + ns


def made(pattern: re.Pattern, unit: str):
    """Return the function that makes the parser for a pattern."""
    return lambda options, lines, _: Named(pattern, UNITS[unit], options, lines)


FORMATS = [Format("perf-trace", "perf trace: block events", made(PERF, "ms"), "ms"),
           Format("lttng", "babeltrace of a trace by LTTng: block events", made(LTTNG, "s"), "s")]
