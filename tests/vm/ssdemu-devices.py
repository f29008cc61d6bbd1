#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Emulated SSDs refuse a wrong configuration with one line, also in dmesg; several exist at
# once; a protected write buffer needs no flush; drives of odd sizes take writes everywhere; no
# write waits for ever for a buffer smaller than it; they can be removed under load; a guest of 2 GB
# emulates 128 GB
# memory: 2G
# check: 6.12
# timeout: 900

import mmap
import os
import random
import subprocess
import threading
import time
from pathlib import Path

from checks import Failed, check
from ssd import TOOL, Device, Refused

WRONG = (
    ({"channels": 0}, "channels=0: must be a number from 1 to 1024"),
    ({"channels": "x"}, "channels=x: must be a number"),
    ({"program_ns": 2**32}, "program_ns=4294967296: must be a number"),
    ({"channels": 64, "chips": 64}, "channels * chips * dies * planes must be at most 1024"),
    ({"allocation": "cwdd"}, "allocation=cwdd: must be cwdp in any order"),
    ({"device_sched": "best"}, "device_sched=best: must be one of fifo ooo ooo-read aos"),
    ({"page_size": 5000}, "page_size=5000: must be a power of two"),
    ({"block_size": 600}, "block_size=600: must be a power of two"),
    ({"clustered_page_kb": 6}, "clustered_page_kb=6: must be 1 to 64 pages of 4096 bytes"),
    ({"write_cache": 1}, "write_cache=1: needs a write_buffer_kb"),
    ({"protected": 1}, "protected=1: needs a write_buffer_kb"),
    ({"prefetch": 1}, "prefetch=1: needs a read_buffer_kb"),
    ({"suspend_ns": 1}, "suspend_ns=1: needs device_sched=ooo-read or aos"),
    ({"mapping": "block", "allocation": "dynamic"}, "mapping=block: needs a static allocation"),
    ({"program_pages": 3}, "program_pages=3: must divide the 64 pages of a unit"),
    ({"program_pages": 4, "read_pages": 3}, "read_pages=3: must divide program_pages=4"),
    ({"program_pages": 4, "device_sched": "fifo"}, "program_pages=4: needs another device_sched"),
    ({"program_pages": 4, "mapping": "block"}, "program_pages=4: needs mapping=page"),
    ({"gc_start_blocks": 4}, "gc_start_blocks=4: must be 0 or at least gc_free_blocks + 3"),
    ({"capacity_mb": 0, "blocks": 8, "spare": 0}, "spare=0: leaves 0 spare blocks a plane"),
    ({"capacity_mb": 0, "blocks": 1 << 20, "pages": 4096}, "more than 2^32 flash pages"),
    ({"capacity_mb": 2 << 20}, "tables need"),
    ({"colour": "red"}, "colour: no such key"),
)

# A clustered page that does not divide a logical block of flash; program units that leave a block
# nearly full; clusters smaller than a block of the host.
ODD = (
    {"mapping": "block", "clustered_page_kb": 12, "spare": 11},
    {"program_pages": 64, "capacity_mb": 1024, "spare": 7, "fill": 100},
    {"program_pages": 16, "pages": 16, "fill": 100, "spare": 5},
    {"page_size": 2048, "block_size": 4096, "write_buffer_kb": 8192, "queue_depth": 1},
)
# Bytes of the I/O of threads, and their flags: FUA writes take clusters out of the buffer.
MIXED = ((512 << 10, 0), (4096, 0), (4096, os.O_DSYNC), (4096, os.O_DSYNC))


def refusals():
    """Each wrong configuration is refused for the right reason."""
    for keys, expected in WRONG:
        before = TOOL.devices()
        try:
            with Device("small", **keys):
                raise Failed(f"{keys} was accepted")
        except Refused as error:
            check(expected in str(error) and "\n" not in str(error), str(error))
        check(TOOL.devices() == before, "no device was made")
        dmesg = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        last = [line for line in dmesg.splitlines() if "ssdemu:" in line][-1]
        check(expected in last, f"dmesg: {last.split('] ', 1)[-1]}")


