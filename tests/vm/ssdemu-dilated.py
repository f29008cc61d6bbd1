#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# With time_scale=k everything in the emulated SSD takes k times as long, and all that is
# reported is in the device's own time: latencies, and throughput that the CPU does not limit,
# are equal with any k
# virtual-time: yes
# memory: 1G
# kernels: 6.12
# timeout: 900
"""Every kind of time is in use: flash, channels, host interface, firmware, the papers' costs.
The guest's clock shows that the device is slower by the factor."""

import time

from checks import check, near
from ssd import Device

KB = 1024
PAGE = 4 * KB
SCALES = (1, 16, 1000)
# A collection with the last would take half an hour of the guest's time.
COLLECTED = (1, 16)
KEYS = {"channels": 1, "chips": 1, "capacity_mb": 64, "read_ns": 50_000, "program_ns": 400_000,
        "erase_ns": 2_000_000, "command_ns": 500, "channel_mbps": 200, "host_mbps": 300,
        "firmware_ns": 5_000, "rw_switch_ns": 7_000, "random_ns": 3_000, "crowd_ns": 2_000,
        "crowd_depth": 1}
LARGE = 256 * KB


def latencies(scale):
    """{what: ns} by the device's counters of requests that nothing disturbs."""
    with Device("small", time_scale=scale, **KEYS) as dev:
        found = {}
        for size in (PAGE, LARGE):
            found[f"write of {size}"] = dev.one(0, size, True)["write_mean_ns"]
            found[f"read of {size}"] = dev.one(0, size)["read_mean_ns"]
            found[f"read of {size} elsewhere"] = dev.one(32 << 20, size)["read_mean_ns"]
        return found


def collected(scale):
    """{what: ns} of writes with garbage collection."""
    with Device("small", time_scale=scale, **{**KEYS, "capacity_mb": 16, "fill": 100}) as dev:
        dev.reset()
        dev.fio(rw="randwrite", ioengine="psync", number_ios=500)
        stats = dev.stats()
        check(stats["flash_erases"] > 10, f"time_scale={scale}: {stats['flash_erases']} erases")
        return {"write with garbage collection": stats["write_mean_ns"],
                "garbage collection": stats["cleaning_ns"]}


def seen_by_host(scale):
    """ns of a large read by the clock of the guest, and by the device."""
    with Device("small", time_scale=scale, **KEYS) as dev:
        dev.io(0, LARGE)
        dev.reset()
        begin = time.monotonic_ns()
        dev.io(0, LARGE)
        return time.monotonic_ns() - begin, dev.stats()["read_mean_ns"]


def same_latencies():
    """All latencies are those without a scale."""
    for measure, scales in ((latencies, SCALES), (collected, COLLECTED)):
        expected = measure(1)
        for scale in scales[1:]:
            for what, ns in measure(scale).items():
                near(ns, expected[what], 0.1, f"time_scale={scale}: ns of a {what}")


def slower_for_host():
    """The guest waits @scale times as long, but for its own instructions."""
    for scale in SCALES:
        host, device = seen_by_host(scale)
        check(device * scale <= host < device * scale + 2_000_000,
              f"time_scale={scale}: {host} ns in the guest for {device} ns of the device")


def reported_by_fio():
    """What Device.fio() returns is in the device's time."""
    scale = 100
    with Device("small", time_scale=scale, **KEYS) as dev:
        dev.reset()
        way = dev.fio(rw="randread", ioengine="psync", number_ios=200)["read"]
        mean = dev.stats()["read_mean_ns"]
    near(way["lat_ns"]["mean"], mean, 1, "mean latency by fio and by the device")
    near(way["clat_ns"]["percentile"]["50.000000"], mean, 3, "median by fio")
    near(way["iops"], 1e9 / mean, 2, "IOPS by fio")
    near(way["bw_bytes"], PAGE * 1e9 / mean, 2, "bytes a second by fio")


def throughput():
    """A drive of more than 300,000 reads a second: the CPU is its limit until time_scale is
    large enough; then its 4 units are, which have so many requests that none is ever idle."""
    keys = {"channels": 4, "chips": 1, "capacity_mb": 256, "read_ns": 10_000,
            "channel_mbps": 4000, "command_ns": 300, "queue_depth": 1024}
    bound = 4e9 / (10_000 + 300 + PAGE * 1000 / 4000)
    rates = {}
    for scale in (1, 16, 64):
        with Device("small", time_scale=scale, **keys) as dev:
            counted, seconds = dev.steady(5000, 30000, rw="randread", iodepth=1024)
            rates[scale] = counted["read_count"] / seconds
    check(rates[1] < bound / 2, f"in real time the CPU makes {rates[1]:,.0f} of {bound:,.0f} IOPS")
    near(rates[16], bound, 1, "IOPS with time_scale=16, bound by 4 units")
    near(rates[64], rates[16], 0.5, "IOPS with time_scale=64")


same_latencies()
slower_for_host()
reported_by_fio()
throughput()
