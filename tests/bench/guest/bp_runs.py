#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: dbench mariadb-server-core nilfs-tools postmark sysbench
"""Inside the guest: make the runs of a plan of paper_bp.py. Print a line of JSON for each:
the result of the job, the device's counters, and BP's."""
import contextlib
import dataclasses
import re
import subprocess
import sys
import time

import common
import database
import file_system
from common import command, fio, make_runs, scheduler_file
from file_system import MOUNT, mounted, sync
from ssd import Device

LOAD = "/usr/share/dbench/client.txt"


@dataclasses.dataclass
class FileSystem:
    """The command that makes a file system, and mount's @options. The file system must not
    write in the background, such as inode tables or what a cleaner moves. @limit: MB of dirty
    pages at which every writer waits."""
    make: list
    options: list
    limit: int


FILE_SYSTEMS = {
    "ext4": FileSystem(["mkfs.ext4", "-q", "-F", "-E",
                        "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
                       ["-o", "noinit_itable"], 8),
    # It ignores the kernel's limits: it writes every five seconds, or when 3,600 blocks are
    # dirty. With a lower limit all writers would wait for those five seconds.
    "nilfs2": FileSystem(["mkfs.nilfs2", "-q", "-K"], ["-i", "-t", "nilfs2"], 64),
}


def postmark(files, transactions):
    """Run Postmark, with its defaults except for the two numbers; return its seconds."""
    begun = time.monotonic()
    printed = file_system.postmark(f"number {files}", f"transactions {transactions}",
                                   "subdirectories 10")
    seconds = time.monotonic() - begun
    if not re.search(r"^Time:", printed, re.MULTILINE):
        sys.exit(f"postmark: {printed[-500:]}")
    return {"seconds": seconds}


def dbench(clients, seconds):
    """Run dbench; return the MB/s that it reports."""
    done = subprocess.run(["dbench", "-D", MOUNT, "-c", LOAD, "-t", str(seconds),
                           str(clients)], capture_output=True, text=True, check=False)
    found = re.search(r"^Throughput ([0-9.]+) MB/sec", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        sys.exit(f"dbench: {done.stderr.strip() or done.stdout[-500:]}")
    return {"mbps": float(found[1])}


def oltp(threads, transactions):
    """Run sysbench's complex OLTP test; return its seconds."""
    return {"seconds": database.oltp({"TEST": "oltp_read_write", "THREADS": threads,
                                      "EVENTS": transactions})["seconds"]}


# Benchmarks on a file system, by job; their arguments are the variables A and B.
BENCHMARKS = {"postmark": postmark, "dbench": dbench, "oltp": oltp}


def file_system_of(run):
    """Return the FileSystem of a run."""
    return FILE_SYSTEMS[run["variables"].get("KIND", "ext4")]


def prepare(device, run):
    """Select the run's scheduler and reset the device's counters."""
    file_system.set_dirty(1, file_system_of(run).limit)
    common.prepare(device, run)
    device.reset()


@contextlib.contextmanager
def server(job):
    """Run the database server if the job needs it."""
    if job != "oltp":
        yield
        return
    data = MOUNT / "data"
    database.copy(data)
    sync()
    with database.server(data):
        yield


def on_files(device, run):
    """Run a benchmark on a new file system until all data has reached the drive; return its
    result and the counters."""
    kind, benchmark = file_system_of(run), BENCHMARKS[run["job"]]
    command(*kind.make, device.path)
    with mounted(device, *kind.options), server(run["job"]):
        prepare(device, run)
        made = benchmark(*(int(run["variables"][key]) for key in ("A", "B")))
        left = sync()
        if "seconds" in made:
            made["seconds"] += left
        return {"files": made, **counters(device, run)}


def counters_of_bp(device):
    """Return the numbers in BP's debugfs files."""
    found = {}
    for name in ("preference", "anticipation"):
        text = scheduler_file(device, name).read_text()
        found.update(line.split() for line in text.splitlines())
    head, *lines = (line.split() for line in
                    scheduler_file(device, "stats").read_text().splitlines())
    at = head.index("expired")
    found["expired"] = sum(int(line[at]) for line in lines)
    return {key: int(value) for key, value in found.items()}


def counters(device, run):
    """Return the counters of the device and of BP."""
    return {"bp": counters_of_bp(device) if run["scheduler"] == "bp" else {},
            "ssdemu": common.counters(device)}


def on_device(device, run):
    """Run a fio job on the device; return the result of each of its jobs by direction, and
    the counters."""
    prepare(device, run)
    jobs = [{kind: job[kind] for kind in ("read", "write")} for job in fio(device, run)["jobs"]]
    return {"jobs": jobs, **counters(device, run)}


def rate(result):
    """Return the MB/s that the progress of the benchmark shows."""
    if "files" in result:
        return result["files"].get("mbps", 0)
    return sum(job[kind]["bw_bytes"] for job in result["jobs"] for kind in job) / 1e6


def measure(run):
    """Make one run on a device made for it."""
    with Device(run["preset"], **run["keys"]) as device:
        result = (on_files if run["job"] in BENCHMARKS else on_device)(device, run)
    result["figures"] = {"mbps": rate(result)}
    return result


if __name__ == "__main__":
    make_runs(measure)