def several():
    """Three devices have names and counters of their own."""
    with Device("small") as a, Device("small", device_sched="aos") as b, Device("small") as c:
        names = [dev.name for dev in (a, b, c)]
        check(len(set(names)) == 3 and set(names) <= set(TOOL.devices()), " ".join(names))
        for dev in (a, b, c):
            dev.one(0, 4096)
        b.reset()
        check(a.stats()["read_count"] == 1 and b.stats()["read_count"] == 0,
              "each device has its own counters")


def protection():
    """A synchronous write waits for the flash, unless the buffer is protected."""
    for protected in (0, 1):
        with Device("small", write_buffer_kb=256, protected=protected) as dev:
            kind = Path(f"/sys/block/{dev.name}/queue/write_cache").read_text().strip()
            check(kind == ("write through" if protected else "write back"),
                  f"protected={protected}: {kind}")
            fd = os.open(dev.path, os.O_RDWR | os.O_DSYNC)
            dev.reset()
            os.pwrite(fd, bytes(4096), 0)
            os.fsync(fd)
            os.close(fd)
            stats = dev.stats()
            check((stats["flush_count"] > 0, stats["flash_programs"]) ==
                  (not protected, 0 if protected else 1),
                  f"a write and fsync: {stats['flush_count']} flushes, "
                  f"{stats['flash_programs']} pages programmed")


def odd():
    """Drives whose sizes do not divide each other take writes, also at their end."""
    for keys in ODD:
        with Device("small", **keys) as dev:
            size = int(Path(f"/sys/block/{dev.name}/size").read_text()) * 512
            dev.fio(rw="randwrite", bs="4k", iodepth=16, number_ios=3000)
            dev.fio(rw="write", bs="4k", iodepth=1, offset=size - (1 << 20), size="1m")
            stats = dev.stats()
            check(stats["inside"] == 0 and stats["write_count"] >= 3000, f"writes with {keys}")


def mixed(dev, size, flags, seed):
    """Write at random places of the first MiB."""
    buffer, dice = mmap.mmap(-1, size), random.Random(seed)
    fd = os.open(dev.path, os.O_WRONLY | os.O_DIRECT | flags)
    for _ in range(300):
        os.pwritev(fd, [buffer], dice.randrange((1 << 20) // size) * size)
    os.close(fd)


def larger_than_buffer():
    """Writes larger than a buffer wait for it to be empty, whatever leaves it meanwhile."""
    with Device("small", write_buffer_kb=64, write_cache=0) as dev:
        threads = [threading.Thread(target=mixed, args=(dev, size, flags, seed), daemon=True)
                   for seed, (size, flags) in enumerate(MIXED)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        check(not any(thread.is_alive() for thread in threads), "all writes ended")


def removal(**keys):
    """A device of this configuration is removed under load."""
    dev = Device("small", **keys)
    command = dev.fio_command(rw="randrw", iodepth=32, time_based=1, runtime=600)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        while dev.stats()["write_count"] < 500:
            time.sleep(0.1)
        dev.remove()
        check(load.wait(60) != 0, f"the load fails when {dev.name} is removed {keys}")
    check(not os.path.exists(f"/sys/block/{dev.name}"), f"{dev.name} is gone")


def large():
    """A device that is much larger than the guest's memory."""
    with Device("piq") as dev:
        size = int(open(f"/sys/block/{dev.name}/size", encoding="ascii").read()) * 512
        memory = os.sysconf("SC_PHYS_PAGES") >> 8
        check(size > 120e9, f"{size / 1e9:.1f} GB emulated in {memory} MB")
        dev.fio(rw="randrw", iodepth=32, number_ios=4000)
        check(dev.stats()["inside"] == 0, "all requests ended")


refusals()
several()
protection()
odd()
larger_than_buffer()
removal()
removal(write_buffer_kb=1024, write_cache=1, device_sched="aos", memory_backed=1, hw_queues=2)
removal(mapping="block", device_sched="fifo")
large()
