#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl top draws in terminals of any size and follows their changes; its programs are encoded
# as the kernel defines; buckets, percentiles, units and the schedulers' files are understood
# quick: host
import pathlib
import signal
import struct
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]
from checks import check, fail  # noqa: E402
from ssd_ctl import bpf, btf, latencies, sched_files, top_lines, top_view  # noqa: E402
from ssd_ctl.top_sample import by_way  # noqa: E402
from terminal import Terminal  # noqa: E402

STATISTICS = {
    "pass": {"regions": "# 99 regions of 4096 MB\nregion reads writes queued in_flight\n" +
             "".join(f"{i} {i * 7} 3 1 -1\n" for i in range(99))},
    "piq": {"units": "# 64 units of 256 planes\nunit served in_flight\n" +
            "".join(f"{i} {i * i} 0\n" for i in range(64)),
            "piq": "conflicts rr 1 ww 2 rw 3\nbatches read 4 write 5 prioritised 6\n"
                   "read_sizes_log2 0 0 1\n",
            "batches": "tier dir batch size gone age_us waiting units\n"
                       "be read 7 3 1 1500  0-3,8\nidle write 8 1 0 20 4 4\n"},
    "bp": {"preference": "crossings 4\navoided 1\nboth_in 9\nno_case 0\nin_open 5\n",
           "anticipation": "hits 3\nmisses 2\nbroken 1\nwaited_us 250000\nnewcomers_soon 256\n"},
    "pai": {"classes": "dir well_split closed pending aligned full aligned_percent full_percent "
            "merges promoted expired waited_us longest_us\nread 1 2 3 4 5 66 83 7 8 9 10 11000\n"
            "write 0 0 0 0 0 0 0 0 0 0 0 0\n"}}
# A line for each queued request: here the number in the file's name, twice that of writes.
DEADLINE = {f"{way}{number}_fifo_list": "request\n" * (number * times)
            for way, times in (("read", 1), ("write", 2)) for number in range(3)}
# What the view shows of each.
OWN = {"pass": "98 ", "piq": "conflicts rr", "bp": "in an open block", "pai": "longest"}
STATS = ("tier dir inserted merged dispatched completed expired requeued queued in_flight polled "
         "bypassed\n" + "".join(f"{tier} {way} 9 0 9 5 1 0 {number} 4 1 2\n"
                                for number, (tier, way) in enumerate(
                                    (tier, way) for tier in ("rt", "be", "idle")
                                    for way in ("read", "write"))))


READERS = ("owed_us 5\nreads_soon 200\ncame 3\nmissed 1\nwaited_us 400000\ntakes_one 1\nkept 16\n"
           "alone 0\ntried 2\npaid 1\nalone_us 200000\n")


