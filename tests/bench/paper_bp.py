#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Measure BP in virtual time, on both of its bases with and without preference, beside the
kernel's schedulers.

    tests/bench/paper_bp.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/bp/:
"""
import dataclasses

import guests
import model
import paper
from tables import Column, Table, counter, labelled

HEADING = "## Figures\n"
# A queue of the paper's time holds 128 requests. With queue_depth=1 the default gives the
# scheduler only two. Without a scheduler the value cannot be set.
REQUESTS = {"nr_requests": 128}
PAPER = ("bp-transcend", "bp-samsung")
# Drives in use: all blocks hold data. No larger than the benchmarks need.
USED = {"fill": 100, "capacity_mb": 1024}
IN_MEMORY = {**USED, "memory_backed": 1}
BASES = {"a": "anticipatory", "f": "fair"}
LONG = {"RAMP": "1s", "RUNTIME": "6s"}
# Four batches of reads and of writes, which take 500 and 125 ms.
TURNS = {"RUNTIME": "2500ms"}


def jobs(run, kinds=("read", "write")):
    """What the jobs of fio's result did, by job and direction, in the directions @kinds."""
    return [job[kind] for job in run.result["jobs"] for kind in kinds if job[kind]["total_ios"]]


def mbps(*kinds):
    """Return a function of a run: MB/s from its start to the end of its last job."""
    def get(run):
        found = jobs(run, kinds)
        return sum(job["io_bytes"] for job in found) / max(job["runtime"] for job in found) / 1e3
    return get


def latency(kind, percentile=None):
    """Return a function of a run: the mean latency in ms or a percentile, of several jobs
    the worst."""
    def get(run):
        return max(job["lat_ns"]["percentile"][f"{percentile:.6f}"] if percentile
                   else job["lat_ns"]["mean"] for job in jobs(run, (kind,))) / 1e6
    return get


def jain(*kinds):
    """Return a function of a run: Jain's index of the bytes of its n jobs, 1 if all are
    equal, 1/n if one has all."""
    def get(run):
        values = [job["io_bytes"] for job in jobs(run, kinds)]
        return sum(values) ** 2 / (len(values) * sum(value * value for value in values))
    return get


def done(kind):
    """Return a function of a run: the number of fio's requests."""
    return lambda run: sum(job["total_ios"] for job in jobs(run, (kind,)))


INT, ONE, TWO, THREE = (f"{{:,.{digits}f}}" for digits in range(4))
MBPS = Column("MB/s", mbps("read", "write"), form=TWO)
READS = Column("read MB/s", mbps("read"), form=TWO)
WRITES = Column("write MB/s", mbps("write"), form=TWO)
NR_READS = Column("reads", done("read"), form=INT)
NR_WRITES = Column("writes", done("write"), form=INT)
READ_MEAN = Column("read mean ms", latency("read"), form=TWO)
READ_P99 = Column("read p99 ms", latency("read", 99), form=TWO)
READ_MAX = Column("longest", form=ONE, get=lambda run: max(
    job["lat_ns"]["max"] for job in jobs(run, ("read",))) / 1e6)
WRITE_MEAN = Column("write mean ms", latency("write"), form=ONE)
WRITE_P99 = Column("write p99 ms", latency("write", 99), form=ONE)
JAINS = [Column("Jain, all", jain("read", "write"), form=THREE),
         Column("readers", jain("read"), form=THREE),
         Column("writers", jain("write"), form=THREE)]
SECONDS = Column("s", counter("files", "seconds"), form=TWO)
DBENCH = Column("dbench MB/s", counter("files", "mbps"), form=TWO)
TO_DRIVE = Column("writes to the drive", counter("ssdemu", "write_count"), form=INT)
DRIVE_WROTE = Column("drive wrote MB", counter("ssdemu", "host_write_bytes", scale=1e6), form=INT)
MERGES = Column("blocks merged", counter("ssdemu", "merges"), form=INT)
CROSSINGS, AVOIDED, EXPIRED = (Column(name, counter("bp", name), form=INT)
                               for name in ("crossings", "avoided", "expired"))
HITS = Column("waits hit", counter("bp", "hits"), form=INT)
MISSES = Column("missed", counter("bp", "misses"), form=INT)
WAITED = Column("waited ms", counter("bp", "waited_us", scale=1e3), form=ONE)
ON_BLOCKS = [MBPS, MERGES, CROSSINGS, AVOIDED, EXPIRED, WRITE_MEAN, WRITE_P99]
ON_MIXED = [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_MEAN, WRITE_P99, HITS, MISSES, WAITED,
            MERGES]


