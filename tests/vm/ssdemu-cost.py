#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# CPU cost of the emulated SSD per I/O, beside null_blk's with timer completion, in
# instructions: it must leave room for 100,000 I/Os a second of one CPU.
# virtual-time: yes
# kernels: 6.12
# timeout: 900
"""Busy CPU time of a fixed number of I/Os, from /proc/stat of a guest in which one
instruction is one nanosecond, so that nanoseconds count instructions. The emulator's
own cost is what it takes more than a null_blk that ends its requests at once."""

import pathlib
import subprocess

from ssd import Device, check

COUNT = 10000
NULL = pathlib.Path("/sys/kernel/config/nullb/cost")


def busy_ns():
    """Time that the CPU was not idle since boot."""
    uptime, idle = pathlib.Path("/proc/uptime").read_text().split()
    return (float(uptime) - float(idle)) * 1e9


def per_io(path, rw):
    command = ["fio", "--name=cost", f"--filename={path}", f"--rw={rw}", "--bs=4k", "--direct=1",
               "--ioengine=libaio", "--iodepth=32", "--norandommap=1", "--gtod_reduce=1"]
    counts = []
    for count in (COUNT, 3 * COUNT):
        before = busy_ns()
        subprocess.run([*command, f"--number_ios={count}", "--io_size=100g"], check=True,
                       stdout=subprocess.DEVNULL)
        counts.append(busy_ns() - before)
    return (counts[1] - counts[0]) / (2 * COUNT)


def null_blk():
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
    NULL.mkdir()
    for key, value in (("size", 1024), ("irqmode", 0), ("power", 1)):
        (NULL / key).write_text(str(value))
    path = next(p for p in ("/dev/cost", f"/dev/nullb{(NULL / 'index').read_text().strip()}")
                if pathlib.Path(p).exists())
    pathlib.Path(f"/sys/block/{path[5:]}/queue/scheduler").write_text("none")
    result = {rw: per_io(path, rw) for rw in ("randread", "randwrite")}
    NULL.rmdir()
    return result


base = null_blk()
print("null_blk, nothing inside: " + ", ".join(f"{rw} {ns:,.0f}" for rw, ns in base.items()))
for preset, keys in (("small", {"fill": 100}), ("small", {"device_sched": "aos"}),
                     ("sata", {"capacity_mb": 1024})):
    with Device(preset, **keys) as dev:
        for rw in ("randread", "randwrite"):
            own = per_io(dev.path, rw) - base[rw]
            check(own < 10000, f"{preset} {keys} {rw}: {own:,.0f} instructions an I/O of its own")
