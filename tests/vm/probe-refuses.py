#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssd-probe writes to no drive that is in use or holds data, nor before the drive's name is typed
# in, and never without --destroy
# kernels: 6.12
# timeout: 900
# precedence: no

import contextlib
import os
import pathlib
import signal
import struct
import subprocess
import sys

from checks import check, modprobe, run, wait_for
from probing import (
    COMMAND, forked, probe, queue_settings, skip_without_parts, start, wait_for_line)
from ssd import PROJECT, Device

sys.path[:0] = [str(PROJECT / "tools/ssd-probe"), str(PROJECT / "tools/common")]

from ssd_probe import command  # noqa: E402  (in a folder added above)

MNT = pathlib.Path("/mnt/probed")
NOBODY = 65534
# A partition table of one partition: Linux, from 1 MB on, of 8 MB.
TABLE = bytes(446) + struct.pack("<4s4sII", bytes(4), b"\x83\0\0\0", 2048, 16384) + \
    bytes(48) + b"\x55\xaa"


class Refusals:
    """Checks on a drive that is not to be written to."""

    def __init__(self, dev):
        self.dev = dev
        self.settings = queue_settings(dev.name)

    def untouched(self, what, before):
        """Check that the drive was not written to and has its settings."""
        writes = self.dev.stats()["write_count"]
        check(writes == before, f"{what}: {writes - before} writes")
        check(queue_settings(self.dev.name) == self.settings, f"{what}: settings are as before")

    def refused(self, what, because, *options, typed=None, path=None):
        """Check that the command refuses in one line, which says @because."""
        os.sync()
        before = self.dev.stats()["write_count"]
        typed = f"{self.dev.name}\n" if typed is None else typed
        status, out, errors = forked(command.main, *options, path or self.dev.path, typed=typed)
        lines = [line for line in errors.splitlines() if because in line]
        check(status == 1 and not out and len(lines) == 1 and "Traceback" not in errors,
              f"{what}: status {status}, {lines}")
        self.untouched(what, before)

    def destroy_refused(self, what, because, **how):
        """Check that --destroy is refused before anything is asked."""
        self.refused(what, because, "--destroy", **how)


def wipe(path):
    """Remove all signatures."""
    run("wipefs", "--all", "--quiet", path)


def wrong_devices(drive, part):
    """Paths that are no drive."""
    file = pathlib.Path("/tmp/file")
    file.write_bytes(bytes(1 << 20))
    drive.destroy_refused("a file", "not a block device", path=str(file))
    drive.destroy_refused("a character device", "not a block device", path="/dev/zero")
    drive.destroy_refused("nothing", "No such file", path="/dev/nothing")
    drive.destroy_refused("a partition", "is a partition", path=part)


def partitioned(drive):
    """A drive with partitions, then with a table only."""
    path = drive.dev.path
    with open(path, "r+b") as file:
        file.write(TABLE)
    run("blockdev", "--rereadpt", path)
    part = f"{path}p1"
    wait_for(lambda: os.path.exists(part), part)
    drive.destroy_refused("partitioned", "it is partitioned: ")
    wrong_devices(drive, part)
    run("partx", "--delete", path)
    drive.destroy_refused("a partition table", "it holds data: dos")
    wipe(path)


def mounted(drive):
    """A drive with a mounted file system, then with one that is not mounted."""
    path = drive.dev.path
    run("mkfs.ext4", "-q", path)
    MNT.mkdir(exist_ok=True)
    run("mount", path, MNT)
    drive.destroy_refused("mounted", f"it is mounted on {MNT}")
    run("umount", MNT)
    drive.destroy_refused("a file system", "it holds data: ext4")
    wipe(path)


def swapped(drive):
    """A drive that is used as swap, then one that was."""
    path = drive.dev.path
    run("mkswap", path)
    run("swapon", path)
    drive.destroy_refused("swap", "it is used as swap")
    run("swapoff", path)
    drive.destroy_refused("an idle swap area", "it holds data: swap")
    wipe(path)


def held(drive):
    """A drive below the device mapper, below a loop device, and open in a process."""
    path = drive.dev.path
    sectors = int(run("blockdev", "--getsz", path))
    run("dmsetup", "create", "probed", "--table", f"0 {sectors} linear {path} 0")
    drive.destroy_refused("below dm", "it is held by dm-")
    drive.destroy_refused("a mapped device", "it is not a drive, but made of",
                          path="/dev/dm-0")
    run("dmsetup", "remove", "probed")
    loop = run("losetup", "--find", "--show", path).strip()
    drive.destroy_refused("below a loop device", "it is held by loop")
    drive.destroy_refused("a loop device", "it is not a drive, but a file", path=loop)
    run("losetup", "--detach", loop)
    with open(path, "rb"):
        drive.destroy_refused("open", f"process {os.getpid()} (probe-refuses.p) has it open")


