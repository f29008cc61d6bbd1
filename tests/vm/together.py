# SPDX-License-Identifier: GPL-2.0
"""Imported by the tests that have all our schedulers at work at the same time, each
on devices of its own, under one fio.

Starting a program costs an emulated guest as much as thousands of requests. So one
fio serves all devices, and what is written to sysfs is written from here.
"""

import contextlib
import ctypes
import glob
import json
import os
import pathlib
import signal
import subprocess
import time

from ssd import DEBUG_KERNEL, check

SEED = int(os.environ.get("SEED") or 1)
SOAK = bool(os.environ.get("SOAK"))
FOLDER = pathlib.Path("/lib/modules", os.uname().release, "updates")
SCSI_DEBUG = pathlib.Path("/sys/bus/pseudo/drivers/scsi_debug")
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176


def ours():
    """Names of the schedulers that are built."""
    return sorted(path.name.removesuffix("-iosched.ko") for path in FOLDER.glob("*-iosched.ko"))


def at_once(disks):
    """The groups of @disks that one CPU can keep busy side by side in virtual time: all, or
    on a debug kernel each alone."""
    return [[disk] for disk in disks] if DEBUG_KERNEL else [disks]


def modprobe(*arguments):
    """Load modules, or unload them with -r."""
    subprocess.run(["modprobe", *arguments], check=True)


def insert(scheduler, parameters=""):
    """Load a scheduler's module without a process; the errno, 0 for none."""
    fd = os.open(FOLDER / f"{scheduler}-iosched.ko", os.O_RDONLY)
    try:
        failed = LIBC.syscall(SYS_FINIT_MODULE, fd, parameters.encode(), 0)
        return ctypes.get_errno() if failed else 0
    finally:
        os.close(fd)


def remove(scheduler):
    """Unload it; the errno, 0 for none."""
    failed = LIBC.syscall(SYS_DELETE_MODULE, f"{scheduler}_iosched".encode(), os.O_NONBLOCK)
    return ctypes.get_errno() if failed else 0


def remove_all():
    """Each module goes, now that nobody uses it."""
    for name in ours():
        error = remove(name)
        check(not error, f"{name} unloads: {os.strerror(error)}")


def wait_for(condition, what, seconds=600 if DEBUG_KERNEL else 120):
    """Until something is so; it has to become so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            check(False, f"no end of waiting for {what}")
        time.sleep(0.05)


def scsi_disks(count, **parameters):
    """So many hosts of scsi_debug, with data of their own; the names of their disks."""
    modprobe("sd_mod")
    modprobe("scsi_debug", f"add_host={count}", "per_host_store=1",
             *(f"{key}={value}" for key, value in parameters.items()))

    def found():
        paths = glob.glob(f"{SCSI_DEBUG}/adapter*/host*/target*/*/block/*")
        return sorted(os.path.basename(path) for path in paths)
    wait_for(lambda: len(found()) == count and all(os.path.exists(f"/dev/{name}")
                                                   for name in found()), "scsi_debug's disks")
    return found()


class Disk:
    """A device under one of our schedulers."""

    def __init__(self, name, scheduler, **tunables):
        self.name, self.scheduler = name, scheduler
        self.label = f"{scheduler} on {name}"
        self.path = f"/dev/{name}"
        self.queue = pathlib.Path("/sys/block", name, "queue")
        self.ended = 0
        self.select(scheduler)
        self.tune(**tunables)

    def select(self, scheduler):
        """Select a scheduler as a user would, and see that it took."""
        (self.queue / "scheduler").write_text(scheduler)
        self.ended = 0
        selected = (self.queue / "scheduler").read_text()
        if f"[{scheduler}]" not in selected:
            check(False, f"{self.name} has {selected.strip()} after selecting {scheduler}")

    def tune(self, **values):
        """Set those of these tunables that the scheduler has."""
        for name, value in values.items():
            file = self.queue / "iosched" / name
            if file.exists():
                file.write_text(str(value))

    def counters(self):
        """The scheduler's statistics, summed over classes and directions."""
        text = pathlib.Path("/sys/kernel/debug/block", self.name, "sched/stats").read_text()
        head, *rows = (line.split() for line in text.splitlines())
        return {key: sum(int(row[i]) for row in rows) for i, key in enumerate(head) if i > 1}

    def nothing_left(self, **least):
        """Every request has left the scheduler; of these things as many happened, too."""
        # A bio ends a moment before its request does.
        end = time.monotonic() + 5
        now = self.counters()
        while now["in_flight"] + now["polled"] and time.monotonic() < end:
            time.sleep(0.05)
            now = self.counters()
        good = (now["inserted"] > 0 and now["inserted"] == now["merged"] + now["completed"] and
                not now["queued"] and not now["in_flight"] and not now["polled"] and
                all(now[key] >= value for key, value in least.items()))
        # For tests/soak.
        print(f"counted: requests={now['completed'] - self.ended}")
        self.ended = now["completed"]
        check(good, f"{self.label}: " + ", ".join(f"{value} {key}" for key, value in now.items()))

    def requests(self):
        """Number of requests that the device has ended."""
        fields = pathlib.Path("/sys/block", self.name, "stat").read_text().split()
        return int(fields[0]) + int(fields[4])


