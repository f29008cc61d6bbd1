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
import glob
import pathlib
import re
import signal
import subprocess

from ssd import RELEASE, check, load_tool
from together import Disk, fio, modprobe, ours, scsi_disks, wait_for

READ_TRACE = load_tool("read-trace")
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
Event = collections.namedtuple("Event", "time action kind sector sectors")


def traced(disks):
    """Run the load on all; {disk: its events, in order}."""
    devices = [word for disk in disks for word in ("-d", disk.path)]
    jobs = {f"{disk.name} {name}": {"filename": disk.path, **options}
            for disk in disks for name, options in JOBS.items()}
    with subprocess.Popen(["blktrace", *devices, "-D", "/tmp", "-b", "512", "-n", "8"],
                          stdout=subprocess.PIPE, text=True) as tracer:
        for disk in disks:
            wait_for(pathlib.Path(f"/sys/kernel/debug/block/{disk.name}/trace0").exists,
                     "blktrace")
        fio(jobs, size="8m")
        tracer.send_signal(signal.SIGINT)
        said = tracer.communicate()[0]
    lost = re.findall(r"dropped ([1-9]\d*)", said)
    check("dropped 0" in said and not lost, f"blktrace has all {lost}")
    return {disk: events_of(disk) for disk in disks}


def events_of(disk):
    """What blktrace has recorded of a disk."""
    found = sorted(event for path in glob.glob(f"/tmp/{disk.name}.blktrace.*")
                   for event in READ_TRACE.events(path, True))
    fields = (line.split() for _, _, line in found)
    return [Event(float(f[0]), f[2], f[3], int(f[4]), int(f[5])) for f in fields if f[2] != "m"]


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
            if event.action == "D" and event[3:] == write[3:]:
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
