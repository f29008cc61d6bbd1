# SPDX-License-Identifier: GPL-2.0
"""Traces for simulators and emulators: 'time device place size direction', 1 being a read. They
differ in the units only, so one is often mistaken for another."""
import re

from trace_to_fio import Malformed, Options
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.values import SECTOR, UNITS, is_natural, nanoseconds, natural

READ = 1
# DiskSim's flags, of which READ is the lowest, are hexadecimal.
FLAGS = re.compile(r"(?:0x)?[\da-f]{1,8}", re.ASCII | re.IGNORECASE)


class Simulator(Parser):
    """Reads lines whose times have @unit ns and whose places and sizes have @bytes."""

    def __init__(self, unit: int, of_bytes: int):
        self.unit, self.of_bytes = unit, of_bytes

    def request(self, line: str) -> Found:
        if not line.strip() or line.startswith("#"):
            return None
        fields = line.split()
        if len(fields) != 5:
            raise Malformed(f"{len(fields)} fields instead of 5")
        time, device, place, size, flags = fields
        if not FLAGS.fullmatch(flags):
            raise Malformed(f"the direction is no number: '{flags}'")
        return (nanoseconds(time, self.unit, "the time"), str(natural(device, "the device")),
                not int(flags, 16) & READ, natural(place, "the place") *
                self.of_bytes, natural(size, "the size") * self.of_bytes)


def rows_of(lines: list[str]) -> list[list[str]]:
    """Return the fields of the lines that may be records."""
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [row for row in rows if len(row) == 5 and all(map(is_natural, row[1:4]))]


def in_bytes(rows: list[list[str]]) -> bool:
    """Return true if all places and sizes may be bytes."""
    return all(int(text) % SECTOR == 0 for row in rows for text in row[2:4])


def one_bit(rows: list[list[str]]) -> bool:
    """Return true if all directions are 0 or 1."""
    return all(row[4] in ("0", "1") for row in rows)


def femu(options: Options, lines: list[str], guess: bool) -> Simulator | None:
    """Return the parser for the replayer beside FEMU: ms, with a fraction, and bytes."""
    rows = rows_of(lines)
    whole = all(is_natural(row[0]) for row in rows)
    if guess and (whole or not (in_bytes(rows) and one_bit(rows))):
        return None
    return Simulator(options.time_unit or UNITS["ms"], 1)


def mqsim(options: Options, lines: list[str], guess: bool) -> Simulator | None:
    """Return the parser for MQSim: ns by default, without a fraction, and sectors."""
    rows = rows_of(lines)
    if guess and not (all(is_natural(row[0]) for row in rows) and one_bit(rows)):
        return None
    return Simulator(options.time_unit or UNITS["ns"], SECTOR)


def disksim(options: Options, _: list[str], __: bool) -> Simulator:
    """Return the parser for DiskSim: ms and sectors."""
    return Simulator(options.time_unit or UNITS["ms"], SECTOR)


FORMATS = [Format("femu", "traces for the replayer of FEMU (ms, bytes)", femu),
           Format("mqsim", "traces for MQSim (ns, sectors)", mqsim),
           Format("disksim", "traces for DiskSim, ASCII (ms, sectors)", disksim)]
