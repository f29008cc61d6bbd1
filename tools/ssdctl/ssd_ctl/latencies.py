# SPDX-License-Identifier: GPL-2.0
"""Latencies of a drive's requests, counted by the kernel.

Of each read and write three times are counted, by priority class:

    total  from the submission of its first bio to its completion
    queue  of that, until the driver gets it: waiting for a tag, and in the scheduler
    drive  the rest

Programs on tracepoints of the block layer note when a bio is submitted and a request is issued,
and count the completion in histograms. Histogram triggers of tracefs could not do it: they keep
each sector that they have seen, so random I/O fills their table within seconds, and their coarse
buckets double from one to the next.

A bucket is a sixteenth of a power of two wide: a figure taken from its upper end exceeds the
latency by less than a sixteenth.
"""
import array
import contextlib
import os

from ssd_ctl import bpf
from ssd_ctl.btf import Btf, BtfError

DIRECTIONS = ("read", "write")
KINDS = ("total", "queue", "drive")
CLASSES = ("real-time", "best-effort", "idle")
# Of the kernel's numbers of classes; 0 is none, which counts as best-effort.
CLASS_OF = (1, 0, 1, 2)
# Nanoseconds of the finest bucket as a shift; buckets of a power of two as a shift.
UNIT_SHIFT, FINE_SHIFT = 7, 4
LAST = 463
BUCKETS = 512
RESOLUTION = "at most 6 % too high"
# Bios and requests that are noted at a time, of which a drive with many queues may have many.
NOTED = 1 << 16
PERCENTILES = (50, 90, 99, 99.9, 100)
Key = tuple[str, str, str]

FETCH = """
    r1 = r10
    r1 += {place}
    r2 = {size}
    r3 = r{base}
    r3 += {offset}
    call probe_read_kernel
    if r0 != 0 goto out
"""
# Leave unless the disk whose address is at r10 - 8 is the drive.
IS_OURS = """
    r7 = *(u64 *)(r10 - 8)
    {major}
    {minor}
    r1 = *(u32 *)(r10 - 16)
    if r1 != {major_number} goto out
    r1 = *(u32 *)(r10 - 12)
    if r1 != {minor_number} goto out
"""
# Note the time for the address in r6.
NOTE = """
    *(u64 *)(r10 - 8) = r6
    call ktime_get_ns
    *(u64 *)(r10 - 16) = r0
    r1 = map {map}
    r2 = r10
    r2 += -8
    r3 = r10
    r3 += -16
    r4 = 0
    call map_update_elem
"""
END = """
out:
    r0 = 0
    exit
"""
BIO_SUBMITTED = """
    r6 = *(u64 *)(r1 + 0)       # bio
    {bi_bdev}
    r7 = *(u64 *)(r10 - 8)
    {bd_disk}
    {is_ours}
    {note}
"""
BIO_ENDED = """
    r1 = *(u64 *)(r1 + 8)       # after the queue: bio
    *(u64 *)(r10 - 8) = r1
    r1 = map bios
    r2 = r10
    r2 += -8
    call map_delete_elem
"""
ISSUED = """
    r6 = *(u64 *)(r1 + 0)       # request
    {q}
    r7 = *(u64 *)(r10 - 8)
    {disk}
    {is_ours}
    {note}
"""
# The last part of a request completes it. A request that was not noted is one of another drive,
# or was issued before the programs were attached.
COMPLETED = """
    r6 = *(u64 *)(r1 + 0)       # request
    r7 = *(u64 *)(r1 + 16)      # bytes that complete
    r7 <<= 32
    r7 >>= 32
    *(u64 *)(r10 - 8) = r6
    r1 = map requests
    r2 = r10
    r2 += -8
    call map_lookup_elem
    if r0 == 0 goto out
    r8 = *(u64 *)(r0 + 0)       # issued
    {bytes}
    r1 = *(u32 *)(r10 - 16)
    if r7 < r1 goto out
    r1 = map requests
    r2 = r10
    r2 += -8
    call map_delete_elem
    call ktime_get_ns
    r7 = r0                     # completed
    {flags}
    r9 = *(u32 *)(r10 - 16)     # operation: 0 a read, 1 a write
    r9 &= 255
    if r9 > 1 goto out
    {bio}
    r6 = *(u64 *)(r10 - 24)
    {priority}
    r1 = *(u16 *)(r10 - 16)
    r1 >>= 13
    r1 &= 3
    r1 <<= 1
    r9 += r1                    # class and direction
    r1 = r9
    r1 <<= 1
    r9 += r1                    # number of the histogram
    r1 = map bios
    r2 = r10
    r2 += -24
    call map_lookup_elem
    if r0 == 0 goto alone
    r6 = *(u64 *)(r0 + 0)       # submitted
    r2 = r7
    r2 -= r6
    {count_total}
    r9 += 1
    r2 = r8
    r2 -= r6
    {count_queue}
    r9 += 1
    goto both
alone:
    r9 += 2
both:
    r2 = r7
    r2 -= r8
    {count_drive}
"""
# Halve r2 @shift times, which r3 counts, if at least 32 are left then.
STEP = """
    if r2 < {limit} goto {name}{next}
    r2 >>= {shift}
    r3 += {shift}
{name}{next}:
"""
# Count the nanoseconds r2 in histogram r9: shift units until less than 32 are left.
COUNT = """
    *(u64 *)(r10 - 40) = r2
    *(u32 *)(r10 - 32) = r9
    r1 = map counts
    r2 = r10
    r2 += -32
    call map_lookup_elem
    if r0 == 0 goto out
    r2 = *(u64 *)(r10 - 40)
    r2 >>= 7
    r3 = 0
    r1 = r2
    r1 >>= 32
    if r1 == 0 goto {name}16
    r2 = -1
    r2 <<= 32
    r2 >>= 32
{name}16:
    {steps}
    r3 <<= 4
    r3 += r2
    if r3 > 463 goto out
    r3 <<= 3
    r0 += r3
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
"""


