#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# The benchmark on drives of other machines, with this one in place of them: a device that is not
# confirmed, is in use, holds data or is no drive is refused and not written to, and so is a drive
# that was replaced between two jobs; it is held meanwhile; both drives are measured and keep their
# scheduler
# kernels: 6.12
# cpus: 1
# check: none
# timeout: 900
import io
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import fleet  # noqa: E402  (beside the benchmark)
import matrix  # noqa: E402
import model  # noqa: E402
from checks import modprobe  # noqa: E402
from ssd import NullBlk, check  # noqa: E402

# In place of ssh: it runs the command here, but for one machine that does not answer and one that
# has no Python.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do [ "$1" != -p ] || port=$2; shift; done
case ${2#*@} in
silent) echo "ssh: connect to host silent port ${port:-22}: Connection refused" >&2; exit 255 ;;
bare) echo "sh: 1: exec: python3: not found" >&2; exit 127 ;;
esac
echo Welcome
shift 2
exec sh -c "$*"
"""
MNT = pathlib.Path("/run/mounted")


def run(*command):
    """Run a program; fail if it fails."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def written(device):
    """Return the number of writes that a device has completed."""
    return int(pathlib.Path(f"/sys/block/{device.name}/stat").read_text().split()[4])


def scheduler_of(device):
    """Return the selected scheduler."""
    text = pathlib.Path(f"/sys/block/{device.name}/queue/scheduler").read_text()
    return text.partition("[")[2].partition("]")[0]


class Hosts:
    """A HOSTS file in a folder."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "hosts"

    def measure(self, lines, typed):
        """Measure a file of these @lines with the lines @typed on stdin; return the cells."""
        self.path.write_text("".join(f"{line}\n" for line in lines))
        sys.stdin = io.StringIO("".join(f"{line}\n" for line in typed))
        return fleet.measure(self.path, True)

    def refused(self, reason, device, line, typed=None):
        """Check that a line is refused for @reason and @device is not written to."""
        before = written(device)
        try:
            self.measure([line], [device.name if typed is None else typed])
        except model.Failed as error:
            check(reason in str(error), f"refused: {error}")
        else:
            check(False, f"{line} is refused: {reason}")
        check(written(device) == before, "nothing was written")


def machines(hosts, device):
    """Check what is refused because of the line or of the machine."""
    path = device.path
    line = f"here {path}"
    for typed in ("", path, f"{device.name}0", line):
        hosts.refused("was not confirmed", device, line, typed)
    hosts.refused("hosts:1: not", device, f"{line}; reboot")
    hosts.refused("hosts:1: not", device, f"-oProxyCommand=reboot {path}")
    hosts.refused(f"silent,8803 {path}: ssh: connect to host silent port 8803", device,
                  f"silent,8803 {path}")
    hosts.refused("Python 3.10 or newer is needed", device, f"user@bare {path}")
    hosts.refused("is not a block device", device, "here /dev/null")
    hosts.refused("No such file", device, "here /dev/not-there")


def in_use(hosts, device):
    """Check that a device that is in use or holds data is refused."""
    path = device.path
    line = f"here {path}"
    run("addpart", path, "1", "2048", "8192")
    hosts.refused("it is partitioned", device, line)
    names = subprocess.run(["lsblk", "-nrpo", "NAME,TYPE", path], capture_output=True,
                           text=True, check=True).stdout.split()
    hosts.refused("is a partition", device, f"here {names[names.index('part') - 1]}")
    run("delpart", path, "1")
    run("mkfs.ext4", "-q", "-F", path)
    hosts.refused("it holds data: ext4", device, line)
    MNT.mkdir(exist_ok=True)
    # Read-only, so that the file system does not write either.
    run("mount", "-o", "ro", path, MNT)
    hosts.refused(f"it is mounted on {MNT}", device, line)
    run("umount", MNT)
    run("wipefs", "--quiet", "--all", path)
    with open(path, "rb"):
        hosts.refused("(bench-fleet.py) has it open", device, line)


def pooled(hosts):
    """Check that the device of a mounted btrfs that is not named as what is mounted is refused."""
    modprobe("btrfs")
    disk = {"size": 128, "memory_backed": 1}
    with NullBlk(folder="one", **disk) as one, NullBlk(folder="two", **disk) as two:
        run("mkfs.btrfs", "-q", "-m", "raid1", "-d", "raid1", one.path, two.path)
        run("btrfs", "device", "scan")
        run("mount", "-o", "ro", one.path, MNT)
        for device in (one, two):
            hosts.refused("it belongs to the btrfs", device, f"here {device.path}")
        run("umount", MNT)


def replaced(hosts):
    """Check that a drive that is replaced after a job is refused and not written to; nobody else
    can have it during a job."""
    def changing():
        return NullBlk(folder="changing", size=64, memory_backed=1)

    def fio(machine, text, scheduler):
        jobs.append(scheduler)
        if len(jobs) == 1:
            done = subprocess.run(["mkfs.ext4", "-q", "-F", devices[0].path], check=False,
                                  capture_output=True)
            check(done.returncode, f"it is held: {done.stderr}")
        if len(jobs) == 2:
            devices[0].remove()
            devices.append(changing())
            check(devices[1].path == devices[0].path, "another drive has its name")
        return known(machine, text, scheduler)

    known, jobs, devices = fleet.Machine.fio, [], [changing()]
    fleet.Machine.fio = fio
    try:
        hosts.measure([f"here {devices[0].path}"], [devices[0].name])
    except model.Failed as error:
        check("it is another drive now" in str(error) and len(jobs) == 2, f"refused: {error}")
    else:
        check(False, "a drive that was replaced is refused")
    finally:
        fleet.Machine.fio = known
    check(not written(devices[1]), "it is not written to")
    devices[1].remove()


def both(hosts, devices):
    """Check that two drives are measured, the second of which has a scheduler before."""
    job, variables = matrix.mixed("randrw", "4k", 8)
    matrix.WORKLOADS_QUICK = {"mixed": matrix.Workload(job, variables)}
    model.PEERS = ("none", "mq-deadline")
    matrix.SEEDS_QUICK = 1
    devices[1].scheduler("mq-deadline")
    lines = [f"root@here {devices[0].path}", f"here,2222 {devices[1].path}"]
    cells = hosts.measure(["# two drives", lines[0], f"{lines[1]}  # here"],
                          [device.name for device in devices])
    check([cell.device for cell in cells] == lines, "both drives were measured")
    labels = [*model.PEERS, *model.ours()]
    for cell in cells:
        check(list(cell.results()) == labels, f"under {', '.join(labels)}")
        check(all(min(row["mbps"]) > 0 and min(row["write_p99"]) > 0
                  for row in cell.results().values()), "with figures")
    check([scheduler_of(device) for device in devices] == ["none", "mq-deadline"],
          "both have the scheduler that they had before")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "ssh")
        program.write_text(SSH)
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        hosts = Hosts(folder)
        disk = {"size": 64, "memory_backed": 1}
        with NullBlk(**disk) as first, NullBlk(folder="second", **disk) as second:
            machines(hosts, first)
            in_use(hosts, first)
            both(hosts, (first, second))
        pooled(hosts)
        replaced(hosts)


if __name__ == "__main__":
    main()