def job_file(jobs, options):
    """Write fio's job file: {section: options} on top of what they have in common."""
    common = {"direct": 1, "ioengine": "libaio", "iodepth": 16, "bs": "4k", "thread": 1,
              "randseed": SEED, "verify_fatal": 1, "verify_state_save": 0, **options}
    lines = ["[global]", *(f"{key}={value}" for key, value in common.items())]
    for section, own in jobs.items():
        lines += [f"[{section}]", *(f"{key}={value}" for key, value in own.items())]
    path = pathlib.Path("/tmp/jobs.fio")
    path.write_text("\n".join(lines) + "\n")
    return path


def fio(jobs, good=True, **options):
    """Run fio to its end: {section: its jobs}. It has to succeed if @good."""
    path = job_file(jobs, options)
    done = subprocess.run(["fio", "--output-format=json", path], capture_output=True, text=True,
                          check=False)
    if good and done.returncode:
        check(False, f"fio: {done.stderr[-1000:]} {done.stdout[:1000]}")
    results = {section: [] for section in jobs}
    for job in json.loads(done.stdout[done.stdout.index("{"):])["jobs"]:
        results[job["jobname"]].append(job)
    return results


def verify(disks, **options):
    """Write each of these disks at random and read it back, checking each block."""
    settings = {"rw": "randwrite", "bs": "4k-64k", "verify": "crc32c", "size": "4m",
                "end_fsync": 1, **options}
    fio({disk.name: {"filename": disk.path} for disk in disks}, **settings)


@contextlib.contextmanager
def load(disks, jobs, **options):
    """Have fio at work on these disks while the body runs; it must not end by itself."""
    path = job_file(jobs, {"time_based": 1, "runtime": 36000, **options})
    before = {disk: disk.requests() for disk in disks}
    with open("/tmp/load.log", "w", encoding="utf-8") as log, \
         subprocess.Popen(["fio", path], stdout=log, stderr=log) as running:
        try:
            # What follows is to happen under it, and fio forgets a signal that comes
            # before it has started its jobs.
            for disk in disks:
                wait_for(lambda disk=disk: disk.requests() > before[disk] + 50 or
                         running.poll() is not None, f"load on {disk.label}")
            yield running
            ended = running.poll() is not None
            # Again: a job of several that starts late misses the first one. Not soon: what
            # fio does on a signal, it may not do while it prints or frees.
            while running.poll() is None:
                running.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(20)
        finally:
            running.kill()
    said = pathlib.Path("/tmp/load.log").read_text(errors="replace")
    if ended or running.returncode not in (0, 128):
        check(False, f"the load went on: it ended with {running.returncode}: {said[-2000:]}")


def random_load(disks, **options):
    """load() with random reads and writes, as many to each. In bursts, and silences in
    which nobody comes to wake whoever was forgotten, and the CPUs do other things."""
    jobs = {disk.name: {"filename": disk.path} for disk in disks}
    bursts = {"thinktime": "100ms", "thinktime_blocks": 24}
    return load(disks, jobs, **{"rw": "randrw", "size": "100%", **bursts, **options})


def removed_under_load(disks, take_out):
    """Take devices out from under their load: all I/O ends, and nothing is left."""
    jobs = job_file({disk.name: {"filename": disk.path} for disk in disks},
                    {"rw": "randrw", "numjobs": 2, "time_based": 1, "runtime": 36000})
    with subprocess.Popen(["fio", "--minimal", jobs], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as running:
        try:
            for disk in disks:
                wait_for(lambda disk=disk: disk.counters()["completed"] > 20,
                         f"load on {disk.label}")
            for disk in disks:
                take_out(disk)
            # It ends by the errors that it must get: each job, or it would go on.
            wait_for(lambda: running.poll() is not None, "the end of I/O to what is gone")
        finally:
            running.kill()
    check(running.returncode not in (0, 128), f"fio ended by errors: {running.returncode}")
    for disk in disks:
        check(not disk.queue.exists(), f"{disk.label} is gone")
