#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# No request is lost while every tunable, nr_requests, read_ahead_kb and max_sectors_kb are
# rewritten at random under load; each write takes effect or is refused
# check: 6.12
# timeout: 900

import collections
import errno
import os
import random

from checks import SEED, amount, check
from fio_jobs import random_load
from iosched import NAMES, Disk, ours
from ssd import Device, NullBlk

NUMBERS = (0, 1, 2, 3, 5, 8, 16, 31, 64, 100, 512, 4096, 65535)
GENERIC = ("nr_requests", "read_ahead_kb", "max_sectors_kb", "async_depth")
REFUSED = (errno.EINVAL, errno.EBUSY)


def rewrite(file, value):
    """Write the value; return false if it is refused."""
    fd = os.open(file, os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    except OSError as error:
        if error.errno not in REFUSED:
            check(False, f"{file} refuses {value}: {error}")
        return False
    finally:
        os.close(fd)
    return True


def main():
    rng = random.Random(SEED)
    devices, disks, files = [], [], {}
    for name in ours():
        devices += [Device("small", hw_queues=2),
                    NullBlk(f"{name}-many", size=1024, queue_mode=2, irqmode=2,
                            completion_nsec=50000, submit_queues=4, hw_queue_depth=8)]
        for device in devices[-2:]:
            disk = Disk(device.name, name)
            disks.append(disk)
            own = sorted((disk.queue / "iosched").iterdir())
            values = {file: NUMBERS if file.read_text().strip().isdigit() else NAMES
                      for file in own}
            values |= {disk.queue / generic: NUMBERS for generic in GENERIC
                       if (disk.queue / generic).exists()}
            files |= values

    taken = collections.Counter()
    with random_load(disks, bs="4k-64k"):
        for _ in range(amount(8)):
            for file, values in rng.sample(sorted(files.items()), len(files)):
                # Until it takes one.
                for value in rng.sample(values, len(values)):
                    if rewrite(file, str(value)):
                        taken[file] += 1
                        break
    for disk in disks:
        disk.nothing_left()
    never = [str(file) for file in files if not taken[file]]
    check(not never, f"each of {len(files)} files took some of its values {' '.join(never)}")
    for disk in disks:
        disk.select("none")
    for device in devices:
        device.remove()
    print(f"counted: rewrites={sum(taken.values())}")


if __name__ == "__main__":
    main()
