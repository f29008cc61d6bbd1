# SPDX-License-Identifier: GPL-2.0
"""A store of requests in a temporary file, from which they are read in order of time. Memory does
not depend on their number.

The place of a request is known only when the ends of all devices are, and a file with a malformed
line gives no output: so all requests are stored before the first one is written. A trace that is
not in order gives sorted runs, which are merged. This is numpy's sort and a loop over blocks:
libraries that sort outside of memory (duckdb, polars) are not in Debian, and sort(1) would have
each number turned into text and back.
"""
import array
import collections.abc
import os
import tempfile

import numpy

# Requests that are sorted in memory.
CHUNK = 1 << 18
# Requests that are returned at a time.
BLOCK = 1 << 16
# Bytes of the blocks of all runs while they are merged, and requests of the smallest block.
MERGING, SMALLEST = 1 << 25, 1 << 9
REQUEST = numpy.dtype([("ns", "<i8"), ("offset", "<i8"), ("size", "<u4"), ("kind", "<u4")])
# Where it is stored: /tmp may be memory.
FOLDER = "/var/tmp"


class Run:
    """Requests in order of time, @count of them from the request number @start of the store."""

    def __init__(self, start: int, count: int, last: int):
        self.start, self.count, self.last = start, count, last


class Spool:
    """The store. A request's kind is its device's number, shifted, and 1 if it writes."""

    def __init__(self):
        self.file = tempfile.TemporaryFile(dir=os.environ.get("TMPDIR") or FOLDER, buffering=0)
        self.runs: list[Run] = []
        self.count = 0
        # Range of times, and the end of each device in bytes.
        self.first, self.last = 0, 0
        self.ends = numpy.zeros(1, "<i8")

    def add(self, ns: array.array, offset: array.array, size: array.array, kind: array.array):
        """Store requests: ns, bytes, bytes, kinds."""
        block = numpy.empty(len(ns), REQUEST)
        for name, column in zip(REQUEST.names, (ns, offset, size, kind), strict=True):
            block[name] = numpy.frombuffer(column, column.typecode)
        if numpy.any(block["ns"][1:] < block["ns"][:-1]):
            block = block[numpy.argsort(block["ns"], kind="stable")]
        self._note_range(block)
        self._append(block)

    def _note_range(self, block: numpy.ndarray):
        """Keep the range of times and the ends of devices."""
        first, last = int(block["ns"][0]), int(block["ns"][-1])
        self.first = min(self.first, first) if self.count else first
        self.last = max(self.last, last) if self.count else last
        devices = block["kind"] >> 1
        more = int(devices.max()) + 1 - len(self.ends)
        if more > 0:
            self.ends = numpy.pad(self.ends, (0, more))
        numpy.maximum.at(self.ends, devices, block["offset"] + block["size"])

    def _append(self, block: numpy.ndarray):
        """Write a sorted block, as a run or as the end of the last one."""
        data = memoryview(block).cast("B")
        while data:
            data = data[self.file.write(data):]
        if self.runs and self.runs[-1].last <= block["ns"][0]:
            self.runs[-1].count += len(block)
            self.runs[-1].last = int(block["ns"][-1])
        else:
            self.runs.append(Run(self.count, len(block), int(block["ns"][-1])))
        self.count += len(block)

    def _read(self, start: int, count: int) -> numpy.ndarray:
        """Return requests by their number in the store."""
        data = os.pread(self.file.fileno(), count * REQUEST.itemsize, start * REQUEST.itemsize)
        return numpy.frombuffer(data, REQUEST)

    def _blocks(self, run: Run, size: int) -> collections.abc.Iterator[numpy.ndarray]:
        """Yield the blocks of a run."""
        for start in range(run.start, run.start + run.count, size):
            yield self._read(start, min(size, run.start + run.count - start))

    def in_order(self) -> collections.abc.Iterator[numpy.ndarray]:
        """Yield all requests in order of time, those of the same time as in the trace."""
        if len(self.runs) == 1:
            yield from self._blocks(self.runs[0], BLOCK)
            return
        for block in self._merged():
            for start in range(0, len(block), BLOCK):
                yield block[start:start + BLOCK]

    def _merged(self) -> collections.abc.Iterator[numpy.ndarray]:
        """Yield the requests of several runs in order of time."""
        size = max(SMALLEST, MERGING // REQUEST.itemsize // max(1, len(self.runs)))
        readers = [self._blocks(run, size) for run in self.runs]
        heads = [next(reader) for reader in readers]
        while heads:
            # The run whose block ends first; of those of the same time the first, which may go on
            # with that time: so what later runs have of that time is left for the next turn.
            limit = min(range(len(heads)), key=lambda at: heads[at]["ns"][-1])
            end = heads[limit]["ns"][-1]
            cuts = [int(numpy.searchsorted(head["ns"], end, "right" if at <= limit else "left"))
                    for at, head in enumerate(heads)]
            parts = numpy.concatenate([head[:cut] for head, cut in zip(heads, cuts, strict=True)])
            yield parts[numpy.argsort(parts["ns"], kind="stable")]
            heads = [head[cut:] for head, cut in zip(heads, cuts, strict=True)]
            for at in reversed(range(len(heads))):
                if not len(heads[at]):
                    more = next(readers[at], None)
                    if more is None:
                        del heads[at], readers[at]
                    else:
                        heads[at] = more
