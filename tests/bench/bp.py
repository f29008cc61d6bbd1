#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What BP gains and costs, on both of its bases with and without preference,
beside the kernel's own schedulers, in virtual time.

    tests/bench/bp.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/bp/:
"""
import dataclasses

import harness

HEADING = "## Figures\n"
# A queue of the paper's time holds 128 requests; with queue_depth=1 the kernel
# would let a scheduler hold two. Without a scheduler there is nothing to set.
REQUESTS = {"nr_requests": 128}
PAPER = ("bp-transcend", "bp-samsung")
NEUTRAL = ("sata", "nvme", "qlc")
# Drives in use, all blocks hold data; no larger than what is done on them.
USED = {"fill": 100, "capacity_mb": 1024}
IN_MEMORY = {**USED, "memory_backed": 1}
BASES = {"a": "anticipatory", "f": "fair"}
SHORT = {"RAMP": "200ms", "RUNTIME": "600ms"}
LONG = {"RAMP": "1s", "RUNTIME": "6s"}
# Reads and writes take turns of 500 and of 125 ms: four of both.
TURNS = {"RUNTIME": "2500ms"}


@dataclasses.dataclass
class Column:
    """A figure of a run: head, how to get it from the result, digits."""
    head: str
    get: object
    digits: int = 1

    def value(self, run):
        """The figure, or None where there is no such."""
        try:
            return self.get(run.result)
        except (KeyError, ValueError, ZeroDivisionError):
            return None

    def cell(self, run):
        """As text."""
        value = self.value(run)
        return "" if value is None else f"{value:,.{self.digits}f}"


def jobs(result, kinds=("read", "write")):
    """What the jobs of fio's result did, by job and direction."""
    return [job[kind] for job in result["jobs"] for kind in kinds
            if job[kind]["total_ios"]]


def mbps(result, kinds=("read", "write")):
    """MB/s from the beginning to the end of the last job; None without any."""
    found = jobs(result, kinds)
    longest = max((job["runtime"] for job in found), default=0)
    return sum(job["io_bytes"] for job in found) / longest / 1e3 if longest else None


def latency(kind, percentile=None):
    """Gets the mean latency in ms, or a percentile; the worst of several jobs."""
    def get(result):
        return max(job["lat_ns"]["percentile"][f"{percentile:.6f}"] if percentile
                   else job["lat_ns"]["mean"] for job in jobs(result, (kind,))) / 1e6
    return get


def jain(*kinds):
    """Gets Jain's index of the jobs' bytes: 1 when all are equal, 1 / n when one
    has all."""
    def get(result):
        values = [job["io_bytes"] for job in jobs(result, kinds)]
        return sum(values) ** 2 / (len(values) * sum(value * value for value in values))
    return get


def done(kind):
    """Gets the number of requests that fio made."""
    return lambda result: sum(job["total_ios"] for job in jobs(result, (kind,)))


MBPS = Column("MB/s", mbps, 2)
READS = Column("read MB/s", lambda r: mbps(r, ("read",)), 2)
WRITES = Column("write MB/s", lambda r: mbps(r, ("write",)), 2)
NR_READS = Column("reads", done("read"), 0)
NR_WRITES = Column("writes", done("write"), 0)
READ_MEAN = Column("read mean ms", latency("read"), 2)
READ_P99 = Column("read p99 ms", latency("read", 99), 2)
READ_MAX = Column("longest",
                  lambda r: max(job["lat_ns"]["max"] for job in jobs(r, ("read",))) / 1e6)
WRITE_MEAN = Column("write mean ms", latency("write"), 1)
WRITE_P99 = Column("write p99 ms", latency("write", 99), 1)
JAINS = [Column("Jain, all", jain("read", "write"), 3), Column("readers", jain("read"), 3),
         Column("writers", jain("write"), 3)]
SECONDS = Column("s", lambda r: r["files"]["seconds"], 2)
DBENCH = Column("dbench MB/s", lambda r: r["files"]["mbps"], 2)
TO_DRIVE = Column("writes to the drive", lambda r: r["ssdemu"]["write_count"], 0)
DRIVE_WROTE = Column("drive wrote MB", lambda r: r["ssdemu"]["host_write_bytes"] / 1e6, 0)
MERGES = Column("blocks merged", lambda r: r["ssdemu"]["merges"], 0)
CROSSINGS = Column("crossings", lambda r: r["bp"]["crossings"], 0)
AVOIDED = Column("avoided", lambda r: r["bp"]["avoided"], 0)
EXPIRED = Column("expired", lambda r: r["bp"]["expired"], 0)
HITS = Column("waits hit", lambda r: r["bp"]["hits"], 0)
MISSES = Column("missed", lambda r: r["bp"]["misses"], 0)
WAITED = Column("waited ms", lambda r: r["bp"]["waited_us"] / 1e3, 1)


