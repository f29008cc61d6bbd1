#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Under each scheduler a cgroup gets the throughput that its io.max allows
# virtual-time: yes
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900

import os
import pathlib

from checks import DEBUG_KERNEL, check
from fio_jobs import fio
from iosched import Disk, finish, ours
from ssd import NullBlk

# Bytes per second, of reads and of writes; the CPU must be able to do more.
LIMIT = 1 << 20 if DEBUG_KERNEL else 4 << 20
ROOT = pathlib.Path("/sys/fs/cgroup")
CGROUP = ROOT / "limited"


def main():
    devices = {NullBlk(f"{name}-limited", size=1024, queue_mode=2, irqmode=2,
                       completion_nsec=50000): name for name in ours()}
    disks = [Disk(device.name, name) for device, name in devices.items()]
    (ROOT / "cgroup.subtree_control").write_text("+io")
    CGROUP.mkdir()
    for disk in disks:
        number = (disk.queue.parent / "dev").read_text().strip()
        (CGROUP / "io.max").write_text(f"{number} rbps={LIMIT} wbps={LIMIT}")
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
    jobs = {f"{disk.name} {kind}": {"filename": disk.path, "rw": f"rand{kind}"}
            for disk in disks for kind in ("read", "write")}
    results = fio(jobs, bs="16k", iodepth=8, time_based=1, runtime=4, size="512m")
    (ROOT / "cgroup.procs").write_text(str(os.getpid()))
    for name, (job,) in results.items():
        done = job[name.split()[1]]["bw_bytes"]
        # 10 %: throttling works in slices of time.
        check(abs(done - LIMIT) <= LIMIT / 10, f"{name}: {done} bytes per second of {LIMIT}")
    finish(disks)
    CGROUP.rmdir()
    for device in devices:
        device.remove()


if __name__ == "__main__":
    main()
