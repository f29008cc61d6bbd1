#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Prefetching: a stream gains what is computed here, also beside another stream and among random
# reads; reads that are no stream make none, and a stream that ends leaves little behind
# virtual-time: yes
# memory: 1G
# kernels: 6.12
# timeout: 900
"""With the name of a log for fio as an argument, it replays that trace instead (see
tests/host/prefetch-traces.py)."""

import os
import random
import sys

from checks import check, near
from ssd import Device

KB = 1024
PAGE = 4 * KB
READ, COMMAND, FIRMWARE, HOST_MBPS = 60_000, 500, 40_000, 400
XFER = PAGE * 1000 // 400
# ns of a read from flash, and of one from the buffer. The host asks for pages more slowly than
# four units can read them.
HIT = FIRMWARE + PAGE * 1000 // HOST_MBPS
MISS = HIT + COMMAND + READ + XFER
# Pages of single reads after which a stream is one.
CONFIRM = 8
# Slow enough that the guest's own time does not count.
KEYS = {"channels": 4, "chips": 1, "capacity_mb": 64, "read_ns": READ, "command_ns": COMMAND,
        "channel_mbps": 400, "host_mbps": HOST_MBPS, "firmware_ns": FIRMWARE,
        "read_buffer_kb": 1024, "prefetch": 1, "time_scale": 16}
UNITS = 4
# The search for partitions has read pages before this one.
FIRST = 100


def read_pages(dev, pages):
    """Read single pages, one after another; return the counters."""
    dev.reset()
    for page in pages:
        dev.io((FIRST + page) * PAGE, PAGE)
    return dev.stats()


def one_stream():
    """A sequential reader: the first reads are from flash, all others from the buffer."""
    count = 200
    for prefetch in (0, 1):
        with Device("small", **{**KEYS, "prefetch": prefetch}) as dev:
            stats = read_pages(dev, range(count))
        hits = count - CONFIRM if prefetch else 0
        near(stats["read_mean_ns"], (hits * HIT + (count - hits) * MISS) / count, 1,
             f"ns of {count} sequential reads, prefetch={prefetch}")
        check(stats["read_buffer_hits"] == hits, f"{stats['read_buffer_hits']} hits")
        ahead = stats["flash_reads"] - count
        check(ahead == (UNITS if prefetch else 0), f"{ahead} pages read in vain")


def short_streams():
    """A stream that ends after n pages leaves at most n / 2 behind; a short one nothing."""
    for length in (1, 2, CONFIRM - 1, CONFIRM, CONFIRM + 1, 40):
        runs = 20
        with Device("small", **{**KEYS, "chips": 16}) as dev:
            stats = read_pages(dev, (run * 500 + page for run in range(runs)
                                     for page in range(length)))
        expected = min(length // 2, 64) if length >= CONFIRM else 0
        left = stats["flash_reads"] - runs * length
        check(left == runs * expected,
              f"{runs} streams of {length} pages leave {left} pages, expected {runs * expected}")


def several_streams():
    """Streams that take turns gain as one does, as many as the table holds."""
    count = 100
    for streams in (2, 8, 9):
        with Device("small", **KEYS) as dev:
            stats = read_pages(dev, (stream * 1500 + page for page in range(count)
                                     for stream in range(streams)))
        hits = streams * (count - CONFIRM) if streams <= 8 else 0
        check(stats["read_buffer_hits"] == hits,
              f"{streams} streams: {stats['read_buffer_hits']} hits, expected {hits}")


def among_random():
    """A stream with six other reads between its own is not forgotten."""
    count = 100
    rng = random.Random(1)
    with Device("small", **KEYS) as dev:
        stats = read_pages(dev, (page for number in range(count) for page in
                                 (number, *(rng.randrange(2000, 16000) for _ in range(6)))))
    wanted = count - CONFIRM
    check(wanted <= stats["read_buffer_hits"] <= wanted + 60,
          f"{stats['read_buffer_hits']} hits, {wanted} of the stream, others by chance")
    check(stats["prefetch_reads"] == wanted + UNITS, f"{stats['prefetch_reads']} prefetched")


def dropped():
    """A buffer of four pages, of which two may be prefetched, and six other reads between two of
    the stream: what was dropped before it was read makes the stream begin anew, so two pages are
    read twice for each start."""
    count = 200
    with Device("small", **{**KEYS, "read_buffer_kb": 16}) as dev:
        other = iter(range(8000, 16000, 3))
        stats = read_pages(dev, (page for number in range(count)
                                 for page in (number, *(next(other) for _ in range(6)))))
    twice = stats["flash_reads"] - 7 * count
    check(twice == count // CONFIRM * 2, f"{twice} of {count} pages were read twice")


def no_stream():
    """Random reads are never prefetched; nor are reads backwards, or with gaps."""
    with Device("small", **KEYS) as dev:
        dev.reset()
        dev.fio(rw="randread", iodepth=32, number_ios=10_000)
        check(dev.stats()["prefetch_reads"] == 0, "random reads: nothing is prefetched")
        for pages, what in ((range(400, 0, -1), "backwards"), (range(0, 800, 2), "with gaps")):
            check(read_pages(dev, pages)["prefetch_reads"] == 0, f"{what}: nothing")


def replay(log):
    """Replay a trace on a drive of today as fast as it serves it, without and with prefetching:
    flash reads rise by at most 4 %."""
    reads = []
    for prefetch in (0, 1):
        with Device("nvme", prefetch=prefetch, fill=0, capacity_mb=4096) as dev:
            dev.reset()
            dev.fio(read_iolog=log, replay_redirect=dev.path, replay_no_stall=1, iodepth=32)
            stats = dev.stats()
        reads.append(stats["flash_reads"])
        print(f"      prefetch={prefetch}: {stats['host_pages_read']:,} pages read by the host, "
              f"{stats['flash_reads']:,} from flash, {stats['prefetch_reads']:,} prefetched, "
              f"{stats['read_buffer_hits']:,} hits")
    more = 100 * (reads[1] / reads[0] - 1)
    check(more <= 4, f"{os.path.basename(log)}: {more:+.1f} % flash reads by prefetching")


if len(sys.argv) > 1:
    for name in sys.argv[1:]:
        replay(name)
else:
    one_stream()
    short_streams()
    several_streams()
    among_random()
    dropped()
    no_stream()
