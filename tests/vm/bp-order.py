#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# In a blktrace of BP each write is the one that the paper's four cases choose, and the
# block crossings are those that BP counts, fewer than without preference
# virtual-time: yes
# check: 6.12
# timeout: 900
"""Replay a trace against a second implementation of the paper's rules.

On one CPU and a device with one tag, requests are dispatched in the order in which they
were selected. A request that was inserted between two dispatches may or may not have been
there when the second one was selected.
"""

from blktrace import record
from checks import fail
from fio_jobs import fio
from iosched import Disk
from ssd import Device

BLOCK_KB = 2048
BLOCK_SECTORS = BLOCK_KB * 2


class Write:
    """A write in the scheduler."""

    def __init__(self, sector, sectors):
        self.sector, self.sectors = sector, sectors
        self.block = sector // BLOCK_SECTORS
        self.last_block = (sector + sectors - 1) // BLOCK_SECTORS


def run_of(side):
    """The writes of a side, nearest first, that follow each other without a crossing."""
    run = side[:1]
    if run and run[0].block != run[0].last_block:
        return []
    for write in side[1:]:
        if write.block != run[-1].last_block:
            break
        run.append(write)
    return run


def choose(waiting, end, lookahead):
    """The write that the paper dispatches after one that ended at sector @end."""
    last = (end - 1) // BLOCK_SECTORS if end else None
    front = sorted((w for w in waiting if w.sector >= end),
                   key=lambda w: w.sector)[:lookahead]
    back = sorted((w for w in waiting if w.sector < end),
                  key=lambda w: -w.sector)[:lookahead]
    front_in = bool(front) and front[0].block == last
    back_in = bool(back) and back[0].block == last
    if front_in and back_in:
        return front[0] if front[0].sectors >= back[0].sectors else back[0]
    if front_in or back_in:
        return front[0] if front_in else back[0]
    runs = [run for run in (run_of(front), run_of(back)) if len(run) > 1]
    if runs:
        return max(runs, key=lambda run: sum(w.sectors for w in run))[0]
    return front[0] if front else min(waiting, key=lambda w: w.sector)


def crossings_of(write, last):
    """Crossings of block borders by a write after one that ended in block @last."""
    return (write.block != last) + write.last_block - write.block


class Replay:
    """The waiting writes and the last dispatched one, event by event, with counters."""

    def __init__(self, lookahead):
        self.lookahead = lookahead
        self.waiting, self.new = {}, []
        self.end, self.last = 0, None
        self.count = self.expired = self.crossings = 0

    def expected(self):
        """Yield each write that may be chosen: one for each number of new writes that were
        not there yet."""
        for missing in range(len(self.new) + 1):
            gone = set(self.new[len(self.new) - missing:])
            there = [w for s, w in self.waiting.items() if s not in gone]
            if there:
                yield choose(there, self.end, self.lookahead)

    def dispatch(self, sector, expired, check):
        """Account for a dispatch; fail if @check and it is none of the expected ones."""
        write = self.waiting.get(sector)
        if write is None:
            fail(f"write {sector} was dispatched but not inserted")
        if check and not expired and write not in self.expected():
            choice = choose(self.waiting.values(), self.end, self.lookahead)
            fail(f"write {sector}+{write.sectors} was dispatched after sector {self.end}, "
                 f"expected {choice.sector}+{choice.sectors}")
        self.count += 1
        self.expired += expired
        self.crossings += crossings_of(write, self.last)
        self.end, self.last = sector + write.sectors, write.last_block
        del self.waiting[sector]
        self.new = []

    def run(self, events, check):
        """Replay the events; compare each choice if @check."""
        expired = set()
        for event in events:
            if event.action == "m":
                if event.words[:2] == ["bp", "expired"]:
                    expired.add(int(event.words[2]))
            elif event.kind == "W":
                if event.action == "I":
                    self.waiting[event.sector] = Write(event.sector, event.sectors)
                    self.new.append(event.sector)
                else:
                    self.dispatch(event.sector, event.sector in expired, check)
                    expired.discard(event.sector)
        return self


def trace(device, preference, lookahead):
    """Trace random reads and writes of many sizes; return the events and BP's counters."""
    disk = Disk(device.name, "bp")
    disk.set(preference=preference, lookahead=lookahead, block_size_kb=BLOCK_KB)
    (disk.queue / "nr_requests").write_text("64")
    (disk.queue / "nomerges").write_text("2")
    events = record([disk], lambda: fio(
        {"mix": {"filename": disk.path}}, rw="randrw", rwmixread=20, bs="4k-32k", iodepth=24,
        thread=None, numjobs=2, size="32m", offset_increment="32m", number_ios=1000), "mID")[disk]
    disk.nothing_left()
    counted = dict(line.split() for line in
                   (disk.debugfs / "preference").read_text().splitlines())
    disk.select("none")
    return events, {key: int(value) for key, value in counted.items()}


def main():
    crossings = {}
    with Device("small", queue_depth=1, hw_queues=1) as device:
        for preference, lookahead in ((0, 2), (1, 2), (1, 1), (1, 5)):
            events, counted = trace(device, preference, lookahead)
            replay = Replay(lookahead).run(events, check=preference)
            crossings[preference, lookahead] = replay.crossings
            print(f"preference {preference}, lookahead {lookahead}: {replay.count} writes, "
                  f"{replay.crossings} crossings, {replay.expired} expired; " +
                  ", ".join(f"{key} {value}" for key, value in counted.items()))
            if replay.count < 1000:
                fail(f"only {replay.count} writes traced")
            if replay.expired > replay.count / 4:
                fail(f"{replay.expired} of {replay.count} expired: the load proves nothing")
            if replay.crossings != counted["crossings"]:
                fail(f"{replay.crossings} crossings traced, {counted['crossings']} counted")
            cases = ["both_in", "one_in", *["one_run", "two_runs"] * (lookahead > 1)]
            if any((counted[case] > 0) != bool(preference) for case in cases):
                fail("a case did not occur with preference, or occurred without")
    if crossings[1, 2] >= crossings[0, 2]:
        fail("preference saves no crossings")


if __name__ == "__main__":
    main()
