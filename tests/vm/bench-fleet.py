#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# The benchmark on drives of other machines, over loopback with two fio servers: a
# device that is not confirmed, mounted, partitioned or no drive is refused and not
# written to; both drives are measured and keep their scheduler
# kernels: 6.12
# cpus: 1
# check: none
# timeout: 600
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import fleet  # noqa: E402  (beside the benchmark)
import matrix  # noqa: E402
import model  # noqa: E402
from ssd import NullBlk, check  # noqa: E402

PORTS = (8801, 8802)


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
            self.measure([line], [line if typed is None else typed])
        except model.Failed as error:
            check(reason in str(error), f"refused: {error}")
        else:
            check(False, f"{line} is refused: {reason}")
        check(written(device) == before, "nothing was written")


def refusals(hosts, device):
    """Check each way in which a line is refused."""
    path = device.path
    line = f"127.0.0.1,8801 {path}"
    for typed in ("", path, f"{line}0", line.upper()):
        hosts.refused("was not confirmed", device, line, typed)
    hosts.refused("hosts:1: not", device, f"{line}; reboot")
    hosts.refused("127.0.0.1,8803", device, f"127.0.0.1,8803 {path}")
    whole = "has to be a whole drive"
    hosts.refused(whole, device, "127.0.0.1,8801 /dev/null")
    hosts.refused(whole, device, "127.0.0.1,8801 /dev/not-there")
    run("addpart", path, "1", "2048", "8192")
    hosts.refused(whole, device, line)
    names = subprocess.run(["lsblk", "-nrpo", "NAME,TYPE", path], capture_output=True,
                           text=True, check=True).stdout.split()
    hosts.refused(whole, device, f"127.0.0.1,8801 {names[names.index('part') - 1]}")
    run("delpart", path, "1")
    run("mkfs.ext4", "-q", "-F", path)
    os.mkdir("/run/mounted")
    # Read-only, so that the file system does not write either.
    run("mount", "-o", "ro", path, "/run/mounted")
    hosts.refused(whole, device, line)
    run("umount", "/run/mounted")


def serve(folder):
    """Start the fio servers; return their processes once they listen."""
    run("busybox", "ip", "link", "set", "lo", "up")
    servers = []
    for port in PORTS:
        servers.append(subprocess.Popen(["fio", f"--server=ip:127.0.0.1,{port}"], cwd=folder,
                                        stdout=subprocess.DEVNULL))
        while f":{port:04X} 00000000:0000 0A" not in pathlib.Path("/proc/net/tcp").read_text():
            time.sleep(0.05)
    return servers


def both(hosts, devices):
    """Check that two drives are measured, the second of which has a scheduler before."""
    job, variables = matrix.mixed("randrw", "4k", 8)
    matrix.WORKLOADS_QUICK = {"mixed": matrix.Workload(job, variables)}
    model.PEERS = ("none", "mq-deadline")
    devices[1].scheduler("mq-deadline")
    lines = [f"127.0.0.1,{port} {device.path}"
             for port, device in zip(PORTS, devices, strict=True)]
    cells = hosts.measure(["# two drives", lines[0], f"{lines[1]}  # here"], lines)
    check([cell.device for cell in cells] == lines, "both drives were measured")
    labels = [*model.PEERS, *model.ours()]
    for cell in cells:
        check(list(cell.results()) == labels, f"under {', '.join(labels)}")
        check(all(min(row["mbps"]) > 0 and min(row["write_p99"]) > 0
                  for row in cell.results().values()), "with figures")
    check([scheduler_of(device) for device in devices] == ["none", "mq-deadline"],
          "both have the scheduler that they had before")


with tempfile.TemporaryDirectory() as work:
    disk = {"size": 64, "memory_backed": 1}
    with NullBlk(**disk) as first, NullBlk(folder="second", **disk) as second:
        fios = serve(work)
        try:
            refusals(Hosts(work), first)
            both(Hosts(work), (first, second))
        finally:
            for fio in fios:
                fio.terminate()
                fio.wait()