def files_of(scheduler):
    """Return the parsed files of a scheduler, from a debugfs made of text."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, "block/sdx/sched")
        place.mkdir(parents=True)
        ours = {"stats": STATS, "readers": READERS, **STATISTICS.get(scheduler, {})}
        for name, text in (DEADLINE if scheduler == "mq-deadline" else ours).items():
            (place / name).write_text(text)
        (place / "inflight").write_text("       3        4\n")
        files = sched_files.SchedulerFiles("sdx", pathlib.Path(folder), place)
        return files.queue(scheduler), files.statistics(scheduler)


def figures(scheduler):
    """Return figures of a drive with a scheduler, and what its statistics were before."""
    queue, statistics = files_of(scheduler)
    counts = {("read", kind): [0] * 100 + [90, 9, 1] + [0] * 361 for kind in latencies.KINDS}
    spans = {"interval": by_way(counts), "since_start": by_way(counts)}
    return {
        "time": "2026-01-02T03:04:05", "since": "2026-01-02T03:00:00", "seconds": 2.0,
        "drive": {"path": "/dev/sdx", "vendor": "Maker", "model": "Model", "bytes": 10**12},
        "scheduler": scheduler, "former_scheduler": None, "busy_percent": 99.5,
        "tunables": {"depth": {"value": "8", "default": "0"}},
        "rates": {way: {"iops": 12345.6, "mb_per_s": 50.5, "mean_kb": 4, "merges_per_s": 0,
                        "mean_ms": None} for way in ("read", "write", "discard")},
        "in_flight": queue.in_flight, "queued": queue.queued, "classes": queue.classes,
        "latencies_ns": {**spans, "classes": {"real-time": spans, "best-effort": spans}},
        "statistics": statistics, "missing": {}}, {}


def parsed():
    """What the files say."""
    queue, piq = files_of("piq")
    check(queue.queued == {"read": 0 + 2 + 4, "write": 1 + 3 + 5}, "queued by direction")
    check(queue.in_flight == {"read": 15, "write": 15}, "in flight, with polled ones")
    check(queue.classes["idle"]["write"] == {"queued": 5, "in_flight": 5}, "by class")
    queue = files_of("mq-deadline")[0]
    check(queue.queued == {"read": 1 + 2, "write": 2 + 4}, "mq-deadline's, by direction")
    check(queue.classes["idle"] == {"read": {"queued": 2}, "write": {"queued": 4}}, "and by class")
    line, _ = next(top_lines.class_line(queue.classes))
    check(line == "best-effort 3 queued; idle 6 queued", line)
    check(piq["piq"]["batches write"] == 5 and piq["piq"]["conflicts rw"] == 3, "counters of piq")
    line, _ = next(top_lines.stats_line(piq, {}, 2.0))
    check(line.endswith("past the queue 6;  writes wait for reads 30 %;  "
                        "the drive takes one at a time"), line)
    line, _ = next(top_lines.stats_line(piq, piq, 2.0))
    check("wait" not in line, line)
    check([row["waiting"] for row in piq["batches"]] == ["", 4], "a column may be empty")
    check(piq["batches"][0]["units"] == "0-3,8", "a list of units stays one")


def encoded():
    """Instructions, by the kernel's documentation of the instruction set."""
    text = """
        r1 = *(u64 *)(r2 + 8)
        *(u32 *)(r10 - 4) = r9
        if r1 != 7 goto out
        r2 += r3
        lock *(u64 *)(r0 + 0) += r1
        r1 = map m              # of two instructions
        call ktime_get_ns
    out:
        exit"""
    wanted = ("7921080000000000" "639afcff00000000" "5501050007000000" "0f32000000000000"
              "db10000000000000" "1811000005000000" "0000000000000000" "8500000005000000"
              "9500000000000000")
    check(bpf.assemble(text, {"m": 5}).hex() == wanted, "the instructions are encoded")
    try:
        bpf.assemble("r1 = nonsense!", {})
        fail("nonsense is refused")
    except ValueError as error:
        check("nonsense" in str(error), "nonsense is refused")


def located():
    """Members of a structure in BTF that is made here."""
    names = b"\0bio\0bi_next\0bi_ioprio\0int\0"
    types = struct.pack("<IIII", names.index(b"int\0"), 1 << 24, 4, 32)
    types += struct.pack("<III", 1, 4 << 24 | 2, 24)
    types += struct.pack("<III", names.index(b"bi_next"), 1, 0)
    types += struct.pack("<III", names.index(b"bi_ioprio"), 1, 22 * 8)
    head = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(names))
    made = btf.Btf(head + types + names)
    check(made.offset("bio", "bi_ioprio") == 22, "the offset of a member")
    for words in (("bio", "nothing"), ("nothing", "bio")):
        try:
            made.offset(*words)
            fail(f"{words} is missing")
        except btf.BtfError as error:
            check("nothing" in str(error), f"{words} is missing: {error}")


