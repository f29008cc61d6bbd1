#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A hundred devices switch at once, what each takes of memory, per device and per request; a device
# of 64 TB keeps data right under each scheduler
# kernels: 6.12
# check: none
# virtual-time: yes
# cpus: 2
# memory: 2G
# timeout: 1800
"""In virtual time, so the times are instructions. A result is printed as a line of JSON."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import time

from checks import QUICK, SEED, check, modprobe
from fio_jobs import verify
from iosched import Disk, finish, ours
from ssd import NullBlk

DEVICES = 20 if QUICK else 100
TB = 1 << 20
PEERS = ("mq-deadline", "kyber", "bfq")
TIMER = {"queue_mode": 2, "irqmode": 2, "completion_nsec": 50000}
# Scheduler tags of a device: what the kernel gives it, and more.
FEW, MANY = 256, 1024
# A scheduler may take as much more than mq-deadline for a device, in bytes, with its defaults.
MOST_OWN = {"pass": 128 << 10, "pai": 16 << 10}
MOST_OTHER = 160 << 10
# What a request of the scheduler takes is the block layer's, which is the same for all.
# Free memory is known to a few pages only.
SAME = 0.06


def free():
    """Return the bytes of free memory, without what the kernel keeps ready for reuse."""
    os.sync()
    for file, text in (("drop_caches", "3"), ("compact_memory", "1")):
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/sys/vm", file).write_text(text)
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":") for line in lines)
    return int(fields["MemFree"].split()[0]) << 10


def all_at_once(threads, devices, names):
    """Select a scheduler for each device, all at the same time; return the seconds."""
    begun = time.monotonic()
    list(threads.map(lambda pair: pair[0].scheduler(pair[1]), zip(devices, names, strict=True)))
    return time.monotonic() - begun


def memory(threads, devices, name):
    """Return (bytes of a device, bytes of a further request, seconds of a switch of all)."""
    before = free()
    seconds = all_at_once(threads, devices, [name] * len(devices))
    selected = free()
    for device in devices:
        device.queue("nr_requests", MANY)
    more = free()
    all_at_once(threads, devices, ["none"] * len(devices))
    return ((before - selected) / len(devices),
            (selected - more) / len(devices) / (MANY - FEW), seconds)


def hundred():
    """Switch many devices at once."""
    devices = [NullBlk(f"d{number}", size=TB, submit_queues=1, hw_queue_depth=128, **TIMER)
               for number in range(DEVICES)]
    found = {}
    rng = random.Random(SEED)
    with concurrent.futures.ThreadPoolExecutor(DEVICES) as threads:
        # The first time, the kernel takes memory for slabs and threads that stay.
        for name in (*PEERS, *ours(), "none"):
            all_at_once(threads, devices, [name] * DEVICES)
        for name in (*PEERS, *ours()):
            found[name] = memory(threads, devices, name)
            print(json.dumps({"scale": name, "devices": DEVICES, "device": round(found[name][0]),
                              "request": round(found[name][1], 1),
                              "seconds": round(found[name][2], 4)}), flush=True)
        names = [*PEERS, *ours(), "none"]
        for _ in range(3):
            all_at_once(threads, devices, [rng.choice(names) for _ in devices])
    for device in devices:
        device.scheduler("none")
        device.remove()
    device, request, _ = found["mq-deadline"]
    for name in ours():
        most = MOST_OWN.get(name, MOST_OTHER)
        check(found[name][0] - device < most and
              abs(found[name][1] / request - 1) < SAME,
              f"{name}: {found[name][0]:.0f} bytes of a device, mq-deadline {device:.0f}, at most "
              f"{most} more; of a request {found[name][1]:.1f} and {request:.1f}")


def large(folder, what, spans, **attributes):
    """Verify data on a device of each scheduler. @spans: options of fio for its parts."""
    devices = {name: NullBlk(f"{name}-{folder}", memory_backed=1, **TIMER, **attributes)
               for name in ours()}
    disks = [Disk(device.name, name) for name, device in devices.items()]
    for span in spans:
        verify(disks, bs="4k-64k", size="1m", **span)
    for disk, device in zip(disks, devices.values(), strict=True):
        size = int(pathlib.Path("/sys/block", device.name, "size").read_text()) >> 31
        print(json.dumps({"large": what, "scheduler": disk.scheduler, "tb": size,
                          "ended": disk.ended()}), flush=True)
        check(size == attributes["size"] // TB, f"{disk.label}: {size} TB, {disk.ended()} requests")
    finish(disks, devices.values())


def main():
    modprobe("-a", "bfq", "kyber-iosched", *(f"{name}-iosched" for name in ours()))
    end = (64 << 40) - (1 << 20)
    large("big", "64 TB", [{"offset": place} for place in (0, "32t", end)] +
          [{"rw": "write", "offset": "17t"}],
          size=64 * TB, submit_queues=1, hw_queue_depth=64)
    hundred()


if __name__ == "__main__":
    main()
