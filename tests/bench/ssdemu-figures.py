#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measure the papers' figures of how a drive behaves on the presets.

    scripts/lab --virtual-time --memory 2G -- tests/bench/ssdemu-figures.py [FIGURE...]

Prints a table for each figure, and for each statement of the paper whether it agrees. FIGURE:
pass1 pass2 pass3 pai4 pai5 pai6 pai7 pai9 bp7 bp8 bp10 piq3 piq18. Latencies are from the
statistics of the device.
"""
import mmap
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from ssd import Device  # noqa: E402  (beside the tests)

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
RANDOM = random.Random(712)


def table(title, head, rows):
    """Print a table."""
    print(f"\n{title}")
    print("".join(f"{cell!s:>12}" for cell in head))
    for row in rows:
        print("".join(f"{cell:12.2f}" if isinstance(cell, float) else f"{cell!s:>12}"
                      for cell in row), flush=True)


def says(paper, holds):
    """Print a statement of the paper, and whether it @holds for the preset."""
    print(f"{'agrees' if holds else 'DIFFERS'}: {paper}")


def throughput(dev, **options):
    """Run fio with one job; return its MB/s, reads and writes together."""
    job = dev.fio(**options)
    return (job["read"]["bw_bytes"] + job["write"]["bw_bytes"]) / 1e6


def within(name, measured, paper, percent=15):
    """Print a figure that the paper states, what was measured and the deviation in per cent, and
    whether it is within @percent."""
    off = 100 * (measured / paper - 1)
    says(f"{name}: {measured:.2f}, paper {paper:g}: {off:+.1f} % (wanted: {percent} %)",
         abs(off) <= percent)


# PASS, section 2.2: "default queue depth and working set size are set to 8 and 30 GB".
PASS_DEFAULTS = {"iodepth": 8, "size": "30g", "io_size": "30g"}


def pass1():
    kinds = ("read", "write", "randread", "randwrite")
    sizes = (4, 16, 64, 256)
    with Device("pass-ssd1") as dev:
        result = {size: [throughput(dev, rw=kind, bs=f"{size}k", number_ios=2000, **PASS_DEFAULTS)
                         for kind in kinds] for size in sizes}
    table("PASS figure 1: MB/s by request size, depth 8, 30 GB", ("KB", *kinds),
          [(size, *row) for size, row in result.items()])
    read, write, randread, randwrite = result[16]
    within("16 KB, sequential reads against random ones", read / randread, 4.7)
    within("16 KB, sequential writes against random ones", write / randwrite, 3.5)
    says("sequential is much faster at all sizes",
         all(row[way] > 2 * row[way + 2] for row in result.values() for way in (0, 1)))


def pass2():
    depths, areas = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16, 32)
    with Device("pass-ssd1") as dev:
        rows = {area: [throughput(dev, rw="randread", iodepth=depth, size=f"{area}g",
                                  io_size="30g", number_ios=4000) for depth in depths]
                for area in areas}
    table("PASS figure 2: MB/s of random reads of 4 KB, by depth", ("GB", *depths),
          [(area, *row) for area, row in rows.items()])
    within("16 GB, depth 16, MB/s", rows[16][4], 25.85)
    within("32 GB, depth 16, MB/s", rows[32][4], 27.78)
    best = {area: depths[row.index(max(row))] for area, row in rows.items()}
    says(f"4 GB are best served at depth 8, 8 GB at 16 (here {best[4]}, {best[8]})",
         (best[4], best[8]) == (8, 16))
    spread = {area: 100 * (max(rows[area]) / min(rows[area]) - 1) for area in (1, 2)}
    says("1 GB and 2 GB stay nearly the same whatever the depth (here within "
         f"{spread[1]:.0f} and {spread[2]:.0f} %)", max(spread.values()) < 20)
    says("4 GB and 8 GB fall beyond their best depth",
         rows[4][3] > rows[4][4] > rows[4][5] and rows[8][4] > rows[8][5])
    says("at depth 16, the larger the area the faster",
         all(rows[a][4] < rows[b][4] for a, b in zip(areas[1:], areas[2:], strict=False)))


def pass3():
    shares = (0, 10, 30, 50, 70, 90, 100)
    cases = {"SeqR+RndW": ("0,100", True, 38), "SeqW+RndR": ("100,0", False, 34),
             "SeqR+SeqW": ("0,0", True, 39)}
    rows = {}
    with Device("pass-ssd1") as dev:
        for name, (scattered, reads, _) in cases.items():
            rows[name] = [throughput(dev, rw="randrw", percentage_random=scattered,
                                     rwmixread=100 - share if reads else share,
                                     number_ios=4000, **PASS_DEFAULTS) for share in shares]
        threads = throughput(dev, rw="randrw", iodepth=4, size="40g", io_size="40g",
                             number_ios=4000)
    table("PASS figure 3: MB/s of 4 KB by share of requests of the other kind, %, depth 8, 30 GB",
          ("", *shares), [(name, *row) for name, row in rows.items()])
    for name, (_, _, left) in cases.items():
        within(f"{name}: 10 % leave, %", 100 * rows[name][1] / rows[name][0], left)
    within("table 2 (not fitted), Noop: 3074 random 4 KB requests a second, half reads, from 4 "
           "threads, MB/s", threads, 3074 * 4 * KB / 1e6)


def flushed_write_us(dev, size, times=5):
    """PAI's procedure 1: write @size bytes at offset 0 and flush; return the median us of both
    together. The paper's means have spikes, which it ascribes to garbage collection."""
    fd = os.open(dev.path, os.O_RDWR)
    us = []
    for _ in range(times):
        dev.reset()
        dev.io(0, size, True)
        os.fsync(fd)
        stats = dev.stats()
        us.append(sum(stats[f"{kind}_mean_ns"] * stats[f"{kind}_count"]
                      for kind in ("write", "flush")) / 1e3)
    os.close(fd)
    return statistics.median(us)


