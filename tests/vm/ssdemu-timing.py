#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Latencies and throughput bounds of the emulated SSD are within 1 % of closed forms, computed
# here from the configuration
# virtual-time: yes
# memory: 1G
# check: 6.12
# timeout: 900
"""Latencies are those that the device counts, from the arrival of a request to its end,
without the host's interrupts and system calls."""

import ctypes
import mmap
import os
import struct

from checks import check, near
from linux_calls import LIBC
from ssd import Device

KB = 1024
PAGE = 4 * KB
READ, PROGRAM, ERASE, COMMAND = 50_000, 400_000, 2_000_000, 500
FLASH = {"read_ns": READ, "program_ns": PROGRAM, "erase_ns": ERASE, "command_ns": COMMAND,
         "channel_mbps": 200, "capacity_mb": 64}
# ns for a page at 200 MB/s
XFER = PAGE * 1000 // 200
ONE_READ = COMMAND + READ + XFER
ONE_WRITE = COMMAND + XFER + PROGRAM
# x86-64
IO_SETUP, IO_DESTROY, IO_GETEVENTS, IO_SUBMIT = 206, 207, 208, 209


def single_pages():
    """A page, and a sector, which is read or written as a page."""
    with Device("small", channels=2, chips=2, **FLASH) as dev:
        near(dev.one(0, PAGE)["read_mean_ns"], ONE_READ, 1, "one page read")
        near(dev.one(0, PAGE, True)["write_mean_ns"], ONE_WRITE, 1, "one page written")
        # A part of a page is read as a page, and written after a read.
        near(dev.one(0, 512)["read_mean_ns"], ONE_READ, 1, "a sector read")
        near(dev.one(0, 512, True)["write_mean_ns"], ONE_READ + ONE_WRITE, 1, "a sector written")


def several_pages():
    """Pages on several units and on one."""
    channels, chips = 2, 4
    units = channels * chips
    with Device("small", channels=channels, chips=chips, **FLASH) as dev:
        # The chips of a channel sense at once and transfer one after the other.
        near(dev.one(0, units * PAGE)["read_mean_ns"], COMMAND + READ + chips * XFER, 1,
             f"{units} pages read from {units} units")
        near(dev.one(0, channels * PAGE)["read_mean_ns"], ONE_READ, 1,
             f"{channels} pages read from {channels} channels")
        # Transfers are sequential, programs overlap.
        load = COMMAND + XFER
        near(dev.one(0, units * PAGE, True)["write_mean_ns"], chips * load + PROGRAM, 1,
             f"{units} pages written to {units} units")
        rounds = 3
        near(dev.one(0, rounds * units * PAGE, True)["write_mean_ns"],
             rounds * (load + PROGRAM) + (chips - 1) * load, 1,
             f"{rounds * units} pages written to {units} units")
    with Device("small", channels=2, chips=1, allocation="concat", **FLASH) as dev:
        near(dev.one(0, 8 * PAGE)["read_mean_ns"], 8 * ONE_READ, 1, "8 pages read from one unit")
        near(dev.one(0, 8 * PAGE, True)["write_mean_ns"], 8 * ONE_WRITE, 1,
             "8 pages written to one unit")


