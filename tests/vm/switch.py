#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Random switches among all schedulers, the project's and the kernel's, under mixed and
# verified load: 1,000, on a debug kernel 200; the modules cannot be unloaded while
# they are in use, and unload afterwards
# kernels: 6.1 6.12 6.1-arm64 newest-arm64
# check: 6.12 6.1-arm64 newest-arm64
# disk: 64M
# timeout: 900
# quick: 6.1 newest

import concurrent.futures
import errno
import pathlib
import random

from checks import SEED, amount, check, modprobe
from fio_jobs import load
from iosched import Disk, ours, remove, remove_all, remove_scsi_disks, scsi_disks
from ssd import Device, NullBlk

MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
SWITCHES = amount(1000)
# Each device has verified writes besides other I/O, at rates that leave CPU time for switching.
JOBS = {"checked": {"rw": "randwrite", "bs": "4k-32k", "size": "4m", "verify": "crc32c",
                    "verify_backlog": 32, "rate_iops": 60},
        "mixed": {"rw": "randrw", "bs": "4k-32k", "offset": "8m", "size": "8m", "fsync": 16,
                  "rate_iops": 60, "prioclass": 1},
        "idle": {"rw": "randrw", "offset": "16m", "size": "8m", "rate_iops": 30, "sync": 1,
                 "prioclass": 3}}
TRIM = {"rw": "randtrim", "bs": "64k", "offset": "24m", "size": "4m", "rate_iops": 20}


def switch(disk, number, schedulers, count):
    """Select @count random schedulers; return @count. Most of the time is spent waiting for the
    kernel, so each device has a thread."""
    rng = random.Random(SEED * 100 + number)
    for _ in range(count):
        disk.select(rng.choice(schedulers))
    return count


def main():
    modprobe("-a", "virtio_blk", "bfq", "kyber-iosched", "mq-deadline",
             *(f"{name}-iosched" for name in ours()))
    timer = {"queue_mode": 2, "irqmode": 2, "completion_nsec": 50000, "memory_backed": 1,
             "size": 64, "discard": 1}
    devices = [Device("small", hw_queues=2, memory_backed=1),
               NullBlk("many", submit_queues=4, hw_queue_depth=8, **timer),
               NullBlk("onetag", submit_queues=1, hw_queue_depth=1, **timer),
               NullBlk("sleepy", submit_queues=2, blocking=1, **(timer | {"irqmode": 0}))]
    names = [device.name for device in devices]
    names += ["vda", *scsi_disks(1, dev_size_mb=64, ndelay=50000, max_queue=16)]
    disks = [Disk(name, ours()[0]) for name in names]
    jobs = {f"{disk.name}-{kind}": {"filename": disk.path, **options}
            for disk in disks for kind, options in JOBS.items()}
    jobs["trim"] = {"filename": disks[1].path, **TRIM}

    # 6.12 starts modprobe for a module called none.
    before = MODPROBE.read_text()
    MODPROBE.write_text("\n")
    try:
        schedulers = [*ours(), "none", "mq-deadline", "kyber", "bfq"]
        with load(disks, jobs, iodepth=8):
            for name in ours():
                disks[0].select(name)
                check(remove(name) == errno.EAGAIN, f"{name} does not unload while it is in use")
            with concurrent.futures.ThreadPoolExecutor(len(disks)) as threads:
                done = sum(threads.map(switch, disks, range(len(disks)), [schedulers] * len(disks),
                                       [SWITCHES // len(disks) + 1] * len(disks)))
    finally:
        MODPROBE.write_text(before)
    for disk in disks:
        disk.select("none")
    for device in devices:
        device.remove()
    remove_all()
    remove_scsi_disks()
    print(f"counted: switches={done}")


if __name__ == "__main__":
    main()
