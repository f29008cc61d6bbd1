# SPDX-License-Identifier: GPL-2.0
"""Whether other work on the machine disturbs the measurements."""
import dataclasses
import os
import pathlib
import time

from ssd_common.drive import SECTOR, SECTORS, WAYS, Drive, counters, read

TICKS = os.sysconf("SC_CLK_TCK")
# Shares from which on medians suffer: of the drive's own I/O, and of the time.
IO_SHARE, CPU_SHARE = 0.01, 0.1
# The smallest I/O that other programs are assumed to make.
SMALL_IO = 4096


@dataclasses.dataclass
class Sample:
    """Counters since the boot, in bytes and seconds."""
    clock: float
    disk: int
    cpus: float
    stolen: float
    waiting: float | None


def disk_bytes(drive: Drive) -> int:
    """Return the bytes that the kernel has read from the drive and written to it."""
    fields = counters(drive.sysfs)
    return sum(fields[WAYS[way] + SECTORS] for way in ("read", "write")) * SECTOR if fields else 0


def cpu_times() -> tuple[float, float]:
    """Return the seconds for which CPUs were idle, and for which a hypervisor ran others."""
    line = read(pathlib.Path("/proc/stat")).splitlines()[0].split()[1:]
    times = [int(field) / TICKS for field in line] + [0.0] * 8
    return times[3] + times[4], times[7]


def waiting_for_cpu() -> float | None:
    """Return the seconds in which a task waited for a CPU; None if the kernel does not say."""
    text = read(pathlib.Path("/proc/pressure/cpu"))
    if not text.startswith("some"):
        return None
    return int(text.splitlines()[0].rpartition("total=")[2]) / 1e6


def sample(drive: Drive) -> Sample:
    """Return the counters of now."""
    idle, stolen = cpu_times()
    return Sample(time.monotonic(), disk_bytes(drive), idle, stolen, waiting_for_cpu())


def disturbances(before: Sample, after: Sample, own_bytes: int, own_ios: int) -> list[str]:
    """Return what disturbed measurements that made I/O of @own_bytes in @own_ios; no own I/O:
    what would disturb them."""
    found = []
    seconds = max(after.clock - before.clock, 1e-3)
    others = after.disk - before.disk - own_bytes
    # As many small I/Os as ours may fit in a small share of our bytes.
    allowed = IO_SHARE * min(own_bytes, own_ios * SMALL_IO)
    if others > allowed:
        found.append(f"other programs moved {others / seconds / 1e6:.3g} MB/s on the drive")
    stolen = (after.stolen - before.stolen) / seconds
    if stolen > CPU_SHARE:
        found.append(f"the hypervisor took {stolen:.0%} of a CPU")
    if before.waiting is not None and after.waiting is not None:
        waiting = (after.waiting - before.waiting) / seconds
        if waiting > CPU_SHARE:
            found.append(f"programs waited for a CPU in {waiting:.0%} of the time")
    elif (after.cpus - before.cpus) / seconds < CPU_SHARE and (os.cpu_count() or 1) > 1:
        found.append("no CPU was idle")
    return found


def watch(drive: Drive, seconds: float) -> list[str]:
    """Return what would disturb measurements, by some @seconds in which none are made."""
    before = sample(drive)
    time.sleep(seconds)
    return disturbances(before, sample(drive), 0, 0)
