#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# A read suspends the program or the erase on its unit: latencies of both, the number of
# suspensions, what happens near the end of an operation, and the most that endless reads can
# delay a write are as computed here; so is what waits for a collection, for a write that another
# unit takes and for the write buffer, and what an operation counts after a reset
# virtual-time: yes
# memory: 1G
# kernels: 6.12
# timeout: 900
"""The device is slower than the guest by a factor of 1000, so that a process can place a request
within 1 us of the device's time; all times here are the device's. erase() has to fill a drive
first and makes do with 32."""

import concurrent.futures
import contextlib
import os
import subprocess
import time

from checks import check, near, wait_for
from ssd import Device

PAGE = 4096
SCALE = 1000
READ, PROGRAM, ERASE, COMMAND = 50_000, 600_000, 3_000_000, 500
SUSPEND, RESUME, MOST = 30_000, 20_000, 3
# ns for a page at 400 MB/s
XFER = PAGE * 1000 // 400
ONE_READ = COMMAND + READ + XFER
ONE_WRITE = COMMAND + XFER + PROGRAM
BOUND = 4
# One unit; a read and a write of any page meet there.
KEYS = {"channels": 1, "chips": 1, "read_ns": READ, "program_ns": PROGRAM, "erase_ns": ERASE,
        "command_ns": COMMAND, "channel_mbps": 400, "capacity_mb": 16, "pages": 64,
        "device_sched": "ooo-read", "read_bound": BOUND, "suspend_ns": SUSPEND,
        "resume_ns": RESUME, "suspend_max": MOST}


@contextlib.contextmanager
def device(**keys):
    """A slow device, without the scheduler's merging."""
    with Device("small", **{"time_scale": SCALE, **KEYS, **keys}) as dev:
        dev.queue("nomerges", 2)
        yield dev


def timed(dev, requests):
    """Do requests, [(ns after the first, offset, write)], each in time; return the counters.
    A request may have a length, too; a flush has no offset."""
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        dev.reset()
        begin = time.monotonic_ns() + 20_000_000

        def do(at, offset, write, length=PAGE):
            time.sleep(max(begin + at * dev.time_scale - time.monotonic_ns(), 0) / 1e9)
            if offset is not None:
                dev.io(offset, length, write)
                return
            fd = os.open(dev.path, os.O_RDWR)
            os.fsync(fd)
            os.close(fd)

        for job in [pool.submit(do, *request) for request in requests]:
            job.result()
    return dev.stats()


def reset():
    """After a reset an operation counts from then on."""
    with device(suspend_ns=0) as dev:
        at = 400_000
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(dev.io, 0, PAGE, True)
            time.sleep(at * SCALE / 1e9)
            dev.reset()
            check(dev.stats()["units_busy_max"] == 1, "the unit is busy at the reset")
            job.result()
        stats = dev.stats()
        near(stats["planes"][0]["busy_ns"], ONE_WRITE - at, 2, "time of the plane since the reset")
        near(stats["unit_busy_ns"], stats["planes"][0]["busy_ns"], 0.1, "and of the unit")


def one_read():
    """A read that arrives while a page is programmed."""
    reading = SUSPEND + ONE_READ + RESUME
    for at, latency, delay, what in (
            (100_000, SUSPEND + ONE_READ, reading, "soon"),
            (400_000, SUSPEND + ONE_READ, reading, "later"),
            (ONE_WRITE - 20_000, 20_000 + ONE_READ, 0, "shortly before its end")):
        with device() as dev:
            stats = timed(dev, [(0, 0, True), (at, PAGE, False)])
            near(stats["read_mean_ns"], latency, 2, f"a read during a program, {what}")
            near(stats["write_mean_ns"], ONE_WRITE + delay, 0.1, "the program")
            check(stats["suspends"] == bool(delay), f"{stats['suspends']} suspensions")
            near(stats["suspended_ns"] + 1, delay + 1, 0.1, "time that it was suspended")
    with device(suspend_ns=0) as dev:
        stats = timed(dev, [(0, 0, True), (100_000, PAGE, False)])
        near(stats["read_mean_ns"], ONE_WRITE - 100_000 + ONE_READ, 1, "a read without suspension")
        near(stats["write_mean_ns"], ONE_WRITE, 0.1, "the program")


