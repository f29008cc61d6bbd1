#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: postmark
"""Inside the guest: make the runs of a plan of paper_pai.py, each on a new ext3. Print a line
of JSON for each: the benchmark's result for each seed, the device's counters, the requests
that reached the device, and PAI's counters."""
import os
import re
import sys
import time

import file_system
from common import JOBS, command, counters, fio_result, make_runs, prepare, scheduler_file, traced
from file_system import MOUNT, mounted, set_dirty, sync
from ssd import Device

# The paper's.
FIRST_SEED = 712
UNITS = {"bytes": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20, "gigabytes": 1 << 30}


def postmark(seed, size_kb, files, transactions):
    """Run Postmark until all data has reached the drive; return {direction: (the bytes that
    Postmark reports, seconds)}."""
    size = size_kb << 10
    begun = time.monotonic()
    printed = file_system.postmark(
        f"number {files}", f"seed {seed}", f"transactions {transactions}",
        f"subdirectories {files}", f"size {size} {size}", "read 65536", "write 65536",
        "buffering true")
    sync()
    seconds = time.monotonic() - begun
    if "out of files" in printed:
        sys.exit(f"postmark: {transactions} transactions are too many for {files} files")
    found = {}
    for what in ("read", "written"):
        match = re.search(rf"([0-9.]+) (\w+) {what} ", printed)
        if not match:
            sys.exit(f"postmark: {printed[-500:]}")
        found[what] = float(match[1]) * UNITS[match[2]]
    return {"read": (found["read"], seconds), "write": (found["written"], seconds)}


def fio(job, seed, *options):
    """Run a fio job, which waits until its data has reached the drive; return {direction:
    (bytes, seconds until the last thread ended)}."""
    printed = command("fio", "--output-format=json", *options, JOBS / f"{job}.fio",
                      env={**os.environ, "DIR": str(MOUNT), "SEED": str(seed)})
    jobs = fio_result(printed)["jobs"]
    return {way: (sum(job[way]["io_bytes"] for job in jobs),
                  max(job[way]["runtime"] for job in jobs) / 1e3) for way in ("read", "write")}


def once(run, seed):
    """Run the run's benchmark; return its MB/s by direction."""
    variables = run["variables"]
    if run["job"] == "postmark":
        moved = postmark(seed, *(int(variables[key]) for key in
                                 ("SIZE_KB", "FILES", "TRANSACTIONS")))
    else:
        # fio can drop only clean pages from the page cache.
        sync()
        moved = fio(run["job"], seed)
    return {f"{way}_mbps": number / seconds / 1e6
            for way, (number, seconds) in moved.items() if number}


def benchmark(run):
    """Run the run's benchmark TIMES times, with another seed each time; return the MB/s of
    each time, and of all the mean."""
    times = [once(run, FIRST_SEED + at) for at in range(int(run["variables"]["TIMES"]))]
    return {"times": times, "figures": {
        "mbps": sum(sum(each.values()) for each in times) / len(times)}}


def requests(page, events):
    """Return the numbers of table 4 from the events of traced(): dispatched requests, those
    aligned to @page sectors, and those of at most 256 KB."""
    sent = [(sector, size) for _, action, _, sector, size in events if action == "D"]
    return {"requests": len(sent), "aligned": sum(sector % page == 0 for sector, _ in sent),
            "small": sum(size <= 512 for _, size in sent)}


def benchmark_traced(device, run):
    """Run the run's benchmark with blktrace; return its result with table 4."""
    with traced(device) as events:
        made = benchmark(run)
    made["table4"] = requests(2 * int(run["variables"]["PAGE_KB"]), events)
    return made


def classes(device):
    """Return PAI's debugfs counters, {direction: {name: number}}; {} under another
    scheduler."""
    path = scheduler_file(device, "classes")
    if not path.exists():
        return {}
    head, *lines = (line.split() for line in path.read_text().splitlines())
    return {line[0]: dict(zip(head[1:], map(int, line[1:]), strict=True)) for line in lines}


def make_files(device, run):
    """Make ext3, as in the paper, and the files of a fio job; neither is in the page cache
    afterwards. A new device reads as zeroes, so the journal is empty."""
    command("mkfs.ext3", "-q", "-F", "-b", "4096", "-N", "2048", "-J", "size=16",
            "-E", "lazy_journal_init=1,nodiscard", device.path)
    if run["job"] != "postmark":
        with mounted(device):
            fio(run["job"], FIRST_SEED, "--create_only=1")


def measure(run):
    """Make one run on a device and a file system made for it."""
    with Device(run["preset"], **run["keys"]) as device:
        make_files(device, run)
        with mounted(device):
            prepare(device, run)
            # PAI changes the limits of the queue a moment later.
            time.sleep(0.1)
            device.reset()
            made = (benchmark_traced(device, run) if "PAGE_KB" in run["variables"]
                    else benchmark(run))
            made["pai"] = classes(device)
            made["ssdemu"] = counters(device)
    return made


if __name__ == "__main__":
    set_dirty(2, 16)
    make_runs(measure)
