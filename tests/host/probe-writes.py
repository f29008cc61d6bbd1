#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# What ssd-probe concludes from writes, from made-up times: where a series changes and that noise
# has no change; how much a FIFO buffer holds, also if other work of the drive delays its programs;
# that writes in turn are dearer only if many of them are; the boundary of erase blocks that
# clustered pages cross; the cost of a turn; how much of a stream is in an SLC cache; and the
# distance of peaks among strided writes
# timeout: 60
# quick: host
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / name) for name in ("tests/lib", "tools/common", "tools/ssd-probe")]

import numpy  # noqa: E402
from checks import check  # noqa: E402  (beside this folder)
from ssd_common import change  # noqa: E402
from ssd_probe import blocks, slc, strides, write_buffer, writes  # noqa: E402

KB = 1024
TRIALS = 300


def changes(random):
    """Check change points: found where they are, and rarely in noise."""
    near = wrong = 0
    for _ in range(TRIALS):
        values = numpy.exp(random.normal(0, 0.2, 200))
        wrong += change.rise(values) is not None
        values[120:] *= 2
        at = change.rise(values)
        near += at is not None and abs(at - 120) <= 3
    check(near > 0.97 * TRIALS, f"a rise to twice the level is found: {near} of {TRIALS}")
    check(wrong < 0.02 * TRIALS, f"noise has no rise: {wrong} of {TRIALS} wrong")
    check(change.rise(numpy.linspace(2, 1, 100)) is None, "a fall is no rise")


def times_of_fill(held, fast, slow, stalls):
    """Return the ns at which writes end that a FIFO buffer of @held pieces takes in, @fast each; it
    programs one in @slow, and does something else at @stalls: {number of the program: ns}."""
    programmed, ready = [], 0.0
    for number in range(3 * held):
        ready += slow + stalls.get(number, 0)
        programmed.append(ready)
    ends, now = [], 0.0
    for number in range(2 * held):
        now = max(now + fast, programmed[number - held] if number >= held else 0)
        ends.append(now)
    return numpy.array(ends)


def fills():
    """Check what a FIFO buffer holds."""
    for held, slow in ((63, 200.0), (255, 400.0), (895, 1263.0)):
        made = [write_buffer.filled(times_of_fill(held, 10.0, slow, {})) for _ in range(7)]
        size = write_buffer.size_of(made)
        check(abs(size - held) <= max(1, 0.01 * held), f"{held} pieces: {size:.1f}")
    stalled = [write_buffer.filled(times_of_fill(255, 10.0, 200.0, {at: 1000}))
               for at in (300, 3, 320, 310, 1, 330, 305)]
    size = write_buffer.size_of(stalled)
    check(abs(size - 255) < 10, f"255 pieces, with erases among the programs: {size:.1f}")
    other = [write_buffer.filled(times_of_fill(held, 10.0, 60.0, {}))
             for held in (90, 130, 180, 255)]
    check(write_buffer.size_of(other) is None, "another amount each time: cannot tell")
    check(write_buffer.filled(numpy.arange(1.0, 200.0)) is None, "writes that never wait")


def dearer(random):
    """Check which writes in turn are dearer than those to one place."""
    one = random.normal(500, 5, 40)
    for share, wanted in ((0, False), (0.1, False), (0.5, True), (1, True)):
        many = numpy.where(numpy.arange(40) < 40 * share, 40000.0, random.normal(500, 5, 40))
        check(blocks.dearer(many, one) == wanted, f"{share:.0%} of the writes merge: {wanted}")


class Drive:
    """A bench and its turns, of a drive with erase blocks of @size bytes. A clustered page of
    @step bytes that lies in two of them is in neither alone."""
    def __init__(self, size, step):
        self.bench, self.size, self.step = self, 64 << 20, step
        self.erase, self.asked = size, 0

    def same(self, first, second):
        """Return true if two clustered pages lie in one erase block."""
        self.asked += 1
        blocks_of = {at // self.erase for at in (first, first + self.step - 1, second,
                                                 second + self.step - 1)}
        return len(blocks_of) == 1


def boundaries():
    """Check the sizes of erase blocks, in clustered pages that divide them and that do not."""
    for size, page, step in ((1 << 20, 4 * KB, 4 * KB), (5 << 20, 8 * KB, 16 * KB),
                             (1536 * KB, 16 * KB, 16 * KB), (2560 * KB, 16 * KB, 96 * KB),
                             (4 << 20, 8 * KB, 24 * KB), (2 << 20, 4 * KB, 12 * KB)):
        drive = Drive(size, step)
        near = blocks.Neighbours(drive, 1)
        near.same = drive.same
        found = blocks.block_size(near, page, step)
        check(found == size and blocks.right_size(near, size, step),
              f"erase blocks of {size // KB} KB in steps of {step // KB} KB: {found} bytes by "
              f"{drive.asked} questions")
        check(not blocks.right_size(near, size + 2 * step, step), "others have another size")


def turns(random):
    """Check the cost of a change of direction."""
    names = ("read after read", "write after write", "read after write", "write after read")
    base = {name: random.normal(100000, 3000, 63) for name in names}
    check(writes.turn_cost(base) < 2000, "no cost")
    both = base | {name: base[name] + 250000 for name in names[2:]}
    check(abs(writes.turn_cost(both) - 250000) < 3000, f"250 us: {writes.turn_cost(both):.0f} ns")
    one = base | {names[2]: base[names[2]] + 250000}
    check(writes.turn_cost(one) is None, "one way only has another cost: cannot tell")


def caches(random):
    """Check the share of a stream that is read faster."""
    places = random.permutation(1200)
    old = random.normal(100, 0.5, 300)
    slow = random.normal(100, 0.5, 1200)
    check(not slc.fast_parts(places, slow, old).any(), "no cache")
    for share, level in ((0.25, 80), (0.1, 60), (0.6, 95)):
        took = numpy.where(places < 1200 * share, slow - 100 + level, slow)
        found = slc.fast_parts(places, took, old).mean()
        check(abs(found - share) < 0.02, f"{share:.0%} at {level} %: {found:.1%}")
    hits = numpy.where(random.random(1200) < 0.05, 10, slow)
    old = numpy.where(random.random(300) < 0.05, 10, old)
    check(not slc.fast_parts(places, hits, old).any(), "hits of a read buffer are no cache")


def strided(random):
    """Check strided writes: the distance of peaks, for a boundary of blocks and for a buffer, and
    none in noise; and which times are shorter."""
    for stride, block in ((32 * KB, 1024 * KB), (64 * KB, 5120 * KB)):
        offsets = numpy.arange(512) * stride
        times = 3e5 * numpy.exp(random.normal(0, 0.1, 512))
        check(strides.distance(offsets, strides.peaks_of(times)) is None, "noise has no peaks")
        times[offsets % block == 0] += 2e7
        found = strides.distance(offsets, strides.peaks_of(times))
        check(found == block, f"stride {stride}: a peak each {found} bytes, {block}")
    halves, all_long = numpy.tile([2e5, 2.3e7], 48), numpy.full(96, 2.29e7)
    check(strides.is_faster(halves, all_long), "half of the writes long, against all")
    check(not strides.is_faster(all_long, all_long), "the same is not faster")
    check(strides.is_faster(numpy.full(96, 2e5), all_long), "times that do not vary")


def main():
    random = numpy.random.default_rng(1)
    changes(random)
    fills()
    dearer(random)
    boundaries()
    turns(random)
    caches(random)
    strided(random)


if __name__ == "__main__":
    main()