def table(title, runs, columns):
    """A table of runs. The first column has the percent of BP against the same base without
    preference."""
    first, *others = columns
    return Table(title, labelled(runs), [dataclasses.replace(first, percent=1), *others],
                 base=lambda label: label.replace("preference=1", "preference=0"),
                 complete=True, sparse=True)


FEW = {"SIZE": "16m", "SIZES": "4k/100"}
MANY = {"SIZE": "64m", "SIZES": "4k/100"}
SEVERAL = {"SIZE": "16m", "SIZES": "4k/50:16k/30:64k/20"}


def bp(base, preference=1, label=None, **tunables):
    """Return the scheduler, tunables and label of BP."""
    settings = paper.mode("bp", base=BASES[base], preference=preference, **tunables)
    return "bp", settings, label or f"bp {BASES[base]}, preference={preference}"


def swept(name, values, base="a"):
    """Return bp() for each value of a setting."""
    return [bp(base, 1, f"{BASES[base]}, {name}={value}", **{name: value}) for value in values]


ALL_BP = [bp(base, preference) for base in BASES for preference in (0, 1)]
PEERS = [(peer, {}, peer) for peer in model.PEERS]


def run(preset, job, scheduler, keys=None, **variables):
    """A run; @scheduler as from bp()."""
    name, tunables, label = scheduler
    if preset in PAPER:
        backlog = REQUESTS if name != "none" else {}
        tunables = {**model.UNTHROTTLED, **backlog, **tunables}
        keys = USED if keys is None else keys
    return model.Run(preset, job, name, tunables=tunables, keys=keys or {}, label=label,
                     variables={key: str(value) for key, value in variables.items()})


def describe(job):
    """Describe a job for a title."""
    return job if job in ("postmark", "dbench") else model.job_says(job)


def on_paper_drives(job, **variables):
    """Tables of a job under BP, without preference, and under the peers."""
    columns = [MBPS, READS, WRITES, MERGES, CROSSINGS, AVOIDED, EXPIRED, READ_MEAN, WRITE_MEAN,
               WRITE_P99]
    return [table(f"{describe(job)}; {preset}",
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
    """Tables of a benchmark on a file system."""
    title = f"{job}: {numbers[0]} {title.format(numbers[1])}; {kind} on"
    return [table(f"{title} {preset}",
                  [run(preset, job, scheduler, IN_MEMORY, A=numbers[0], B=numbers[1], KIND=kind)
                   for scheduler in PEERS + ALL_BP],
                  [*columns, TO_DRIVE, MERGES, CROSSINGS, AVOIDED, EXPIRED])
            for preset in PAPER]


def fairness():
    """two readers against four writers: Jain's index, p99"""
    schedulers = [("mq-deadline", {}, "mq-deadline"), ("bfq", {}, "bfq"), *ALL_BP]
    return [table(f"{describe('bp-fair')}; {preset}",
                  [run(preset, "bp-fair", scheduler, **times) for scheduler in schedulers],
                  [MBPS, READS, WRITES, *JAINS, READ_MEAN, READ_P99, WRITE_P99, NR_READS,
                   NR_WRITES, HITS, MISSES])
            for preset, times in ((PAPER[0], LONG), ("sata", TURNS))]


def settings(what, cells, setting, columns):
    """A table for each load, with a row for each value of a setting."""
    return [table(f"{what}: {describe(job)}{more}; {preset}",
                  [run(preset, job, scheduler, keys, **variables)
                   for scheduler in setting], columns)
            for preset, keys, job, variables, more in cells]


def lookahead():
    """the paper's claim that a lookahead of more than two does not help"""
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
    """antic_us, to choose its default"""
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
    return [table(f"{describe('bp-buffered')}; {preset}",
                  [run(preset, "bp-buffered", (name, {**tunables, "wbt_lat_usec": us},
                                               f"{label}, wbt_lat_usec={us}"), **times)
                   for name, tunables, label in schedulers for us in (2000, 0)],
                  [READS, READ_MEAN, READ_P99, READ_MAX, DRIVE_WROTE, MERGES])
            for preset, times in ((PAPER[0], TURNS), ("sata", TURNS))]


GROUPS = {group.__name__: group for group in
          (blocks, streams, mixed, sequential, postmark, dbench, nilfs, oltp, fairness, lookahead,
           open_blocks, anticipation, times, writeback)}


def main():
    return paper.tables_of_paper("bp", __doc__, GROUPS, HEADING)


if __name__ == "__main__":
    guests.finish(main)
