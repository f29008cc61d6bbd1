#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# PAI keeps no request pending beyond its bound, neither under load nor while the device
# is idle; dispatches no younger request before one whose bound has passed, however busy
# the drive is; and does not delay a lone request
# virtual-time: yes
# check: 6.12
# timeout: 900

import collections
import subprocess
import threading
import time

from blktrace import record
from checks import check, fail, wait_for
from fio_jobs import fio, job_file, load
from iosched import Disk
from ssd import Device

# The small requests of busy() begin here, in sectors.
SMALL = 262144
PAIR = {"rw": "randwrite", "iodepth": 2, "iodepth_batch": 2, "number_ios": 100}


def lone_read(disk):
    """Mean latency in ns of reads of 4 KB, one at a time."""
    (job,) = fio({"lone": {"filename": disk.path}}, rw="randread", ioengine="psync",
                 number_ios=200)["lone"]
    return int(job["read"]["clat_ns"]["mean"])


def figure(disk, direction, column):
    """A figure of PAI's classes; @direction: read or write."""
    head, *rows = (line.split() for line in (disk.debugfs / "classes").read_text().splitlines())
    (row,) = (row for row in rows if row[0] == direction)
    return int(row[head.index(column)])


def set_bounds(disk, us):
    """Set how long reads and writes may be pending."""
    disk.set(read_pending_us=us, write_pending_us=us)


def busy(disk):
    """Keep the device busy, with small unaligned requests besides. fio runs at idle priority:
    a worker that runs the queue must not wait for the only CPU."""
    jobs = {"large": {"rw": "write", "bs": "256k", "iodepth": 4, "number_ios": 300,
                      "size": "128m"},
            "small": {"rw": "randrw", "iodepth": 8, "number_ios": 1500, "offset": "128m",
                      "size": "256m"}}
    path = job_file(jobs, {"filename": disk.path, "thread": None})
    subprocess.run(["chrt", "--idle", "0", "fio", "--output-format=terse", path],
                   stdout=subprocess.DEVNULL, check=True)


class Overdue:
    """How far small requests exceed a bound, by a trace: how many there are, and how many of
    them were due; the longest time in us from the bound to a dispatch; the most younger requests
    that were dispatched in between, except within @slack_us, which the wake-up of the queue
    takes."""

    def __init__(self, events, us, slack_us):
        self.us, self.slack_us = us, slack_us
        self.seen = self.due = self.worst = 0
        self.longest = 0.0
        self.inserted, self.waiting = {}, {}
        self.passed = collections.Counter()
        for event in events:
            if event.action == "I":
                self.inserted[event.sector] = event.time
                if event.sector >= SMALL and event.sectors == 8:
                    self.waiting[event.sector] = event.time
            elif event.action == "D" and event.sector in self.inserted:
                self.dispatch(event)

    def late(self, event, since):
        """Microseconds from the bound of a request inserted at @since to the event."""
        return (event.time - since) * 1e6 - self.us

    def dispatch(self, event):
        """Account for a dispatch."""
        for sector, since in self.waiting.items():
            if self.late(event, since) > self.slack_us and self.inserted[event.sector] > since:
                self.passed[sector] += 1
        if event.sector in self.waiting:
            late = self.late(event, self.waiting.pop(event.sector))
            self.seen += 1
            self.due += late > 0
            self.longest = max(self.longest, late)
            self.worst = max(self.worst, self.passed.pop(event.sector, 0))
        del self.inserted[event.sector]


def under_load(disk, us, slack_us, most):
    """Trace busy() with this bound; at most @most younger requests may pass a due one."""
    set_bounds(disk, us)
    found = Overdue(record([disk], lambda: busy(disk), "ID")[disk], us, slack_us)
    disk.nothing_left()
    check(found.seen >= 1000 and found.due >= 50 and found.worst <= most,
          f"{us} us: {found.due} of {found.seen} small requests due, dispatched up to "
          f"{found.longest:.0f} us later, at most {found.worst} younger ones before (allowed "
          f"{most})")
    return found


def lone(disk):
    """Compare a lone read with one under mq-deadline; return the slack in us for others."""
    disk.select("mq-deadline")
    other = lone_read(disk)
    disk.select("pai")
    set_bounds(disk, 1000000)
    disk.set(read_buffer_kb=256, write_buffer_kb=256, write_share=100)
    own = lone_read(disk)
    check(own - other < other // 32,
          f"a lone read takes {other} ns under mq-deadline, {own} ns under pai")
    pending, expired = (figure(disk, "read", column) for column in ("pending", "expired"))
    check(pending == 200 and not expired,
          f"of 200 small reads {pending} were pending, {expired} of them to their bound")
    # Five lone reads, so that it suits debug kernels, too.
    return other // 200


def idle_device(disk):
    """The bound is a second, but the device is idle long before."""
    fio({"pair": {"filename": disk.path}}, **PAIR)
    check(figure(disk, "write", "pending") > 0, "writes were pending")
    longest = figure(disk, "write", "longest_us")
    check(longest < 100000, f"a write was pending for {longest} us while the device was idle")


def shorter_bound(disk):
    """A shorter bound applies to a request that is pending already."""
    def waiting():
        return disk.counters("be read")["queued"]

    set_bounds(disk, 10000000)
    jobs = {"load": {"filename": disk.path}}
    with load([disk], jobs, rw="write", bs="256k", iodepth=16, size="128m", thread=None):
        one = threading.Thread(target=fio, args=({"one": {"filename": disk.path}},),
                               kwargs={"rw": "randread", "offset": "128m", "size": "256m",
                                       "number_ios": 1})
        one.start()
        wait_for(lambda: waiting() == 1, "a pending read", 30)
        time.sleep(0.2)
        if waiting() != 1:
            fail("nothing keeps the read pending: the load proves nothing")
        disk.set(read_pending_us=1000)
        time.sleep(0.1)
        check(waiting() == 0, "a shorter bound applies to a pending read")
        one.join()


def free_tags():
    """On a device that always has a free tag. Writes do not wait for reads."""
    with Device("small", queue_depth=64, max_request_kb=256) as device:
        disk = Disk(device.name, "pai")
        slack_us = lone(disk)
        idle_device(disk)
        for us in (2000, 10000, 50000):
            found = under_load(disk, us, slack_us, 0)
            check(found.longest < slack_us,
                  f"a request was dispatched {found.longest:.0f} us after its bound")
        for direction in ("read", "write"):
            check(figure(disk, direction, "expired") > 0,
                  f"a {direction} was pending to its bound")
        shorter_bound(disk)
    return slack_us


def one_tag(slack_us):
    """On a device with one tag, for which requests wait after their bound. The block layer
    holds one request that was selected before. All have the same deadline, or reads would
    be dispatched before older writes after theirs. Blocks have one request each, or others
    of their block would be dispatched before older ones."""
    with Device("small", queue_depth=1, max_request_kb=256) as device:
        disk = Disk(device.name, "pai")
        (disk.queue / "nr_requests").write_text("128")
        disk.set(read_buffer_kb=256, write_buffer_kb=256, read_expire=5000, write_expire=5000,
                 write_share=100, clustered_block_kb=4)
        for us in (2000, 10000):
            under_load(disk, us, slack_us, 1)


one_tag(free_tags())
