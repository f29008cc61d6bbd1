#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# The SLC cache of the emulated SSD holds as much as it should, is as fast as its programs, and
# behind its cliff the drive is as fast as the other blocks; idle time and writes fold it at the
# computed rate, and data that were overwritten or trimmed are not folded
# virtual-time: yes
# kernels: 6.12
# timeout: 600
"""QLC: an SLC block has a quarter of the pages of another block."""

import os
import time

from checks import check, near
from linux_calls import BLKDISCARD, range_ioctl
from ssd import Device

PAGE, MB = 4096, 1 << 20
DIES, UNIT, SLC_UNIT, BITS, BLOCK = 2, 64, 16, 4, 256
READ, PROGRAM, ERASE, COMMAND = 100_000, 8_000_000, 4_000_000, 500
SLC_READ, SLC_PROGRAM = 40_000, 1_000_000
# ns for a page at 800 MB/s
XFER = PAGE * 1000 // 800
CACHE_MB = 16
NEVER, IDLE = 10_000_000, 10_000
FLASH = {"channels": DIES, "chips": 1, "unit": "die", "planes": 4, "pages": BLOCK // 4,
         "program_pages": UNIT, "read_pages": SLC_UNIT, "read_ns": READ, "program_ns": PROGRAM,
         "erase_ns": ERASE, "command_ns": COMMAND, "channel_mbps": 800, "capacity_mb": 128,
         "allocation": "dynamic", "device_sched": "ooo-read", "write_buffer_kb": 2048,
         "gc_free_blocks": 1, "gc_start_blocks": 4, "slc_mb": CACHE_MB, "slc_bits": BITS,
         "slc_read_ns": SLC_READ, "slc_program_ns": SLC_PROGRAM}
SLC_NS = COMMAND + SLC_UNIT * XFER + SLC_PROGRAM
MAIN_NS = COMMAND + UNIT * XFER + PROGRAM
# A write unit folded, which empties a whole SLC block, and its erase.
FOLD_NS = (UNIT // SLC_UNIT * (COMMAND + SLC_READ) + COMMAND + 2 * UNIT * XFER + PROGRAM +
           COMMAND + ERASE)


def write(dev, offset, size):
    """Counters of a sequential write."""
    dev.reset()
    dev.fio(rw="write", bs="128k", iodepth=8, offset=offset, size=size)
    return dev.stats()


def rate(stats):
    """Pages per second of the time in which a unit was busy."""
    return stats["flash_programs"] * 1e9 / stats["active_ns"]


def free(dev):
    return [plane["slc_free_blocks"] for plane in dev.stats()["planes"]]


def cliff():
    """Bandwidth before and behind the cliff, and where it is."""
    with Device("small", idle_us=NEVER, **FLASH) as dev:
        blocks = CACHE_MB * MB // PAGE // DIES // (BLOCK // BITS)
        check(free(dev) == [blocks] * DIES, f"{blocks} SLC blocks on each die")
        stats = write(dev, 0, 12 * MB)
        near(rate(stats), DIES * SLC_UNIT * 1e9 / SLC_NS, 2, "pages per second in the cache")
        check(stats["slc_programs"] == stats["flash_programs"], "all of them in the cache")
        first = dev.one(0, PAGE)
        near(first["read_mean_ns"], COMMAND + SLC_READ + XFER, 1, "a read from the cache")
        more = write(dev, 12 * MB, 8 * MB)
        near(stats["slc_programs"] + more["slc_programs"], CACHE_MB * MB // PAGE, 0.1,
             "pages before the cliff")
        stats = write(dev, 20 * MB, 40 * MB)
        near(rate(stats), DIES * UNIT * 1e9 / MAIN_NS, 2, "pages per second behind the cliff")
        check(not stats["slc_programs"] and not stats["folded_pages"], "none in the cache")
        near(dev.one(30 * MB, PAGE)["read_mean_ns"], COMMAND + READ + XFER, 1,
             "a read of the other blocks")


def idle():
    """The cache regains one block for each write unit that is folded."""
    with Device("small", idle_us=IDLE, **FLASH) as dev:
        write(dev, 0, 20 * MB)
        dev.reset()
        before = free(dev)
        time.sleep(0.2)
        stats = dev.stats()
        regained = sum(free(dev)) - sum(before)
        expected = DIES * (stats["elapsed_ns"] - IDLE * 1000) // FOLD_NS
        check(abs(regained - expected) <= 2 * DIES and regained > 10,
              f"{regained} SLC blocks regained in {stats['elapsed_ns'] / 1e6:.0f} ms, "
              f"expected {expected}")
        time.sleep(2)
        check(min(free(dev)) >= CACHE_MB * MB // PAGE // DIES // (BLOCK // BITS),
              "the whole cache after two seconds")


def beside_writes():
    """Half a page is folded for each page written, so every other page finds room in the
    cache."""
    with Device("small", idle_us=NEVER, slc_fold_percent=50, **FLASH) as dev:
        write(dev, 0, 40 * MB)
        stats = write(dev, 40 * MB, 60 * MB)
        near(stats["folded_pages"], stats["flash_programs"] / 2, 3, "pages folded")
        near(stats["slc_programs"], stats["flash_programs"] / 2, 3, "pages written to the cache")
        page_ns = 0.5 * SLC_NS / SLC_UNIT + 0.5 * MAIN_NS / UNIT + 0.5 * FOLD_NS / UNIT
        near(rate(stats), DIES * 1e9 / page_ns, 3, "pages per second beside folding")


def nothing_to_fold():
    """Overwritten and trimmed data."""
    for what in ("overwritten", "trimmed"):
        with Device("small", idle_us=IDLE * 20, **FLASH) as dev:
            write(dev, 0, 6 * MB)
            fd = os.open(dev.path, os.O_RDWR)
            os.fsync(fd)
            if what == "overwritten":
                write(dev, 0, 6 * MB)
                os.fsync(fd)
            else:
                range_ioctl(fd, BLKDISCARD, 0, 6 * MB)
            os.close(fd)
            dev.reset()
            time.sleep(3)
            folded = dev.stats()["folded_pages"]
            # The active blocks are not folded.
            most = 6 * MB // PAGE if what == "overwritten" else 0
            check(most - DIES * BLOCK // BITS <= folded <= most,
                  f"{folded} of {most} pages folded of data that were {what}")


def folding_and_collecting():
    """Folding and writes leave the collector, which is not in the background here, the free blocks
    that it needs to finish a victim."""
    keys = FLASH | {"gc_start_blocks": 0, "gc_free_blocks": 2, "allocation": "cwpd", "fill": 60,
                    "slc_fold_percent": 50}
    with Device("small", **keys) as dev:
        dev.reset()
        for way in ("write", "randwrite", "randwrite"):
            dev.fio(rw=way, bs="16k", iodepth=32, io_size="160m")
        stats = dev.stats()
        check(stats["folded_pages"] and stats["flash_copies"],
              f"{stats['folded_pages']} pages folded, {stats['flash_copies']} collected")


cliff()
idle()
beside_writes()
nothing_to_fold()
folding_and_collecting()
