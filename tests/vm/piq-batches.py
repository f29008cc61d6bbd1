#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# In a blktrace of PIQ no two requests of a batch, and no two in flight, share a unit; a
# request whose units are free is not passed over
# check: 6.12
# virtual-time: yes
# timeout: 300
"""Replay a trace of PIQ against the units of the emulated SSD.

PIQ leaves a note for each request that it dispatches from a batch (tier, direction, number
of the batch, sector) and one when a batch starts. The core leaves one for each request
whose deadline has passed, to which no rule of PIQ applies. On one CPU and one hardware
queue requests are dispatched in the order of the notes.
"""
import collections
import functools
import operator

from blktrace import record
from checks import fail, modprobe
from fio_jobs import fio
from iosched import Disk
from ssd import Device

CHANNELS, CHIPS, PAGE_SECTORS = 4, 4, 8
UNITS = CHANNELS * CHIPS
COUNT = 4000
# At least the requests outstanding, so that none waits outside the batches.
WINDOW = 128
# claim_us: longer than any request waits.
NEVER = 60000000


def union(vectors):
    """All units of some vectors."""
    return functools.reduce(operator.or_, vectors, 0)


class Request:
    """One request from its insertion to its completion."""

    def __init__(self, direction, sector, sectors):
        self.direction, self.sector = direction, sector
        first, last = sector // PAGE_SECTORS, (sector + sectors - 1) // PAGE_SECTORS
        # A bit a unit, as in the kernel: sets would take minutes.
        self.units = union(1 << page % UNITS for page in range(first, last + 1))
        self.passed = None


class Replay:
    """State of the scheduler and the device, event by event. @claims: a batch that has waited
    for claim_us reserves its units."""

    def __init__(self, claims):
        self.claims = claims
        self.waiting, self.flying = {}, {}
        self.batches = collections.defaultdict(list)
        self.noted, self.expired, self.announced = {}, set(), {}
        self.dispatched = self.most = 0
        self.passed = 0

    def note(self, words):
        """Take a note of the scheduler."""
        if words[:2] == ["piq", "expired"]:
            self.expired.add(int(words[2]))
        elif words[:2] == ["piq", "batch"]:
            self.announced[tuple(words[2:5])] = int(words[6])
        elif words[:1] == ["piq"]:
            self.noted[int(words[4])] = tuple(words[1:4])

    def dispatch(self, sector):
        """Check and account for a dispatch."""
        request = self.waiting.pop(sector)
        self.passed = max(self.passed, request.passed or 0)
        for other in self.waiting.values():
            if other.passed is not None:
                other.passed += 1
        if sector in self.expired:
            self.expired.discard(sector)
        else:
            for other in self.flying.values():
                if shared := other.units & request.units:
                    fail(f"{sector} was dispatched while {other.sector} holds units {shared:#x}")
        batch = self.noted.pop(sector, None)
        if batch:
            for other in self.batches[batch]:
                if shared := other.units & request.units:
                    fail(f"{sector} and {other.sector} of batch {batch} share {shared:#x}")
            if batch not in self.announced:
                fail(f"no note at the start of batch {batch}")
            self.batches[batch].append(request)
        self.flying[sector] = request
        self.dispatched += 1
        self.most = max(self.most, len(self.flying))

    def find_passed(self):
        """Start counting, for each request whose units are free and not claimed, the requests
        that are dispatched before it.

        Only a request that waits itself may claim units: for one in flight, or for one that
        claims."""
        taken, before = union(r.units for r in self.flying.values()), None
        while taken != before:
            before = taken
            taken |= union(r.units for r in self.waiting.values() if r.units & before)
            if not self.claims:
                break
        for request in self.waiting.values():
            if request.units & taken:
                request.passed = None
            elif request.passed is None:
                request.passed = 0


def replay(events, claims):
    """Replay the events; return the state at their end."""
    state = Replay(claims)
    for event in events:
        if event.action == "m":
            state.note(event.words)
        elif event.action == "I" and event.kind in "RW":
            state.waiting[event.sector] = Request(event.kind, event.sector, event.sectors)
        elif event.action == "D":
            state.dispatch(event.sector)
        elif event.action == "C" and event.sector in state.flying:
            del state.flying[event.sector]
        else:
            continue
        state.find_passed()
    return state


def check(state):
    """Check the state at the end of a trace."""
    if state.dispatched < COUNT or state.waiting or state.flying:
        fail(f"{state.dispatched} dispatches, {len(state.waiting)} still wait, "
             f"{len(state.flying)} in flight")
    sizes = [len(batch) for batch in state.batches.values()]
    if max(sizes) < UNITS // 2:
        fail(f"no batch of more than {max(sizes)}: the load proves nothing")
    if sum(size > 1 for size in sizes) < 50:
        fail("too few batches of more than one: the load proves nothing")
    # One request for each other unit may be dispatched first.
    if state.passed >= UNITS:
        fail(f"{state.passed} others were dispatched while all units of a request were free")
    directions = {batch[1] for batch in state.batches}
    if directions != {"R", "W"}:
        fail(f"batches of {directions} only")
    print(f"{state.dispatched} requests in {len(sizes)} batches of up to {max(sizes)}; at most "
          f"{state.most} in flight; at most {state.passed} passed one that could be dispatched",
          flush=True)


def trace(device, sizes, claim_us):
    """Events of a mixed load of two jobs, whose areas do not overlap."""
    disk = Disk(device.name, "piq")
    disk.set(window=WINDOW, claim_us=claim_us, trials=0)
    (disk.queue / "nomerges").write_text("2")
    events = record([disk], lambda: fio(
        {"mix": {"filename": disk.path}}, rw="randrw", bs=None, bssplit=sizes, iodepth=64,
        thread=None, numjobs=2, size="128m", offset_increment="128m", number_ios=COUNT // 2,
        blockalign="4k"), "mIDC")[disk]
    disk.nothing_left()
    disk.select("none")
    return events


def run(sizes, claim_us):
    """Trace a load of these block sizes and check it."""
    modprobe("piq-iosched", f"channels={CHANNELS}", f"chips={CHIPS}", "dies=1", "planes=1")
    with Device("small", queue_depth=64) as device:
        events = trace(device, sizes, claim_us)
        # The units that Request computes must be those of the device.
        for sector in (0, 8, 14896, 100000):
            if device.where(sector)[0]["unit"] != sector // PAGE_SECTORS % UNITS:
                fail(f"sector {sector} is on another unit of the device")
    modprobe("-r", "piq-iosched")
    check(replay(events, claim_us < NEVER))


if __name__ == "__main__":
    run("4k", NEVER)
    run("4k/60:8k/20:32k/20", NEVER)
    run("4k/60:8k/20:32k/20", 1000)
