#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A blktrace of PIQ at work shows its rules: no two requests of a batch, and no
# two in flight, share a unit; who could go is not passed over
# virtual-time: yes
# timeout: 300
"""Replay a trace of PIQ against what the emulated SSD says of its units.

PIQ leaves a note for each request that goes from a batch (tier, direction,
number of the batch, sector), one when a batch starts, and the core one for each
request whose deadline has passed, which obeys no rule of PIQ's. On one CPU and
one hardware queue requests are dispatched in the order of the notes.
"""
import collections
import functools
import operator

from shell import fail, guest
from ssd import Device

TRACE = "/tmp/trace"
CHANNELS, CHIPS, PAGE_SECTORS = 4, 4, 8
UNITS = CHANNELS * CHIPS
COUNT = 4000
# All that are outstanding, so that nobody waits outside the batches.
WINDOW = 128
# claim_us: longer than anybody waits.
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
    """The state of scheduler and device as the events go by; @claims: batches
    that have waited for long keep units for themselves."""

    def __init__(self, claims):
        self.claims = claims
        self.waiting, self.flying = {}, {}
        self.batches = collections.defaultdict(list)
        self.noted, self.expired, self.announced = {}, set(), {}
        self.dispatched = self.most = 0
        self.passed = 0

    def note(self, words):
        """What a scheduler says."""
        if words[:2] == ["piq", "expired"]:
            self.expired.add(int(words[2]))
        elif words[:2] == ["piq", "batch"]:
            self.announced[tuple(words[2:5])] = int(words[6])
        elif words[:1] == ["piq"]:
            self.noted[int(words[4])] = tuple(words[1:4])

    def dispatch(self, sector):
        """A request goes to the device."""
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
                    fail(f"{sector} goes while {other.sector} holds units {shared:#x}")
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

    def look(self):
        """Who waits though its units are free, and nobody claims them?

        Only a request that has to wait itself may claim units: for one in flight,
        or for one that claims."""
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


def replay(claims):
    """Go through the trace."""
    state = Replay(claims)
    with open(TRACE, encoding="ascii") as trace:
        for line in trace:
            _, _, action, *rest = line.split()
            if action == "m":
                state.note(rest)
            elif action == "I" and rest[0] in "RW":
                state.waiting[int(rest[1])] = Request(rest[0], int(rest[1]), int(rest[2]))
            elif action == "D":
                state.dispatch(int(rest[1]))
            elif action == "C" and int(rest[1]) in state.flying:
                del state.flying[int(rest[1])]
            else:
                continue
            state.look()
    return state


def check(state):
    """What the trace must show, beside what dispatch() checks."""
    if state.dispatched < COUNT or state.waiting or state.flying:
        fail(f"{state.dispatched} dispatches, {len(state.waiting)} still wait, "
             f"{len(state.flying)} in flight")
    sizes = [len(batch) for batch in state.batches.values()]
    if max(sizes) < UNITS // 2:
        fail(f"no batch of more than {max(sizes)}: the load proves nothing")
    if sum(size > 1 for size in sizes) < 50:
        fail("too few batches of more than one: the load proves nothing")
    # Others that can go may be first, one for each other unit.
    if state.passed >= UNITS:
        fail(f"{state.passed} others went while all units of a request were free")
    directions = {batch[1] for batch in state.batches}
    if directions != {"R", "W"}:
        fail(f"batches of {directions} only")
    print(f"{state.dispatched} requests in {len(sizes)} batches of up to {max(sizes)}; at most "
          f"{state.most} in flight; at most {state.passed} went before one that could have gone",
          flush=True)


def run(sizes, claim_us):
    """Trace a mixed load and check it; the areas of the jobs don't overlap."""
    with Device("small", queue_depth=64) as device:
        guest(f"""
            modprobe piq-iosched channels={CHANNELS} chips={CHIPS} dies=1 planes=1
            select_scheduler {device.path} piq
            echo {WINDOW} >"$(tunable {device.path} window)"
            echo {claim_us} >"$(tunable {device.path} claim_us)"
            echo 2 >"$(queue_of {device.path})/nomerges"
            trace_run {device.path} {TRACE} fio --name=mix --filename={device.path} \\
                --rw=randrw --bssplit={sizes} --direct=1 --ioengine=libaio --iodepth=64 \\
                --numjobs=2 --size=128m --offset_increment=128m --number_ios={COUNT // 2} \\
                --blockalign=4k --output-format=terse >/dev/null
            nothing_left {device.path}
            select_scheduler {device.path} none
            modprobe -r piq-iosched""")
        # The units as the test computes them are those of the device.
        for sector in (0, 8, 14896, 100000):
            if device.where(sector)[0]["unit"] != sector // PAGE_SECTORS % UNITS:
                fail(f"sector {sector} is elsewhere on the device")
    check(replay(claim_us < NEVER))


if __name__ == "__main__":
    run("4k", NEVER)
    run("4k/60:8k/20:32k/20", NEVER)
    run("4k/60:8k/20:32k/20", 1000)
