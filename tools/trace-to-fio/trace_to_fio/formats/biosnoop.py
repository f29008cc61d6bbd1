# SPDX-License-Identifier: GPL-2.0
"""The output of biosnoop, of bcc and of its libbpf-tools. A line is printed when the request
completes, and says how long it took: it was queued that much before."""
import re

from trace_to_fio import LeftOut, Malformed, Options, TraceError
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.formats.events import TERMINAL
from trace_to_fio.values import SECTOR, UNITS, nanoseconds, natural, writes

HEADER = ("TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)")
QUEUED = (*HEADER[:-1], "QUE(ms)", "LAT(ms)")
# Some versions print the latency first.
WAITS = ("QUE(ms)", "QLAT(ms)", "LAT(ms)")
# What libbpf-tools print for the time in the queue if they have not seen the request enter it.
UNSEEN = "-1.000"
NEEDED = {"TIME(s)", "DISK", "T", "SECTOR", "BYTES"}


def header_of(line: str) -> tuple[str, ...]:
    """Return the names of a header's columns; none if the line is no header."""
    words = tuple(line.split())
    return words if words[:1] in (("TIME(s)",), ("TIME(ms)",)) and "COMM" in words else ()


class Biosnoop(Parser):
    """Reads columns by the names of the header. COMM alone may have spaces."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        if not set(names) >= NEEDED:
            raise TraceError("biosnoop has not printed sector and size of the requests, as that of "
                             "bpftrace does not: record with biosnoop of bcc, or with blktrace")
        comm = names.index("COMM") if "COMM" in names else len(names)
        self.left, self.right = names[:comm], names[comm + 1:]

    def request(self, line: str) -> Found:
        if not line.strip() or header_of(line) or TERMINAL.match(line):
            return None
        words = line.split()
        if len(words) < len(self.names):
            raise Malformed(f"{len(words)} columns instead of {len(self.names)}")
        row = {**dict(zip(self.left, words, strict=False)),
               **dict(zip(reversed(self.right), reversed(words), strict=False))}
        waits = sum(nanoseconds(row[name], UNITS["ms"], name) for name in WAITS
                    if row.get(name, UNSEEN) != UNSEEN)
        ns = nanoseconds(row["TIME(s)"], UNITS["s"], "TIME(s)") - waits
        write, size = writes(row["T"]), natural(row["BYTES"], "BYTES")
        if not size:
            raise LeftOut("flushes")
        return ns, row["DISK"], write, natural(row["SECTOR"], "SECTOR") * SECTOR, size


def make(_: Options, lines: list[str], guess: bool) -> Biosnoop | None:
    """Return the parser for a trace with these first lines."""
    for line in lines:
        if header_of(line):
            return Biosnoop(header_of(line))
    rows = [line.split() for line in lines if line.strip()]
    rows = [row for row in rows if len(row) >= len(HEADER) and re.fullmatch(r"\d+\.\d+", row[0])]
    if not rows:
        return None if guess else Biosnoop(HEADER)
    # Bytes have no fraction, the time in the queue has one.
    return Biosnoop(QUEUED if "." in rows[0][-2] else HEADER)


FORMAT = Format("biosnoop", "biosnoop of bcc or libbpf-tools", make, "s")
