# SPDX-License-Identifier: GPL-2.0
"""Disk events of Windows' event tracing (ETW) in text, as xperf's dumper writes them, and as in
Microsoft's production server traces (MSPS). The names of each kind of event's fields are before the
events. A request is known when it has completed, and says how long it took, in microseconds."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, NoTrace, Options
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.values import UNITS, natural

WRITES = {"DiskRead": False, "DiskWrite": True}
TIME, ELAPSED, DISK, OFFSET, SIZE = NEEDED = ("TimeStamp", "ElapsedTime", "DiskNum", "ByteOffset",
                                              "IOSize")
PROCESS = "Process Name ( PID)"
# An event begins with its kind. Before the events there may be what the tracer says of itself.
EVENT = re.compile(r"\s*[^\s,][^,]*, *\d+ *(?:,|$)", re.ASCII)
AROUND = re.compile(r"\s*$|BeginHeader|EndHeader|OS Version:|[^,]+, *[A-Za-z]")


def header_of(line: str) -> tuple[str, list[str]] | None:
    """Return (kind, names) of a line that names the fields of a read or a write; None if it is
    none."""
    kind, *names = (name.strip() for name in line.split(","))
    return (kind, names) if kind in WRITES and TIME in names else None


class Xperf(Parser):
    """Reads fields by the names of their kind of event, {kind: {name: place}}."""

    def __init__(self):
        self.places: dict[str, dict[str, int]] = {}

    def request(self, line: str) -> Found:
        kind, _, rest = line.partition(",")
        kind = kind.strip()
        if kind not in WRITES:
            if kind == "DiskFlush" and EVENT.match(line):
                raise LeftOut("flushes")
            if EVENT.match(line):
                return NO_REQUEST
            if AROUND.match(line):
                return None
            raise Malformed("no event of xperf")
        header = header_of(line)
        if header:
            self.places[kind] = {name: place for place, name in enumerate(header[1])}
            return None
        places = self.places.get(kind)
        if not places:
            raise Malformed(f"no names of the fields of {kind} before it")
        return self.of_fields(kind, places, rest.split(","))

    def of_fields(self, kind: str, places: dict[str, int], fields: list[str]) -> Found:
        """Return the request of an event's fields. @places: of their names"""
        # A process may have commas in its name, which ends with its number.
        at = places.get(PROCESS, len(fields))
        while at + 1 < len(fields) and not fields[at].rstrip().endswith(")"):
            fields[at:at + 2] = [",".join(fields[at:at + 2])]
        if len(fields) <= max(places[name] for name in NEEDED):
            raise Malformed(f"{len(fields) + 1} fields are too few for {kind}")
        values = {name: natural(fields[places[name]], name) for name in NEEDED}
        if not values[SIZE]:
            raise LeftOut("requests without a size")
        return ((values[TIME] - values[ELAPSED]) * UNITS["us"], str(values[DISK]), WRITES[kind],
                values[OFFSET], values[SIZE])


def make(_: Options, lines: list[str], guess: bool) -> Xperf | None:
    """Return the parser for a trace with these first lines."""
    headers = [header for header in map(header_of, lines) if header]
    if not headers and guess:
        return None
    for kind, names in headers:
        lacks = [name for name in NEEDED if name not in names]
        if lacks:
            raise NoTrace(f"{kind} of xperf has no {', no '.join(lacks)}")
    return Xperf()


FORMAT = Format("xperf", "xperf -a dumper, of Windows' event tracing", make, "us")
