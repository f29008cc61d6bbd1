#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: dbench mariadb-server-core nilfs-tools postmark sysbench
"""Inside the guest: make the runs of a plan (bp.py), print a line of JSON for
each: what the job says, the device's counters, and BP's."""
import contextlib
import dataclasses
import pathlib
import re
import subprocess
import sys
import time

import database
import guest
from guest import command, fio, set_dirty, sync
from ssd import Device

MOUNT = pathlib.Path("/mnt/bp")
LOAD = "/usr/share/dbench/client.txt"
FILES = ("postmark", "dbench", "oltp")


@dataclasses.dataclass
class FileSystem:
    """How to make a file system, and mount it, so that nothing is written behind the
    benchmark's back (inode tables that nobody needs, what a cleaner moves); MB of dirty
    pages at which all wait."""
    make: list
    options: list
    limit: int


FILE_SYSTEMS = {
    "ext4": FileSystem(["mkfs.ext4", "-q", "-F", "-E",
                        "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
                       ["-o", "noinit_itable"], 8),
    # It does not hear the kernel: it writes every five seconds, or when 3,600 blocks are
    # dirty. With less than that allowed, everybody would wait for those five seconds.
    "nilfs2": FileSystem(["mkfs.nilfs2", "-q", "-K"], ["-i", "-t", "nilfs2"], 64),
}


def postmark(files, transactions):
    """Seconds that Postmark takes with its own defaults, but for the numbers."""
    script = (f"set location {MOUNT}\nset number {files}\n"
              f"set transactions {transactions}\nset subdirectories 10\nrun\nquit\n")
    begun = time.monotonic()
    said = command("postmark", cwd=MOUNT, input=script)
    seconds = time.monotonic() - begun
    if not re.search(r"^Time:", said, re.MULTILINE):
        sys.exit(f"postmark: {said[-500:]}")
    return {"seconds": seconds}


def dbench(clients, seconds):
    """MB/s as dbench counts them."""
    done = subprocess.run(["dbench", "-D", MOUNT, "-c", LOAD, "-t", str(seconds),
                           str(clients)], capture_output=True, text=True, check=False)
    found = re.search(r"^Throughput ([0-9.]+) MB/sec", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        sys.exit(f"dbench: {done.stderr.strip() or done.stdout[-500:]}")
    return {"mbps": float(found[1])}


def file_system(run):
    """The one that a run is on."""
    return FILE_SYSTEMS[run["variables"].get("KIND", "ext4")]


@contextlib.contextmanager
def mounted(device, kind):
    """A new file system on a device."""
    command(*kind.make, device.path)
    MOUNT.mkdir(parents=True, exist_ok=True)
    command("mount", *kind.options, device.path, MOUNT)
    try:
        yield
    finally:
        command("umount", MOUNT)


def prepare(device, run):
    """Select the run's scheduler; counters begin here."""
    set_dirty(1, file_system(run).limit)
    guest.prepare(device, run)
    device.reset()


def oltp(threads, transactions):
    """Seconds that sysbench's complex OLTP takes."""
    return {"seconds": database.oltp({"TEST": "oltp_read_write", "THREADS": threads,
                                      "EVENTS": transactions})["seconds"]}


@contextlib.contextmanager
def server(job):
    """What a job needs to be there before."""
    if job != "oltp":
        yield
        return
    data = MOUNT / "data"
    database.copy(data)
    sync(MOUNT)
    with database.server(data):
        yield


def on_files(device, run):
    """A file system benchmark until all has reached the drive."""
    benchmark = {"postmark": postmark, "dbench": dbench, "oltp": oltp}[run["job"]]
    with mounted(device, file_system(run)), server(run["job"]):
        prepare(device, run)
        made = benchmark(*(int(run["variables"][key]) for key in ("A", "B")))
        left = sync(MOUNT)
        if "seconds" in made:
            made["seconds"] += left
        return {"files": made, **counters(device, run)}


def counters_of_bp(device):
    """BP's debugfs files of numbers."""
    folder = pathlib.Path("/sys/kernel/debug/block") / device.name / "sched"
    found = {}
    for name in ("preference", "anticipation"):
        found.update(line.split() for line in (folder / name).read_text().splitlines())
    lines = [line.split() for line in (folder / "stats").read_text().splitlines()]
    at = lines[0].index("expired")
    found["expired"] = sum(int(line[at]) for line in lines[1:])
    return {key: int(value) for key, value in found.items()}


def counters(device, run):
    """What the device and BP have counted."""
    return {"bp": counters_of_bp(device) if run["scheduler"] == "bp" else {},
            "ssdemu": guest.counters(device)}


def on_device(device, run):
    """A fio job on the device."""
    prepare(device, run)
    jobs = [{kind: job[kind] for kind in ("read", "write")} for job in fio(device, run)["jobs"]]
    return {"jobs": jobs, **counters(device, run)}


def rate(result):
    """MB/s that progress shows."""
    if "files" in result:
        return result["files"].get("mbps", 0)
    return sum(job[kind]["bw_bytes"] for job in result["jobs"] for kind in job) / 1e6


def measure(run):
    """One run on a device made for it."""
    with Device(run["preset"], **run["keys"]) as device:
        result = on_files(device, run) if run["job"] in FILES else on_device(device, run)
    result["figures"] = {"mbps": rate(result)}
    return result


if __name__ == "__main__":
    guest.make_runs(measure)
