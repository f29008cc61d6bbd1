# SPDX-License-Identifier: GPL-2.0
"""The devices of the torture test: how each is removed and brought back, and the file systems
stacked on them."""

import contextlib
import glob
import os
import pathlib

from checks import RELEASE, check, modprobe, run, wait_for
from iosched import SCSI_DEBUG, scsi_disks
from ssd import Device, NullBlk
from torture_load import UP, Shared, character, shared

PCI = pathlib.Path("/sys/bus/pci")
PROVE_LOCKING = pathlib.Path("/proc/sys/kernel/prove_locking")
# io_timeout in ms. The test leaves polled requests unreaped; the kernel must not end them.
POLLED_TIMEOUT_MS = "1000000"


@contextlib.contextmanager
def unproven():
    """Let lockdep prove nothing meanwhile. 6.12 reads the capacity of a SCSI disk with the lock
    of the queue's limits held, and removes the disk with the queue frozen: it reports chains of
    these two through writeback, and through sysfs."""
    proves = RELEASE == (6, 12) and PROVE_LOCKING.exists()
    if proves:
        PROVE_LOCKING.write_text("0")
    try:
        yield
    finally:
        if proves:
            PROVE_LOCKING.write_text("1")


def opens(path):
    """True if the device can be opened."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


class Target:
    """A device under load. @faulty: its I/Os may fail at any time; @forgets: it holds zeros
    after a removal."""
    removable = polled = passthrough = forgets = scsi = False
    # The driver ends a request whose completion is lost.
    times_out = False
    # Supports discards and write-zeroes.
    ranges = True

    def __init__(self, label, name, faulty=False):
        self.label, self.faulty = label, faulty
        self.shared = shared(Shared)
        self.shared.state = UP
        self.named(name)
        self.mapping = self.folder = None

    def named(self, name):
        """Take the name that the device has now."""
        self.shared.name = name.encode()
        polled = self.queue / "io_poll"
        if self.polled:
            check(polled.read_text().strip() == "1", f"{self.label} has queues to poll")
            (self.queue / "io_timeout").write_text(POLLED_TIMEOUT_MS)

    @property
    def name(self):
        return self.shared.name.decode()

    @property
    def path(self):
        return f"/dev/{self.name}"

    @property
    def queue(self):
        return pathlib.Path("/sys/block", self.name, "queue")

    def appears(self, pattern):
        """Wait for a block device at this path of sysfs until it can be opened; return its
        name. Its node exists before that."""
        def found():
            names = [os.path.basename(path) for path in glob.glob(pattern)]
            return [name for name in names if opens(f"/dev/{name}") and
                    (not self.passthrough or opens(character(name)))]
        wait_for(found, f"{self.label} at {pattern}")
        return found()[0]

    def take(self):
        """Remove the device under its load."""

    def back(self):
        """Bring the device back; no process has the old one open."""

    def remove(self):
        """Remove the device at the end of the test."""

    @property
    def leaves(self):
        """True if the device is removed during the test, or at its end."""
        return self.removable or type(self).remove is not Target.remove


class Virtio(Target):
    """QEMU's virtio disk."""


class Ssdemu(Target):
    """The emulated SSD."""

    def __init__(self, label):
        self.device = Device("small", hw_queues=2, memory_backed=1, capacity_mb=256)
        super().__init__(label, self.device.name)

    def remove(self):
        self.device.remove()


class Null(Target):
    """null_blk with several queues: one with a polled queue, one that injects faults."""
    forgets = removable = True
    # A timeout fails the I/O.
    times_out = property(lambda self: self.faulty)
    COMMON = {"size": 128, "queue_mode": 2, "memory_backed": 1, "discard": 1, "irqmode": 2,
              "completion_nsec": 50000, "submit_queues": 2}

    def __init__(self, label, polled=False, **attributes):
        self.attributes = {**self.COMMON, **attributes}
        self.polled = polled
        if polled:
            self.attributes["poll_queues"] = 1
        self.device = NullBlk(label, **self.attributes)
        super().__init__(label, self.device.name, faulty=not polled)

    def take(self):
        self.device.remove()

    def back(self):
        self.device = NullBlk(self.label, **self.attributes)
        self.named(self.device.name)

    def remove(self):
        self.device.remove()


