#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Background garbage collection: write amplification is within 1 % of a Monte Carlo model,
# throughput within 2 % of its closed form, from the first write on; the same for the copies of
# writes to a part of the drive, within 4 %; no request waits for the copying of a whole victim;
# an idle drive collects until the start threshold is reached
# virtual-time: yes
# kernels: 6.12
# check: none
# timeout: 900
"""The model is an implementation of its own: it counts blocks and pages, without times. It
collects before each write unit until the pages that are free, are in blocks to be erased or
have been won from the victim (in proportion to its copied pages) make up the middle between
the two thresholds, which is where the emulator's control should settle."""

import collections
import mmap
import os
import random
import time

from checks import check, near
from ssd import Device

READ, PROGRAM, ERASE, COMMAND = 50_000, 2_000_000, 2_000_000, 500
# ns for a page at 800 MB/s
XFER = 4096 * 1000 // 800
START, RESERVE = 6, 1
FLASH = {"read_ns": READ, "program_ns": PROGRAM, "erase_ns": ERASE, "command_ns": COMMAND,
         "channel_mbps": 800, "capacity_mb": 0, "fill": 100, "gc_free_blocks": RESERVE,
         "gc_start_blocks": START, "device_sched": "ooo-read"}
DIES = {**FLASH, "channels": 4, "chips": 1, "unit": "die", "planes": 4, "program_pages": 16,
        "write_buffer_kb": 512, "allocation": "dynamic", "queue_depth": 128}


class Plane:
    """Blocks of one unit: free, being written, full, and the victim."""

    def __init__(self, number, blocks, size):
        self.number, self.size = number, size
        self.content = [[] for _ in range(blocks)]
        self.valid = [0] * blocks
        self.free = collections.deque(range(1, blocks))
        self.active, self.full, self.by_valid = 0, set(), [set() for _ in range(size + 1)]
        self.victim, self.todo, self.victim_valid = None, [], 1

    def drop(self, block):
        """A page of a block has become invalid."""
        if block in self.full:
            self.by_valid[self.valid[block]].discard(block)
            self.by_valid[self.valid[block] - 1].add(block)
        self.valid[block] -= 1

    def room(self):
        """Pages that count as free."""
        pages = len(self.free) * self.size + self.size - len(self.content[self.active])
        if self.victim is not None:
            pages += self.size * (1 - self.valid[self.victim] / self.victim_valid)
        return pages


