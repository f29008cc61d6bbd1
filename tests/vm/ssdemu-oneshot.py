#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# The emulated SSD programs whole write units at once, senses their pages at once and pads the
# units that a flush or a lack of room cuts short, within 1 % of closed forms
# virtual-time: yes
# kernels: 6.12
# timeout: 600
"""Latencies are those that the device counts."""

import mmap
import os

from checks import check, near
from ssd import Device

KB = 1024
PAGE = 4 * KB
READ, PROGRAM, ERASE, COMMAND = 50_000, 400_000, 2_000_000, 500
# ns for a page at 800 MB/s
XFER = PAGE * 1000 // 800
UNIT = 16
# A die of four planes of 16 KB.
DIE = {"unit": "die", "planes": 4, "program_pages": UNIT, "pages": 64, "read_ns": READ,
       "program_ns": PROGRAM, "erase_ns": ERASE, "command_ns": COMMAND, "channel_mbps": 800,
       "capacity_mb": 64, "device_sched": "ooo-read"}
ONE = {**DIE, "channels": 1, "chips": 1}


def program(pages, cells=PROGRAM):
    """ns of a program of a write unit with so many pages; @cells: program_ns."""
    return COMMAND + pages * XFER + cells


def counted(stats, programs, padded, what):
    """Check the pages programmed and those left unused."""
    found = stats["flash_programs"], stats["padded_pages"]
    check(found == (programs, padded), f"{what}: {found[0]} pages programmed, {found[1]} padded")


def single_units():
    """Requests of a write unit, of a part of one and of several."""
    for keys in ({"allocation": "dynamic"}, {"allocation": "cwdp"}, {"device_sched": "aos"}):
        with Device("small", **{**ONE, **keys}) as dev:
            stats = dev.one(0, UNIT * PAGE, True)
            near(stats["write_mean_ns"], program(UNIT), 1, f"{keys}: a write unit written")
            counted(stats, UNIT, 0, "a write unit")
            stats = dev.one(0, UNIT * PAGE)
            near(stats["read_mean_ns"], COMMAND + READ + UNIT * XFER, 1, "and read")
            check(stats["shared_senses"] == UNIT - 1, "all its pages were sensed together")
            stats = dev.one(0, 5 * PAGE, True)
            near(stats["write_mean_ns"], program(5), 1, "five pages written")
            counted(stats, 5, UNIT - 5, "five pages")
            near(dev.one(0, UNIT * PAGE)["read_mean_ns"], 2 * (COMMAND + READ) + UNIT * XFER, 1,
                 "pages of two write units read")
            stats = dev.one(0, 2 * UNIT * PAGE, True)
            near(stats["write_mean_ns"], 2 * program(UNIT), 1, "two write units written")
            counted(stats, 2 * UNIT, 0, "two write units")
    with Device("small", read_pages=4, **ONE) as dev:
        near(dev.one(0, UNIT * PAGE)["read_mean_ns"], 4 * (COMMAND + READ) + UNIT * XFER, 1,
             "a write unit read in four groups of pages")


def locations():
    """A write unit has the same pages of all planes of its die."""
    with Device("small", **{**ONE, "chips": 2, "allocation": "dynamic"}) as dev:
        dev.io(0, UNIT * PAGE, True)
        found = dev.where(0, UNIT * PAGE // 512)
        check(len({page["unit"] for page in found}) == 1, "a write unit lies on one unit")
        check({(page["plane"], page["page_in_block"]) for page in found} ==
              {(plane, page) for plane in range(4) for page in range(UNIT // 4)},
              "on four planes, with four pages on each")


def buffered():
    """The buffer keeps less than a write unit until a flush."""
    with Device("small", write_buffer_kb=1024, allocation="dynamic", **ONE) as dev:
        stats = dev.one(0, UNIT * PAGE, True)
        counted(stats, 0, 0, "a write unit, of which the youngest page waits for its successor")
        dev.reset()
        dev.io(UNIT * PAGE, PAGE, True)
        fd = os.open(dev.path, os.O_RDWR)
        while not dev.stats()["flash_programs"]:
            pass
        counted(dev.stats(), UNIT, 0, "one page more")
        os.fsync(fd)
        counted(dev.stats(), UNIT + 1, UNIT - 1, "after a flush")
        os.close(fd)
        dev.reset()
        fd = os.open(dev.path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
        with mmap.mmap(-1, PAGE) as buffer:
            os.pwritev(fd, [buffer], 0)
        counted(dev.stats(), 1, UNIT - 1, "a write with FUA")
        os.close(fd)
    for allocation in ("dynamic", "cwdp"):
        # 8 pages of buffer: no write unit is ever complete.
        with Device("small", write_buffer_kb=32, **{**DIE, "allocation": allocation}) as dev:
            dev.reset()
            dev.fio(rw="randwrite", iodepth=32, number_ios=2000)
            stats = dev.stats()
            check(stats["write_count"] == 2000 and not stats["inside"],
                  f"{allocation}: all writes through a buffer smaller than a write unit end")


def throughput():
    """Write units keep all units busy, without padding. The flash is so slow
    that the guest's CPU is no bottleneck."""
    slow = 10 * PROGRAM
    units = {**DIE, "channels": 1, "chips": 4, "capacity_mb": 256, "write_buffer_kb": 2048,
             "queue_depth": 256, "program_ns": slow}
    # With static allocation random writes fill the units unevenly.
    for keys, rw in (({"allocation": "dynamic"}, "randwrite"), ({"allocation": "cwdp"}, "write"),
                     ({"allocation": "dynamic", "device_sched": "aos"}, "randwrite")):
        with Device("small", **{**units, **keys}) as dev:
            dev.queue("nomerges", 2)
            stats, seconds = dev.steady(2000, 10000, rw=rw, iodepth=256)
            near(stats["write_count"] / seconds, 4 * UNIT * 1e9 / program(UNIT, slow), 1,
                 f"{keys}: {rw}: pages per second, bound by 4 units")
            check(not stats["padded_pages"], "no page was padded")


def copies():
    """Garbage collection copies write units."""
    for copyback in (0, 1):
        with Device("small", gc_copyback=copyback, fill=100, allocation="dynamic", spare=20,
                    **{**ONE, "capacity_mb": 32}) as dev:
            dev.reset()
            dev.fio(rw="randwrite", bs="64k", iodepth=1, number_ios=1500)
            stats = dev.stats()
            check(stats["flash_erases"] > 50, f"{stats['flash_erases']} blocks were collected")
            check(stats["copy_senses"] > 2 * stats["flash_copies"] / UNIT,
                  f"{stats['flash_copies']} pages from {stats['copy_senses']} write units")
            programs = (stats["flash_copies"] + stats["padded_pages"]) / UNIT
            near(stats["cleaning_ns"],
                 stats["copy_senses"] * (COMMAND + READ) + programs * (COMMAND + PROGRAM) +
                 (0 if copyback else 2 * stats["flash_copies"] * XFER) +
                 stats["flash_erases"] * (COMMAND + ERASE), 1,
                 f"time spent on garbage collection, gc_copyback={copyback}")


single_units()
locations()
buffered()
throughput()
copies()