def pai4():
    for drive, page in (("a", 16), ("b", 128), ("c", 4), ("d", 128)):
        multiples = [page, 2 * page, 3 * page]
        sizes = (range(2, 3 * page + 4, 2) if page < 128 else
                 [m + n for m in multiples for n in (-4, -2, 0, 2)])
        with Device(f"pai-{drive}") as dev:
            us = {size: flushed_write_us(dev, size * KB) for size in sizes}
        table(f"PAI figure 4, SSD-{drive.upper()}: us for a write and a flush, in the paper's "
              "steps of 2 KB", ("KB", "us"), us.items())
        drops = {m: 100 * (1 - us[m] / us[m - 2]) for m in sizes if m - 2 in us}
        seen = ", ".join(f"{size}: {drop:.0f} %" for size, drop in drops.items() if drop > 1)
        elsewhere = max(drop for size, drop in drops.items() if size not in multiples)
        if drive == "c":
            says(f"SSD-C: no notable drop ({seen})", max(drops.values()) < 10)
        else:
            # The paper gives no size of a drop.
            says(f"SSD-{drive.upper()}: sharp drops at the multiples of {page} KB, larger than "
                 f"elsewhere ({seen})", min(drops[m] for m in multiples) > max(elsewhere, 1))


def write(dev, offset, size):
    """Write @size KB at @offset KB, in pieces that are one bio each wherever their memory is.
    The border between two bios is otherwise rarely one between clustered pages."""
    for done in range(0, size, 1024):
        dev.io((offset + done) * KB, min(1024, size - done) * KB, True)


