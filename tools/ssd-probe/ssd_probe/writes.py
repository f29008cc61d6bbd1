# SPDX-License-Identifier: GPL-2.0
"""When a write is acknowledged, what a program, a flush and a change of direction cost.

write_us is procedure 6 of "Parameter-aware I/O management for solid state disks", section 4.2.6,
with a flush instead of a full buffer where the drive has one. The cost of a change of direction is
behind figure 3 of PASS, section 2.
"""
import numpy

from ssd_common import change
from ssd_probe import engine, writing
from ssd_probe.engine import FLUSH, READ, WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, MB, cannot, value

# Samples of a median.
COUNT = 64


def initialise(bench: Bench):
    """Write the first part of the drive, so that reads there find data."""
    end = min(bench.size // 4, 64 * MB)
    offsets = numpy.arange(0, end - bench.max_bytes + 1, bench.max_bytes)
    bench.engine.play(engine.ios(offsets, bench.max_bytes, WRITE), 4)
    writing.settle(bench)


def cumulated(title: str, lines: dict[str, numpy.ndarray]) -> Curve:
    """Return the distributions of @lines, in ns, as a curve."""
    share = {name: numpy.linspace(0, 1, len(times)) for name, times in lines.items()}
    return Curve(title, "us", "share", {
        name: ((numpy.sort(times) / 1000).tolist(), share[name].tolist())
        for name, times in lines.items()})


def lone_writes(bench: Bench, count: int, length: int) -> numpy.ndarray:
    """Return the ns of writes that find the drive with nothing to do."""
    offsets = writing.Places(bench).take(count, length, 64 * KB)
    listed = engine.ios(offsets, length, WRITE, barriers=True, delay_ns=20_000_000)
    return writing.took(bench.engine.play(listed))


@procedure(gives="early_ack", destroys=True)
def early_ack(bench: Bench, _found) -> list[Finding]:
    """Whether writes are acknowledged before they are programmed"""
    initialise(bench)
    length = max(bench.block, 4 * KB)
    busy, idle = writing.flush_costs(bench, COUNT)
    if writing.flush_works(busy, idle):
        curve = cumulated("Flushes", {"after a write": busy, "after none": idle})
        return [Finding("early_ack", True, confidence=1 - change.CHANCE, curve=curve)]
    high = min(bench.size // 4, 64 * MB)
    reads = bench.latencies(bench.places(COUNT, 64 * KB, high=high, length=length), length, READ)
    writes = lone_writes(bench, COUNT, length)
    curve = cumulated("Small writes and reads", {"write": writes, "read": reads})
    # A program takes longer than a read of flash, so what is faster is no program.
    early = bool(change.differ(writes, reads))
    if early == change.differ(reads, writes):
        return cannot("early_ack", "writes take as long as reads of the same size")
    return [Finding("early_ack", early, confidence=1 - change.CHANCE, curve=curve)]


@procedure(gives="flush_us", needs="early_ack clustered_page_kb", destroys=True)
def flush_us(bench: Bench, found) -> list[Finding]:
    """Cost of a flush after a write"""
    length = int((value(found, "clustered_page_kb") or 4) * KB)
    length = max(length, bench.block)
    offsets = writing.Places(bench).take(COUNT, length, gaps=True)
    busy = writing.write_and_flush(bench, offsets, length)[1]
    idle = writing.took(bench.engine.play(engine.ios(numpy.zeros(COUNT), 0, FLUSH)))
    curve = cumulated("Flushes", {f"after {length // KB} KB": busy, "after none": idle})
    works = writing.flush_works(busy, idle)
    middle = float(numpy.median(busy)) / 1000 if works else 0.0
    return [Finding("flush_us", round(middle, 1), "us", 1 - change.CHANCE, curve=curve)]


def steady(times: numpy.ndarray) -> float | None:
    """Return the ns that most of @times are, otherwise the faster half of them, to which no other
    work of the drive was added; None if these differ, too."""
    for percents in ([25, 50, 75], [10, 25, 40]):
        low, middle, high = numpy.percentile(times, percents)
        if low > 0 and high - low < 0.15 * middle:
            return float(middle)
    return None


def rounds(bench: Bench, found, length: int, page: int) -> int | None:
    """Return how many pages of a write of @length bytes the same unit programs, None if it cannot
    be told. @page: bytes of a page of flash."""
    pages = length // page
    if pages < 2:
        return 1
    if value(found, "static_allocation") is False:
        units = value(found, "units")
        return -(-pages // int(units)) if units else None
    if bench.tags < 2:
        return None
    single = float(numpy.median(writing.reads_from_flash(bench, COUNT, bench.block)))
    added = numpy.array([with_first(bench, length, other * page) for other in range(1, pages)])
    added = added / single - 1
    # A unit takes as long again for a second read, less what does not depend on flash. Reads that
    # only share a channel take less.
    overhead = without_flash(bench, found, single)
    if overhead is None and ((added > 0.5) & (added < 0.9)).any():
        return None
    return 1 + int((added > 0.93 * (1 - (overhead or 0) / single)).sum())


def without_flash(bench: Bench, found, single: float) -> float | None:
    """Return the ns of a request that needs no flash, None if there is none. @single: ns of a read
    that does."""
    again = numpy.repeat(bench.places(COUNT, 64 * KB), 2)
    hit = float(numpy.median(bench.latencies(again, bench.block, READ)[1::2]))
    if hit < 0.8 * single:
        return hit
    idle = writing.took(bench.engine.play(engine.ios(numpy.zeros(COUNT), 0, FLUSH)))
    return float(numpy.median(idle)) if value(found, "early_ack") and idle.any() else None


def with_first(bench: Bench, length: int, distance: int) -> float:
    """Return the ns of two reads at once, of the first block of @length bytes and of one in a
    @distance."""
    offsets = numpy.repeat(bench.places(8, length), 2)
    offsets[1::2] += distance
    return float(numpy.median(bench.group_times(offsets, bench.block, 2)))


@procedure(gives="write_us", needs="early_ack clustered_page_kb slc_cache_mb flash_page_kb units "
           "static_allocation", destroys=True)
def write_us(bench: Bench, found) -> list[Finding]:
    """Time of a program of flash"""
    if not writing.programs_seen(bench, found):
        return cannot("write_us", "the drive hides its programs, also from a flush")
    cluster = value(found, "clustered_page_kb")
    if cluster is None:
        return cannot("write_us", "the size of the clustered page is not known")
    length = max(int(cluster * KB), bench.block)
    page = max(min(int((value(found, "flash_page_kb") or cluster) * KB), length), bench.block)
    writing.settle(bench, writing.LONG_PAUSE_NS)
    offsets = writing.Places(bench).take(COUNT, length, gaps=True)
    writes, flushes = writing.write_and_flush(bench, offsets, length, writing.IDLE_NS)
    settled, small = (writing.reads_from_flash(bench, COUNT, size) for size in (length, page))
    beyond = max(0.0, float(numpy.median(settled) - numpy.median(small)))
    turns = rounds(bench, found, length, page)
    if turns is None:
        return cannot("write_us", "it is not known how many units program a clustered page")
    if value(found, "early_ack"):
        idle = writing.took(bench.engine.play(engine.ios(numpy.zeros(COUNT), 0, FLUSH)))
        times = (flushes - numpy.median(idle)) / turns
        # The data of the other pages share a channel with it, unless what reads of them take
        # longer is the transfer to the host.
        host = float(numpy.median(writes)) * (1 - page / length)
        times -= 0 if turns > 1 else beyond if host < 0.85 * beyond else beyond / 2
    elif length == page:
        times = writes / turns
    else:
        times = (writes - numpy.median(settled)) / turns + 0.75 * numpy.median(small)
    middle = steady(times)
    if middle is None:
        return cannot("write_us", "the times of programs differ too much")
    curve = cumulated("Programs", {"program": times, "read": small})
    return [Finding("write_us", round(middle / 1000, 1), "us", 0.95, curve=curve)]


def turning(bench: Bench, length: int, delay_ns: int) -> dict[str, numpy.ndarray]:
    """Return the ns of reads and writes after one of the same and of the other direction. The drive
    has time for its programs between them."""
    offsets = bench.places(4 * COUNT, 64 * KB, length=length).reshape(-1, 4)
    offsets[:, 2:] = writing.Places(bench).take(2 * COUNT, length).reshape(-1, 2)
    listed = engine.ios(offsets.ravel(), length, READ, barriers=True, delay_ns=delay_ns)
    listed["op"] = numpy.tile([READ, READ, WRITE, WRITE], COUNT)
    times = writing.took(bench.engine.play(listed)).reshape(-1, 4)
    names = ("read after write", "read after read", "write after read", "write after write")
    return {name: times[1:, column] for column, name in enumerate(names)}


def mixed_rates(bench: Bench, length: int) -> Curve:
    """Return figure 3 of PASS: the rate of mixed reads and writes, by their share."""
    shares, mbps = [0, 10, 25, 50, 75, 90, 100], []
    for share in shares:
        offsets = bench.places(400, length)
        listed = engine.ios(offsets, length, READ)
        listed["op"] = numpy.where(bench.random.random(400) * 100 < share, READ, WRITE)
        done = bench.engine.play(listed, min(8, bench.tags), 10)
        mbps.append(len(done) * length / float(done["end_ns"].max()) * 1000)
    return Curve("Interference of reads and writes", "% reads", "MB/s",
                 {"random": ([float(share) for share in shares], mbps)}, log_x=False)


def turn_cost(times: dict[str, numpy.ndarray]) -> float | None:
    """Return the ns that a change of direction costs. Each way costs the same; None if one of them
    has something else, such as a program that was still going on."""
    costs = []
    for way, other in (("read", "write"), ("write", "read")):
        turned, same = times[f"{way} after {other}"], times[f"{way} after {way}"]
        gain = float(numpy.median(turned) - numpy.median(same))
        costs.append(gain if change.differ(same, turned) else 0.0)
    if max(costs) > 2000 and min(costs) < max(costs) / 2:
        return None
    return sum(costs) / 2


@procedure(gives="interference", needs="early_ack mapping", destroys=True)
def interference(bench: Bench, found) -> list[Finding]:
    """Cost of a change between reads and writes"""
    length = max(bench.block, 4 * KB)
    usual = writing.program_costs(bench, writing.Places(bench).take(16, length), length)
    cost = turn_cost(turning(bench, length, 8_000_000 + 4 * int(numpy.median(usual))))
    # Random writes to such a drive may leave it busy for minutes.
    curve = None if value(found, "mapping") == "block" else mixed_rates(bench, length)
    writing.settle(bench)
    if cost is None:
        return cannot("interference", "more than a turn delays reads after writes, or writes")
    return [Finding("interference", round(cost / 1000, 1), "us", 0.95, curve=curve)]
