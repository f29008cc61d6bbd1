#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# An I/O on the emulated SSD takes fewer than 10,000 instructions more than on null_blk: a CPU
# emulates 100,000 I/Os per second. With garbage collection it emulates twice as many page
# operations as the flash could do
# virtual-time: yes
# kernels: 6.12
# timeout: 900
"""In virtual time one instruction is one nanosecond. On a device that is always faster than
the CPU the time of an I/O is therefore its number of instructions. The flash here needs almost
no time, but has the same events."""

from checks import check
from ssd import Device, NullBlk

DEPTH = 32
INSTANT = {"read_ns": 100, "program_ns": 100, "erase_ns": 100, "command_ns": 1,
           "channel_mbps": 100_000, "host_mbps": 0, "firmware_ns": 0, "time_scale": 1}
# program_ns of the preset small
PROGRAM = 500_000


def per_io(dev, rw):
    """Instructions of a 4 KB I/O, including those of fio and the block layer."""
    job = dev.fio(rw=rw, bs="4k", iodepth=DEPTH, number_ios=20_000, gtod_reduce=1)
    way = job[rw.removeprefix("rand")]
    return way["runtime"] * 1e6 / way["total_ios"]


with NullBlk(size=1024, irqmode=0) as dev:
    base = {rw: per_io(dev, rw) for rw in ("randread", "randwrite")}
print("null_blk, nothing inside: " + ", ".join(f"{rw} {ns:,.0f}" for rw, ns in base.items()))
for preset, keys in (("small", {}), ("small", {"device_sched": "aos"}), ("nvme", {}),
                     ("sata", {}), ("small", {"fill": 100})):
    with Device(preset, **{"fill": 0, **keys, "capacity_mb": 1024, **INSTANT}) as dev:
        for rw in ("randread", "randwrite"):
            dev.reset()
            own = per_io(dev, rw) - base[rw]
            stats = dev.stats()
            operations = sum(stats[f"flash_{kind}"] for kind in ("reads", "programs", "copies"))
            per_request = operations / (stats["read_count"] + stats["write_count"])
            text = (f"{preset} {keys} {rw}: {own:,.0f} instructions an I/O of its own, "
                    f"{per_request:.1f} page operations")
            if stats["flash_copies"]:
                flash = PROGRAM * per_request / len(stats["units"])
                check(own < flash / 2, f"{text}; the flash needs {flash:,.0f} ns")
            else:
                check(own < 10_000, text)
