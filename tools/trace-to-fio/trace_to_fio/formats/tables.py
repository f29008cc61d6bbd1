# SPDX-License-Identifier: GPL-2.0
"""Traces in columns: the public ones, by their own names and units, and any with a header or with
--columns."""
import dataclasses
import re

from trace_to_fio import LeftOut, Malformed, NoTrace, Options, TraceError
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.formats.events import is_around
from trace_to_fio.formats.columns import (OFFSET, SIZE, WRITE, Column, Row, fields_of,
                                          first_of_each, in_header, missing, named, separator_of,
                                          with_units)
from trace_to_fio.values import SECTOR

# {format: (what writes it, names of its columns with what each is in --columns, may there be more
# columns)}.
PUBLIC = {
    "msr": ("traces of MSR Cambridge", "Timestamp=time_100ns Hostname=dev DiskNumber=dev Type=op "
            "Offset=offset Size=size ResponseTime=-", False),
    "systor": ("traces of Systor '17", "Timestamp=time_s Response=- IOType=op LUN=dev "
               "Offset=offset Size=size", False),
    "alibaba": ("traces of Alibaba's block storage", "device_id=dev opcode=op offset=offset "
                "length=size timestamp=time_us", False),
    "tencent": ("traces of Tencent's block storage (CBS)", "Timestamp=time_s Offset=sector "
                "Size=sectors IOType=is_write VolumeID=dev", False),
    "cloudphysics": ("traces of CloudPhysics in CSV, as of libCacheSim", "version=- time=time_s "
                     "op=scsi size=size lbn=sector", False),
    "spc": ("traces in the format of SPC, as of UMass", "ASU=dev LBA=sector Size=size Opcode=op "
            "Timestamp=time_s", True),
}
# {format: its first field, where its fields alone may be of something else}: a version; seconds
# since 1970, as they are since 2001.
FIRST_FIELD = {"cloudphysics": re.compile("[12]"), "tencent": re.compile(r"[1-9]\d{9}", re.ASCII)}
# Names of a header that have to be known, so that it is one.
KNOWN = 3
OWN = "ts_us=time_us dev=dev op=op offset=offset size=size"


def columns_of(text: str) -> dict[str, Column | None]:
    """Return {name in lower case: column} of a format's columns."""
    found = {}
    for word in text.split():
        name, _, meaning = word.partition("=")
        column = named(meaning)
        found[name.lower()] = column and dataclasses.replace(column, name=name)
    return found


class Csv(Parser):
    """Reads lines of columns."""

    def __init__(self, row: Row, separator: str | None, header: str | None, notes: list[str]):
        self.row, self.separator, self.header, self.assumed = row, separator, header, notes

    def notes(self) -> list[str]:
        return self.assumed

    def request(self, line: str) -> Found:
        # The header is there again where files were joined.
        if not line.strip() or line == self.header or line.startswith("#"):
            return None
        try:
            return self.row.request(fields_of(line, self.separator))
        except Malformed:
            if is_around(line):
                return None
            raise


def header_in(lines: list[str]) -> tuple[str, list[str]] | None:
    """Return (line, names) of the header of a trace; None if there is none before the first
    record. A header may be a comment, and comments may be before it."""
    for line in lines:
        if is_around(line):
            continue
        text = line.lstrip("# \t")
        names = [name.strip() for name in fields_of(text, separator_of(text))]
        if sum(in_header(name) is not None for name in names) >= KNOWN:
            return line, names
        if any(name[:1].isdigit() for name in names) and not line.startswith("#"):
            return None
    return None


def first_record(lines: list[str]) -> str:
    """Return the first line that may be a record or a header, "" without."""
    return next((line for line in lines if line.strip() and not line.startswith("#") and
                 not is_around(line)), "")


def may_be(name: str, lines: list[str]) -> bool:
    """Return false if the first record of a trace without a header shows that it is not of a
    format, though its fields may be."""
    pattern = FIRST_FIELD.get(name)
    return not pattern or bool(pattern.fullmatch(first_record(lines).split(",")[0].strip()))


def public(name: str):
    """Return the function that makes the parser for a public format."""
    _, text, more = PUBLIC[name]
    known = columns_of(text)

    def make(options: Options, lines: list[str], guess: bool) -> Csv | None:
        header = header_in(lines)
        if header and {each.lower() for each in header[1]} >= set(known):
            order = [known.get(each.lower()) for each in header[1]]
            return Csv(Row(with_units(order, options), options, more), ",", header[0], [])
        if guess and (header or not may_be(name, lines)):
            return None
        row = Row(with_units(list(known.values()), options), options, more)
        return Csv(row, ",", header[0] if header else None, [])
    return make


