# SPDX-License-Identifier: GPL-2.0
"""The binary traces of CloudPhysics, of VMware's vscsiStats: records of two versions."""
import collections.abc
import struct

from trace_to_fio import Malformed, Request, TraceError
from trace_to_fio.formats import Parser
from trace_to_fio.source import Stream
from trace_to_fio.values import SCSI, SECTOR, UNITS, opcode

NAME, UNIT = "vscsi", "us"
# {version: the struct of a record, indices of version, command, length, block and time in us}.
VERSIONS = {1: (struct.Struct("<IIIHHQQ"), (4, 3, 1, 5, 6)),
            2: (struct.Struct("<HHIIIQQQ"), (1, 0, 3, 5, 6))}
# The version is the upper byte of its field.
SHIFT = 8
# Records that have to be right to tell the format, of those that there are.
RECORDS = 8


def version_of(head: bytes) -> int | None:
    """Return the version of a trace that begins with @head; None if it is none."""
    for version, (record, (at, command, length, _, _)) in VERSIONS.items():
        whole = len(head) // record.size * record.size
        found = list(record.iter_unpack(head[:min(whole, RECORDS * record.size)]))
        if found and all(each[at] >> SHIFT == version and each[command] < 256 and
                         each[length] % SECTOR == 0 for each in found) and \
                any(each[command] in SCSI for each in found):
            return version
    return None


def records(stream: Stream, version: int) -> collections.abc.Iterator[tuple[int, tuple]]:
    """Yield (number from 1, fields) of the records."""
    record, _ = VERSIONS[version]
    number, rest = 0, b""
    while block := stream.read():
        block = rest + block
        whole = len(block) // record.size * record.size
        rest = block[whole:]
        for fields in record.iter_unpack(block[:whole]):
            number += 1
            yield number, fields
    if rest:
        raise TraceError(f"{stream.name}: it ends within record {number + 1}")


class Vscsi(Parser):
    """Reads the fields of records."""

    def __init__(self, version: int):
        self.version = version
        self.places = VERSIONS[version][1]

    def request(self, fields: tuple) -> Request:
        version, command, length, block, time = (fields[place] for place in self.places)
        if version >> SHIFT != self.version:
            raise Malformed(f"a record of version {version >> SHIFT} instead of {self.version}")
        return time * UNITS[UNIT], "", opcode(command), block * SECTOR, length
