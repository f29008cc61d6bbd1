#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl top counts what fio does, its latencies are those of blktrace within its resolution, by
# class too; it needs no mounted debugfs; q, signals and a drive that disappears end it with the
# terminal restored and nothing left in the kernel; it follows changes of the scheduler
# check: 6.12
# timeout: 600
import bisect
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys

from blktrace import record
from checks import check, fail, run, wait_for
from iosched import Disk
from ssd import PROJECT, NullBlk
from terminal import Terminal

sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/common")]
from ssd_ctl import bpf  # noqa: E402

SSDCTL = [str(PROJECT / "tools/ssdctl/ssdctl"), "top"]
DEBUGFS = "/sys/kernel/debug"
SLOW = {"irqmode": 2, "completion_nsec": 2_000_000, "hw_queue_depth": 4}
# A bucket is a sixteenth wide. Both programs read the clock one after the other, and a busy
# machine may interrupt the guest in between: a figure may be off by so many ranks, in percent.
WIDTH, RANKS = 17 / 16, 3
PROG_GET_NEXT_ID = 11


def programs():
    """Return the numbers of the BPF programs in the kernel."""
    found, buffer = [], 0
    with contextlib.suppress(FileNotFoundError):
        while True:
            buffer = next_program(buffer)
            found.append(buffer)
    return found


def next_program(after):
    """Return the number of the program after another one."""
    attributes = ctypes.create_string_buffer(struct.pack("<II", after, 0), 144)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(bpf.SYSCALLS[os.uname().machine], PROG_GET_NEXT_ID, attributes, 144):
        raise OSError(ctypes.get_errno(), "no program")
    return struct.unpack_from("<II", attributes.raw)[1]


def nothing_left(before, after_what):
    """Check that the kernel has no more programs than before; it frees them a moment later."""
    wait_for(lambda: set(programs()) <= set(before), f"no program is left after {after_what}")
    print(f"ok    no program is left after {after_what}")


