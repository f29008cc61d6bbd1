#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# With 128 hardware queues data are right, all requests end and switches work, while the CPUs of
# queues are added and removed under load
# kernels: 6.12
# check: none
# cpus: 128
# append: maxcpus=2
# memory: 2G
# timeout: 1800
"""A device has at most a hardware queue for each CPU. The guest boots with two of them; the test
adds some others, loads their queues, and removes them while their requests are queued."""
import concurrent.futures
import json
import pathlib
import time

from checks import QUICK, check
from fio_jobs import verify
from iosched import Disk, finish, ours
from ssd import NullBlk

QUEUES = 128
GROUPS = ((2, 3, 4, 5), (126, 127)) if QUICK else ((2, 3, 4, 5), (31, 32, 63, 64), (96, 126, 127))
# Two tags of a queue for several jobs: most requests wait in the scheduler.
DRIVE = {"size": 64, "memory_backed": 1, "queue_mode": 2, "irqmode": 2, "completion_nsec": 50000,
         "submit_queues": QUEUES, "poll_queues": 0, "hw_queue_depth": 2}
# A quarter of each device for what is written before, while and after CPUs are removed.
SHARE = 16 << 20


def online(cpu, value):
    """Add or remove a CPU."""
    pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text(str(int(value)))


def load(disks, jobs, share, **options):
    """Write and verify data."""
    verify(disks, **{"numjobs": jobs, "size": "1m", "offset": share * SHARE,
                     "offset_increment": "2m", "iodepth": 32, "iodepth_batch_submit": 8,
                     "iodepth_batch_complete_max": 8, **options})


def come_and_go(disks, cpus):
    """Add these CPUs, load their queues, and remove them while they are loaded."""
    for cpu in cpus:
        online(cpu, True)
    load(disks, len(cpus), 0, cpus_allowed=",".join(map(str, cpus)), cpus_allowed_policy="split")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        # On any CPU: fio fails if it is to run on one that is not there.
        loaded = threads.submit(load, disks, 2 + len(cpus), 1, size="2m")
        for cpu in cpus:
            online(cpu, False)
        check(not loaded.done(), f"CPUs {cpus} were removed under load")
        # Fails if the load has failed.
        loaded.result()
    load(disks, 2, 3)


def switches(disks):
    """Switch each device to each scheduler."""
    for name in [disk.scheduler for disk in disks]:
        begun = time.monotonic()
        for disk in disks:
            disk.select(name)
        load(disks, 2, 2)
        print(json.dumps({"switched": name, "seconds": round(time.monotonic() - begun, 2)}),
              flush=True)


def main():
    devices = {name: NullBlk(name, **DRIVE) for name in ours()}
    disks = [Disk(device.name, name) for name, device in devices.items()]
    for disk in disks:
        queues = list(pathlib.Path("/sys/block", disk.name, "mq").iterdir())
        check(len(queues) == QUEUES, f"{disk.label}: {len(queues)} hardware queues")
    for cpus in GROUPS:
        come_and_go(disks, cpus)
    finish(disks)
    switches(disks)
    finish(disks, devices.values())


if __name__ == "__main__":
    main()
