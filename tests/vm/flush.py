#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Below each scheduler, by blktrace: an fsync ends only after a flush that was issued after it
# began; a FUA write reaches the device unmerged with its flag, or without FUA support is
# followed by a flush before it ends
# kernels: 6.12
# disk: 64M per scheduler
# timeout: 600
"""Flushes bypass the scheduler, on some kernels also FUA writes. A scheduler could merge
such a write with others, clear its flag, or hold it back. Not on 6.1: its scsi_debug aborts
some commands of this load, also under none and mq-deadline."""

import collections
import string

from blktrace import record
from checks import RELEASE, check, modprobe
from fio_jobs import fio
from iosched import Disk, ours, scsi_disks

# 7.2 records FUA as a zone operation, which Debian 12's blktrace does not get.
SEES_FUA = RELEASE < (7, 2)
# Another job writes the neighbours of the synchronous writes, so that these could merge.
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
    traces = record(disks, lambda: fio(jobs, size="8m"), "QDC", buffer_kb=512, buffers=8,
                    flags=True)
    return {disk: list(events) for disk, events in traces.items()}


def is_flush(event):
    """Return true if the event is the dispatch of a flush."""
    return event.action == "D" and "P" in event.kind and not event.sectors


def fsyncs(events):
    """Check each fsync; return their number. One job calls fsync, so they are in sequence. An
    fsync is queued as an empty write with a flush before it; its completion has no flag."""
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
    """Check that each FUA write is dispatched as it was queued; return their number."""
    queued = collections.Counter((e.sector, e.sectors) for e in events
                                if e.action == "Q" and e.kind == "WF")
    sent = collections.Counter((e.sector, e.sectors) for e in events
                               if e.action == "D" and e.kind == "WF")
    check(queued == sent, f"{sum(queued.values())} FUA writes queued and dispatched: "
                         f"{list((queued - sent) + (sent - queued))[:5]}")
    return sum(queued.values())


def without_fua(events):
    """Check that each FUA write is dispatched, then flushed, then ends; return their number. Its
    completion has no data."""
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
    judges |= {Disk(f"vd{string.ascii_lowercase[number]}", name): without_fua
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
