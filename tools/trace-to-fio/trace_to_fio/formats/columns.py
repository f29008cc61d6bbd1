# SPDX-License-Identifier: GPL-2.0
"""Columns of a trace: what a name means, by --columns or in a header."""
import collections.abc
import csv
import dataclasses
import re

from trace_to_fio import LeftOut, Malformed, Options, Request, TraceError
from trace_to_fio.values import SECTOR, UNITS, flag, nanoseconds, natural, scsi, writes

TIME, WRITE, OFFSET, SIZE, DEVICE = "time", "op", "offset", "size", "dev"
DIRECTIONS = {"op": writes, "is_read": flag(False), "is_write": flag(True), "scsi": scsi}
# Names of --columns, and {name: (role, its unit)}; a time's is ns, a place's and a size's bytes.
NAMES = {**{f"time_{unit}": (TIME, ns) for unit, ns in UNITS.items()}, "time": (TIME, None),
         "offset": (OFFSET, 1), "sector": (OFFSET, SECTOR), "size": (SIZE, 1),
         "sectors": (SIZE, SECTOR), "dev": (DEVICE, None),
         **{name: (WRITE, how) for name, how in DIRECTIONS.items()}}
IGNORED = "-"
# Names in headers for each name of --columns, in lower case with "_" between words.
TIMES = "time ts timestamp arrival arrival_time issue_time start_time start time_stamp date_time"
UNIT_WORDS = {"s": "s sec secs second seconds", "ms": "ms msec msecs millisecond milliseconds",
              "us": "us usec usecs microsecond microseconds",
              "ns": "ns nsec nsecs nanosecond nanoseconds", "100ns": "100ns filetime"}
SYNONYMS = {
    # As bpftrace calls it.
    "time_ns": "nsecs",
    "op": "op type rw r/w opcode op_type optype iotype io_type operation direction rwbs "
          "read_write readwrite req_type request_type command cmd access access_type",
    "is_read": "is_read isread", "is_write": "is_write iswrite",
    "offset": "offset off byte_offset offset_bytes start_offset address addr position pos",
    "sector": "sector lba lbn slba blkno start_sector start_lba sector_number starting_lba",
    "size": "size length len bytes size_bytes nbytes io_size request_size req_size "
            "transfer_size byte_count",
    "sectors": "sectors nr_sector nr_sectors nsector nsectors num_sectors size_sectors "
               "sector_count",
    "dev": "dev device disk device_id dev_id disk_id disk_number disknumber devno volume volumeid "
           "volume_id lun asu drive hostname",
}
SIZE_UNITS = {"b": 1, "byte": 1, "bytes": 1, "kb": 1024, "kib": 1024, "sector": SECTOR,
              "sectors": SECTOR, "blocks": SECTOR}