def in_transfer():
    """A read that arrives while the data of a program are transferred waits for that only."""
    slow = {"channel_mbps": 40}
    transfer = PAGE * 1000 // 40
    with device(**slow) as dev:
        at = transfer // 2
        stats = timed(dev, [(0, 0, True), (at, PAGE, False)])
        near(stats["read_mean_ns"], COMMAND + transfer - at + SUSPEND + COMMAND + READ + transfer,
             2, "a read during the transfer of a program's data")
        near(stats["write_mean_ns"], COMMAND + transfer + SUSPEND + COMMAND + READ + transfer +
             RESUME + PROGRAM, 0.1, "the program")


def several():
    """Reads one after another: each suspends the program, until it has been suspended often
    enough."""
    for reads in (1, 2, MOST, MOST + 1):
        with device() as dev:
            gap = SUSPEND + ONE_READ + RESUME + 20_000
            stats = timed(dev, [(0, 0, True), *((50_000 + i * gap, (i + 1) * PAGE, False)
                                                for i in range(reads))])
            times = min(reads, MOST)
            check(stats["suspends"] == times, f"{reads} reads: {stats['suspends']} suspensions")
            near(stats["write_mean_ns"],
                 ONE_WRITE + times * (SUSPEND + ONE_READ + RESUME), 0.1, "the program")
            if reads <= MOST:
                near(stats["read_max_ns"], SUSPEND + ONE_READ, 2, "the longest read")


def together():
    """Reads that arrive together share a suspension, up to read_bound; the others wait."""
    with device() as dev:
        stats = timed(dev, [(0, 0, True), *((100_000, i * PAGE, False)
                                            for i in range(1, BOUND + 3))])
        check(stats["suspends"] == 1, "one suspension")
        near(stats["write_mean_ns"], ONE_WRITE + SUSPEND + BOUND * ONE_READ + RESUME, 0.1,
             f"a program suspended for {BOUND} of {BOUND + 2} reads")
        near(stats["read_max_ns"], ONE_WRITE - 100_000 + SUSPEND + RESUME +
             (BOUND + 2) * ONE_READ, 1, "the read that waited for the program")


def erase():
    """Writes in order leave blocks without valid pages: the collector only erases. The write
    that needs the block waits for it."""
    for suspend in (0, SUSPEND):
        with device(fill=0, suspend_ns=suspend, spare=30, time_scale=32) as dev:
            offset, block = 0, KEYS["pages"] * PAGE
            while not dev.one(offset % (16 << 20), block, True)["flash_erases"]:
                offset += block
            offset += block
            # Each erase is a block of pages after the one before. Find at which page.
            while not dev.one(offset % (16 << 20), PAGE, True)["flash_erases"]:
                offset += PAGE
            for _ in range(KEYS["pages"] - 1):
                offset += PAGE
                dev.io(offset % (16 << 20), PAGE, True)
            offset += PAGE
            at = 1_000_000
            stats = timed(dev, [(0, offset % (16 << 20), True), (at, PAGE, False)])
            check((stats["flash_erases"], stats["flash_copies"]) == (1, 0), "one erase")
            erased = COMMAND + ERASE
            read = SUSPEND + ONE_READ if suspend else erased - at + ONE_WRITE + ONE_READ
            near(stats["read_mean_ns"], read, 2, "a read during an erase")
            near(stats["cleaning_ns"], erased + (SUSPEND + RESUME if suspend else 0), 0.1,
                 "time of the erase")
            delay = SUSPEND + ONE_READ + RESUME if suspend else 0
            near(stats["write_mean_ns"], erased + delay + ONE_WRITE, 0.1,
                 "the write behind the erase")


def collection():
    """Reads that arrive together while a write waits for the copies of a victim: the copy being
    made delays all of them, the next one those beyond read_bound."""
    copy = 2 * COMMAND + READ + 2 * XFER + PROGRAM
    reads, at = BOUND + 2, 100_000
    for gives_way in (0, 1):
        with device(suspend_ns=0, fill=100, gc_yield=gives_way, spare=10) as dev:
            stats = timed(dev, [(0, 0, True), *((at, i * PAGE, False)
                                                for i in range(1, reads + 1))])
            check(stats["flash_copies"] > reads, f"{stats['flash_copies']} pages are copied")
            end = 2 * copy if gives_way else (stats["flash_copies"] * copy + COMMAND + ERASE +
                                              ONE_WRITE)
            near(stats["read_max_ns"], end - at + reads * ONE_READ, 1,
                 f"the last of {reads} reads during a collection, gc_yield={gives_way}")


