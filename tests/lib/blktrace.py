# SPDX-License-Identifier: GPL-2.0
"""Record what happens in the block layer while a load runs."""

import collections
import glob
import pathlib
import re
import signal
import subprocess

from checks import check, wait_for
from ssd import load_tool

READ_TRACE = load_tool("read-trace")
# seconds; blkparse's letter of the action, "m" for a note; kind: R, W, D or N, also with P for a
# flush before the request and F for FUA; words: of a note.
Event = collections.namedtuple("Event", "time action kind sector sectors words")


def event_of(line):
    """The event in a line of scripts/read-trace."""
    time, _, action, *rest = line.split()
    if action == "m":
        return Event(float(time), "m", "", 0, 0, rest)
    return Event(float(time), action, rest[0], int(rest[1]), int(rest[2]), [])


def record(disks, load, actions, buffer_kb=1024, buffers=16, flags=False):
    """Run load() and return {disk: iterator of its events, in order of time}. @actions: letters of
    the actions wanted. @buffer_kb and @buffers are those of each disk and CPU. Fail if blktrace
    lost an event."""
    devices = [word for disk in disks for word in ("-d", disk.path)]
    with subprocess.Popen(["blktrace", *devices, "-D", "/tmp", "-b", str(buffer_kb),
                           "-n", str(buffers)], stdout=subprocess.PIPE, text=True) as tracer:
        for disk in disks:
            wait_for((disk.debugfs.parent / "trace0").exists, "blktrace")
        load()
        tracer.send_signal(signal.SIGINT)
        said = tracer.communicate()[0]
    lost = re.findall(r"dropped ([1-9]\d*)", said)
    check("dropped 0" in said and not lost, f"blktrace lost no event {lost}")
    return {disk: events_of(disk, actions, flags) for disk in disks}


def most_in_flight(disk, load, kinds="RW"):
    """Run load(); return the most requests of these kinds in flight at a time."""
    now = most = 0
    for event in record([disk], load, "DC")[disk]:
        if event.kind in kinds:
            now += 1 if event.action == "D" else -1
            most = max(most, now)
    return most


def longest(events):
    """Return {R or W: seconds of the longest wait for an I/O} of the events "Q" and "C" of a disk,
    whose requests complete as a whole. fio's own latencies are longer: at its end it takes no
    completion before the last one is there."""
    waiting, found = {}, {"R": 0, "W": 0}
    for event in events:
        if event.action == "Q":
            waiting[event.kind, event.sector] = event.time
            continue
        end = event.sector + event.sectors
        for key in [key for key in waiting
                    if key[0] == event.kind and event.sector <= key[1] < end]:
            found[key[0]] = max(found[key[0]], event.time - waiting.pop(key))
    check(not waiting, "all I/O has completed")
    return found


def events_of(disk, actions, flags):
    """Take the events that blktrace left of a disk. A load may have a million: each becomes an
    Event only when it is used."""
    paths = glob.glob(f"/tmp/{disk.name}.blktrace.*")
    found = sorted(event for path in paths for event in READ_TRACE.events(path, flags)
                   if event[2].split(" ", 3)[2] in actions)
    for path in paths:
        pathlib.Path(path).unlink()
    return (event_of(line) for _, _, line in found)