def by_names(options: Options, lines: list[str], guess: bool) -> Csv | None:
    """Return the parser for a trace with a header, or in this project's own format."""
    header = header_in(lines)
    if header:
        columns = first_of_each([in_header(name) for name in header[1]])
        lacks = missing(columns, options)
        if not lacks:
            return with_header(header[0], columns, options, lines)
        raise NoTrace(f"the header has no {', no '.join(lacks)}: --columns names them")
    if guess:
        return None
    own = with_units(list(columns_of(OWN).values()), options)
    return Csv(Row(own, options), ",", None, [])


def with_header(header: str, columns: list[Column | None], options: Options,
                lines: list[str]) -> Csv:
    """Return the parser for a trace with a header. Where names leave the meaning open, the records
    decide, or the user."""
    separator = separator_of(header)
    rows = [fields for fields in (fields_of(line, separator) for line in lines
                                  if line != header and line.strip() and line[0] != "#")
            if len(fields) == len(columns)]
    columns = with_units(columns, options)
    notes = []
    for place, column in enumerate(columns):
        values = {fields[place].strip() for fields in rows}
        if column and column.role == WRITE and values and values <= {"0", "1"} and \
                column.unit is named("op").unit:
            raise TraceError(f"nothing says whether 1 is a read or a write in '{column.name}': "
                             f"--columns {suggestion(columns)}, or is_write in place of is_read")
    sectors = next((each.name for each in columns if each and each.role == OFFSET and
                    each.unit == SECTOR), None)
    blocks = next((each.name for each in columns if each and each.role == SIZE and
                   "block" in each.name.lower()), None)
    if sectors:
        columns, note = sizes_beside(columns, rows)
        notes = [f"'{sectors}' is taken as sectors of {SECTOR} bytes{note} (--columns)"]
    elif blocks:
        notes = [f"'{blocks}' is taken as blocks of {SECTOR} bytes (--columns)"]
    return Csv(Row(columns, options), separator, header, notes)


def sizes_beside(columns: list[Column | None], rows: list[list[str]]
                 ) -> tuple[list[Column | None], str]:
    """Return the columns of a trace whose places are sectors, and what its sizes are taken for:
    sectors if they cannot be bytes."""
    place = next(at for at, each in enumerate(columns) if each and each.role == SIZE)
    column = columns[place]
    if column.unit != 1:
        return columns, f", '{column.name}' too" if "block" in column.name.lower() else ""
    values = [fields[place].strip() for fields in rows]
    if not any(value.isdigit() and int(value) % SECTOR for value in values):
        return columns, f", '{column.name}' as bytes"
    new = dataclasses.replace(column, unit=SECTOR)
    return [*columns[:place], new, *columns[place + 1:]], f", '{column.name}' too"


def suggestion(columns: list[Column | None]) -> str:
    """Return the value of --columns for these columns, in which 1 is a read."""
    units = {10**9: "s", 10**6: "ms", 10**3: "us", 100: "100ns", 1: "ns"}
    words = {OFFSET: {1: "offset", SECTOR: "sector"}, SIZE: {1: "size", SECTOR: "sectors"}}
    found = []
    for column in columns:
        if not column:
            found.append("-")
        elif column.role == WRITE:
            found.append("is_read")
        elif column.role in words:
            found.append(words[column.role][column.unit])
        else:
            found.append(f"time_{units[column.unit]}" if column.role == "time" else "dev")
    return ",".join(found)


def by_option(options: Options, lines: list[str], _: bool) -> Csv:
    """Return the parser for --columns."""
    columns = [named(word.strip()) for word in options.columns.split(",")]
    roles = [column.role for column in columns if column and column.role != "dev"]
    twice = next((role for role in roles if roles.count(role) > 1), None)
    lacks = missing(columns, options)
    if twice or lacks:
        raise TraceError(f"--columns has {f'{twice} twice' if twice else f'no {lacks[0]}'}")
    first = first_record(lines)
    separator = separator_of(first)
    row = Row(with_units(columns, options), options)
    try:
        row.request(fields_of(first, separator))
        header = None
    except LeftOut:
        header = None
    except Malformed:
        header = first if not any(word.strip()[:1].isdigit()
                                  for word in fields_of(first, separator)) else None
    return Csv(row, separator, header, [])


def make_csv(options: Options, lines: list[str], guess: bool) -> Csv | None:
    """Return the parser for columns that the user or the header names."""
    return by_option(options, lines, guess) if options.columns else by_names(options, lines, guess)


FORMATS = [*(Format(name, text, public(name)) for name, (text, _, _) in PUBLIC.items()),
           Format("csv", "columns by a header or by --columns; this project's own CSV", make_csv)]
