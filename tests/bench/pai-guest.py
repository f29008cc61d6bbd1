#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: postmark
"""Inside the guest: make the runs of a plan (pai.py) on a new ext3 each, print
a line of JSON for each: what the benchmark says, each time with another seed, what
the device counts, what requests the device got, and PAI's counters."""
import json
import os
import pathlib
import re
import sys
import time

from guest import command, counters, make_runs, prepare, set_dirty, sync, traced
from harness import JOBS
from ssd import Device

MOUNT = pathlib.Path("/mnt/pai")
# The paper's.
FIRST_SEED = 712
UNITS = {"bytes": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20, "gigabytes": 1 << 30}


def postmark(seed, size_kb, files, transactions):
    """Bytes read and written by Postmark, as it says itself, in how many seconds: until
    all had reached the drive."""
    script = (f"set location {MOUNT}\nset number {files}\nset seed {seed}\n"
              f"set transactions {transactions}\nset subdirectories {files}\n"
              f"set size {size_kb << 10} {size_kb << 10}\n"
              "set read 65536\nset write 65536\nset buffering true\nrun\nquit\n")
    begun = time.monotonic()
    said = command("postmark", cwd=MOUNT, input=script)
    sync(MOUNT)
    seconds = time.monotonic() - begun
    if "out of files" in said:
        sys.exit(f"postmark: {transactions} transactions are too many for {files} files")
    found = {}
    for what in ("read", "written"):
        match = re.search(rf"([0-9.]+) (\w+) {what} ", said)
        if not match:
            sys.exit(f"postmark: {said[-500:]}")
        found[what] = float(match[1]) * UNITS[match[2]]
    return {"read": (found["read"], seconds), "write": (found["written"], seconds)}


def fio(job, seed, *options):
    """Bytes that a fio job reads and writes, in how many seconds: while any of its
    threads does, and until all has reached the drive, for which the jobs themselves
    see."""
    said = command("fio", "--output-format=json", *options, JOBS / f"{job}.fio",
                   env={**os.environ, "DIR": str(MOUNT), "SEED": str(seed)})
    jobs = json.loads(said[said.index("{"):])["jobs"]
    return {way: (sum(job[way]["io_bytes"] for job in jobs),
                  max(job[way]["runtime"] for job in jobs) / 1e3) for way in ("read", "write")}


def once(run, seed):
    """MB/s that the run's benchmark reads and writes."""
    variables = run["variables"]
    if run["job"] == "postmark":
        moved = postmark(seed, *(int(variables[key]) for key in
                                 ("SIZE_KB", "FILES", "TRANSACTIONS")))
    else:
        # So that fio can put out of memory what the last one has written.
        sync(MOUNT)
        moved = fio(run["job"], seed)
    return {f"{way}_mbps": number / seconds / 1e6
            for way, (number, seconds) in moved.items() if number}


def benchmark(run):
    """Make the run's benchmark as often as it says, with another seed each time."""
    times = [once(run, FIRST_SEED + at) for at in range(int(run["variables"]["TIMES"]))]
    return {"times": times, "figures": {
        "mbps": sum(sum(each.values()) for each in times) / len(times)}}


def requests(page, events):
    """Table 4 from a blktrace: the requests that the device got."""
    sent = [(sector, size) for _, action, _, sector, size in events if action == "D"]
    return {"requests": len(sent), "aligned": sum(sector % page == 0 for sector, _ in sent),
            "small": sum(size <= 512 for _, size in sent)}


def benchmark_traced(device, run):
    """The same with blktrace beside it."""
    with traced(device) as events:
        made = benchmark(run)
    made["table4"] = requests(2 * int(run["variables"]["PAGE_KB"]), events)
    return made


def classes(device):
    """PAI's debugfs figures by direction, or nothing."""
    path = pathlib.Path(f"/sys/kernel/debug/block/{device.name}/sched/classes")
    if not path.exists():
        return {}
    head, *lines = (line.split() for line in path.read_text().splitlines())
    return {line[0]: dict(zip(head[1:], map(int, line[1:]), strict=True)) for line in lines}


def measure(run):
    """One run on a device and a file system made for it."""
    with Device(run["preset"], **run["keys"]) as device:
        # ext3 as in the paper. A new device reads as zeroes: the journal is empty.
        command("mkfs.ext3", "-q", "-F", "-b", "4096", "-N", "2048", "-J", "size=16",
                "-E", "lazy_journal_init=1,nodiscard", device.path)
        MOUNT.mkdir(parents=True, exist_ok=True)
        command("mount", device.path, MOUNT)
        try:
            if run["job"] != "postmark":
                # The files are there before, and not in memory.
                fio(run["job"], FIRST_SEED, "--create_only=1")
                command("umount", MOUNT)
                command("mount", device.path, MOUNT)
            prepare(device, run)
            # The queue's limits follow a moment later.
            time.sleep(0.1)
            device.reset()
            made = (benchmark_traced(device, run) if "PAGE_KB" in run["variables"]
                    else benchmark(run))
            made["pai"] = classes(device)
            made["ssdemu"] = counters(device)
        finally:
            command("umount", MOUNT)
    return made


if __name__ == "__main__":
    set_dirty(2, 16)
    make_runs(measure)
