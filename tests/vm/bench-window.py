#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# The benchmark's figures: no throughput exceeds the bound of the device, although one by fio's
# runtime does; fio and the kernel count the same I/Os in a window; a time scale is
# the scheduler's, too
# virtual-time: yes
# memory: 1G
# kernels: 6.12
# check: none
# timeout: 1800
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "guest")]

import matrix  # noqa: E402  (beside the benchmark)
import model  # noqa: E402
import runs  # noqa: E402  (the guest's program)
from checks import check  # noqa: E402

WORKLOADS = matrix.WORKLOADS
# A preset and a workload, with the outstanding bytes; the first keeps the drive's busiest part
# always at work.
CELLS = (("pai-a", "4k random write, depth 128", 128 << 12),
         ("pass-ssd1", "4k random write, depth 128", 128 << 12),
         ("bp-transcend", "4k random write, depth 128", 128 << 12),
         ("piq", "4k random mixed, depth 64", 64 << 12),
         ("sata", "64k sequential read, depth 32", 32 << 16),
         ("sata", "4 sync readers, deep 128k writer", None),
         ("qlc", "4k random mixed, depth 64", 64 << 12))
# Operations that have begun before the window or end after it: percent.
EDGE = 1
SCHEDULERS = ("none", "mq-deadline", "pass")


def measure(run):
    """Make a run; return its figures."""
    run.result = runs.measure(model.plan_of(run))
    return model.figures_of(run)


def counted(run):
    """Return the bytes of a window by the application's count and by the kernel's."""
    size = int(run.variables["BS"].removesuffix("k")) << 10
    ways = [run.result["window"][way] for way in ("read", "write")]
    return (sum(way["latency"]["count"] * size for way in ways),
            sum(way["bytes"] for way in ways))


def within_bound(preset, workload, outstanding):
    """Check the figures of a cell under some schedulers."""
    cell = matrix.emulated("benefit", preset, workload, WORKLOADS[workload], True)
    for run in cell.runs[:len({run.label for run in cell.runs})]:
        if run.label not in SCHEDULERS:
            continue
        run.simulate = False
        of_bound = measure(run)["of_bound"]
        check(0 < of_bound <= 1 + EDGE / 100,
              f"{preset}, {workload}, {run.label}: {of_bound:.3f} of the bound")
        if outstanding:
            fio, kernel = counted(run)
            # fio notes the ms of a completion, and only once it has reaped it.
            check(abs(fio - kernel) <= max(outstanding, kernel / 50),
                  f"fio has seen {fio:,} bytes, the kernel {kernel:,}")


def runtime_exceeds():
    """Check that the runtime of fio can make a figure that exceeds the bound, so that the check
    of the bound can fail."""
    run = matrix.emulated("benefit", "pai-a", "", WORKLOADS["4k random write, depth 128"],
                          True).runs[0]
    run.simulate = False
    run.variables |= {"RAMP": "150ms", "RUNTIME": "700ms"}
    plan = model.plan_of(run)
    with runs.Device(plan["preset"]) as device:
        runs.prepare(device, plan)
        result = runs.benefit(device, plan)
    of_bound = (model.figures(result["fio"], result["ssdemu"])["mbps"]
                / model.bound_mbps(result["ssdemu"]))
    check(of_bound > 1 + EDGE / 100, f"by fio's runtime it is {of_bound:.3f} of the bound")


def longer_times():
    """Check that a run with a time scale has the times of the scheduler as many times as long."""
    names = {"mq-deadline": ("read_expire", "prio_aging_expire"), "kyber": ("read_lat_nsec",),
             "bfq": ("slice_idle", "slice_idle_us", "fifo_expire_sync", "timeout_sync"),
             "bp": ("antic_us", "read_batch_ms"), "piq": ("write_wait_us", "read_expire")}
    with runs.Device("small") as device:
        folder = pathlib.Path("/sys/block", device.name, "queue/iosched")
        for scheduler, attributes in names.items():
            found = []
            for scale in (1, 8):
                device.scheduler("none")
                runs.prepare(device, {"scheduler": scheduler, "tunables": {}, "time_scale": scale})
                found.append([int((folder / name).read_text()) for name in attributes])
            check([8 * value for value in found[0]] == found[1],
                  f"{scheduler}, times x 8: {found[0]}, {found[1]}")


longer_times()
runtime_exceeds()
for each in CELLS:
    within_bound(*each)
