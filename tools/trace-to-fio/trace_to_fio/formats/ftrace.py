# SPDX-License-Identifier: GPL-2.0
"""Block events of ftrace, as the kernel's trace file, trace-cmd report and perf script print them,
and those of ftrace's tracer blk."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.events import GAPS, Events
from trace_to_fio.values import SECTOR

# Bits of a minor number, as the kernel keeps a device's.
MINOR_BITS = 20
LETTERS = {"block_bio_queue": "Q", "block_rq_insert": "I", "block_rq_issue": "D",
           "block_rq_complete": "C"}
TIME = r"(?:^|\s)(?P<s>\d+)(?:\.(?P<fraction>\d+))?:\s+"
# "8,0 R 4096 () 1000 + 8 none,0,0 [comm]": bytes are there only before completion, the command in
# parentheses only with requests, the priority since 6.10.
EVENT = re.compile(TIME + r"(?:block:)?block_\w+:\s+(?P<dev>\d+,\d+) +"
                   r"(?P<flags>\w+) +(?:\d+ +)?(?:\((?P<command>[^)]*)\) +)?"
                   r"(?P<sector>\d+) \+ (?P<sectors>\d+)(?:\s|$)", re.ASCII)
# "dev=8388608 sector=1000 nr_sector=8 bytes=4096 rwbs=R comm=fio cmd=": as trace-cmd report -R has
# it, and others for the device 8,0.
RAW = re.compile(TIME + r"(?:block:)?block_\w+:\s+dev=(?P<dev>\d+(?:,\d+)?) sector=(?P<sector>\d+)"
                 r" nr_sector=(?P<sectors>\d+) .*?rwbs=(?P<flags>\w+)(?:.* cmd=(?P<command>\S*))?",
                 re.ASCII)
# "R 2048 + 8 [comm]": of the tracer blk; the command of passthrough in parentheses; what is no
# request has no sectors.
REST = (r"(?P<event>[A-Z]{1,2}|m) +(?P<flags>[A-Z]+) +(?:(?:\d+ )?\((?P<command>[^)]*)\) +)?"
        r"(?:(?P<sector>\d+) \+ (?P<sectors>\d+) )?")
# "8,0    Q   R 2048 + 8 [comm]", with a cgroup if it is asked to.
BLK = re.compile(TIME + r"(?P<dev>\d+,\d+) +(?:[\da-f]+,[\da-f]+ +|/\S* +)?" + REST, re.ASCII)
# "8,0  0   100.000000000   697  Q   R 2048 + 8 [comm]": its option blk_classic, as blkparse has it,
# but without a number of the event.
CLASSIC = re.compile(r"\s*(?P<dev>\d+,\d+) +\d+ +(?P<s>\d+)\.(?P<fraction>\d{9}) +\d+ +" + REST,
                     re.ASCII)
LOST = re.compile(r"CPU:?\s*\d+ \[(?:LOST )?\d* ?EVENTS")
# Any event.
OTHER = re.compile(r"\s\d+\.\d+:\s+(?:\w+:)?\w+:", re.ASCII)
NAMED = re.compile(r":\s+(?:block:)?(block_bio_queue|block_rq_(?:insert|issue|complete)):")


def is_block(line: str) -> bool:
    """Return true if a line is a block event that may be a request."""
    return bool(NAMED.search(line) or of_tracer(line))


def of_tracer(line: str) -> re.Match | None:
    """Return the match of a line of the tracer blk; None if it is none."""
    return BLK.search(line) or CLASSIC.match(line)


def kernel_device(number: int) -> str:
    """Return MAJOR,MINOR of a device's number in the kernel."""
    return f"{number >> MINOR_BITS},{number & (1 << MINOR_BITS) - 1}"


def lacks_block(lines: list[str]) -> bool:
    """Return true if lines are of events, but of none that may be a request."""
    return any(map(OTHER.search, lines)) and not any(map(is_block, lines))


def letter_of(line: str) -> str:
    """Return the letter of a line's event, "" if it is none that may be a request."""
    named = NAMED.search(line)
    if named:
        return LETTERS[named[1]]
    found = of_tracer(line)
    return found["event"] if found and found["event"] in LETTERS.values() else ""


class Ftrace(Events):
    """Reads block events among any others."""

    def __init__(self, options: Options, lines: list[str]):
        super().__init__(options, {letter_of(line) for line in lines if letter_of(line)})

    def request(self, line: str) -> Found:
        named = NAMED.search(line)
        if line.startswith("#"):
            return None
        if named:
            return self.of_event(EVENT.search(line) or RAW.search(line), LETTERS[named[1]],
                                 named[1])
        if LOST.search(line):
            raise LeftOut(GAPS)
        found = of_tracer(line)
        return self.of_event(found, found["event"], "it") if found else None

    def of_event(self, found: re.Match | None, event: str, name: str) -> Found:
        """Return what an event says. @found: its match, @name: of the event."""
        if event != self.event:
            return NO_REQUEST
        if not found:
            raise Malformed(f"no 'device flags sector + sectors' after {name}")
        if found["fraction"] is None:
            raise Malformed("the time has no fraction: record with the clock 'local' or 'global'")
        command, sectors = found["command"], int(found["sectors"] or 0)
        write = self.taken(self.event, found["flags"], f"({command}" if command else "")
        if not sectors:
            raise LeftOut("passthrough commands" if command else "flushes")
        # The kernel prints six digits, trace-cmd report -t nine.
        ns = int(found["s"]) * 10**9 + \
            int(found["fraction"]) * 10**9 // 10 ** len(found["fraction"])
        device = found["dev"] if "," in found["dev"] else kernel_device(int(found["dev"]))
        return ns, device, bool(write), int(found["sector"]) * SECTOR, sectors * SECTOR


FORMAT = Format("ftrace", "ftrace, trace-cmd report, perf script: block events, or the tracer blk",
                lambda options, lines, _: Ftrace(options, lines), "s")