def bounded():
    """Buckets join, are a sixteenth wide at most, and percentiles are their upper ends."""
    ends = [latencies.upper_ns(bucket) for bucket in range(latencies.LAST + 1)]
    steps = [(b - a) / a for a, b in zip(ends, ends[1:], strict=False) if a >= 2048]
    check(ends[:3] == [128, 256, 384] and 0 < min(steps) and max(steps) <= 1 / 16, "buckets")
    check(ends[-1] == 1 << 39, "the last bucket ends after nine minutes")
    counts = [0] * 464
    counts[10], counts[20], counts[30] = 900, 90, 10
    found = latencies.summary(counts)
    check((found["p50"], found["p90"], found["p99"], found["p99.9"], found["max"]) ==
          (ends[10], ends[10], ends[20], ends[30], ends[30]), "percentiles")
    check(latencies.summary([0] * 464)["p99"] is None, "nothing has no percentile")


def written():
    """Times have five characters at most, and lines fit every window."""
    texts = [top_lines.duration(mantissa * 10**power) for power in range(11)
             for mantissa in (1, 1.25, 9.94, 9.96, 99.4, 99.6)]
    check(max(map(len, texts)) <= 5, "times are short")
    check([top_lines.duration(ns) for ns in (None, 0, 950, 9960, 999_600, 1.5e9)] ==
          ["-", "0us", "0.9us", "10us", "1.0ms", "1.5s"], "times are rounded")
    strips = [top_lines.strip(values, 5) for values in ([0, 2, 5, 10], [0] * 5, [9, 0] * 5)]
    check(strips == [" :+@", "     ", "@@@@@"], f"strips: {strips}")
    rates = [count / 1.001 for count in range(1, 4000)]
    check({top_lines.strip([rate, 0], 2) for rate in rates} == {"@ "}, "the greatest")
    for scheduler in STATISTICS:
        shown = figures(scheduler)
        for width in (*range(1, 100, 3), 300):
            for height in (*range(1, 50, 4), None):
                lines = top_lines.lines_of(*shown, width, height)
                assert all(len(text) <= width for text, _ in lines), (scheduler, width)
                assert height is None or len(lines) <= height, (scheduler, height)
        del shown[0]["latencies_ns"]["classes"]["real-time"], shown[0]["rates"]["discard"]
        text = "\n".join(line for line, _ in top_lines.lines_of(*shown, 79, 23))
        words = ("p99.9", "depth=8 (0)", "past the queue", OWN[scheduler])
        check(all(word in text for word in words), f"{scheduler} fits 80 columns and 24 lines")


class FakeWatch:
    """Stands for a drive."""

    def __init__(self, scheduler):
        self.shown = figures(scheduler)
        self.first = self
        self.drive = self
        self.path, self.files = "/dev/sdx", {}

    def snapshot(self):
        """Return anything."""
        return self

    def figures(self, *_):
        """Return the same at any time."""
        return self.shown[0]


def drawn():
    """Keys and sizes."""
    terminal = Terminal([sys.executable, __file__, "show"])
    terminal.until(rb"p99\.9", "the view")
    for key, pattern, what in ((b"h", rb"Esc", "the help"), (b" ", rb"p99\.9", "any key leaves it"),
                               (b"p", rb"PAUSED", "the pause"), (b"p", rb"q quit", "it goes on")):
        terminal.type(key)
        terminal.until(pattern, what)
    for rows in (40, 1, 2, 3, 9, 33):
        terminal.size(rows, 2 * rows)
        time.sleep(0.2)
    terminal.until(rb"\x1b\[33[;d]", "the last line of a higher terminal")
    terminal.type(b"q")
    terminal.ended(0, "q")
    terminal = Terminal([sys.executable, __file__, "show"])
    terminal.until(rb"p99\.9", "the view")
    terminal.type(b"\x03")
    terminal.ended(128 + signal.SIGINT, "Ctrl-C")


if sys.argv[1:] == ["show"]:
    try:
        top_view.show(FakeWatch("pass"), 0.3)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
else:
    parsed()
    encoded()
    located()
    bounded()
    written()
    drawn()
