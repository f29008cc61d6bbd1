#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# PIQ's scheme, geometry and window change under load: no request is lost, the data are
# right; combinations that make no sense are refused
# check: 6.12
# timeout: 900

import errno
import itertools
import random
import re
import threading

from checks import check
from fio_jobs import load, verify
from iosched import Disk
from ssd import Device

# Values that each tunable takes, whatever the others are: at most 1024 planes.
VALUES = {"scheme": ("noop", "rws", "piq-r", "piq-w", "piq", "piq+"), "level": ("plane", "chip"),
          "allocation": ("pdwc", "wcdp", "cwdp"), "window": (1, 3, 1024, 64),
          "channels": (1, 16, 8), "chips": (1, 3, 8), "planes": (3, 2), "dies": (1, 2),
          "page_size_kb": (1, 64, 4), "write_wait_us": (0, 1000), "claim_us": (0, 4000),
          "buffered_writes": (1, 0), "trials": (1, 0)}
LAST = {"scheme": "piq+", "level": "chip", "allocation": "cwdp", "window": 64, "channels": 8,
        "chips": 8, "planes": 2, "dies": 2, "page_size_kb": 4, "claim_us": 4000,
        "buffered_writes": 0, "trials": 0}


def units(disk):
    """Number of units that PIQ sees."""
    return int(re.search(r"^# (\d+) units", (disk.debugfs / "units").read_text(), re.M)[1])


def take(disk, name, value):
    """Set a tunable; it must have this value."""
    disk.set(**{name: value})
    now = disk.tunable(name).read_text().strip()
    if now != str(value):
        check(False, f"{name} is {now} after {value}")


def refused(disk, name, value, count):
    """Check that a value is refused and changes nothing; @count: units there are."""
    before, error = disk.tunable(name).read_text(), 0
    try:
        disk.set(**{name: value})
    except OSError as failure:
        error = failure.errno
    check(error == errno.EINVAL, f"{name}={value} is refused: {error}")
    check(disk.tunable(name).read_text() == before and units(disk) == count,
          f"{name} and the {count} units stay")


def combinations(disk):
    """Check values and combinations of them without load."""
    check(units(disk) == 64, "64 units by default")
    for name, value in (("channels", 33), ("page_size_kb", 3), ("allocation", "cwdd"),
                        ("level", "die"), ("scheme", "piq++")):
        refused(disk, name, value, 64)
    # An allocation is an order of the four letters.
    orders = 0
    for letters in itertools.product("cwdp", repeat=4):
        try:
            disk.set(allocation="".join(letters))
            orders += 1
        except OSError:
            pass
    check(orders == 24, f"{orders} allocation orders")
    take(disk, "allocation", "cwdp")
    take(disk, "level", "plane")
    check(units(disk) == 256, "256 planes by default")
    refused(disk, "planes", 9, 256)
    take(disk, "chips", 32)
    check(units(disk) == 1024, "1024 planes of 8 x 32 x 2 x 2")
    refused(disk, "dies", 3, 1024)
    take(disk, "chips", 8)
    take(disk, "level", "chip")


def take_all(disk, number):
    """Set every value once, in an order that depends on @number, then LAST."""
    settings = [(name, value) for name, values in VALUES.items() for value in values]
    random.Random(number).shuffle(settings)
    for name, value in [*settings, *LAST.items()]:
        take(disk, name, value)


def held_units(disk):
    """Lines of units that PIQ takes for busy."""
    lines = (disk.debugfs / "units").read_text().splitlines()[2:]
    return [line for line in lines if line.split()[2] != "0"]


with Device("small", memory_backed=1) as device:
    piq = Disk(device.name, "piq")
    (piq.queue / "nr_requests").write_text("256")
    combinations(piq)

    jobs = {"load": {"filename": piq.path}}
    with load([piq], jobs, rw="randrw", bs=None, bssplit="4k/70:64k/30", iodepth=32, numjobs=2):
        for number in (1, 2):
            take_all(piq, number)
    piq.nothing_left()
    check(units(piq) == 64, "64 units in the end")
    check(not held_units(piq), f"no unit is held while nothing is in flight {held_units(piq)}")

    errors = []

    def change():
        try:
            take_all(piq, 3)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
    changer = threading.Thread(target=change)
    changer.start()
    verify([piq], size="32m", iodepth=32)
    changer.join()
    check(not errors, f"all values were taken {errors}")
    piq.nothing_left()

# The map is wrong: it has one unit, so that one read at a time is in flight. A trial counts the
# requests that there are, not the tags, of which most are never used.
with Device("small", queue_depth=4096, read_ns=2000000) as device:
    piq = Disk(device.name, "piq", channels=1, chips=1, dies=1, planes=1)
    device.fio(rw="randread", iodepth=64, time_based=1, runtime=6)
    shown = (piq.debugfs / "piq").read_text()
    check(re.search(r"^holding 0 trials [1-9]\d* changes 1$", shown, re.M),
          f"a trial has found that holding does not pay: {shown}")
