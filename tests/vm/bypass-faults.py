#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Requests that bypass PASS and are requeued, or refused by a busy host, end once, and with
# right data; slow requests of another class count for its limit
# kernels: 6.1 6.12 7.2 7.3 debug-6.1 debug-6.12 debug-7.2
# check: 6.12 6.1
# timeout: 900

from blktrace import most_in_flight
from checks import check, wait_for
from fio_jobs import fio, verify
from fio_jobs import load as background
from iosched import SCSI_DEBUG, Disk, scsi_disks
from scsi_target import NON_OPTIMIZED, OPTIMIZED, units

IOS = 500
# What scsi_debug does to every nth command: (option, n). A command for which the host is busy
# waits in the block layer; after a transport error the block layer sends it again, prepared.
FAULTS = {"host busy": (0x8000, 11), "transport error": (0x10, 7)}


def inject(options, every_nth):
    """Have scsi_debug apply these options to every nth command."""
    (SCSI_DEBUG / "every_nth").write_text(str(every_nth))
    (SCSI_DEBUG / "opts").write_text(str(options))


def sent(disk):
    """Number of commands that sd has sent to the disk."""
    return int((disk.queue.parent / "device/iorequest_cnt").read_text(), 0)


def hindered(disk):
    """Reads and writes of which a part is refused or fails."""
    for what, (option, every_nth) in FAULTS.items():
        inject(option, every_nth)
        before, commands = disk.counters()["bypassed"], sent(disk)
        fio({"job": {"rw": "randrw", "iodepth": 8, "number_ios": IOS}}, filename=disk.path)
        more = sent(disk) - commands - IOS
        # No request bypasses one that waits for the host.
        found = disk.counters()["bypassed"] - before
        check(found > IOS / 20, f"{what}: {found} of {IOS} requests bypass the queue")
        check(what == "host busy" or more > IOS / every_nth / 2,
              f"{what}: {more} commands are sent again")
        verify([disk])
        inject(0, 0)


def prepared_anew(unit, disk):
    """Reads and writes while the unit is in transition: the block layer inserts each again."""
    before = disk.counters()
    with background([disk], {"job": {"filename": disk.path, "rw": "randrw", "iodepth": 8}}):
        for state in (NON_OPTIMIZED, OPTIMIZED):
            with unit.in_transition(state):
                pass
    now = disk.counters()
    bypassed = now["bypassed"] - before["bypassed"]
    queued = now["inserted"] - before["inserted"] - bypassed
    check(bypassed > 50 and queued >= 8,
          f"in transition: {bypassed} requests bypass the queue, {queued} do not")
    verify([disk])


def set_delay(jiffies):
    """Have scsi_debug take this long for a read or write."""
    def idle():
        try:
            (SCSI_DEBUG / "delay").write_text(str(jiffies))
        except OSError:
            return False
        return True
    wait_for(idle, "the end of all commands")


def slow_class(disk):
    """Reads of the idle class that are in the device for seconds count for the limit."""
    # A deadline overrides the limit.
    disk.set(depth=2, read_expire=60000)
    set_delay(1500)
    jobs = {"idle": {"prioclass": 3}, "be": {"startdelay": 2}}
    found = most_in_flight(disk, lambda: fio(jobs, filename=disk.path, rw="randread", iodepth=2,
                                             number_ios=2))
    check(found == 2, f"depth 2, two reads of the idle class are slow: {found} in flight")
    set_delay(1)
    disk.set(depth=0, read_expire=500)


def main():
    (name,) = scsi_disks(1, ndelay=50000, dev_size_mb=64)
    disk = Disk(name, "pass")
    hindered(disk)
    slow_class(disk)
    disk.nothing_left()
    disk.select("none")
    with units(1) as (unit,):
        disk = Disk(unit.name, "pass")
        prepared_anew(unit, disk)
        disk.nothing_left()
        disk.select("none")


if __name__ == "__main__":
    main()
