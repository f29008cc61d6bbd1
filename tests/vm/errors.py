#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# With I/O errors, lost commands and requeued commands each I/O ends once; with known bad
# sectors exactly the I/Os on them fail; requeued data are written and read right
# check: 6.12
# timeout: 900

import errno

from checks import check, modprobe
from fio_jobs import fio, verify
from iosched import SCSI_DEBUG, Disk, ours, scsi_disks
from ssd import NullBlk

# Faults of every nth command of all disks of scsi_debug: (option, n, I/Os of a job, true if the
# scheduler sees requeues). A command for which the host was busy waits in the block layer.
FAULTS = {"recovered error": (0x8, 7, 150, False),
          "transport error": (0x10, 7, 150, True),
          "short transfer": (0x100, 7, 150, True),
          "host busy": (0x8000, 3, 150, False),
          # Few: each waits for the timeout.
          "lost": (0x4, 100, 50, True)}
MEDIUM_ERROR = 2
# The errors that these faults cause.
ERRNOS = f"{errno.EIO}:{errno.ENODATA}:{errno.ETIMEDOUT}:{errno.EREMOTEIO}"
# The bad sectors of scsi_debug, first and last, also used for null_blk: they are in two blocks
# of 4 KB of the third megabyte.
BAD_SECTORS, BAD_BLOCKS = (0x1234, 0x123d), 2


def inject(options, every_nth):
    """Have scsi_debug apply these options to every nth command."""
    (SCSI_DEBUG / "every_nth").write_text(str(every_nth))
    (SCSI_DEBUG / "opts").write_text(str(options))


def set_timeout(disks, seconds):
    """Set the command timeout. Only where commands are lost may it be short: on a slow machine
    slow commands must not time out."""
    for disk in disks:
        (disk.queue.parent / "device/timeout").write_text(str(seconds))


def revive(disks, lossy):
    """Set the disks running again: if its own commands are lost, error handling takes a disk
    offline, under any scheduler."""
    for disk in disks:
        state = disk.queue.parent / "device/state"
        if state.read_text().strip() != "running":
            check(lossy, f"{disk.label}: the kernel took the disk offline")
            state.write_text("running\n")


def everywhere(disks, **options):
    """Run one fio on all disks, which continues after errors; return the errors by disk."""
    results = fio({disk.name: {"filename": disk.path} for disk in disks}, good=False,
                  continue_on_error="all", ignore_error=f"{ERRNOS},{ERRNOS}", **options)
    return {disk: sum(job["total_err"] for job in results[disk.name]) for disk in disks}


def transient(disks):
    """Faults after which the I/O is retried."""
    faults = 0
    for disk in disks:
        disk.tune(depth=4)
    for what, (option, every_nth, count, back) in FAULTS.items():
        before = {disk: disk.counters()["requeued"] for disk in disks}
        set_timeout(disks, 2 if what == "lost" else 120)
        # The few that are lost may all be of the same disk; requests that bypass its queue do
        # not count as requeued.
        for disk in disks:
            disk.tune(bypass=int(what != "lost"))
        inject(option, every_nth)
        errors = everywhere(disks, rw="randrw", bs="4k-32k", numjobs=2, number_ios=count)
        inject(0, 0)
        print(f"{what}: {sum(errors.values())} errors")
        revive(disks, what == "lost")
        for disk in disks:
            disk.nothing_left()
        grown = sum(disk.counters()["requeued"] - before[disk] for disk in disks)
        check(bool(grown) == back, f"{what}: {grown} requeues")
        faults += 2 * count * len(disks) // every_nth
    set_timeout(disks, 120)
    for what in ("host busy", "short transfer"):
        inject(*FAULTS[what][:2])
        verify(disks, size="6m")
        inject(0, 0)
    return faults


def bad_sectors(disks, **options):
    """Of 256 blocks of 4 KB, each used once, exactly the bad ones fail."""
    before = {disk: disk.counters()["completed"] for disk in disks}
    for disk in disks:
        (disk.queue / "nomerges").write_text("2")
    errors = everywhere(disks, offset="2m", size="1m", **options)
    for disk, count in errors.items():
        disk.nothing_left()
        done = disk.counters()["completed"] - before[disk]
        check(done == 256 and count == BAD_BLOCKS,
              f"{disk.label}, {options['rw']}: {count} of {done} I/Os failed")
        (disk.queue / "nomerges").write_text("0")


def main():
    names = ours()
    disks = [Disk(disk, name) for name, disk in
             zip(names, scsi_disks(len(names), dev_size_mb=16, ndelay=50000, max_queue=16),
                 strict=True)]
    faults = transient(disks)
    inject(MEDIUM_ERROR, 1)
    bad_sectors(disks, rw="randread")
    inject(0, 0)
    devices = [NullBlk(f"{name}-bad", size=64, memory_backed=1, queue_mode=2, irqmode=2,
                       completion_nsec=50000, submit_queues=2) for name in names]
    for device in devices:
        (device.folder / "badblocks").write_text(f"+{BAD_SECTORS[0]}-{BAD_SECTORS[1]}")
    bad = [Disk(device.name, name, depth=3) for device, name in zip(devices, names, strict=True)]
    bad_sectors(bad, rw="randwrite")
    bad_sectors(bad, rw="randread")
    faults += 3 * BAD_BLOCKS * len(names)
    for disk in disks + bad:
        disk.select("none")
    for device in devices:
        device.remove()
    modprobe("-r", "scsi_debug")
    print(f"counted: faults={faults}")


if __name__ == "__main__":
    main()