class Model:
    """Greedy garbage collection on some units."""

    def __init__(self, units, blocks, size, unit, lpns):
        self.unit, self.lpns, self.where = unit, lpns, [None] * lpns
        self.planes = [Plane(n, blocks, size) for n in range(units)]
        self.random = random.Random(1)
        self.goal = (START + RESERVE) / 2 * size
        self.clear()
        for first in range(0, lpns, unit):
            self.host(range(first, min(first + unit, lpns)), first // unit % units)

    def clear(self):
        self.copies = self.operations = self.senses = self.erases = self.written = 0

    def place(self, plane, lpn):
        if len(plane.content[plane.active]) == plane.size:
            plane.full.add(plane.active)
            plane.by_valid[plane.valid[plane.active]].add(plane.active)
            plane.active = plane.free.popleft()
        self.where[lpn] = (plane, plane.active, len(plane.content[plane.active]))
        plane.content[plane.active].append(lpn)
        plane.valid[plane.active] += 1

    def choose(self, plane):
        level = next(n for n, blocks in enumerate(plane.by_valid) if blocks)
        plane.victim = min(plane.by_valid[level])
        plane.by_valid[level].discard(plane.victim)
        plane.full.discard(plane.victim)
        plane.victim_valid = max(level, 1)
        plane.todo = list(enumerate(plane.content[plane.victim]))[::-1]

    def copy(self, plane):
        """Fill a write unit with pages of victims; erase the victims that have none left."""
        moved, groups = 0, set()
        while moved < self.unit:
            if plane.victim is None:
                self.choose(plane)
            block = plane.victim
            while plane.todo and moved < self.unit and plane.valid[block]:
                page, lpn = plane.todo.pop()
                if self.where[lpn] != (plane, block, page):
                    continue
                plane.valid[block] -= 1
                groups.add((block, page // self.unit))
                self.place(plane, lpn)
                moved += 1
            if not plane.valid[block]:
                plane.content[block] = []
                plane.free.append(block)
                plane.victim = None
                self.erases += 1
                if moved == 0:
                    return
        self.copies += moved
        self.operations += 1
        self.senses += len(groups)

    def host(self, pages, number):
        plane = self.planes[number]
        for lpn in pages:
            if self.where[lpn]:
                self.where[lpn][0].drop(self.where[lpn][1])
            self.place(plane, lpn)
        self.written += len(pages)
        while plane.room() < self.goal:
            self.copy(plane)

    def overwrite(self, count, lpns):
        """Overwrite random ones of the first @lpns pages."""
        units = len(self.planes)
        for n in range(count // self.unit):
            self.host([self.random.randrange(lpns) for _ in range(self.unit)], n % units)


def modelled(units, blocks, size, unit, lpns):
    """The model in its steady state, with the counts of a long run."""
    model = Model(units, blocks, size, unit, lpns)
    model.overwrite(2 * lpns, lpns)
    model.clear()
    model.overwrite(max(4 * lpns, 80_000), lpns)
    return model


def overwrite(dev, count, lpns):
    """Counters of so many random writes, one after the other. Not by fio, whose random numbers
    repeat after the size of the device."""
    numbers = random.Random(count)
    fd = os.open(dev.path, os.O_RDWR | os.O_DIRECT)
    dev.reset()
    with mmap.mmap(-1, 4096) as buffer:
        for _ in range(count):
            os.pwrite(fd, buffer, 4096 * numbers.randrange(lpns))
    os.close(fd)
    return dev.stats()


def copies_as_modelled(dev, model, lpns, most, what):
    """Overwrite the device at random; check that it copies as much as the model does: near the
    start within 4 %, after @most times its pages within 1 %. Return the last statistics."""
    for count, percent in ((lpns, 4), (most * lpns, 1)):
        stats = overwrite(dev, count, lpns)
        near(1000 * stats["flash_copies"] / stats["flash_programs"],
             1000 * model.copies / model.written, percent,
             f"copies per 1000 writes of {count} pages, {what}")
    return stats


def one_page():
    """A page at a time, static allocation, one unit."""
    with Device("small", channels=1, chips=1, pages=64, blocks=128, spare=20,
                **{**FLASH, "program_ns": 200_000}) as dev:
        lpns = dev.stats()["planes"][0]["valid_pages"]
        copies_as_modelled(dev, modelled(1, 128, 64, 1, lpns), lpns, 8, "one unit")


def write_units():
    """Write units on four dies, dynamic allocation."""
    with Device("small", pages=16, blocks=128, spare=20, **DIES) as dev:
        before = dev.stats()
        lpns = sum(plane["valid_pages"] for plane in before["planes"])
        model = modelled(4, 128, 64, 16, lpns)
        stats = copies_as_modelled(dev, model, lpns, 4, "four dies")
        check(not stats["padded_pages"] and not stats["foreground_waits"],
              "no page is padded, no write waits for a free block")
        check(stats["background_copies"] == stats["flash_copies"], "all copies in the background")
        copying = (model.senses * (COMMAND + READ) +
                   model.operations * (COMMAND + 32 * XFER + PROGRAM))
        unit_ns = (COMMAND + 16 * XFER + PROGRAM +
                   (copying + model.erases * (COMMAND + ERASE)) / (model.written / 16))
        near(stats["flash_programs"] / stats["active_ns"] * 1e9, 4 * 16e9 / unit_ns, 2,
             "random writes per second, of programs, copies and erases on four dies")
        valid = [plane["valid_pages"] for plane in dev.stats()["planes"]]
        check(max(valid) < 1.02 * min(valid), f"the dies have even shares of the data: {valid}")


def part_of_drive():
    """Random writes to 40 % of a filled drive: its data lie as after random writes to all of it,
    so that hot and cold pages share the blocks."""
    blocks, size, spare = 64, 256, 25
    lpns = 4 * blocks * size * (100 - spare) // 100
    hot = lpns * 2 // 5
    model = Model(4, blocks, size, 16, lpns)
    model.overwrite(2 * lpns, lpns)
    # Not idle between the spans: it would collect in advance.
    with Device("small", pages=size // 4, blocks=blocks, spare=spare, idle_us=10**7,
                **DIES) as dev:
        check(sum(plane["valid_pages"] for plane in dev.stats()["planes"]) == lpns,
              f"the drive has {lpns} pages")
        for span in range(3):
            model.clear()
            model.overwrite(hot // 2, hot)
            stats = overwrite(dev, hot // 2 + span, hot)
            near(1000 * stats["flash_copies"] / stats["flash_programs"],
                 1000 * model.copies / model.written, 4,
                 f"copies per 1000 writes to 40 % of the drive, span {span} of {hot // 2} pages")


def latencies():
    """Reads beside writes at a third of the drive's throughput, with a queue of eight."""
    keys = {**DIES, "pages": 64, "blocks": 64, "spare": 25}
    # A copy of 16 pages of as many write units, and the reads before it.
    step = 16 * (COMMAND + READ) + 32 * XFER + COMMAND + PROGRAM
    bound = step + 8 * (COMMAND + READ + XFER)
    results = {}
    for start in (0, START):
        with Device("small", **{**keys, "gc_start_blocks": start}) as dev:
            dev.reset()
            dev.fio(rw="randrw", iodepth=8, number_ios=16000, rate_iops="2000,2000")
            results[start] = stats = dev.stats()
            check(stats["flash_erases"] > 10, f"gc_start_blocks={start}: "
                  f"{stats['flash_erases']} blocks collected, read max {stats['read_max_ns']:,} "
                      "ns")
    victim = 5 * step
    check(results[0]["read_max_ns"] > victim, f"a read waits for a victim, over {victim:,} ns, "
          "without background collection")
    check(results[START]["read_max_ns"] < bound,
          f"with it a read waits for one step, {bound:,} ns, at most")


def write_latencies():
    """Writes to one die at half its throughput, through a buffer of two write units. What the
    die owes for a unit written comes before the next one."""
    keys = {**DIES, "channels": 1, "pages": 64, "blocks": 64, "spare": 25, "write_buffer_kb": 128}
    step = 16 * (COMMAND + READ) + 32 * XFER + COMMAND + PROGRAM
    results = {}
    for start in (0, START):
        with Device("small", **{**keys, "gc_start_blocks": start}) as dev:
            dev.reset()
            dev.fio(rw="randwrite", iodepth=1, number_ios=8000, rate_iops=1000)
            results[start] = stats = dev.stats()
            check(stats["flash_erases"] > 10, f"gc_start_blocks={start}: write max "
                  f"{stats['write_max_ns']:,} ns")
    check(results[0]["write_max_ns"] > 3 * step,
          f"without background collection a write waits for more than {3 * step:,} ns")
    check(results[START]["write_max_ns"] < 2 * step, f"with it {2 * step:,} ns at most")


def idle():
    """An idle drive collects up to the start threshold."""
    with Device("small", pages=16, blocks=128, spare=20, **DIES) as dev:
        low = [plane["free_blocks"] for plane in dev.stats()["planes"]]
        check(max(low) <= (START + RESERVE) // 2 + 1, f"free blocks after the fill: {low}")
        dev.io(0, 4096)
        time.sleep(2)
        stats = dev.stats()
        high = [plane["free_blocks"] for plane in stats["planes"]]
        check(min(high) >= START - 2, f"and after two idle seconds: {high}")
        check(stats["background_copies"] > 0, f"{stats['background_copies']} pages copied")
        dev.reset()
        time.sleep(1)
        check(not dev.stats()["flash_copies"], "then the collector rests")


def concatenated():
    """A part of a concatenation: its first units are full."""
    for part in (5, 40, 90):
        with Device("small", blocks=96, **DIES | {"allocation": "concat", "fill": part}) as dev:
            valid = [plane["valid_pages"] for plane in dev.stats()["planes"]]
            check(valid == sorted(valid, reverse=True) and valid[0] > valid[-1],
                  f"{part} % filled: valid pages by unit {valid[::4]}")
            dev.fio(rw="randwrite", bs="64k", iodepth=32, size=f"{part}%", number_ios=2000)


one_page()
write_units()
concatenated()
part_of_drive()
latencies()
write_latencies()
idle()
