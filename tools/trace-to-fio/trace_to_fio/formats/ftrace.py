# SPDX-License-Identifier: GPL-2.0
"""Block events of ftrace, as the kernel's trace file, trace-cmd report and perf script print
them."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.events import GAPS, Events
from trace_to_fio.values import SECTOR

LETTERS = {"block_bio_queue": "Q", "block_rq_insert": "I", "block_rq_issue": "D",
           "block_rq_complete": "C"}
# "8,0 R 4096 () 1000 + 8 none,0,0 [comm]": bytes are there only before completion, the command in
# parentheses only with requests, the priority since 6.10.
EVENT = re.compile(r"(?:^|\s)(\d+)(?:\.(\d+))?:\s+(?:block:)?(block_\w+):\s+(\d+,\d+) +(\w+) +"
                   r"(?:\d+ +)?(?:\(([^)]*)\) +)?(\d+) \+ (\d+)(?:\s|$)", re.ASCII)
LOST = re.compile(r"CPU:?\s*\d+ \[(?:LOST )?\d* ?EVENTS")
# Any event.
OTHER = re.compile(r"\s\d+\.\d+:\s+(?:\w+:)?\w+:", re.ASCII)
NAMED = re.compile(r":\s+(?:block:)?(block_bio_queue|block_rq_(?:insert|issue|complete)):")


def is_block(line: str) -> bool:
    """Return true if a line is a block event that may be a request."""
    return NAMED.search(line) is not None


def lacks_block(lines: list[str]) -> bool:
    """Return true if lines are of events, but of none that may be a request."""
    return any(map(OTHER.search, lines)) and not any(map(is_block, lines))


class Ftrace(Events):
    """Reads block events among any others."""

    def __init__(self, options: Options, lines: list[str]):
        found = (NAMED.search(line) for line in lines)
        super().__init__(options, {LETTERS[each[1]] for each in found if each})

    def request(self, line: str) -> Found:
        named = NAMED.search(line)
        if not named and LOST.search(line):
            raise LeftOut(GAPS)
        if not named or line.startswith("#"):
            return None
        if LETTERS[named[1]] != self.event:
            return NO_REQUEST
        found = EVENT.search(line)
        if not found:
            raise Malformed(f"no 'device flags sector + sectors' after {named[1]}")
        seconds, rest, _, device, flags, command, sector, sectors = found.groups()
        if rest is None:
            raise Malformed("the time has no fraction: record with the clock 'local' or 'global'")
        write = self.taken(self.event, flags, f"({command}" if command else "")
        if not int(sectors):
            raise LeftOut("passthrough commands" if command else "flushes")
        # The kernel prints six digits, trace-cmd report -t nine.
        ns = int(seconds) * 10**9 + int(rest) * 10**9 // 10 ** len(rest)
        return ns, device, bool(write), int(sector) * SECTOR, int(sectors) * SECTOR


FORMAT = Format("ftrace", "ftrace, trace-cmd report, perf script: block events",
                lambda options, lines, _: Ftrace(options, lines), "s")
