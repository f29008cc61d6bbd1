#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Data on the emulated SSD are what was written, with random sizes, trim, flush and FUA on
# every mapping, allocation, buffer and device scheduler; a new device holds no old data
# check: 6.12
# timeout: 900
"""A model in memory tells what each sector must hold. Several requests are in flight at
once, on spans that do not overlap."""

import concurrent.futures
import mmap
import os
import random

from checks import check
from linux_calls import BLKDISCARD, range_ioctl
from ssd import Device

SIZE = 16 << 20
ROUNDS, WIDTH = 30, 8

FLASH = {"capacity_mb": 16, "channels": 2, "chips": 2, "pages": 32, "read_ns": 5000,
         "program_ns": 20000, "erase_ns": 100000, "memory_backed": 1, "fill": 100}
MAPPINGS = ({}, {"allocation": "pdwc", "planes": 2, "unit": "plane"}, {"allocation": "dynamic"},
            {"allocation": "concat"}, {"mapping": "block", "open_blocks": 2},
            {"allocation": "dynamic", "unit": "die", "planes": 2, "program_pages": 8,
             "read_pages": 4, "gc_start_blocks": 5, "device_sched": "ooo-read"},
            {"unit": "chip", "planes": 2, "program_pages": 16, "gc_start_blocks": 5, "slc_mb": 2,
             "slc_fold_percent": 50, "idle_us": 100,
             "device_sched": "aos"},
            {"clustered_page_kb": 128}, {"clustered_page_kb": 16, "mapping": "block"})
BUFFERS = ({}, {"write_buffer_kb": 64}, {"write_buffer_kb": 256, "write_cache": 1},
           {"read_buffer_kb": 128, "prefetch": 1, "write_buffer_kb": 64, "write_cache": 1})
SCHEDS = ("fifo", "ooo", "ooo-read", "aos")


class Model:
    """The device, and what it must hold."""

    def __init__(self, dev, block, seed):
        self.data = bytearray(SIZE)
        self.block = block
        self.random = random.Random(seed)
        self.fds = [os.open(dev.path, os.O_RDWR | os.O_DIRECT | flags)
                    for flags in (0, os.O_DSYNC)]

    def close(self):
        for fd in self.fds:
            os.close(fd)

    def span(self, slot):
        """(offset, length) of a random span in one of WIDTH slots, in bytes."""
        room = SIZE // WIDTH // self.block
        length = min(self.random.choice((1, 2, 3, 8, 16, 33, 128)), room)
        start = self.random.randrange(room - length + 1)
        return slot * (SIZE // WIDTH) + start * self.block, length * self.block

    def write(self, offset, length, fd):
        with mmap.mmap(-1, length) as buffer:
            buffer[:] = self.data[offset:offset + length]
            assert os.pwritev(fd, [buffer], offset) == length

    def read(self, offset, length):
        with mmap.mmap(-1, length) as buffer:
            assert os.preadv(self.fds[0], [buffer], offset) == length
            return buffer[:] == bytes(self.data[offset:offset + length])

    def step(self, slot):
        """Plan a random operation; return a function that does it and returns true if the data
        are right."""
        offset, length = self.span(slot)
        what = self.random.choice("wwwwffdrrrs")
        if what in "wf":
            self.data[offset:offset + length] = self.random.randbytes(length)
            return lambda: self.write(offset, length, self.fds[what == "f"]) or True
        if what == "d":
            self.data[offset:offset + length] = bytes(length)
            return lambda: range_ioctl(self.fds[0], BLKDISCARD, offset, length) or True
        if what == "s":
            return lambda: os.fsync(self.fds[0]) or True
        return lambda: self.read(offset, length)


def exercise(seed, **keys):
    """Check the data of an emulated SSD with this configuration."""
    block = (512, 1024, 4096)[seed % 3]
    with Device("small", block_size=block, **{**FLASH, **keys}) as dev:
        model = Model(dev, block, seed)
        with concurrent.futures.ThreadPoolExecutor(WIDTH) as pool:
            right = all(all(pool.map(lambda job: job(), [model.step(s) for s in range(WIDTH)]))
                        for _ in range(ROUNDS))
        right = right and all(model.read(o, 1 << 20) for o in range(0, SIZE, 1 << 20))
        model.close()
        inside = dev.stats()["inside"]
    check(right and not inside,
          f"blocks of {block}, " + " ".join(f"{k}={v}" for k, v in keys.items()))


def main():
    seed = 0
    for mapping in MAPPINGS:
        for number, buffers in enumerate(BUFFERS):
            sched = SCHEDS[(seed + seed // len(SCHEDS)) % len(SCHEDS)]
            exercise(seed, **{"device_sched": sched, "hw_queues": 1 + number % 2, **mapping},
                     **buffers)
            seed += 1

    with Device("small", **FLASH) as dev:
        fd = os.open(dev.path, os.O_RDWR | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as buffer:
            os.preadv(fd, [buffer], 0)
            check(buffer[:] == bytes(4096), "a new device holds nothing of a removed one")
        os.close(fd)


main()
