#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# No request waits longer than its deadline plus 200 ms, with the tightest bounds of each
# scheduler, odd sizes, floods, and pauses in which no other request wakes a forgotten one
# virtual-time: yes
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900
# quick: 6.1 newest
"""The core dispatches a request in spite of its bounds 100 ms after its deadline
(IOSCHED_SLACK), if the device has a tag. A flood makes at most 64 requests overdue at once, 16
of each of four jobs; they are dispatched oldest first, and the device takes at most 3 ms for
each, many at a time. A forgotten request never ends."""

import functools
import itertools
import pathlib
import random

from blktrace import longest, record
from checks import SEED, check, modprobe
from fio_jobs import at_once, fio
from iosched import Disk, finish, ours, remove_all
from ssd import Device

READ_MS, WRITE_MS, SLACK_MS = 50, 200, 200
# Sizes that are multiples of no other; each tunable gets one of them.
ODD = (3, 5, 7, 13, 1000)
# A tunable that holds back no request keeps its value.
FREE = None
# Each tunable of each scheduler: the values with which it holds requests back for longest, or
# behind most others. A test gives it one of them. A new tunable has to be added here; a scheduler
# that is missing has the core's only.
ALL = {
    "read_expire": (READ_MS,), "write_expire": (WRITE_MS,),
    # Applies to several classes, as in the tests priority and deadlines.
    "prio_aging_expire": FREE,
    "front_merges": FREE,
    "depth": (1, 2), "write_share": (1,), "bypass": (0, 1),
    # A request that waits for a tag is not in the scheduler yet; see the test held.
    "async_depth": FREE,
}
SQUEEZED = {
    "bp": ALL | {
        "base": ("anticipatory", "fair"), "preference": (1,), "open_blocks": (1,),
        "block_size_kb": ODD[1:], "lookahead": (0, 1, 16),
        # Anticipates for longer than a deadline, for any process.
        "antic_us": (1000000,), "antic_near_kb": (0, *ODD),
        # Batches of one direction and slices of one process: deadlines must end them.
        "read_batch_ms": (1, 3600000), "write_batch_ms": (1, 3600000),
        "slice_sync_ms": (1, 3600000), "slice_async_ms": (1, 3600000)},
    "pai": ALL | {
        "clustered_page_kb": ODD, "clustered_block_kb": ODD,
        "read_buffer_kb": ODD, "write_buffer_kb": ODD, "align": ("page", "block"),
        "well_split": ("paper", "aligned"),
        # Would split an I/O into up to 16 requests here, for which the slack does not account.
        "split": FREE,
        # Pending for longer than a deadline.
        "read_pending_us": (10000000,), "write_pending_us": (10000000,)},
    "pass": ALL | {
        "region_size_mb": ODD, "region_depth": (0, 1), "laps": (0, 1),
        # The longest turns: others wait for their end.
        "read_batch": (65535,), "write_batch": (65535,)},
    "piq": ALL | {
        # One unit in all, or few: each request conflicts with most others.
        "channels": (1, 3), "chips": (1,), "dies": (1, 2), "planes": (1,),
        "page_size_kb": (1, 1024), "allocation": ("cwdp", "pdwc"), "level": ("chip", "plane"),
        "window": (1,), "scheme": ("rws", "piq", "piq+"),
        # Neither wait ends before the deadline.
        "trials": (0, 1), "write_wait_us": (60000000,), "claim_us": (0, 60000000),
        "buffered_writes": (0,)},
}
LOADS = (
    {"thinktime": "300ms", "thinktime_blocks": 24, "numjobs": 3, "number_ios": 150},
    {"thinktime": "1s", "thinktime_blocks": 1, "numjobs": 2, "number_ios": 6},
    {"numjobs": 4, "number_ios": 300},
)


def check_table(name):
    """Check that the table has exactly the scheduler's tunables."""
    folder = pathlib.Path("/sys/module", f"{name}_iosched", "parameters")
    have = {path.name for path in folder.iterdir()}
    known = set(SQUEEZED.get(name, ALL))
    check(have == known, f"{name}: all {len(have)} tunables are in the table "
                         f"(not in both: {sorted(have ^ known)})")


def squeeze(disk, rng):
    """Give each tunable one of its values, and check that it has this value."""
    for name, values in SQUEEZED.get(disk.scheduler, ALL).items():
        path = disk.queue / "iosched" / name
        if values:
            value = str(rng.choice(values))
            path.write_text(value)
            if path.read_text().strip() != value:
                check(False, f"{disk.label}: {name} is {path.read_text()} after {value}")
    print(disk.label, *(f"{path.name}={path.read_text().strip()}"
                        for path in sorted((disk.queue / "iosched").iterdir())))


def main():
    rng = random.Random(SEED)
    devices, disks = [], []
    for name in ours():
        modprobe(f"{name}-iosched")
        check_table(name)
        for queues in (1, 3):
            devices.append(Device("small", hw_queues=queues, queue_depth=16))
            disks.append(Disk(devices[-1].name, name))
            squeeze(disks[-1], rng)
            # Enough tags: a deadline begins when the request is inserted.
            (disks[-1].queue / "nr_requests").write_text("256")
    for load, some in itertools.product(LOADS, at_once(disks)):
        # No runtime: the test's own time limit is in real time.
        jobs = {disk.name: {"filename": disk.path} for disk in some}
        flood = functools.partial(fio, jobs, rw="randrw", bs="4k-64k", **load)
        traced = record(some, flood, "QC", buffers=4)
        for disk in some:
            read, write = (1e3 * wait for wait in longest(traced[disk]).values())
            check(read <= READ_MS + SLACK_MS and write <= WRITE_MS + SLACK_MS,
                  f"{disk.label}, {load.get('thinktime', 'flood')}: slowest read {read:.0f} ms, "
                  f"write {write:.0f} ms")
    finish(disks, devices)
    remove_all()


if __name__ == "__main__":
    main()