class Scsi(Target):
    """A disk of scsi_debug, which injects errors into all of its disks."""
    removable = scsi = times_out = True

    def __init__(self, label):
        name, = scsi_disks(1, per_host_store=0, dev_size_mb=64, ndelay=50000, max_queue=32,
                           lbpu=1, lbpws=1, lbprz=1, removable=0)
        super().__init__(label, name, faulty=True)
        (self.host,) = SCSI_DEBUG.glob("adapter*/host*")

    def take(self):
        with unproven():
            (self.queue.parent / "device/delete").write_text("1")

    def back(self):
        (pathlib.Path("/sys/class/scsi_host") / self.host.name / "scan").write_text("- - -")
        self.named(self.appears(f"{self.host}/target*/*/block/*"))

    def remove(self):
        with unproven():
            modprobe("-r", "scsi_debug")


class Nvme(Target):
    """QEMU's NVMe disk; ordinary, polled and passthrough."""
    polled = passthrough = True
    # A command that is lost ends in a reset: not on 6.1, see Hardware.kinds(). On 6.12 the
    # timeout's work freezes the queue until the reset ends; lockdep reports a lock that leaks.
    times_out = RELEASE > (6, 12)

    def __init__(self, label, name):
        super().__init__(label, name)
        controller = self.queue.parent.joinpath("device").resolve()
        self.port = controller.joinpath("device").resolve()

    def take(self):
        (self.port / "remove").write_text("1")

    def back(self):
        # While anything still has the old namespace open, the new one is number 2.
        (PCI / "rescan").write_text("1")
        self.named(self.appears(f"{self.port}/nvme/nvme*/nvme*n[0-9]"))

    def wait_for_reset(self):
        """Wait until the driver has ended the resets it started by itself."""
        state = next(self.port.glob("nvme/nvme*")) / "state"
        wait_for(lambda: state.read_text().strip() == "live", "the end of a reset")

    def reset(self):
        """Reset the controller; the driver requeues its requests."""
        self.wait_for_reset()
        (next(self.port.glob("nvme/nvme*")) / "reset_controller").write_text("1")


class Loop(Target):
    """A loop device on a file. A discard or write-zeroes would allocate or punch holes even
    while the file system is frozen, which ext4 warns about."""
    ranges = False

    def __init__(self, label, file):
        with open(file, "wb") as new:
            new.truncate(24 << 20)
        run("losetup", "/dev/loop0", str(file))
        super().__init__(label, "loop0")

    def remove(self):
        run("losetup", "-d", self.path)


def stack(target, start_mb, filesystem):
    """Make a dm-linear device of the part of @target from @start_mb on, with a file system."""
    sectors = int((target.queue.parent / "size").read_text()) - (start_mb << 11)
    target.mapping = f"{target.label}-{filesystem}"
    run("dmsetup", "create", target.mapping, "--table",
        f"0 {sectors} linear {target.path} {start_mb << 11}")
    run("dmsetup", "mknodes")
    path = f"/dev/mapper/{target.mapping}"
    modprobe(filesystem)
    quiet = ["-q"] if filesystem != "f2fs" else []
    run(f"mkfs.{filesystem}", *quiet, "-K" if filesystem == "xfs" else "-F" if
        filesystem == "ext4" else "-f", path)
    target.folder = pathlib.Path("/mnt", filesystem)
    target.folder.mkdir(parents=True)
    run("mount", "-t", filesystem, path, str(target.folder))


def unstack(target):
    """Remove both."""
    run("umount", str(target.folder))
    run("dmsetup", "remove", "--retry", target.mapping)
