# SPDX-License-Identifier: GPL-2.0
"""fio's replay log, of version 2 or 3. fio 3.33 takes the times of version 3 as microseconds and,
unlike its manual, a wait of version 2 as milliseconds since the start."""
import collections.abc
import typing

import numpy

# The device in the log; fio's --replay_redirect or --filename override it.
DEVICE = "/dev/replay"
ACTIONS = ("read", "write")
Blocks = collections.abc.Iterable[tuple[numpy.ndarray, ...]]


def write(blocks: Blocks, version: int, out: typing.TextIO):
    """Write the requests of placing.placed() to @out."""
    (write_3 if version == 3 else write_2)(blocks, out)


def write_3(blocks: Blocks, out: typing.TextIO):
    """Write version 3."""
    out.write(f"fio version 3 iolog\n0 {DEVICE} add\n0 {DEVICE} open\n")
    last = 0
    for us, writes, begin, size in blocks:
        # fio starts the clock at the first time that is not 0.
        stamps = (numpy.rint(us).astype("<i8") + 1).tolist()
        out.write("".join(
            f"{stamp} {DEVICE} {ACTIONS[way]} {at} {count}\n" for stamp, way, at, count in
            zip(stamps, writes.tolist(), begin.tolist(), size.tolist(), strict=True)))
        last = stamps[-1]
    out.write(f"{last} {DEVICE} close\n")


def write_2(blocks: Blocks, out: typing.TextIO):
    """Write version 2."""
    out.write(f"fio version 2 iolog\n{DEVICE} add\n{DEVICE} open\n")
    waited = 0
    for us, writes, begin, size in blocks:
        for ms, way, at, count in zip((us / 1000).astype("<i8").tolist(), writes.tolist(),
                                      begin.tolist(), size.tolist(), strict=True):
            if ms > waited:
                waited = ms
                out.write(f"{DEVICE} wait {waited} 0\n")
            out.write(f"{DEVICE} {ACTIONS[way]} {at} {count}\n")
    out.write(f"{DEVICE} close\n")
