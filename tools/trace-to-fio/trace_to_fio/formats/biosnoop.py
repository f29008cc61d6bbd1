# SPDX-License-Identifier: GPL-2.0
"""The output of biosnoop, of bcc and of its libbpf-tools, and of iosnoop of perf-tools. A line is
printed when the request completes, and says how long it took: it was queued that much before."""
import re

from trace_to_fio import LeftOut, Malformed, Options, TraceError
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.formats.events import is_around
from trace_to_fio.values import SECTOR, UNITS, nanoseconds, natural, writes

HEADER = ("TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)")
QUEUED = (*HEADER[:-1], "QUE(ms)", "LAT(ms)")
# Some versions print the latency first.
WAITS = ("QUE(ms)", "QLAT(ms)", "LAT(ms)")
# What libbpf-tools print for the time in the queue if they have not seen the request enter it.
UNSEEN = "-1.000"
NEEDED = {"DISK", "T", "SECTOR", "BYTES"}
# What iosnoop calls the columns. With -s it prints when a request began, with -t when it ended.
START = "START(s)"
OTHER_NAMES = {"STARTs": START, "ENDs": "TIME(s)", "TYPE": "T", "DEV": "DISK", "BLOCK": "SECTOR",
               "LATms": "LAT(ms)"}
FIRST = ("TIME(s)", "TIME(ms)", START, "COMM")


def header_of(line: str) -> tuple[str, ...]:
    """Return the names of a header's columns; none if the line is no header."""
    words = tuple(OTHER_NAMES.get(word, word) for word in line.split())
    return words if words and words[0] in FIRST and {"COMM", "PID", "LAT(ms)"} <= set(words) else ()


class Biosnoop(Parser):
    """Reads columns by the names of the header. COMM alone may have spaces."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        if not set(names) >= NEEDED:
            raise TraceError("biosnoop has not printed sector and size of the requests, as that of "
                             "bpftrace does not: record with biosnoop of bcc, or with blktrace, "
                             "or see Documentation/traces.md")
        if not {"TIME(s)", START} & set(names):
            raise TraceError("iosnoop has not printed times: record with iosnoop -s")
        comm = names.index("COMM") if "COMM" in names else len(names)
        self.left, self.right = names[:comm], names[comm + 1:]

    def request(self, line: str) -> Found:
        words = line.split()
        if not words or header_of(line) or is_around(line):
            return None
        if len(words) < len(self.names):
            raise Malformed(f"{len(words)} columns instead of {len(self.names)}")
        row = {**dict(zip(self.left, words, strict=False)),
               **dict(zip(reversed(self.right), reversed(words), strict=False))}
        begin = row.get(START)
        waits = 0 if begin else sum(nanoseconds(row[name], UNITS["ms"], name) for name in WAITS
                    if row.get(name, UNSEEN) != UNSEEN)
        ns = nanoseconds(begin or row["TIME(s)"], UNITS["s"], "the time") - waits
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


FORMAT = Format("biosnoop", "biosnoop of bcc or libbpf-tools, iosnoop", make, "s")