@dataclasses.dataclass
class Table(harness.RunTable):
    """The first of its @columns is also shown in percent: of BP against the same base
    without preference."""
    columns: list

    def relative(self, run):
        """The first column against that of the run's control."""
        if "preference=1" not in run.label:
            return ""
        of = run.label.replace("preference=1", "preference=0")
        control = next((each for each in self.rows if each.label == of), None)
        if not control:
            return ""
        gain = self.columns[0].value(run) / self.columns[0].value(control) - 1
        return f" ({100 * gain:+.1f} %)"

    def lines(self):
        """As Markdown; without columns in which nothing is, and only if all was measured."""
        if not self.measured():
            return []
        shown = [column for column in self.columns if any(map(column.value, self.rows))]
        rows = [[run.label, shown[0].cell(run) + self.relative(run),
                 *(column.cell(run) for column in shown[1:])] for run in self.rows]
        return [f"**{self.title}**", "",
                *harness.markdown(["", *(column.head for column in shown)], rows), ""]


ON_BLOCKS = [MBPS, MERGES, CROSSINGS, AVOIDED, EXPIRED, WRITE_MEAN, WRITE_P99]
ON_MIXED = [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_MEAN, WRITE_P99, HITS, MISSES, WAITED,
            MERGES]
FEW = {"SIZE": "16m", "SIZES": "4k/100"}
MANY = {"SIZE": "64m", "SIZES": "4k/100"}
SEVERAL = {"SIZE": "16m", "SIZES": "4k/50:16k/30:64k/20"}


def bp(base, preference=1, label=None, **tunables):
    """Scheduler, tunables and label of BP."""
    settings = {"iosched/base": BASES[base], "iosched/preference": preference}
    settings.update({f"iosched/{key}": value for key, value in tunables.items()})
    return "bp", settings, label or f"bp {BASES[base]}, preference={preference}"


def swept(name, values, base="a"):
    """BP with one setting after another."""
    return [bp(base, 1, f"{BASES[base]}, {name}={value}", **{name: value}) for value in values]


ALL_BP = [bp(base, preference) for base in BASES for preference in (0, 1)]
PEERS = [(peer, {}, peer) for peer in harness.PEERS]


def run(preset, job, scheduler, keys=None, **variables):
    """A run; @scheduler as from bp()."""
    name, tunables, label = scheduler
    if preset in PAPER:
        backlog = REQUESTS if name != "none" else {}
        tunables = {**harness.UNTHROTTLED, **backlog, **tunables}
        keys = USED if keys is None else keys
    return harness.Run(preset, job, name, tunables=tunables, keys=keys or {}, label=label,
                       variables={key: str(value) for key, value in variables.items()})


def says(job):
    """What a job is, for a title."""
    return job if job in ("postmark", "dbench") else harness.job_says(job)


def on_paper_drives(job, **variables):
    """A job beside the control and the peers."""
    columns = [MBPS, READS, WRITES, MERGES, CROSSINGS, AVOIDED, EXPIRED, READ_MEAN, WRITE_MEAN,
               WRITE_P99]
    return [Table(f"{says(job)}; {preset}",
                  [run(preset, job, scheduler, **variables) for scheduler in PEERS + ALL_BP],
                  columns)
            for preset in PAPER]


def blocks():
    """random writes over a few blocks, on the paper's drives"""
    return on_paper_drives("bp-blocks", **FEW)


def streams():
    """interleaved sequential writers, on the paper's drives"""
    return on_paper_drives("bp-streams")


def mixed():
    """the paper's reads and sequential writes, two to one, on its drives"""
    return on_paper_drives("bp-mixed")


def sequential():
    """one sequential writer, on the paper's drives"""
    return on_paper_drives("bp-sequential")


def postmark():
    """Debian's postmark on ext4, on the paper's drives (its figures 16 and 17)"""
    return files("postmark", (2000, 5000), "files, {} transactions", [SECONDS])


def dbench():
    """Debian's dbench on ext4, on the paper's drives (its figure 18)"""
    return files("dbench", (16, 3), "clients, {} s", [DBENCH, SECONDS])


def nilfs():
    """the same dbench on NILFS2, a log-structured file system (the paper's figure 20)"""
    return files("dbench", (16, 10), "clients, {} s", [DBENCH, SECONDS], "nilfs2")


def oltp():
    """sysbench's complex OLTP with MariaDB on ext4 (the paper's figure 19)"""
    return files("oltp", (16, 100), "threads, {} transactions", [SECONDS])


