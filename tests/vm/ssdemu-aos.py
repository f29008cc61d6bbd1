#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# With AOS the emulated SSD has at least 51 % lower read and 45 % lower write latency than
# with its FIFO, as the AOS paper claims: preset aos, random reads and writes at depth 64
# virtual-time: yes
# kernels: 6.12
# memory: 2G
# timeout: 900
"""The paper states averages over enterprise traces; this is one mix."""

from checks import check
from ssd import Device

ROWS = ("read_mean_ns", "write_mean_ns", "interference", "conflict_rr", "conflict_rw",
        "conflict_ww", "channel_conflicts", "channel_transfers", "units_busy_milli",
        "head_blocked")


def run(sched):
    """Statistics of the device with this scheduler of its own."""
    with Device("aos", capacity_mb=8192, fill=100, device_sched=sched) as dev:
        dev.reset()
        dev.fio(rw="randrw", rwmixread=50, iodepth=64, number_ios=20000)
        return dev.stats()


results = {sched: run(sched) for sched in ("fifo", "ooo", "ooo-read", "aos")}
print(f"{'':18}" + "".join(f"{sched:>14}" for sched in results))
for row in ROWS:
    print(f"{row:18}" + "".join(f"{stats[row]:14,}" for stats in results.values()))

fifo, aos = results["fifo"], results["aos"]
for kind, least in (("read", 51), ("write", 45)):
    lower = 100 * (1 - aos[f"{kind}_mean_ns"] / fifo[f"{kind}_mean_ns"])
    check(lower >= least, f"mean {kind} latency {lower:.1f} % lower (paper: {least} %)")
check(aos["units_busy_milli"] > fifo["units_busy_milli"], "more units busy at once")