def in_order():
    """8 pages over a border between two units: in order, the second starts late."""
    for sched, expected in (("fifo", 7 * ONE_READ), ("ooo", 4 * ONE_READ),
                            ("ooo-read", 4 * ONE_READ), ("aos", 4 * ONE_READ)):
        with Device("small", channels=2, chips=1, allocation="concat", device_sched=sched,
                    **FLASH) as dev:
            border = 32 << 20
            check([p["unit"] for p in dev.where(border // 512 - 8, 16)] == [0, 1],
                  f"{sched}: the border is where it should be")
            near(dev.one(border - 4 * PAGE, 8 * PAGE)["read_mean_ns"], expected, 1,
                 f"{sched}: 4 pages of each of two units, in order")


def multi_plane():
    """Planes of a die that start together at the same page share a command."""
    keys = {"channels": 1, "chips": 1, "planes": 4, **FLASH}
    with Device("small", unit="plane", **keys) as dev:
        stats = dev.one(0, 4 * PAGE)
        near(stats["read_mean_ns"], COMMAND + READ + 4 * XFER, 1, "multi-plane read of 4 pages")
        check(stats["multiplane"] == 3, "three planes shared the command of the first")
        near(dev.one(0, 4 * PAGE, True)["write_mean_ns"], COMMAND + 4 * XFER + PROGRAM, 1,
             "multi-plane program of 4 pages")
    for unit in ("chip", "die"):
        with Device("small", unit=unit, **keys) as dev:
            near(dev.one(0, 4 * PAGE)["read_mean_ns"], 4 * ONE_READ, 1, f"the same, unit={unit}")
    keys.update(planes=2, dies=2, allocation="pdwc")
    for unit, expected in (("chip", 4 * ONE_READ), ("die", 2 * ONE_READ + COMMAND + XFER),
                           ("plane", COMMAND + READ + 4 * XFER)):
        with Device("small", unit=unit, **keys) as dev:
            near(dev.one(0, 4 * PAGE)["read_mean_ns"], expected, 1,
                 f"4 pages on 2 planes of each of 2 dies, unit={unit}")


def host_side():
    """Firmware, host interface and write buffer."""
    firmware, mbps = 30_000, 100
    host = PAGE * 1000 // mbps
    with Device("small", firmware_ns=firmware, host_mbps=mbps, **FLASH) as dev:
        near(dev.one(0, PAGE)["read_mean_ns"], firmware + ONE_READ + host, 1,
             "a read through firmware and host interface")
        near(dev.one(0, PAGE, True)["write_mean_ns"], firmware + host + ONE_WRITE, 1,
             "a write through firmware and host interface")
    with Device("small", firmware_ns=firmware, host_mbps=mbps, write_buffer_kb=256, **FLASH) as dev:
        near(dev.one(0, PAGE, True)["write_mean_ns"], firmware + host, 1,
             "a write acknowledged by the write buffer")


def burst(dev, requests, written=1):
    """Counters after one submission of @requests, (page, whether it is written) each. A read has
    one page, a write @written."""
    size = PAGE * written
    memory = mmap.mmap(-1, size * len(requests))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fd = os.open(dev.path, os.O_RDWR | os.O_DIRECT)
    blocks = [struct.pack("<QIIHhIQQqQII", 0, 0, 0, write, 0, fd, address + i * size,
                          size if write else PAGE, page * PAGE, 0, 0, 0)
              for i, (page, write) in enumerate(requests)]
    buffers = [ctypes.create_string_buffer(block, 64) for block in blocks]
    pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    context = ctypes.c_ulong()
    check(LIBC.syscall(IO_SETUP, len(buffers), ctypes.byref(context)) == 0, "io_setup")
    dev.reset()
    check(LIBC.syscall(IO_SUBMIT, context, len(buffers), pointers) == len(buffers),
          f"{len(requests)} requests submitted")
    events = ctypes.create_string_buffer(32 * len(buffers))
    check(LIBC.syscall(IO_GETEVENTS, context, ctypes.c_long(len(buffers)),
                       ctypes.c_long(len(buffers)), events, None) == len(buffers), "and completed")
    LIBC.syscall(IO_DESTROY, context)
    os.close(fd)
    return dev.stats()


def shared_interface():
    """A read among writes waits for the current transfer, not for later ones."""
    firmware, mbps, writes = 40_000, 200, 15
    host = PAGE * 1000 // mbps
    keys = {**FLASH, "firmware_ns": firmware, "host_mbps": mbps, "channels": 4, "chips": 4}
    # From the firmware's second turn on, the interface is busy in the first part of each turn.
    # @ready: when the data of the read are there, in ns.
    for read_ns, what in ((READ, "idle"), (READ + firmware // 2, "busy")):
        ready = firmware + COMMAND + read_ns + XFER
        used = ready % firmware
        check((used < host) == (what == "busy"), f"the interface is {what} at {ready} ns")
        with Device("small", **{**keys, "read_ns": read_ns}) as dev:
            dev.queue("nomerges", 2)
            stats = burst(dev, [(page, page > 0) for page in range(writes + 1)])
            check((stats["read_count"], stats["write_count"]) == (1, writes), "all are counted")
            near(stats["read_mean_ns"], ready + max(host - used, 0) + host, 1,
                 f"a read submitted with {writes} writes, ready while the interface is {what}")


def reads_before_fetches():
    """A read whose data are ready waits for the data of one write, not for those of all that the
    drive has accepted; and for none of a write that waits for room."""
    firmware, mbps, pages, writes = 1_000, 200, 16, 15
    host = PAGE * 1000 // mbps
    keys = {**FLASH, "firmware_ns": firmware, "host_mbps": mbps, "channels": 4, "chips": 4,
            "allocation": "concat", "time_scale": 16}
    far = (60 << 20) // PAGE
    requests = [(far, False), *((page * pages, True) for page in range(writes))]
    with Device("small", **keys) as dev:
        dev.queue("nomerges", 2)
        near(burst(dev, requests, pages)["read_mean_ns"], 2 * firmware + (pages + 1) * host, 1,
             f"a read submitted with {writes} large writes, ready during the first one's transfer")
    slow = 2_500_000
    check(2 * pages * host < slow < writes * pages * host, "ready when two have been transferred")
    with Device("small", **{**keys, "read_ns": slow, "program_ns": 20_000_000,
                            "write_buffer_kb": pages * PAGE // KB}) as dev:
        dev.queue("nomerges", 2)
        near(burst(dev, requests, pages)["read_mean_ns"], firmware + COMMAND + slow + XFER + host,
             1, f"a read submitted with {writes} large writes for a buffer that holds one")


def fetches_in_time():
    """Reads whose data are ready faster than the interface transfers them: a write in between
    waits until read_bound of them have passed it."""
    firmware, mbps, place, bound = 12_000, 200, 10, 4
    host = PAGE * 1000 // mbps
    ready = [firmware * (i + 1 + (i >= place)) + ONE_READ for i in range(59)]
    fetch = firmware * (place + 1)
    before = sum(at < fetch for at in ready)
    idle = ready[0] + before * host
    check(sum(at < idle for at in ready) == before + bound, f"{bound} reads pass the write")
    requests = [(page, False) for page in range(59)]
    requests.insert(place, (63, True))
    with Device("small", **{**FLASH, "firmware_ns": firmware, "host_mbps": mbps, "channels": 64,
                            "chips": 1, "read_bound": bound, "time_scale": 16}) as dev:
        dev.queue("nomerges", 2)
        near(burst(dev, requests)["write_mean_ns"],
             ready[0] + (before + bound + 1) * host + ONE_WRITE, 1,
             f"a write among {len(ready)} reads that the host interface is too slow for")


def read_modify_write():
    """A write of one of the four pages of a clustered page reads the other three at once, then
    programs all four."""
    with Device("small", channels=4, chips=1, clustered_page_kb=16, **FLASH) as dev:
        stats = dev.one(0, PAGE, True)
        near(stats["write_mean_ns"], ONE_READ + ONE_WRITE, 1, "a page of a clustered page written")
        check(stats["rmw_reads"] == 3 and stats["flash_programs"] == 4,
              "3 pages read and 4 programmed for it")
        stats = dev.one(0, 4 * PAGE, True)
        near(stats["write_mean_ns"], ONE_WRITE, 1, "a whole clustered page written")


def oversized():
    """A write larger than the write buffer lets the buffer run empty before its data are
    transferred; smaller ones are transferred while the buffer is programmed."""
    mbps, pages = 100, 32
    host = PAGE * 1000 // mbps
    keys = {**FLASH, "channels": 1, "chips": 1, "host_mbps": mbps, "queue_depth": 1}
    for kb, expected in ((pages * 4, pages * (host + ONE_WRITE)),
                         (pages * 2, pages // 2 * ONE_WRITE)):
        with Device("small", write_buffer_kb=pages * 2, **keys) as dev:
            counted, seconds = dev.steady(20, 300, rw="write", bs=f"{kb}k", iodepth=4)
            near(1e9 * seconds / counted["write_count"], expected, 1,
                 f"ns for a write of {kb} KB, write buffer of {pages * 2} KB")
    # The youngest clustered page stays for the write that continues it: of the first one a page
    # is missing, of the last one three.
    with Device("small", write_buffer_kb=64, clustered_page_kb=16, channels=4, chips=1,
                **FLASH) as dev:
        dev.reset()
        for place in range(4):
            dev.io((1 + 32 * place) * PAGE, 32 * PAGE, True)
        fd = os.open(dev.path, os.O_RDWR)
        os.fsync(fd)
        os.close(fd)
        check(dev.stats()["rmw_reads"] == 4,
              f"4 unaligned writes of 128 KB in sequence read {dev.stats()['rmw_reads']} pages")


def random_costs():
    """A page that no stream announces costs the firmware and its unit. 8 streams of each
    direction are known."""
    firmware, lookup, scattered = 10_000, 70_000, 250_000
    more = lookup + scattered
    with Device("small", firmware_ns=firmware, lookup_ns=lookup, random_ns=scattered, channels=1,
                chips=1, **FLASH) as dev:
        near(dev.one(8 * PAGE, 2 * PAGE)["read_mean_ns"], firmware + 2 * (more + ONE_READ), 1,
             "2 pages out of sequence")
        near(dev.one(10 * PAGE, 2 * PAGE)["read_mean_ns"], firmware + 2 * ONE_READ, 1,
             "2 pages that follow them")
        near(dev.one(12 * PAGE, PAGE, True)["write_mean_ns"], firmware + more + ONE_WRITE, 1,
             "a write that follows a read only")
        for others, extra in ((7, 0), (8, more)):
            for place in range(others):
                dev.io((100 * others + 3 * place) * PAGE, PAGE)
            near(dev.one((5 + others) * PAGE, PAGE)["read_mean_ns"], firmware + extra + ONE_READ,
                 1, f"a page that follows, after {others} others")


def turn_costs():
    """A change between reads and writes costs the firmware, so that all units wait for it."""
    firmware, turn, unit = 10_000, 3_000_000, 16 << 20
    with Device("small", firmware_ns=firmware, rw_switch_ns=turn, channels=4, chips=1,
                allocation="concat", **FLASH) as dev:
        near(dev.one(0, PAGE)["read_mean_ns"], firmware + ONE_READ, 1, "a read after none")
        near(dev.one(0, PAGE, True)["write_mean_ns"], firmware + turn + ONE_WRITE, 1,
             "a write after a read")
        near(dev.one(0, PAGE)["read_mean_ns"], firmware + turn + ONE_READ, 1,
             "a read after a write")
        stats = burst(dev, [(0, True), (unit // PAGE, False)])
        near(stats["read_mean_ns"], 2 * (firmware + turn) + ONE_READ, 1,
             "a read of one unit beside a write of another")
        check(stats["rw_switches"] == 2, "the firmware turned twice for them")


def crowded_regions():
    """16 requests in two units, alternately, and a firmware so slow that each meets only those
    that are not decoded yet: 8, 7, 7, 6, 6, ... of the other unit, of which 2 are free."""
    crowd, unit = 40_000, (16 << 20) // PAGE
    for other, times in ((0, 0), (1, sum(max(0, n - 2) for n in (*range(9), *range(8)))), (2, 0)):
        with Device("small", firmware_ns=1_000_000, region_mb=32, crowd_depth=2, crowd_ns=crowd,
                    channels=4, chips=1, allocation="concat", **FLASH) as dev:
            dev.queue("nomerges", 2)
            stats = burst(dev, [(i + i % 2 * other * unit, False) for i in range(16)])
            check(stats["crowd_ns"] == times * crowd,
                  f"16 requests, every other in unit {other}: {times} times crowd_ns charged")


def iops(dev, rw):
    """Requests per second under a deep queue."""
    counted, seconds = dev.steady(3000, 10000, rw=rw, iodepth=1024)
    return (counted["read_count"] + counted["write_count"]) / seconds


def throughput():
    """Deep queues and few units, so that no unit idles, and operations so slow that the guest's
    CPU is no bottleneck."""
    slow_read, fast = 200_000, PAGE * 1000 // 4000
    deep = {"queue_depth": 1024, **FLASH, "capacity_mb": 256}
    units = {**deep, "read_ns": slow_read, "channel_mbps": 4000, "channels": 1, "chips": 4}
    with Device("small", **units) as dev:
        near(iops(dev, "randread"), 4e9 / (COMMAND + slow_read + fast), 1,
             "random reads per second, bound by 4 units")
        near(iops(dev, "randwrite"), 4e9 / (COMMAND + fast + PROGRAM), 1,
             "random writes per second, bound by 4 units")
    with Device("small", **{**deep, "channel_mbps": 40, "channels": 2, "chips": 8}) as dev:
        near(iops(dev, "randread"), 2e9 / (COMMAND + PAGE * 1000 // 40), 1,
             "random reads per second, bound by 2 channels")
    # A bus that were booked ahead of time would idle: reads and writes at once find it out.
    with Device("small", channels=8, chips=8, firmware_ns=5_000, host_mbps=60, **deep) as dev:
        near(iops(dev, "randrw"), 60e6 / PAGE, 1,
             "random reads and writes per second, bound by a half-duplex host interface")
    with Device("small", **{**deep, "channel_mbps": 40, "channels": 2, "chips": 16}) as dev:
        near(iops(dev, "randrw"), 2e9 / (COMMAND + PAGE * 1000 // 40), 1,
             "random reads and writes per second, bound by 2 channels")
    with Device("small", channels=4, chips=4, firmware_ns=50_000, **deep) as dev:
        near(iops(dev, "randread"), 1e9 / 50_000, 1, "random reads per second, bound by firmware")


def cleaning():
    """Garbage collection takes the time of each copied page and each erase on the unit."""
    keys = {"channels": 1, "chips": 2, "fill": 100, **FLASH, "capacity_mb": 32}
    for copyback, copy in ((0, 2 * COMMAND + READ + 2 * XFER + PROGRAM),
                           (1, 2 * COMMAND + READ + PROGRAM)):
        # One request at a time: no copy ever waits for the channel.
        with Device("small", gc_copyback=copyback, allocation="concat", **keys) as dev:
            dev.reset()
            dev.fio(rw="randwrite", iodepth=1, number_ios=2000, size="4m")
            stats = dev.stats()
            check(stats["flash_erases"] > 20, f"{stats['flash_erases']} blocks were collected")
            near(stats["cleaning_ns"], stats["flash_copies"] * copy +
                 stats["flash_erases"] * (COMMAND + ERASE), 1,
                 f"time spent on garbage collection, gc_copyback={copyback}")


throughput()
single_pages()
several_pages()
in_order()
multi_plane()
host_side()
shared_interface()
reads_before_fetches()
fetches_in_time()
read_modify_write()
oversized()
random_costs()
turn_costs()
crowded_regions()
cleaning()