def files(job, numbers, title, columns, kind="ext4"):
    """A benchmark on a file system."""
    title = f"{job}: {numbers[0]} {title.format(numbers[1])}; {kind} on"
    return [Table(f"{title} {preset}",
                  [run(preset, job, scheduler, IN_MEMORY, A=numbers[0], B=numbers[1], KIND=kind)
                   for scheduler in PEERS + ALL_BP],
                  [*columns, TO_DRIVE, MERGES, CROSSINGS, AVOIDED, EXPIRED])
            for preset in PAPER]


def neutral():
    """today's drives: what BP costs there"""
    mixed = {"RW": "randrw", "BS": "4k", "DEPTH": 32, "READS": 70}
    return [Table(f"{says(job)}; {preset}",
                  [run(preset, job, scheduler, **SHORT, **more)
                   for scheduler in PEERS + [bp("a"), bp("f")]],
                  [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_MEAN, WRITE_P99, NR_READS,
                   NR_WRITES])
            for preset in NEUTRAL
            for job, more in (("interference", {}), ("mixed", mixed))]


def fairness():
    """two readers against four writers: Jain's index, p99"""
    schedulers = [("mq-deadline", {}, "mq-deadline"), ("bfq", {}, "bfq"), *ALL_BP]
    return [Table(f"{says('bp-fair')}; {preset}",
                  [run(preset, "bp-fair", scheduler, **times) for scheduler in schedulers],
                  [MBPS, READS, WRITES, *JAINS, READ_MEAN, READ_P99, WRITE_P99, NR_READS,
                   NR_WRITES, HITS, MISSES])
            for preset, times in ((PAPER[0], LONG), ("sata", TURNS))]


def settings(what, cells, setting, columns):
    """A setting's values on a load each."""
    return [Table(f"{what}: {says(job)}{more}; {preset}",
                  [run(preset, job, scheduler, keys, **variables)
                   for scheduler in setting], columns)
            for preset, keys, job, variables, more in cells]


def lookahead():
    """the paper's claim that looking further than two does not help"""
    return settings("lookahead", [
        (PAPER[0], None, "bp-blocks", SEVERAL, ", 16 blocks, 4 to 64 KB"),
        (PAPER[0], None, "bp-blocks", MANY, ", 64 blocks, 4 KB")],
        [bp("a", 0, "preference=0"), *swept("lookahead", (1, 2, 4, 8, 0))], ON_BLOCKS)


def open_blocks():
    """open_blocks on a drive that keeps four blocks open"""
    keys = {**USED, "open_blocks": 4}
    return settings("open_blocks", [
        (PAPER[0], keys, "bp-blocks", FEW, ", 16 blocks, four open"),
        (PAPER[0], keys, "bp-streams", {}, ", four blocks open")],
        [PEERS[1], bp("a", 0, "preference=0"), *swept("open_blocks", (1, 2, 4, 8))], ON_BLOCKS)


def anticipation():
    """antic_us: what its default should be"""
    loads = [(PAPER[0], None, "bp-fair", LONG, ""), ("sata", None, "bp-fair", TURNS, "")]
    return [*settings("antic_us", loads, swept("antic_us", (0, 100, 1000, 3000)), ON_MIXED),
            *settings("antic_us", loads[:1], swept("antic_us", (0, 100, 1000), "f"),
                      [*ON_MIXED, *JAINS])]


def times():
    """the lengths of batches and slices"""
    loads = [(PAPER[0], None, "bp-fair", LONG, "")]
    return [*settings("write_batch_ms", loads, swept("write_batch_ms", (16, 32, 125, 500)),
                      ON_MIXED),
            *settings("read_batch_ms", loads, swept("read_batch_ms", (125, 500)), ON_MIXED),
            *settings("slice_sync_ms", loads, swept("slice_sync_ms", (25, 100, 400), "f"),
                      [*ON_MIXED, *JAINS])]


def writeback():
    """readers beside a writer through the page cache, with the kernel's writeback
    throttling and without"""
    schedulers = [("none", {}, "none"), ("mq-deadline", {}, "mq-deadline"), bp("a"), bp("f")]
    return [Table(f"{says('bp-buffered')}; {preset}",
                  [run(preset, "bp-buffered", (name, {**tunables, "wbt_lat_usec": us},
                                               f"{label}, wbt_lat_usec={us}"), **times)
                   for name, tunables, label in schedulers for us in (2000, 0)],
                  [READS, READ_MEAN, READ_P99, READ_MAX, DRIVE_WROTE, MERGES])
            for preset, times in ((PAPER[0], TURNS), ("sata", TURNS))]


GROUPS = {group.__name__: group for group in
          (blocks, streams, mixed, sequential, postmark, dbench, nilfs, oltp, neutral, fairness,
           lookahead, open_blocks, anticipation, times, writeback)}


def main():
    return harness.tables_of_paper("bp", __doc__, GROUPS, HEADING)


if __name__ == "__main__":
    harness.finish(main)
