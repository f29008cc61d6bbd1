#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan (bp.py), print a line of JSON for
each: what the job says, the device's counters, and BP's."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from guest import fio, warm_up
from ssd import Device

MOUNT = "/mnt/bp"
# Memory for dirty pages as in a machine of the paper's time, so that the drive
# is at work while the benchmark is.
DIRTY = {"dirty_background_bytes": 4 << 20, "dirty_bytes": 16 << 20}
CLIENT = "/usr/share/dbench/client.txt"


def command(*words, **more):
    """Output of a command; ends it all when it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.stdout[-500:]}")
    return done.stdout


def postmark(folder, files, transactions):
    """Postmark with its own defaults, but for the numbers."""
    script = (f"set location {folder}\nset number {files}\n"
              f"set transactions {transactions}\nset subdirectories 10\nrun\nquit\n")
    said = command("postmark", input=script)
    if not re.search(r"^Time:", said, re.M):
        sys.exit(f"postmark: {said[-500:]}")


def dbench(folder, clients, seconds):
    """MB/s as dbench counts them."""
    said = command("dbench", "-D", folder, "-c", CLIENT, "-t", str(seconds), str(clients))
    return float(re.search(r"^Throughput ([0-9.]+) MB/sec", said, re.M)[1])


def prepare(device, run):
    """Select the run's scheduler; counters begin here."""
    device.scheduler(run["scheduler"])
    for name, value in run["tunables"].items():
        device.queue(name, value)
    device.reset()


def on_ext4(device, run):
    """A file system benchmark on a new ext4; until all has reached the drive."""
    command("mkfs.ext4", "-q", "-F", "-E",
            "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device.path)
    os.makedirs(MOUNT, exist_ok=True)
    command("mount", device.path, MOUNT)
    try:
        prepare(device, run)
        begun = time.monotonic()
        made = {}
        numbers = [int(run["variables"][key]) for key in ("A", "B")]
        if run["job"] == "postmark":
            postmark(MOUNT, *numbers)
        else:
            made["mbps"] = dbench(MOUNT, *numbers)
        command("sync", "-f", MOUNT)
        made["seconds"] = time.monotonic() - begun
    finally:
        command("umount", MOUNT)
    return made


def counters_of_bp(device):
    """BP's debugfs files of numbers, or nothing."""
    found = {}
    for name in ("preference", "anticipation", "stats"):
        path = pathlib.Path(f"/sys/kernel/debug/block/{device.name}/sched/{name}")
        if path.exists() and name != "stats":
            found.update(line.split() for line in path.read_text().splitlines())
        elif path.exists():
            lines = [line.split() for line in path.read_text().splitlines()]
            at = lines[0].index("expired")
            found["expired"] = sum(int(line[at]) for line in lines[1:])
    return {key: int(value) for key, value in found.items()}


def measure(run):
    """One run on a device made for it."""
    with Device(run["preset"], **run["keys"]) as device:
        result = {}
        if run["job"] in ("postmark", "dbench"):
            result["files"] = on_ext4(device, run)
        else:
            prepare(device, run)
            result["fio"] = fio(device, run)
        bp = counters_of_bp(device) if run["scheduler"] == "bp" else {}
        stats = device.stats()
    result["bp"] = bp
    result["ssdemu"] = {key: value for key, value in stats.items()
                        if not isinstance(value, list) or not isinstance(value[0], dict)}
    return result


def main():
    runs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    warm_up(runs)
    if any(run["job"] in ("postmark", "dbench") for run in runs):
        # In memory, so that the programs and their files are in memory.
        os.makedirs("/tmp/warm", exist_ok=True)
        postmark("/tmp/warm", 10, 10)
        dbench("/tmp/warm", 1, 1)
        shutil.rmtree("/tmp/warm")
        with Device("small", memory_backed=1) as device:
            on_ext4(device, {"job": "postmark", "variables": {"A": 10, "B": 10},
                             "scheduler": "none", "tunables": {}})
        for name, value in DIRTY.items():
            pathlib.Path(f"/proc/sys/vm/{name}").write_text(str(value))
    for run in runs:
        print(json.dumps(measure(run)), flush=True)


if __name__ == "__main__":
    main()