def protected(drive):
    """A drive that is read-only, that another program has locked, or a user who is not root."""
    path = drive.dev.path
    run("blockdev", "--setro", path)
    drive.destroy_refused("read-only", "it is read-only")
    run("blockdev", "--setrw", path)
    with locked(path):
        drive.refused("locked", "is locked by another program", "--only", "read_us")
    before = drive.dev.stats()["write_count"]
    done = subprocess.run([COMMAND, "--destroy", path], user=NOBODY, capture_output=True,
                          text=True, check=False, input=drive.dev.name)
    check(done.returncode == 1 and done.stderr == "ssd-probe: must be run as root\n",
          f"no root: {done.stderr}")
    drive.untouched("no root", before)


@contextlib.contextmanager
def locked(path):
    """Hold the lock of a drive."""
    with subprocess.Popen(["flock", "--exclusive", path, "sh", "-c", "echo; read line"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        holder.stdout.readline()
        yield
        holder.stdin.close()


def fails(what, *command):
    """Check that a program fails because the drive is in use."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    check(done.returncode, f"{what} fails: {done.stderr.strip()}")


def holds():
    """A drive is held from before the question to the end of the run."""
    with Device("small", capacity_mb=64, memory_backed=1) as dev:
        with start("--destroy", "--json=/tmp/report.json", dev.path, LONG_S="999") as running:
            asked = wait_for_line(running, "writes at most")
            fails("mkfs meanwhile", "mkfs.ext4", "-q", "-F", dev.path)
            running.stdin.write(f"{dev.name}\n")
            running.stdin.flush()
            asked += wait_for_line(running, "Reads for some time")
            fails("mkfs during the run", "mkfs.ext4", "-q", "-F", dev.path)
            fails("mount during the run", "mount", "-t", "ext4", dev.path, MNT)
            running.send_signal(signal.SIGINT)
            running.communicate()
            check(running.returncode == 130, f"status {running.returncode}")
        for text in ("partition table: none", "no file system was found",
                     f"lost: all data on {dev.path}, 67.1 MB", f"type the name {dev.name}"):
            check(text in asked, f"the question says: {text}")
        run("mkfs.ext4", "-q", dev.path)


def replaced():
    """A drive that is replaced while its name is asked for."""
    with Device("small", capacity_mb=64, memory_backed=1) as dev:
        path = dev.path
        running = start("--destroy", "--only", "mapping", path)
        wait_for_line(running, "writes at most")
    with running, Device("small", capacity_mb=64, memory_backed=1) as dev:
        check(dev.path == path, "the other one has its name")
        _, errors = running.communicate(f"{dev.name}\n")
        check(running.returncode == 1 and "it is another drive now" in errors, errors)
        check(not dev.stats()["write_count"], "it is not written to")


def answers(drive):
    """Wrong names."""
    for typed in ("", "\n", "yes\n", "ssdemu\n", f"{drive.dev.name}0\n", f"x{drive.dev.name}\n"):
        drive.refused(f"{typed!r} typed in", "something else was typed", "--destroy", typed=typed)


def only_reads(drive):
    """Without --destroy nothing is written, whatever is typed in."""
    before = drive.dev.stats()
    status, out, _ = probe("--quick", "--only", "read_depth,read_us,flash_page_kb",
                           "--json=/tmp/report.json", drive.dev.path,
                           typed=f"{drive.dev.name}\n", program=COMMAND)
    reads = drive.dev.stats()["read_count"] - before["read_count"]
    check(status == 0 and reads > 100 and "read_us" in out, f"{reads} reads")
    drive.untouched("reads only", before["write_count"])
    with open(drive.dev.path, "rb", buffering=0, opener=direct) as file:
        refused = subprocess.run([PROJECT / "build/tools/ssd-probe-io", str(file.fileno()), "ro",
                                  "1", "4096", "1"], input=job(), capture_output=True, check=False,
                                 pass_fds=[file.fileno()])
    check(refused.returncode == 1 and b"Read-only" in refused.stderr,
          f"ssd-probe-io refuses a write: {refused.stderr}")
    drive.untouched("ssd-probe-io", before["write_count"])


def direct(path, flags):
    """Open for direct I/O."""
    return os.open(path, flags | os.O_DIRECT)


def job():
    """Return a job of one write for ssd-probe-io."""
    return (b"".join(number.to_bytes(size, "little") for number, size in (
        (1, 4), (1, 4), (0, 8), (0, 8), (4096, 4), (1, 2), (0, 2), (0, 8))))


def main():
    skip_without_parts()
    from ssd_probe import session
    # Load them once, not in each child.
    session.procedures()
    modprobe("loop")
    with Device("small", capacity_mb=64, memory_backed=1) as dev:
        # What is on it decides; the memory of a new drive is zero.
        drive = Refusals(dev)
        partitioned(drive)
        mounted(drive)
        swapped(drive)
        held(drive)
        protected(drive)
        answers(drive)
        only_reads(drive)
    holds()
    replaced()


if __name__ == "__main__":
    main()
