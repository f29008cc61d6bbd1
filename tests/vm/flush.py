#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Flushes and FUA keep their promises below each scheduler, by blktrace: an fsync ends
# only after a flush that was issued since it began; a write with FUA gets to the device
# with it, whole and alone, or is flushed before it ends where there is no FUA
# kernels: 6.12
# disk: 64M
# disk: 64M
# disk: 64M
# disk: 64M
# timeout: 600
"""See above.

Flushes pass by a scheduler, and writes with FUA do so on some kernels. What could go
wrong in it: such a write merged with others, sent on without its flag, or held back.
Not on 6.1, whose scsi_debug aborts some commands of such a load by itself, under none
and mq-deadline too.
"""

import collections

from blktrace import record
from checks import RELEASE, check, modprobe
from fio_jobs import fio
from iosched import Disk, ours, scsi_disks

# 7.2 takes FUA for a zone operation, which it does not tell a blktrace of Debian 12's version.
SEES_FUA = RELEASE < (7, 2)
# Neighbours of the synchronous writes are written by another job, so that there
# is much to merge with.
JOBS = {"fsync": {"rw": "randwrite", "iodepth": 1, "fsync": 2, "offset": "8m",
                  "number_ios": 110},
        "dsync": {"rw": "write:4k", "iodepth": 8, "sync": "dsync", "offset": "1m",
                  "number_ios": 150},
        "beside": {"rw": "write:4k", "iodepth": 16, "offset": "1028k", "number_ios": 300},
        "mixed": {"rw": "randrw", "bs": "4k-32k", "offset": "16m", "number_ios": 300}}


def traced(disks):
    """Run the load on all disks; return {disk: its events, in order}."""
    jobs = {f"{disk.name} {name}": {"filename": disk.path, **options}
            for disk in disks for name, options in JOBS.items()}
    return record(disks, lambda: fio(jobs, size="8m"), buffer_kb=512, buffers=8, flags=True)


def is_flush(event):
    """The device is told to flush."""
    return event.action == "D" and "P" in event.kind and not event.sectors


def fsyncs(events):
    """One job calls fsync, so they come one after the other: queued as an empty write
    with a flush before it, which has lost its flag when it ends."""
    asked, flushed, number = False, False, 0
    for event in events:
        empty = event.kind.startswith("W") and not event.sector and not event.sectors
        if empty and event.action == "Q":
            if asked:
                check(False, f"{event}: the last fsync has not ended yet")
            asked, flushed = True, False
        elif is_flush(event):
            flushed = True
        elif empty and event.action == "C":
            if not (asked and flushed):
                check(False, f"{event}: no flush between an fsync's begin and end")
            asked, number = False, number + 1
    return number


def with_fua(events):
    """Each write with FUA that was asked for is sent as it is."""
    asked = collections.Counter((e.sector, e.sectors) for e in events
                                if e.action == "Q" and e.kind == "WF")
    sent = collections.Counter((e.sector, e.sectors) for e in events
                               if e.action == "D" and e.kind == "WF")
    check(asked == sent, f"{sum(asked.values())} writes with FUA asked for and sent: "
                         f"{list((asked - sent) + (sent - asked))[:5]}")
    return sum(asked.values())


def without_fua(events):
    """Each one is sent, then the device is flushed, then it ends: as an empty one."""
    asked = [(at, event) for at, event in enumerate(events)
             if event.action == "Q" and event.kind == "WF"]
    for at, write in asked:
        behind = (write.sector, write.sector + write.sectors)
        sent = flushed = ended = False
        for event in events[at:]:
            if event.action == "D" and event[3:5] == write[3:5]:
                sent = True
            elif is_flush(event):
                flushed = sent
            elif event.action == "C" and event.sector in behind and not event.sectors:
                ended = True
                break
        if not (sent and flushed and ended):
            check(False, f"{write}: sent {sent}, flushed {flushed}, ended {ended}")
    return len(asked)


def main():
    modprobe("virtio_blk")
    names = ours()
    with_cache = scsi_disks(len(names), dev_size_mb=32, ndelay=500000, max_queue=8)
    judges = {Disk(disk, name): with_fua for disk, name in zip(with_cache, names, strict=True)}
    judges |= {Disk(f"vd{'abcd'[number]}", name): without_fua
               for number, name in enumerate(names)}
    for disk, judge in judges.items():
        check((disk.queue / "write_cache").read_text().startswith("write back"),
              f"{disk.name} has a cache")
        fua = (disk.queue / "fua").read_text().strip() == "1"
        check(fua == (judge is with_fua), f"{disk.name}: fua is {fua}")
    for disk, events in traced(judges).items():
        synced, written = fsyncs(events), judges[disk](events)
        check(synced > 50 and written == SEES_FUA * JOBS["dsync"]["number_ios"],
              f"{disk.label}: {synced} fsyncs, {written} writes with FUA")
        disk.nothing_left()
        disk.select("none")
    modprobe("-r", "scsi_debug")


if __name__ == "__main__":
    main()