def pai5():
    for drive, block, sizes in (("a", 4096, (512, 1024, 2048, 4096, 8192)),
                                ("b", 16384, (2048, 4096, 8192, 16384, 32768)),
                                ("c", 5120, (640, 1280, 2560, 5120, 10240)),
                                ("d", 16384, (2048, 4096, 8192, 16384, 32768))):
        rows = {"seq": [], "random": []}
        for size in sizes:
            for kind, row in rows.items():
                with Device(f"pai-{drive}", fill=100, capacity_mb=1280) as dev:
                    # More writes than open blocks can absorb.
                    count = max(8 * block // size, 8,
                                4 * dev.stats()["config"]["open_blocks"])
                    places = list(range(1280 * MB // (size * KB)))
                    places = places[:count] if kind == "seq" else RANDOM.sample(places, count)
                    dev.reset()
                    for place in places:
                        write(dev, place * size, size)
                    stats = dev.stats()
                    row.append(count * size * KB / stats["active_ns"] * 1e3)
        table(f"PAI figure 5, SSD-{drive.upper()}: MB/s of writes by size in KB",
              ("", *sizes), [(kind, *row) for kind, row in rows.items()])
        ratio = [r / s for s, r in zip(rows["seq"], rows["random"], strict=True)]
        at = sizes.index(block)
        says(f"SSD-{drive.upper()}: random is slower below {block} KB and as fast from there on",
             max(ratio[:at]) < 0.9 and ratio[at] > 0.95)


class Timed:
    """Requests timed on the host's side. A request can follow another one without a pause."""

    def __init__(self, dev):
        self.fd = os.open(dev.path, os.O_RDWR | os.O_DIRECT)
        self.memory = mmap.mmap(-1, 32 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                                mmap.MAP_POPULATE)

    def us(self, offset, length, write=False):
        """Do one request; return its us. @offset, @length: in bytes."""
        part = memoryview(self.memory)[:length]
        begin = time.perf_counter_ns()
        done = os.pwritev(self.fd, [part], offset) if write else os.preadv(self.fd, [part], offset)
        assert done == length
        return (time.perf_counter_ns() - begin) / 1e3

    def flush(self):
        os.fsync(self.fd)

    def close(self):
        os.close(self.fd)


def pai6():
    """PAI's procedures 3 and 4: a read after another read of the same place, or after none."""
    for drive, size in (("a", 256), ("b", 0), ("c", 3072), ("d", 64)):
        sizes = [n * (size or 256) // 4 for n in (1, 2, 4, 5, 8)]
        rows = {"NAND": [], "buffer": []}
        with Device(f"pai-{drive}") as dev:
            timed = Timed(dev)
            # The paper's 16 MB between two measurements bypass the buffer, so each has a place.
            places = iter(range(0, 1 * GB, 16 * MB))
            for kb in sizes:
                for name, row in rows.items():
                    place = next(places)
                    if name == "buffer":
                        timed.us(place, kb * KB)
                    row.append(timed.us(place, kb * KB))
            timed.close()
        table(f"PAI figure 6, SSD-{drive.upper()}: us for a read", ("KB", *sizes),
              [(name, *row) for name, row in rows.items()])
        faster = [kb for kb, nand, buffer in zip(sizes, rows["NAND"], rows["buffer"], strict=True)
                  if buffer < 0.99 * nand]
        says(f"SSD-{drive.upper()}: the buffer is faster up to {size} KB, the same beyond",
             faster == [kb for kb in sizes if kb <= size])


def pai7():
    """PAI's procedures 5 and 6: a write after a flush, or after 16 MB of other writes."""
    for drive, size in (("a", 255), ("b", 128), ("c", 112), ("d", 0)):
        sizes = [max(4, int(n * (size or 128))) for n in (0.25, 0.5, 1, 1.25, 2)]
        rows = {"NAND": [], "buffer": []}
        with Device(f"pai-{drive}") as dev:
            timed = Timed(dev)
            for kb in sizes:
                for name, row in rows.items():
                    timed.flush()
                    if name == "NAND":
                        timed.us(16 * MB, 16 * MB, True)
                    row.append(timed.us(0, kb * KB, True))
            timed.close()
        table(f"PAI figure 7, SSD-{drive.upper()}: us for a write", ("KB", *sizes),
              [(name, *row) for name, row in rows.items()])
        quick = [kb for kb, nand, buffer in zip(sizes, rows["NAND"], rows["buffer"], strict=True)
                 if kb <= size and buffer < 0.8 * nand]
        jump = rows["buffer"][3] * sizes[2] / (rows["buffer"][2] * sizes[3])
        if size:
            says(f"SSD-{drive.upper()}: the buffer is faster up to {size} KB, where its time for "
                 f"a KB jumps (x {jump:.1f})", jump > 1.3 and quick == sizes[:3])
        else:
            says(f"SSD-{drive.upper()}: no buffer", not quick)


def whole_files(rng, number=12):
    """Table 4's requests without PAS, (KB, KB) each: @number files of 8 MB that begin anywhere,
    in requests of 512 KB (assumed: the kernel's limit then), 23 % of them of up to 256 KB."""
    for slot in rng.sample(range(64), number):
        offset = slot * 16384 + 4 * rng.randrange(1024)
        end = offset + 8192
        while offset < end:
            size = 4 * rng.randint(1, 64) if rng.random() < 0.23 else 512
            yield offset, min(size, end - offset)
            offset += size


def split(requests, limit, page=0):
    """Cut @requests into pieces of at most @limit KB; with @page also at its multiples, as PASA.
    All in KB."""
    if page:
        limit -= limit % page
    for start, total in requests:
        offset, size = start, total
        while size:
            piece = min(size, limit - limit % 4)
            if page and offset % page:
                piece = min(piece, page - offset % page)
            yield offset, piece
            offset += piece
            size -= piece


def raw_mbps(drive, requests):
    """MB/s of writing @requests one by one to a new drive, up to the end of a flush."""
    with Device(f"pai-{drive}") as dev:
        dev.reset()
        timed = Timed(dev)
        begin = time.perf_counter_ns()
        for offset, size in requests:
            timed.us(offset * KB, size * KB, True)
        timed.flush()
        ns = time.perf_counter_ns() - begin
        timed.close()
        assert dev.stats()["write_count"] == len(requests)
    return sum(size for _, size in requests) * KB / ns * 1e3


def pai9():
    """What the sizes and places of table 4's requests cost the drive alone. PAS cuts by the
    write buffer; SSD-D has none, so that its PASA cuts at clustered pages only."""
    rows, gains = [], {}
    for drive, page, buffer in (("a", 16, 255), ("b", 128, 128), ("c", 4, 112), ("d", 128, 0)):
        whole = list(whole_files(random.Random(712)))
        cases = {"NoPAS": whole, "PAS": list(split(whole, buffer or 512)),
                 "PASA": list(split(whole, buffer or 512, page))}
        for name, requests in cases.items():
            mbps = raw_mbps(drive, requests)
            base = gains.setdefault(drive, {name: mbps})["NoPAS"]
            gains[drive][name] = mbps
            rows.append((f"{drive.upper()} {name}", 100 * (len(requests) / len(whole) - 1),
                         100 * sum(size <= 256 for _, size in requests) / len(requests),
                         100 * sum(offset % page == 0 for offset, _ in requests) / len(requests),
                         mbps, 100 * (mbps / base - 1)))
    table("PAI table 4 and figure 9, the drive alone: 8 MB files, no scheduler; the paper's SSD-A: "
          "23, 100, 100 % small,\n38, 35, 88 % aligned, 171 and 186 % more requests, 14 and 20 % "
          "faster (with PAI, Postmark)",
          ("", "more %", "small %", "aligned %", "MB/s", "faster %"), rows)
    of_a = {name: 100 * (mbps / gains["a"]["NoPAS"] - 1) for name, mbps in gains["a"].items()}
    says(f"SSD-A: PAS is 14 % faster than NoPAS (here {of_a['PAS']:.0f} %)",
         10 < of_a["PAS"] < 18)
    says(f"SSD-A: PASA is 20 % faster than NoPAS (here {of_a['PASA']:.0f} %)",
         15 < of_a["PASA"] < 25)
    for drive in "bd":
        best = 100 * (max(gains[drive].values()) / gains[drive]["NoPAS"] - 1)
        says(f"SSD-{drive.upper()}: similar to SSD-A (here at best {best:.0f} %)", best > 10)
    best = 100 * (max(gains["c"].values()) / gains["c"]["NoPAS"] - 1)
    says(f"SSD-C: little improvement for large files (here at best {best:.0f} %)", best < 10)


def stride_latencies(dev, stride, count):
    """Return the us of each of @count 4 KB writes, @stride bytes apart."""
    result = []
    for i in range(count):
        result.append(dev.one(256 * MB + i * stride, 4 * KB, True)["write_max_ns"] / 1e3)
    return result


def bp7():
    sizes = (4, 16, 64, 256, 1024)
    rows = {"write": [], "randwrite": []}
    for size in sizes:
        for rw, row in rows.items():
            with Device("bp-transcend", fill=100, capacity_mb=2048) as dev:
                row.append(throughput(dev, rw=rw, bs=f"{size}k", iodepth=1,
                                      number_ios=max(8192 // size, 12), io_size="1g"))
    table("BP figures 6 and 7: MB/s of writes, Transcend", ("KB", *sizes),
          [(rw, *row) for rw, row in rows.items()])
    says("sequential writes run at about 30 MB/s, from 64 KB on",
         all(25 < mbps < 35 for mbps in rows["write"][2:]))
    says("random writes are the slower the smaller they are",
         rows["randwrite"] == sorted(rows["randwrite"]) and
         rows["randwrite"][0] < rows["write"][0] / 5)


def bp8():
    with Device("bp-transcend", fill=100, capacity_mb=2048) as dev:
        for stride in (32, 64, 128):
            times = stride_latencies(dev, stride * KB, 6 * 1024 // stride)
            limit = (min(times) + max(times)) / 2
            peaks = [i * stride for i, us in enumerate(times) if us > limit]
            print(f"\nBP figure 8/9: stride {stride} KB: {min(times):.0f} us, peaks of "
                  f"{max(times):.0f} us at {peaks} KB")
            says("a peak at each 1 MB, whatever was written between",
                 all(b - a == 1024 for a, b in zip(peaks, peaks[1:], strict=False))
                 and len(peaks) >= 5)


def bp10():
    strides = (4, 16, 64, 256, 512, 1024, 2048)
    rows = {}
    for drive in ("bp-transcend", "bp-samsung"):
        rows[drive] = []
        for stride in strides:
            with Device(drive, fill=100, capacity_mb=4096) as dev:
                dev.reset()
                count = min(1000 * MB // (stride * KB), 3 * MB // (stride * KB) + 64)
                for i in range(count):
                    dev.io(i * stride * KB, 4 * KB, True)
                fd = os.open(dev.path, os.O_RDWR)
                os.fsync(fd)
                os.close(fd)
                stats = dev.stats()
                rows[drive].append(count * 4 * KB / max(stats["active_ns"], 1) * 1e3)
    table("BP figures 10 and 12: MB/s of strided 4 KB writes", ("stride KB", *strides),
          [(drive[3:], *row) for drive, row in rows.items()])
    for drive, row in rows.items():
        one_mb = strides.index(1024)
        says(f"{drive}: falls up to a stride of 1 MB, level beyond",
             row[0] > 5 * row[one_mb] and abs(row[one_mb + 1] / row[one_mb] - 1) < 0.15)


def piq3():
    rows = []
    for load in (8, 12, 14, 16):
        ideal = {}
        for sched in ("ooo", "fifo"):
            with Device("piq", capacity_mb=8192, device_sched=sched) as dev:
                rate = int(load / 100 * 64e9 / ((20_000 + 304_800 + 200_000 + 102_400) / 2))
                dev.reset()
                dev.fio(rw="randrw", bs="8k", iodepth=64, rate_iops=f"{rate // 4},{rate // 4}",
                        rate_process="poisson", number_ios=5000)
                ideal[sched] = dev.stats()
        stats = ideal["fifo"]
        pages = stats["flash_reads"] + stats["flash_programs"]
        conflicts = sum(stats[f"conflict_{k}"] for k in ("rr", "rw", "ww"))
        rows.append((load, 100 * conflicts / pages,
                     stats["read_mean_ns"] / ideal["ooo"]["read_mean_ns"],
                     stats["write_mean_ns"] / ideal["ooo"]["write_mean_ns"]))
    table("PIQ figure 3: conflicting page operations, %, and latency against an out-of-order "
          "device,\nby load in % of the chips' time, 8 KB random, half reads",
          ("load", "conflicts %", "reads x", "writes x"), rows)
    says("about a quarter of the requests conflict (reads 26.2 %, writes 23.3 %)",
         any(15 < row[1] < 35 for row in rows))
    says("conflicts cost several times the latency (reads 7.1, writes 4.8)",
         rows[-1][2] > 2 and rows[-1][3] > 2)


def piq18():
    depths = (1, 8, 32, 128, 512)
    rows = {"fifo": [], "ooo": []}
    for sched, row in rows.items():
        for depth in depths:
            with Device("piq", capacity_mb=8192, device_sched=sched, queue_depth=depth) as dev:
                dev.queue("nr_requests", depth) if depth > 3 else None
                job = dev.fio(rw="randrw", bs="8k", iodepth=512, number_ios=12000)
                row.append(sum(job[way]["lat_ns"]["mean"] / 1e6
                               for way in ("read", "write")))
    table("PIQ figure 18: ms for a read and a write, by requests that the device sees",
          ("", *depths), [(sched, *row) for sched, row in rows.items()])
    ooo = rows["ooo"]
    says("a longer queue shortens latencies, less and less",
         ooo[0] > ooo[1] > ooo[2] > ooo[3] and ooo[0] / ooo[2] > ooo[2] / ooo[4])


FIGURES = {f.__name__: f for f in (pass1, pass2, pass3, pai4, pai5, pai6, pai7, pai9, bp7, bp8,
                                   bp10, piq3, piq18)}

unknown = set(sys.argv[1:]) - set(FIGURES)
if unknown:
    sys.exit(f"no figure {' '.join(sorted(unknown))}; there are: {' '.join(FIGURES)}")
for name in sys.argv[1:] or FIGURES:
    FIGURES[name]()
