#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A blktrace of BP at work: each write is the one that the four cases choose,
# and the crossings are those that BP counts, fewer than without preference
# virtual-time: yes
# check: 6.12
# timeout: 900
"""Replay a trace against the paper's rules, written down a second time.

On one CPU and a device that takes one request at a time, requests are
dispatched in the order in which they were selected. What was inserted between
two dispatches may or may not have been there when the second one was selected.
"""

from shell import fail, guest

DEVICE, TRACE = "/dev/ssdemu0", "/tmp/trace"
BLOCK_KB = 2048
BLOCK_SECTORS = BLOCK_KB * 2
PREFERENCE = "/sys/kernel/debug/block/ssdemu0/sched/preference"


class Write:
    """A write that waits."""

    def __init__(self, sector, sectors):
        self.sector, self.sectors = sector, sectors
        self.block = sector // BLOCK_SECTORS
        self.last_block = (sector + sectors - 1) // BLOCK_SECTORS


def run_of(side):
    """The nearest of a side that can be had without leaving a block."""
    run = side[:1]
    if run and run[0].block != run[0].last_block:
        return []
    for write in side[1:]:
        if write.block != run[-1].last_block:
            break
        run.append(write)
    return run


def choose(waiting, end, look):
    """The write to go next, by the paper."""
    last = (end - 1) // BLOCK_SECTORS if end else None
    front = sorted((w for w in waiting if w.sector >= end),
                   key=lambda w: w.sector)[:look]
    back = sorted((w for w in waiting if w.sector < end),
                  key=lambda w: -w.sector)[:look]
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
    return (write.block != last) + write.last_block - write.block


class Replay:
    """Goes through a trace; counts what it sees."""

    def __init__(self, look):
        self.look = look
        self.waiting, self.new = {}, []
        self.end, self.last = 0, None
        self.count = self.expired = self.crossings = self.stayed = 0

    def expected(self):
        """What may be chosen: depends on how many of the new ones were there."""
        for missing in range(len(self.new) + 1):
            gone = set(self.new[len(self.new) - missing:])
            there = [w for s, w in self.waiting.items() if s not in gone]
            if there:
                yield choose(there, self.end, self.look)

    def dispatch(self, sector, expired, check):
        write = self.waiting.get(sector)
        if write is None:
            fail(f"{sector} dispatched, not inserted")
        if check and not expired and write not in self.expected():
            choice = choose(self.waiting.values(), self.end, self.look)
            fail(f"{sector} ({write.sectors}) follows the write that ended at "
                 f"{self.end}, {choice.sector} ({choice.sectors}) should")
        self.count += 1
        self.expired += expired
        crossed = crossings_of(write, self.last)
        self.crossings += crossed
        self.stayed += not crossed
        self.end, self.last = sector + write.sectors, write.last_block
        del self.waiting[sector]
        self.new = []

    def run(self, check):
        """Of each event: time, pid, action, direction, sector, sectors."""
        expired = set()
        with open(TRACE, encoding="ascii") as trace:
            for line in trace:
                _, _, action, *rest = line.split()
                if action == "m":
                    if rest[:2] == ["bp", "expired"]:
                        expired.add(int(rest[2]))
                    continue
                if action not in "ID" or rest[0][0] != "W":
                    continue
                sector = int(rest[1])
                if action == "I":
                    self.waiting[sector] = Write(sector, int(rest[2]))
                    self.new.append(sector)
                else:
                    self.dispatch(sector, sector in expired, check)
                    expired.discard(sector)
        return self


def load(preference, look):
    """Random reads and writes of many sizes, traced."""
    guest(f"""
        select_scheduler {DEVICE} bp
        echo {preference} >"$(tunable {DEVICE} preference)"
        echo {look} >"$(tunable {DEVICE} lookahead)"
        echo {BLOCK_KB} >"$(tunable {DEVICE} block_size_kb)"
        echo 64 >"$(queue_of {DEVICE})/nr_requests"
        echo 2 >"$(queue_of {DEVICE})/nomerges"
        trace_run {DEVICE} {TRACE} fio --name=mix --filename={DEVICE} \\
            --rw=randrw --rwmixread=20 --bs=4k-32k --direct=1 \\
            --ioengine=libaio --iodepth=24 --numjobs=2 --size=32m \\
            --offset_increment=32m --number_ios=1000 --allrandrepeat=1 \\
            --output-format=terse >/dev/null
        nothing_left {DEVICE}""")
    with open(PREFERENCE, encoding="ascii") as file:
        counted = dict(line.split() for line in file)
    guest(f"select_scheduler {DEVICE} none")
    return {key: int(value) for key, value in counted.items()}


def main():
    guest("scripts/ssdemu load small queue_depth=1 hw_queues=1 >/dev/null")
    crossings = {}
    for preference, look in ((0, 2), (1, 2), (1, 1), (1, 5)):
        counted = load(preference, look)
        replay = Replay(look).run(check=preference)
        if replay.count < 1000:
            fail(f"only {replay.count} writes traced")
        if replay.expired > replay.count / 4:
            fail(f"{replay.expired} of {replay.count} expired: proves nothing")
        if replay.crossings != counted["crossings"]:
            fail(f"{replay.crossings} crossings traced, "
                 f"{counted['crossings']} counted")
        crossings[preference, look] = replay.crossings
        print(f"preference {preference}, lookahead {look}: {replay.count} "
              f"writes, {replay.crossings} crossings, {counted['avoided']} "
              f"avoided, {replay.expired} expired; " +
              ", ".join(f"{key} {value}" for key, value in counted.items()))
        cases = ["both_in", "one_in", *["one_run", "two_runs"] * (look > 1)]
        if any((counted[case] > 0) != bool(preference) for case in cases):
            fail("a case was never met, or met without preference")
    if crossings[1, 2] >= crossings[0, 2]:
        fail("preference saves no crossings")


if __name__ == "__main__":
    main()
