# SPDX-License-Identifier: GPL-2.0
"""Where the requests of several devices are on one."""
import collections.abc
import dataclasses

import numpy

from trace_to_fio import TraceError
from trace_to_fio.spool import Spool
from trace_to_fio.values import SECTOR

# us of the longest replay: fio counts ns in 64 bits.
LONGEST = 1 << 53


@dataclasses.dataclass(frozen=True)
class Placing:
    """@align: bytes whose multiples begins and ends are widened to; @capacity: bytes of a device
    that offsets are folded onto, None: as large as needed; @faster: how many times as fast"""
    align: int = SECTOR
    capacity: int | None = None
    faster: float = 1


def bases(spool: Spool, devices: dict[str, int], align: int) -> tuple[numpy.ndarray, int]:
    """Return where each device begins, by its number, and where the last one ends: bytes. The
    devices are concatenated in the order of their names."""
    found, total = [0] * max(1, len(devices)), 0
    for name in sorted(devices):
        found[devices[name]] = total
        total += -(-int(spool.ends[devices[name]]) // align) * align
    if total >= 1 << 62:
        raise TraceError("the devices are larger than any drive, one after the other: is that the "
                         "column of the offset? (--columns, --device)")
    return numpy.array(found, "<i8"), total


def check_length(spool: Spool, how: Placing):
    """Raise an error if the replay takes longer than fio can count."""
    if (spool.last - spool.first) / 1000 / how.faster > LONGEST:
        raise TraceError("the replay would take more than 285 years, longer than fio can count: "
                         "give a larger factor to --compress")


def placed(spool: Spool, devices: dict[str, int], how: Placing
           ) -> collections.abc.Iterator[tuple[numpy.ndarray, ...]]:
    """Yield blocks of requests in order of time: (us since the first, True for a write, offset and
    size in bytes)."""
    base, _ = bases(spool, devices, how.align)
    for block in spool.in_order():
        us = (block["ns"] - spool.first) / 1000 / how.faster
        begin = block["offset"] + base[block["kind"] >> 1]
        end = -(-(begin + block["size"]) // how.align) * how.align
        begin = begin // how.align * how.align
        size = end - begin
        if how.capacity:
            size = numpy.minimum(size, how.capacity)
            begin = numpy.minimum(begin % how.capacity, how.capacity - size)
        yield us, block["kind"] & 1 == 1, begin, size
