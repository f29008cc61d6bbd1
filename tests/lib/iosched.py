# SPDX-License-Identifier: GPL-2.0
"""The project's schedulers as modules, and a disk under one of them.

Starting a program costs an emulated guest as much as thousands of requests: modules are
loaded by system call, and sysfs is written by the test itself.
"""

import contextlib
import ctypes
import glob
import os
import pathlib
import time

import scsi_target
from checks import check, fail, has_module, modprobe, select_scheduler, wait_for
from linux_calls import CALLS, LIBC

MODULES = pathlib.Path("/lib/modules", os.uname().release, "updates")
SCSI_DEBUG = pathlib.Path("/sys/bus/pseudo/drivers/scsi_debug")
# Values of tunables that take a name.
NAMES = ("anticipatory fair none pas pasa page block paper aligned noop rws piq-r piq-w piq "
         "piq+ chip plane cwdp pdwc dcwp").split()
# Without scsi_debug, units of the kernel's SCSI target.
UNITS = contextlib.ExitStack()


def ours():
    """Names of the project's schedulers, of those that were built."""
    return sorted(path.name.removesuffix("-iosched.ko") for path in MODULES.glob("*-iosched.ko"))


def insert(scheduler, parameters=""):
    """Load a scheduler's module by system call; return the errno, 0 for none."""
    fd = os.open(MODULES / f"{scheduler}-iosched.ko", os.O_RDONLY)
    try:
        failed = LIBC.syscall(CALLS["finit_module"], fd, parameters.encode(), 0)
        return ctypes.get_errno() if failed else 0
    finally:
        os.close(fd)


def remove(scheduler):
    """Unload a scheduler's module by system call; return the errno, 0 for none."""
    failed = LIBC.syscall(CALLS["delete_module"], f"{scheduler}_iosched".encode(), os.O_NONBLOCK)
    return ctypes.get_errno() if failed else 0


def remove_all():
    """Check that the module of every scheduler unloads."""
    for name in ours():
        error = remove(name)
        check(not error, f"{name} unloads: {os.strerror(error)}")


def have_scsi_debug():
    """Return True if the kernel has scsi_debug. Debian's for arm64 do not."""
    return has_module("scsi_debug")


def scsi_debug_disks():
    """Names of the disks of scsi_debug that exist."""
    paths = glob.glob(f"{SCSI_DEBUG}/adapter*/host*/target*/*/block/*")
    return sorted(os.path.basename(path) for path in paths)


def scsi_disks(count, **parameters):
    """Load scsi_debug with @count hosts, each with data of its own; names of their disks. Where it
    is missing, they are units of the SCSI target, with no more than the size in common."""
    if not have_scsi_debug():
        units = scsi_target.units(count, parameters.get("dev_size_mb", scsi_target.SIZE_MB))
        return [unit.name for unit in UNITS.enter_context(units)]
    modprobe("sd_mod")
    modprobe("scsi_debug", f"add_host={count}", "per_host_store=1",
             *(f"{key}={value}" for key, value in parameters.items()))

    def complete():
        names = scsi_debug_disks()
        return len(names) == count and all(os.path.exists(f"/dev/{name}") for name in names)
    wait_for(complete, "the disks of scsi_debug")
    return scsi_debug_disks()


def remove_scsi_disks():
    """Remove the disks of scsi_disks()."""
    if have_scsi_debug():
        modprobe("-r", "scsi_debug")
    UNITS.close()


def statistics(disk, row=""):
    """Statistics of the scheduler of a disk of this name, {column: number}, summed over the rows
    that begin with @row, such as "be read"."""
    text = pathlib.Path("/sys/kernel/debug/block", disk, "sched/stats").read_text()
    head, *rows = (line.split() for line in text.splitlines())
    wanted = [line for line in rows if " ".join(line[:2]).startswith(row)]
    return {key: sum(int(line[i]) for line in wanted) for i, key in enumerate(head) if i > 1}


class Disk:
    """A device under one of the project's schedulers."""

    def __init__(self, name, scheduler, **tunables):
        self.name, self.scheduler = name, scheduler
        self.label = f"{scheduler} on {name}"
        self.path = f"/dev/{name}"
        self.queue = pathlib.Path("/sys/block", name, "queue")
        self.debugfs = pathlib.Path("/sys/kernel/debug/block", name, "sched")
        # Completions that nothing_left() has reported.
        self.reported = 0
        self.select(scheduler)
        self.tune(**tunables)

    def selected(self):
        """Name of the selected scheduler."""
        return (self.queue / "scheduler").read_text().split("[")[1].split("]")[0]

    def select(self, scheduler):
        """Select a scheduler, and check that it is the selected one."""
        select_scheduler(self.queue / "scheduler", scheduler)
        self.reported = 0
        if self.selected() != scheduler:
            fail(f"{self.name} runs {self.selected()} after selecting {scheduler}")

    def tunable(self, name):
        """Path of a tunable."""
        return self.queue / "iosched" / name

    def set(self, **values):
        """Set tunables, all of which the scheduler must have."""
        for name, value in values.items():
            self.tunable(name).write_text(str(value))

    def tune(self, **values):
        """Set those of these tunables that the scheduler has."""
        self.set(**{name: value for name, value in values.items() if self.tunable(name).exists()})

    def counters(self, row=""):
        """statistics() of this disk."""
        return statistics(self.name, row)

    def nothing_left(self, **least):
        """Check that every request has left the scheduler, and that each counter in @least has
        at least this value."""
        # A bio ends a moment before its request does.
        end = time.monotonic() + 5
        now = self.counters()
        while now["in_flight"] + now["polled"] and time.monotonic() < end:
            time.sleep(0.05)
            now = self.counters()
        good = (now["inserted"] > 0 and now["inserted"] == now["merged"] + now["completed"] and
                not now["queued"] and not now["in_flight"] and not now["polled"] and
                all(now[key] >= value for key, value in least.items()))
        # tests/soak adds this up.
        print(f"counted: requests={now['completed'] - self.reported}")
        self.reported = now["completed"]
        check(good, f"{self.label}: " + ", ".join(f"{value} {key}" for key, value in now.items()))

    def ended(self):
        """Number of reads and writes that the device has ended."""
        fields = pathlib.Path("/sys/block", self.name, "stat").read_text().split()
        return int(fields[0]) + int(fields[4])


def finish(disks, devices=()):
    """Check that every request has left the schedulers, deselect them, and remove the devices."""
    for disk in disks:
        disk.nothing_left()
        disk.select("none")
    for device in devices:
        device.remove()
