#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# With busy_units PIQ learns that units are slow and keeps them for as long, and
# no longer: whoever waits for one goes though nothing is in flight
# virtual-time: yes
# timeout: 300
"""A request that takes several times the average makes its units slow. The next one
that needs one of them then waits for the timer and for nothing else: no completion
comes, and no deadline is near."""
import pathlib
import re
import time

from ssd import Device, check

KEPT_MS, UNITS = 100, 16
SMALL, LARGE = 4096, 512 * 1024


def slow(device):
    """Requests that PIQ took for slow."""
    said = pathlib.Path(f"/sys/kernel/debug/block/{device.name}/sched/piq").read_text()
    return int(re.search(r"^slow (\d+)", said, re.M)[1])


def in_flight(device):
    """Units that are held."""
    lines = pathlib.Path(
        f"/sys/kernel/debug/block/{device.name}/sched/units").read_text().splitlines()
    return [line for line in lines[2:] if line.split()[2] != "0"]


def milliseconds(device, offset, length):
    """What a read takes."""
    start = time.monotonic_ns()
    device.io(offset, length)
    return (time.monotonic_ns() - start) / 1e6


def learn(device):
    """Small reads, one after the other: all take the same time."""
    for page in range(300):
        device.io(page * SMALL, SMALL)


def main():
    with Device("small") as device:
        device.scheduler("piq")
        for name, value in (("channels", 4), ("chips", 4), ("dies", 1), ("planes", 1),
                            ("read_expire", 3600000), ("busy_units", KEPT_MS * 1000)):
            device.queue(f"iosched/{name}", value)
        learn(device)
        check(slow(device) == 0, "reads that take the same time are not slow")
        # First all that is timed: saying something takes the host, for which virtual
        # time does not wait.
        device.io(0, LARGE)
        found, kept = slow(device), len(in_flight(device))
        took = milliseconds(device, 0, SMALL)
        check(found > 0, "one that takes many times as long is")
        check(kept == UNITS, "its units are kept")
        check(KEPT_MS / 2 < took < 2 * KEPT_MS,
              f"the next one waited for them, {took:.0f} ms, and then went")
        check(not in_flight(device), "they were given back")

        device.io(0, LARGE)
        kept = in_flight(device)
        device.queue("iosched/busy_units", 0)
        before = slow(device)
        took = milliseconds(device, 0, SMALL)
        check(kept, "units are kept again")
        check(took < 2 * KEPT_MS, f"switched off meanwhile: the next one waited {took:.0f} ms")
        learn(device)
        device.io(0, LARGE)
        check(slow(device) == before and not in_flight(device), "off, it learns nothing")

        # Units that are kept when their map goes are nobody's.
        device.queue("iosched/busy_units", KEPT_MS * 1000)
        learn(device)
        device.io(0, LARGE)
        device.queue("iosched/window", 32)
        took = milliseconds(device, 0, SMALL)
        check(took < KEPT_MS / 2, f"after a change of the map the next one waited {took:.1f} ms")

    # Garbage collection under all of it, and the end comes.
    with Device("small", capacity_mb=64, fill=100) as device:
        device.scheduler("piq")
        for name, value in (("channels", 4), ("chips", 4), ("dies", 1), ("planes", 1),
                            ("busy_units", 2000)):
            device.queue(f"iosched/{name}", value)
        done = device.fio(rw="randrw", bssplit="4k/70:64k/30", iodepth=32, number_ios=2000)
        count = done["read"]["total_ios"] + done["write"]["total_ios"]
        check(count == 2000, f"all of {count} requests have ended")
        check(device.stats()["flash_erases"] > 0, "the drive collected garbage")
        check(slow(device) > 0, f"{slow(device)} of them were slow")
        time.sleep(0.01)
        check(not in_flight(device), "no unit is held in the end")


if __name__ == "__main__":
    main()