UNIT_OF = {word: unit for unit, words in UNIT_WORDS.items() for word in words.split()}
MEANING = {word: name for name, words in SYNONYMS.items() for word in words.split()}
ROLE_WORDS = {TIME: "time", OFFSET: "offset or sector", SIZE: "size or sectors",
              WRITE: "op, is_read or is_write"}


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: what it is, its unit or the function for a direction, its name in the trace."""
    role: str
    unit: int | collections.abc.Callable[[str], bool] | None
    name: str


def named(word: str) -> Column | None:
    """Return the column of a word of --columns; None for one that is ignored."""
    if word == IGNORED:
        return None
    name, _, factor = word.partition("*")
    if name not in NAMES or (factor and not re.fullmatch(r"[1-9]\d{0,8}", factor, re.ASCII)):
        raise TraceError(f"--columns: '{word}' is none of {', '.join(NAMES)}, -")
    role, unit = NAMES[name]
    if factor:
        if role not in (OFFSET, SIZE):
            raise TraceError(f"--columns: '{word}': only places and sizes have a factor")
        unit *= int(factor)
    return Column(role, unit, name)


def in_header(text: str) -> Column | None:
    """Return the column that a name in a header means; None if it means none."""
    word = re.sub(r"\W+", "_", text.strip().strip("\"'").lower().replace("µ", "u")).strip("_")
    if text.strip().lower() == "r/w":
        word = "op"
    if word in MEANING:
        name = MEANING[word]
        return Column(*NAMES[name], text.strip())
    base, _, unit = word.rpartition("_")
    if base in MEANING and NAMES[MEANING[base]][0] in (OFFSET, SIZE) and unit in SIZE_UNITS:
        return Column(NAMES[MEANING[base]][0], SIZE_UNITS[unit], text.strip())
    for known in TIMES.split():
        if word == known:
            return Column(TIME, None, text.strip())
        if word.startswith(known + "_") and word[len(known) + 1:] in UNIT_OF:
            return Column(TIME, UNITS[UNIT_OF[word[len(known) + 1:]]], text.strip())
    return None


def first_of_each(columns: list[Column | None]) -> list[Column | None]:
    """Return the columns without later ones of a role that there is once only."""
    seen: set[str] = set()
    found = []
    for column in columns:
        again = column and column.role != DEVICE and column.role in seen
        found.append(None if again else column)
        seen |= {column.role} if column else set()
    return found


def missing(columns: list[Column | None], options: Options) -> list[str]:
    """Return what the columns lack for a request, in words."""
    roles = {column.role for column in columns if column}
    return [words for role, words in ROLE_WORDS.items() if role not in roles and
            not (role == WRITE and options.write is not None)]


def with_units(columns: list[Column | None], options: Options) -> list[Column | None]:
    """Return the columns with the time's unit, which the user has to say if the header does not."""
    found = []
    for column in columns:
        if column and column.role == TIME:
            unit = options.time_unit or column.unit
            if not unit:
                raise TraceError(f"nothing says the unit of '{column.name}': --time-unit "
                                 f"{', '.join(UNITS)}")
            found.append(dataclasses.replace(column, unit=unit))
        else:
            found.append(column)
    return found


def fields_of(line: str, separator: str | None) -> list[str]:
    """Return the fields of a line, without quotes. @separator: None for spaces"""
    if '"' in line:
        try:
            return next(csv.reader([line], delimiter=separator or " ", skipinitialspace=True))
        except csv.Error as error:
            raise Malformed(str(error)) from None
    return line.split(separator)


def separator_of(line: str) -> str | None:
    """Return what separates the fields of a line; None if spaces do."""
    return next((each for each in ",;\t|" if each in line), None)


class Row:
    """Makes requests of the fields of a line. @more: there may be more fields than columns"""

    def __init__(self, columns: list[Column | None], options: Options, more: bool = False):
        by_role = {column.role: (place, column.unit, column.name)
                   for place, column in enumerate(columns) if column}
        self.time, self.offset, self.size = by_role[TIME], by_role[OFFSET], by_role[SIZE]
        self.direction = by_role.get(WRITE)
        self.devices = [place for place, column in enumerate(columns)
                        if column and column.role == DEVICE]
        self.count, self.more, self.write = len(columns), more, options.write

    def request(self, fields: list[str]) -> Request:
        """Return the request of a line's fields."""
        if len(fields) != self.count and not (self.more and len(fields) > self.count):
            raise Malformed(f"{len(fields)} fields instead of {self.count}")
        place, unit, name = self.time
        ns = nanoseconds(fields[place], unit, name)
        write = self.write
        if self.direction:
            write = self.direction[1](fields[self.direction[0]])
        place, unit, name = self.offset
        offset = natural(fields[place], name) * unit
        place, unit, name = self.size
        size = natural(fields[place], name) * unit
        # As tracers print one that writes nothing, FWS.
        if not size and self.direction and fields[self.direction[0]].strip().startswith("F"):
            raise LeftOut("flushes")
        if len(self.devices) == 1:
            return ns, fields[self.devices[0]].strip(), write, offset, size
        return ns, ".".join(fields[place].strip() for place in self.devices), write, offset, size

    def fits(self, fields: list[str]) -> bool:
        """Return true if the fields make a request, or one that is left out."""
        try:
            self.request(fields)
        except LeftOut:
            return True
        except Malformed:
            return False
        return True