def emptied_buffer():
    """A write larger than the write buffer waits until all but the youngest page are programmed,
    three on one unit; a flush has the youngest programmed on the other one before them."""
    other = 8 << 20
    with device(chips=2, allocation="concat", suspend_ns=0, write_buffer_kb=16) as dev:
        begin, arrives = 10_000, 50_000
        stats = timed(dev, [(0, 0, True), (begin, PAGE, True), (20_000, 2 * PAGE, True),
                            (30_000, other, True), (arrives, other + PAGE, True, 5 * PAGE),
                            (80_000, None, False)])
        check(stats["flush_count"] == 1, "a flush")
        # Its last page has room when its first one is programmed.
        near(stats["write_max_ns"], begin + 3 * ONE_WRITE + ONE_WRITE - arrives, 1,
             "a write larger than the buffer, before a flush")


def channel_is_free():
    """While a program is suspended the channel serves the other unit."""
    with device(chips=2) as dev:
        other = next(n * PAGE for n in range(16)
                     if dev.where(n * 8)[0]["unit"] != dev.where(0)[0]["unit"])
        same = next(n * PAGE for n in range(1, 16)
                    if dev.where(n * 8)[0]["unit"] == dev.where(0)[0]["unit"])
        # The second read is on the other unit, at a time in which the first program stands still.
        at = 100_000
        stats = timed(dev, [(0, 0, True), (at, same, False), (at + 10_000, other, False)])
        near(stats["read_min_ns"], ONE_READ, 1, "a read of another unit, meanwhile")
        near(stats["read_max_ns"], SUSPEND + ONE_READ, 2, "the read that suspended the program")


def another_write():
    """read_bound reads pass a write that no unit has taken, then the other unit takes it. As many
    pass the next write."""
    keys = {"chips": 2, "allocation": "dynamic", "suspend_ns": 0, "channel_mbps": 100_000}
    read, write = COMMAND + READ + 40, COMMAND + 40 + PROGRAM
    # The other unit is free half a read after read_bound of them have begun.
    later, waiting, reading = BOUND * read - read // 2, 300_000, 350_000
    # The last write comes during the second read after those.
    last = write + (BOUND + 1) * read + read // 3
    with device(**keys) as dev:
        dev.io(0, PAGE, True)
        dev.io(PAGE, PAGE, True)
        check(dev.where(0)[0]["unit"] != dev.where(8)[0]["unit"], "two pages on two units")
        stats = timed(dev, [(0, 2 * PAGE, True), (later, 3 * PAGE, True),
                            (waiting, 4 * PAGE, True), *((reading, 0, False) for _ in range(16)),
                            (last, 5 * PAGE, True)])
        expected = (2 * write + later + 2 * write - waiting +
                    write + (2 * BOUND + 2) * read + write - last)
        near(4 * stats["write_mean_ns"], expected, 1,
             "time of all writes, the last of which is passed by read_bound reads")


def endless_reads():
    """Reads that never end: a write that waits is passed by read_bound of them behind the one
    being served, and its program is suspended suspend_max times for read_bound of them."""
    for most in (1, 8):
        with Device("small", time_scale=16, **{**KEYS, "suspend_max": most}) as dev:
            load = dev.fio_command(rw="randread", iodepth=32, time_based=1, runtime=10**6)
            with subprocess.Popen(load, stdout=subprocess.DEVNULL) as readers:
                wait_for(lambda dev=dev: dev.stats()["read_count"] > 100, "endless reads")
                dev.reset()
                for number in range(20):
                    dev.io(number * PAGE, PAGE, True)
                stats = dev.stats()
                readers.terminate()
        delay = most * (SUSPEND + BOUND * ONE_READ + RESUME)
        check(stats["suspends"] == 20 * most, f"20 writes, {stats['suspends']} suspensions")
        near(stats["suspended_ns"], 20 * delay, 0.1, "time that they were suspended")
        least = BOUND * ONE_READ + ONE_WRITE + delay
        check(least <= stats["write_min_ns"] and stats["write_max_ns"] <= least + ONE_READ,
              f"suspend_max={most}: writes take {stats['write_min_ns']:,} to "
              f"{stats['write_max_ns']:,} ns, expected {least:,} to {least + ONE_READ:,}")


reset()
one_read()
in_transfer()
several()
together()
erase()
collection()
emptied_buffer()
channel_is_free()
another_write()
endless_reads()