class Stream:
    """ssdctl top --json in the background."""

    def __init__(self, path, *options):
        self.child = subprocess.Popen([*SSDCTL, path, "--json", *options], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = self.next()

    def next(self):
        """Return the figures of the next interval."""
        line = self.child.stdout.readline()
        if not line:
            fail(f"it has ended: {self.child.stderr.read()}")
        return json.loads(line)

    def end(self, number):
        """Send a signal; return the exit status and what was said."""
        self.child.send_signal(number)
        return self.child.wait(), self.child.communicate()[1]


def latencies_of(events):
    """Return {(direction, kind): sorted ns} of the events Q, D and C."""
    queued, issued = {}, {}
    found = {(way, kind): [] for way in "RW" for kind in ("total", "queue", "drive")}
    for event in events:
        key = event.kind, event.sector
        if event.action == "Q":
            queued[key] = event.time
        elif event.action == "D":
            issued[key] = event.time
        elif key in issued:
            start, middle = queued.pop(key), issued.pop(key)
            for kind, value in (("total", event.time - start), ("queue", middle - start),
                                ("drive", event.time - middle)):
                found[event.kind, kind].append(value * 1e9)
    return {key: sorted(values) for key, values in found.items()}


def rank(values, ns):
    """Return the percentage of the values up to @ns."""
    return 100 * bisect.bisect_right(values, ns) / len(values)


def same_latencies(disk, figures, traced):
    """Check the percentiles since the start against a trace."""
    for (letter, kind), values in traced.items():
        way = {"R": "read", "W": "write"}[letter]
        found = figures["latencies_ns"]["since_start"][way][kind]
        check(found["count"] == len(values), f"{disk.label}: {len(values)} {way}s, {kind}")
        for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
            high, low = rank(values, found[name]), rank(values, found[name] / WIDTH)
            check(high >= percent - RANKS and low <= percent + RANKS,
                  f"{disk.label}: {way} {kind} {name} {found[name] / 1e6:.3g} ms is the "
                  f"percentile {low:.1f} to {high:.1f}")


def measured(scheduler, tier, **options):
    """Compare the figures with fio and with blktrace."""
    with NullBlk(**SLOW) as device:
        disk = Disk(device.name, scheduler)
        stream, jobs = Stream(disk.path, "--interval", "0.5"), []

        def load():
            jobs.append(device.fio(rw="randrw", iodepth=32, number_ios=1000, norandommap=0,
                                   size="1g", **options))
        events = list(record([disk], load, "QDC")[disk])
        figures = stream.next()
        wanted = {way: jobs[0][way]["total_ios"] for way in ("read", "write")}
        while any(figures["in_flight"].values()) or not settled(figures, wanted):
            figures = stream.next()
        check(stream.end(signal.SIGINT)[0] == 128 + signal.SIGINT, "SIGINT ends --json")
        same_latencies(disk, figures, latencies_of(events))
        counts = {name: sum(one["since_start"][way]["total"]["count"] for way in wanted)
                  for name, one in figures["latencies_ns"]["classes"].items()}
        check(counts == {tier: sum(wanted.values())}, f"{disk.label}: by class {counts}")
        disk.select("none")


def settled(figures, wanted):
    """Return true if all of fio's I/O is counted; fail if there is more."""
    since = figures["latencies_ns"]["since_start"]
    counts = {way: since[way]["total"]["count"] for way in wanted}
    if any(counts[way] > wanted[way] for way in wanted):
        fail(f"{counts} is more than fio's {wanted}")
    return counts == wanted


def without_debugfs():
    """Run without debugfs and tracefs; under load while the scheduler changes."""
    run("umount", "-l", DEBUGFS)
    run("umount", "-l", "/sys/kernel/tracing")
    mounts = pathlib.Path("/proc/mounts").read_text()
    try:
        with NullBlk(**SLOW) as device:
            load = subprocess.Popen(device.fio_command(rw="randrw", iodepth=32, time_based=1,
                                                       runtime=1000, size="1g", rate_iops="300"),
                                    stdout=subprocess.DEVNULL)
            changes(device)
            load.terminate()
            load.wait()
            check(pathlib.Path("/proc/mounts").read_text() == mounts, "no mount is left")
            device.scheduler("none")
    finally:
        run("mount", "-t", "debugfs", "debugfs", DEBUGFS)
        run("mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing")


def by_class(figures):
    """Return {direction: queued requests} of all classes."""
    return {way: sum(ways[way]["queued"] for ways in figures["classes"].values())
            for way in figures["queued"]}


def changes(device):
    """Follow changes of the scheduler."""
    stream = Stream(device.path, "--interval", "1")
    check(stream.first["scheduler"] == "none" and stream.first["queued"] is None, "none")
    for name, statistic in (("mq-deadline", None), ("kyber", None), ("pass", "regions"),
                            ("bp", "preference")):
        device.scheduler(name)
        figures = stream.next()
        while figures["scheduler"] != name:
            figures = stream.next()
        check(figures["former_scheduler"] and figures["queued"] is not None, f"{name} is shown")
        if name == "mq-deadline":
            check(by_class(figures) == figures["queued"], "mq-deadline's queue by class")
        check(statistic is None or statistic in figures["statistics"], f"{name}: {statistic}")
    pathlib.Path("/sys/block", device.name, "queue/iosched/depth").write_text("7")
    stream.next()
    figures = stream.next()
    check(figures["tunables"].get("depth") == {"value": "7", "default": "0"},
          "a changed tunable is shown")
    rates = figures["rates"]
    check(all(rates[way]["requests"] > 0 for way in ("read", "write")), f"requests: {rates}")
    status, said = stream.end(signal.SIGTERM)
    check(status == 128 + signal.SIGTERM and not said, f"SIGTERM ends it: {status} {said}")


def on_a_terminal():
    """How it ends: by q, by signals, because the drive disappears."""
    before = programs()
    with NullBlk(**SLOW) as device:
        terminal = Terminal([*SSDCTL, device.path, "--interval", "0.5"])
        terminal.until(rb"p99\.9", "the view")
        check(len(programs()) > len(before), "programs count while it runs")
        terminal.type(b"q")
        terminal.ended(0, "q")
        nothing_left(before, "q")
        terminal = Terminal([*SSDCTL, device.path, "--interval", "0.5"])
        terminal.until(rb"p99\.9", "the view")
        terminal.child.send_signal(signal.SIGTERM)
        terminal.ended(128 + signal.SIGTERM, "SIGTERM")
        stream = Stream(device.path)
        stream.end(signal.SIGKILL)
        nothing_left(before, "SIGKILL")
        terminal = Terminal([*SSDCTL, device.path, "--interval", "0.5"])
        terminal.until(rb"p99\.9", "the view")
    terminal.ended(1, "the drive's removal")
    check(f"ssdctl: {device.path} has disappeared".encode() in terminal.said, "it is said why")
    nothing_left(before, "the removal")


def refused():
    """What cannot be drawn on is refused with what to do."""
    with NullBlk() as device:
        done = subprocess.run([*SSDCTL, device.path], capture_output=True, text=True, check=False)
        check(done.returncode == 2 and "--batch" in done.stderr, f"no terminal: {done.stderr}")
        done = subprocess.run([*SSDCTL, device.path, "--batch", "2", "--interval", "0.1"],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and done.stdout.count("p99.9") == 4, "two views as text")


before_all = programs()
measured("mq-deadline", "best-effort")
measured("pass", "real-time", prioclass=1)
without_debugfs()
on_a_terminal()
refused()
nothing_left(before_all, "everything")
