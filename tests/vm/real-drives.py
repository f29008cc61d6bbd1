#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A card, a USB stick and a USB drive behind the kernel's own drivers (mmc_block, usb-storage, uas):
# data are right while schedulers are switched, the core learns that the card takes one request at
# a time and gives readers their part of it, and all I/O ends when a drive goes while requests are
# held
# kernels: 6.1 6.12 newest 6.1-arm64 newest-arm64
# check: 6.12 6.1-arm64 newest-arm64
# sd: 64M,iops=800
# usb: 64M,iops=400
# uas: 64M,iops=400
# timeout: 900

import pathlib
import re

from checks import SLOW, amount, check, is_added, modprobe, wait_for
from fio_jobs import fio, load, removed_under_load
from iosched import Disk, ours, remove_all

CHECKED = {"rw": "randwrite", "bs": "4k-32k", "size": "2m", "verify": "crc32c",
           "verify_backlog": 16}
BESIDE = {"offset": "8m", "size": "32m", "time_based": 1, "runtime": "6s"}
# A reader beside a deep writer, of a card that takes 100 4k requests a second.
JOBS = {"reader": {**BESIDE, "rw": "randread", "iodepth": 1, "ioengine": "psync"},
        "writer": {**BESIDE, "rw": "randwrite", "iodepth": 64}}
# The least part of reads. Under none it is 0.03. An emulated arm64 takes longer to send the next
# read, for which writes do not wait then: it has 0.17 to 0.26.
LEAST = 1 / 10 if SLOW else 1 / 6
# The driver of a drive: the folder of what it is bound to, and how that is named in the drive's
# path.
DRIVERS = {"mmcblk": ("mmc/drivers/mmcblk", r"mmc\d+:\w+"),
           "usb-storage": ("usb/drivers/usb-storage", r"\d+-\d+:\d\.\d"),
           "uas": ("usb/drivers/uas", r"\d+-\d+:\d\.\d")}


def part_of(drive, pattern):
    """Return the last name in a drive's path in sysfs that matches, or None."""
    names = [part for part in drive.resolve().parts if re.fullmatch(pattern, part)]
    return names[-1] if names else None


class Drive:
    """A drive behind a driver of DRIVERS, whose name may change when it comes again."""

    def __init__(self, driver):
        self.driver = driver
        folder, self.pattern = DRIVERS[driver]
        self.folder = pathlib.Path("/sys/bus", folder)
        self.find()
        path = pathlib.Path("/sys/block", self.name)
        self.bound, self.host = (part_of(path, pattern) for pattern in (self.pattern, r"host\d+"))

    def names(self):
        """Return the names of the drives that the driver has."""
        bound = {drive.name: part_of(drive, self.pattern)
                 for drive in pathlib.Path("/sys/block").iterdir()}
        return [name for name, to in bound.items()
                if to and (self.folder / to).exists() and is_added(name)]

    def find(self):
        """Wait for the drive, and take its name."""
        wait_for(self.names, f"the drive behind {self.driver}")
        self.name = self.names()[0]

    def take_out(self):
        """Remove the drive from the kernel. xhci does not survive it if uas is unbound on QEMU."""
        if self.host:
            pathlib.Path("/sys/block", self.name, "device/delete").write_text("1")
        else:
            (self.folder / "unbind").write_text(self.bound)

    def put_in(self):
        """Give the kernel the drive again."""
        if self.host:
            pathlib.Path("/sys/class/scsi_host", self.host, "scan").write_text("- - -")
        else:
            (self.folder / "bind").write_text(self.bound)
        self.find()


def switched(drives):
    """Switch schedulers beside writes that are verified."""
    disks = [Disk(drive.name, ours()[0]) for drive in drives]
    names = [*ours(), "none", "mq-deadline"]
    jobs = {disk.name: {"filename": disk.path, **CHECKED} for disk in disks}
    count = 0
    with load(disks, jobs):
        for number in range(amount(30)):
            for disk in disks:
                disk.select(names[number % len(names)])
                count += 1
    for disk in disks:
        disk.select("none")
    print(f"counted: switches={count}")


def shared(card):
    """Readers of the card get their part beside a writer, under each scheduler."""
    for name in ours():
        disk = Disk(card.name, name)
        done = fio(JOBS, filename=disk.path, thread=None)
        reads, writes = (sum(job[way]["total_ios"] for job in done[section])
                         for section, way in (("reader", "read"), ("writer", "write")))
        state = dict(line.split() for line in
                     (disk.debugfs / "readers").read_text().splitlines())
        check(state["takes_one"] == "1", f"{name} sees that the card takes one request: {state}")
        check(reads > LEAST * writes, f"{name}: {reads} reads beside {writes} writes")
        disk.nothing_left()


def taken_out(drive):
    """Take the drive out under each scheduler while it holds requests, and put it in again."""
    for name in ours():
        disk = Disk(drive.name, name)
        held = []

        def take_out(disk, held=held):
            # usb-storage has places for two requests, one of which is in flight.
            wait_for(lambda: disk.counters()["queued"], "requests that are held")
            held.append(disk.counters()["queued"])
            drive.take_out()

        removed_under_load([disk], take_out, iodepth=64)
        print(f"ok    {name} held {held[0]} requests behind {drive.driver}")
        drive.put_in()


def main():
    modprobe("-a", *(f"{name}-iosched" for name in ours()))
    drives = [Drive(driver) for driver in DRIVERS]
    switched(drives)
    shared(drives[0])
    for drive in drives:
        taken_out(drive)
    for drive in drives:
        Disk(drive.name, ours()[0]).select("none")
    remove_all()


if __name__ == "__main__":
    main()