class Unavailable(Exception):
    """The kernel cannot count latencies; the text says why."""


def upper_ns(bucket: int) -> int:
    """Return the ns that a latency in a bucket is below."""
    shift = max(0, (bucket >> FINE_SHIFT) - 1)
    return (bucket - (shift << FINE_SHIFT) + 1) << shift + UNIT_SHIFT


def percentile(counts: list[int], percent: float) -> int | None:
    """Return the ns that @percent of the latencies do not exceed, None without any."""
    left = sum(counts) * percent / 100
    if not left:
        return None
    for bucket, count in enumerate(counts):
        left -= count
        # The sum of fractions may miss a whole number by less than this.
        if left < 1e-6:
            return upper_ns(bucket)
    return None


def summary(counts: list[int]) -> dict[str, int | None]:
    """Return the figures of a histogram: how many, and the percentiles in ns; 100 is the
    maximum."""
    named = {f"p{percent:g}" if percent < 100 else "max": percentile(counts, percent)
             for percent in PERCENTILES}
    return {"count": sum(counts), **named}


def count(name: str) -> str:
    """Return instructions that count a latency; @name: of their labels."""
    steps = "".join(STEP.format(name=name, limit=32 << shift - 1, shift=shift, next=shift // 2)
                    for shift in (16, 8, 4, 2, 1))
    return COUNT.format(name=name, steps=steps)


def fetch(place: int, size: int, base: int, offset: int) -> str:
    """Return instructions that read kernel memory at r@base + @offset to r10 + @place."""
    return FETCH.format(place=place, size=size, base=base, offset=offset)


class Source:
    """The programs' text for the running kernel and one drive, major:minor."""

    def __init__(self, number: str):
        btf = Btf()
        self.offset = btf.offset
        major, minor = number.split(":")
        self.is_ours = IS_OURS.format(
            major=fetch(-16, 4, 7, self.offset("gendisk", "major")),
            minor=fetch(-12, 4, 7, self.offset("gendisk", "first_minor")),
            major_number=int(major), minor_number=int(minor))

    def member(self, base: int, structure: str, name: str, place: int = -8, size: int = 8) -> str:
        """Return instructions that read a member."""
        return fetch(place, size, base, self.offset(structure, name))

    def submitted(self) -> str:
        """Return the program that notes a bio."""
        return BIO_SUBMITTED.format(
            bi_bdev=self.member(6, "bio", "bi_bdev"),
            bd_disk=self.member(7, "block_device", "bd_disk"),
            is_ours=self.is_ours, note=NOTE.format(map="bios")) + END

    def issued(self) -> str:
        """Return the program that notes a request."""
        return ISSUED.format(
            q=self.member(6, "request", "q"), disk=self.member(7, "request_queue", "disk"),
            is_ours=self.is_ours, note=NOTE.format(map="requests")) + END

    def completed(self) -> str:
        """Return the program that counts a request."""
        return COMPLETED.format(
            bytes=self.member(6, "request", "__data_len", -16, 4),
            flags=self.member(6, "request", "cmd_flags", -16, 4),
            bio=self.member(6, "request", "bio", -24),
            priority=self.member(6, "bio", "bi_ioprio", -16, 2),
            count_total=count("total"), count_queue=count("queue"),
            count_drive=count("drive")) + END

    def programs(self) -> dict[str, str]:
        """Return {tracepoint: program}, in the order in which they have to be attached."""
        submitted = self.submitted()
        # The first part of a bio that is split is a bio of its own.
        return {"block_rq_complete": self.completed(), "block_bio_complete": BIO_ENDED + END,
                "block_rq_issue": self.issued(), "block_split": submitted,
                "block_bio_queue": submitted}


class Latencies:
    """Histograms of the latencies of a drive, since start."""

    def __init__(self, number: str):
        """@number: major:minor. Raise Unavailable."""
        self.stack = contextlib.ExitStack()
        try:
            self.attach(number)
        except (BtfError, bpf.BpfError) as error:
            self.close()
            raise Unavailable(str(error)) from None
        self.cpus = bpf.possible_cpus()

    def attach(self, number: str):
        """Make the maps and attach the programs."""
        self.counts = self.own(bpf.create_map(
            bpf.PERCPU_ARRAY, BUCKETS * 8, len(CLASS_OF) * len(DIRECTIONS) * len(KINDS), 4))
        maps = {name: self.own(bpf.create_map(bpf.LRU_HASH, 8, NOTED, 8))
                for name in ("bios", "requests")}
        loaded = {tracepoint: self.own(bpf.load(bpf.assemble(text, maps | {"counts": self.counts})))
                  for tracepoint, text in Source(number).programs().items()}
        for tracepoint, program in loaded.items():
            self.own(bpf.attach(program, tracepoint))

    def own(self, descriptor: int) -> int:
        """Close a file descriptor at the end."""
        self.stack.callback(os.close, descriptor)
        return descriptor

    def close(self):
        """Detach the programs."""
        self.stack.close()

    def histogram(self, number: int) -> list[int]:
        """Return the counts of a histogram, of all CPUs."""
        values = array.array("Q", bpf.lookup_percpu(self.counts, number, BUCKETS * 8, self.cpus))
        rows = [values[start:start + LAST + 1] for start in range(0, len(values), BUCKETS)]
        return [sum(column) for column in zip(*rows, strict=True)]

    def read(self) -> dict[Key, list[int]]:
        """Return {(class, direction, kind): counts} since start, of all that were used."""
        found: dict[Key, list[int]] = {}
        number = 0
        for tier in CLASS_OF:
            for direction in DIRECTIONS:
                for kind in KINDS:
                    counts = self.histogram(number)
                    number += 1
                    if any(counts):
                        add(found, (CLASSES[tier], direction, kind), counts)
        return found


def add(to: dict[Key, list[int]], key: Key, counts: list[int]):
    """Add counts to those that are there."""
    to[key] = [a + b for a, b in zip(to[key], counts, strict=True)] if key in to else counts


def difference(after: dict[Key, list[int]], before: dict[Key, list[int]]) -> dict[Key, list[int]]:
    """Return what was counted between two times."""
    return {key: [a - b for a, b in zip(counts, before[key], strict=True)]
            if key in before else counts for key, counts in after.items()}


def merged(found: dict[Key, list[int]], tier: str | None = None) -> dict[tuple[str, str],
                                                                       list[int]]:
    """Return {(direction, kind): counts} of a class, or of all classes."""
    sums: dict = {}
    for (of, direction, kind), counts in found.items():
        if tier in (None, of):
            add(sums, (direction, kind), counts)
    return sums
