#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Under BP a lone far write is dispatched by its deadline, although an endless stream of
# writes in one erase block (or in the slices of other processes) is preferred to it
# virtual-time: yes
# check: 6.12
# timeout: 900

from checks import check
from fio_jobs import fio
from iosched import Disk
from ssd import Device

EXPIRE_MS = 200
STREAM = {"numjobs": 3, "rw": "randwrite", "size": "1m", "norandommap": 1, "iodepth": 8,
          "time_based": 1, "runtime": 2}
FAR = {"rw": "write", "offset": "256m", "size": "4k", "ioengine": "psync", "number_ios": 1,
       "startdelay": "500ms"}


def far_write(disk, expire_ms):
    """Whole milliseconds that a far write beside the stream takes, with this deadline."""
    disk.set(write_expire=expire_ms)
    jobs = {name: {"filename": disk.path, **options}
            for name, options in (("stream", STREAM), ("far", FAR))}
    return int(fio(jobs)["far"][0]["write"]["lat_ns"]["max"] / 1e6)


with Device("small", queue_depth=1) as device:
    bp = Disk(device.name, "bp")
    (bp.queue / "nr_requests").write_text("64")
    (bp.queue / "nomerges").write_text("2")
    bp.set(slice_sync_ms=1000)
    for base in ("anticipatory", "fair"):
        bp.set(base=base)
        late = far_write(bp, 3600000)
        check(late > 800, f"{base}: without a deadline the stream goes first, for {late} ms")
        in_time = far_write(bp, EXPIRE_MS)
        # 50 ms more: a jiffy, and the stream's own writes that are older, 1 ms each.
        check(in_time <= EXPIRE_MS + 50, f"{base}: {in_time} ms with a deadline of {EXPIRE_MS} ms")
        bp.nothing_left()
