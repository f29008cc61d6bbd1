#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# No request waits longer than its deadline plus 200 ms, with every bound set
# to 1, odd sizes, floods, and abrupt silences after which nobody comes to wake
# whoever was forgotten
# virtual-time: yes
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900
"""See above.

With one request in flight at a time, all those before an overdue one in the FIFO
have to be served first: 64 at most (16 of each of four jobs), of 3 ms each at
worst: hence the slack. A request that was forgotten never ends at all.
"""

import itertools
import random
import re
import subprocess

from ssd import Device, check
from together import SEED, Disk, at_once, fio, modprobe, ours, remove_all

READ_MS, WRITE_MS, SLACK_MS = 50, 200, 200
ODD = (3, 5, 7, 13, 1000)
LOADS = (
    {"thinktime": "300ms", "thinktime_blocks": 24, "numjobs": 3, "number_ios": 150},
    {"thinktime": "1s", "thinktime_blocks": 1, "numjobs": 2, "number_ios": 6},
    {"numjobs": 4, "number_ios": 300},
)


def descriptions(name):
    """What each tunable is, in the words of modinfo."""
    told = subprocess.run(["modinfo", "-p", f"{name}-iosched"], capture_output=True, text=True,
                          check=True).stdout
    return dict(re.findall(r"^(\w+):(.*)$", told, re.M))


def squeeze(disk, what, rng):
    """Every bound 1, every size odd, deadlines short; the rest as it is."""
    tunables = disk.queue / "iosched"
    for name, told in what.items():
        path = tunables / name
        values = ()
        if "expire" in name:
            continue
        if "most" in told:
            values = (1,)
        elif re.search("MB|KB|pages|sectors|units|channels|size", told):
            values = rng.sample(ODD, len(ODD))
        for value in values:
            try:
                path.write_text(str(value))
                break
            except OSError:
                continue    # out of this one's range
    disk.tune(read_expire=READ_MS, write_expire=WRITE_MS, depth=1)
    print(disk.label, *(f"{path.name}={path.read_text().strip()}"
                        for path in sorted(tunables.iterdir())))


def longest(jobs, kind):
    """Milliseconds that the slowest read or write of these jobs took."""
    return max(job[kind]["lat_ns"]["max"] for job in jobs) / 1e6


def main():
    rng = random.Random(SEED)
    devices, disks = [], []
    for name in ours():
        modprobe(f"{name}-iosched")
        for queues in (1, 3):
            devices.append(Device("small", hw_queues=queues, queue_depth=16))
            disks.append(Disk(devices[-1].name, name))
            squeeze(disks[-1], descriptions(name), rng)
    for load, some in itertools.product(LOADS, at_once(disks)):
        # No time limit but the test's own, which is in real time.
        results = fio({disk.name: {"filename": disk.path} for disk in some}, rw="randrw",
                      bs="4k-64k", **load)
        for disk in some:
            read, write = (longest(results[disk.name], kind) for kind in ("read", "write"))
            check(read <= READ_MS + SLACK_MS and write <= WRITE_MS + SLACK_MS,
                  f"{disk.label}, {load.get('thinktime', 'flood')}: slowest read {read:.0f} ms, "
                  f"write {write:.0f} ms")
    for disk in disks:
        disk.nothing_left()
        disk.select("none")
    for device in devices:
        device.remove()
    remove_all()


if __name__ == "__main__":
    main()
