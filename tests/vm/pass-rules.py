#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# In a blktrace of PASS turns are bounded and ascending, all regions change direction
# together, and regions keep within their depth
# virtual-time: yes
# check: 6.12
# timeout: 900
"""Divide a trace into PASS's turns and check each of them.

PASS leaves a note at the end of each turn (region, direction, number of requests) and one
for each request that it dispatches out of turn after its deadline. On one CPU and one
hardware queue requests are dispatched in the order in which they were selected, so a note
with number n covers the next n dispatches of its region and direction.
"""
import collections
import itertools

from blktrace import record
from checks import fail, modprobe
from fio_jobs import fio
from iosched import Disk
from ssd import Device

REGION_MB, DEPTH, READ_BATCH, WRITE_BATCH = 32, 3, 6, 4
REGION_SECTORS = REGION_MB * 2048


class Request:
    """A request of the trace, inserted as its event number so many."""

    def __init__(self, inserted, sector):
        self.inserted, self.sector = inserted, sector


class Turn:
    """A turn, by its note, which is event number so many, and its requests."""

    def __init__(self, ended, direction, count):
        self.ended, self.direction, self.count = ended, direction, count
        self.requests = []


def sort_events(events):
    """Dispatched requests in order and ended turns in order, by region and direction, and the
    most requests in flight, by region.

    The load uses no sector twice and merges nothing, so a sector identifies its request.
    """
    waiting, expired = {}, collections.Counter()
    dispatched = collections.defaultdict(list)
    turns = collections.defaultdict(list)
    flying, most = collections.Counter(), collections.Counter()
    for number, event in enumerate(events):
        if event.action == "m":
            if event.words[:2] == ["pass", "turn"]:
                region, direction, count = event.words[2:5]
                turns[int(region), direction].append(Turn(number, direction, int(count)))
            elif event.words[:2] == ["pass", "expired"]:
                expired[int(event.words[2])] += 1
            continue
        sector = event.sector
        region = sector // REGION_SECTORS
        if event.action == "I":
            waiting[sector] = Request(number, sector)
        elif event.action == "D":
            flying[region] += 1
            most[region] = max(most[region], flying[region])
            request = waiting.pop(sector)
            if expired[sector]:
                expired[sector] -= 1
            else:
                dispatched[region, event.kind].append(request)
        else:
            flying[region] -= 1
    return dispatched, turns, most


def assign(region, requests, turns):
    """Assign the requests of a region and direction to its turns."""
    at = 0
    for number, turn in enumerate(turns):
        turn.requests = requests[at:at + turn.count]
        at += turn.count
        if len(turn.requests) < turn.count:
            fail(f"region {region}: turn {number} of {turn.count} requests "
                 f"has only {len(turn.requests)} dispatches")
    # The last turn may not have ended.
    if len(requests) - at >= max(READ_BATCH, WRITE_BATCH):
        fail(f"region {region}: {len(requests) - at} dispatches in no turn")


def check_order(region, turn, later, began):
    """Check that the sectors ascend, except where no request waited ahead."""
    for last, r in zip(turn.requests, turn.requests[1:], strict=False):
        if r.sector > last.sector:
            continue
        for other in turn.requests[turn.requests.index(r):] + later:
            if other.sector > last.sector and other.inserted < began:
                fail(f"region {region}: {r.sector} follows {last.sector} in a "
                     f"turn while {other.sector} waited")


def check_turn(region, turn):
    """Check the length of a turn."""
    batch = READ_BATCH if turn.direction == "R" else WRITE_BATCH
    if not 1 <= turn.count <= batch:
        fail(f"region {region}: a turn of {turn.count}, batch is {batch}")


def check_laps(turns):
    """Check that the regions change direction together; return the number of laps."""
    ended = sorted((turn for ended in turns.values() for turn in ended),
                   key=lambda turn: turn.ended)
    laps = len(list(itertools.groupby(ended, lambda turn: turn.direction)))
    # A lap has four turns at most, of four regions, fewer where some are full or have nothing
    # queued. If each region changed by itself, two successive turns of this load would have the
    # same direction as often as not: half as many laps as turns.
    if not 0.2 < laps / len(ended) < 0.4:
        fail(f"{laps} laps of {len(ended)} turns")
    return laps


def trace():
    """Events of random reads and writes, and the disk's scheduler left with nothing."""
    modprobe("pass-iosched", f"region_size_mb={REGION_MB}", f"region_depth={DEPTH}",
             f"read_batch={READ_BATCH}", f"write_batch={WRITE_BATCH}", "write_share=100")
    with Device("small", hw_queues=1, queue_depth=64) as device:
        disk = Disk(device.name, "pass")
        (disk.queue / "nomerges").write_text("2")
        events = record([disk], lambda: fio(
            {"mix": {"filename": disk.path}}, rw="randrw", iodepth=64, thread=None, numjobs=2,
            size="64m", offset_increment="64m", number_ios=3000), "mIDC")[disk]
        disk.nothing_left()
    return events


def main():
    dispatched, turns, most = sort_events(trace())
    count = sum(map(len, dispatched.values()))
    if count < 4000 or len(dispatched) != 8:
        fail(f"only {count} dispatches in {len(dispatched)} regions and directions traced")
    for region, requests in dispatched.items():
        assign(region, requests, turns[region])
        at, began = 0, 0
        for turn in turns[region]:
            check_turn(region, turn)
            at += turn.count
            check_order(region, turn, requests[at:], began)
            began = turn.ended
    if max(most.values()) > DEPTH:
        fail(f"{max(most.values())} requests of a region in flight, "
             f"region_depth is {DEPTH}")
    if max(most.values()) < DEPTH:
        fail(f"never more than {max(most.values())} in flight: "
             "the load proves nothing")
    full = sum(t.count in (READ_BATCH, WRITE_BATCH)
               for ts in turns.values() for t in ts)
    number = sum(map(len, turns.values()))
    if not full:
        fail("no turn reached its batch: the load proves nothing")
    print(f"{count} dispatches in {number} turns, {full} of a full batch, "
          f"{check_laps(turns)} laps; at most "
          f"{max(most.values())} in flight in a region")


if __name__ == "__main__":
    main()
