#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Measure PIQ in virtual time: the paper's ablation, and its figures 8 to 19.

    tests/bench/paper_piq.py [--again] [--into FILE.md] [GROUP...]

The environment variable TRACES names the folder of traces in CSV: ts_us, dev, op, offset,
size. Traces that are not there are left out. Groups (default: all), results in build/piq/:
"""
import csv
import gzip
import itertools
import os
import pathlib
import re
import statistics

import guests
import matrix
import model
import paper
import replay
from tables import Column, Table, counter, labelled

FOLDER = model.PROJECT / "build/piq"
TRACE_FOLDER = pathlib.Path(os.environ.get("TRACES", matrix.TRACE_FOLDER))
HEADING = "## Figures\n"
SCHEMES = ("noop", "rws", "piq-r", "piq-w", "piq", "piq+")
# The paper's drive, smaller for the guest's memory.
CAPACITY = {"capacity_mb": 8192}
SMALL, MIXED = "4k/100", "4k/50:8k/20:16k/15:64k/15"
# Requests for the device's queue and for as many behind it in the scheduler.
TAGS = 512
# Number of requests taken from each trace. Each is replayed at the speed at which it needs
# this many pages a second: 60 % of what the drive serves in order of arrival.
TRACES = {"umass_financial1_prefix": 4_000, "hplajw_1week_1992": 4_000,
          "msr_hm_0_first1000": 1_000}
PAGES_A_SECOND = 28_000
PAGE = 4096
# Before what fio measures.
RAMP = "50ms"
# A job that paces itself. fio reaps completions only when it is ahead of time or has no free
# slot, so its latencies are too long; the means are the kernel's.
PACED = "piq-rate"
# Percentiles of figure 13.
POINTS = (10, 50, 90, 99, 99.9)


def prioritised(run):
    """Percent of the write batches that PIQ has dispatched ahead of reads."""
    found = re.search(r"write (\d+) prioritised (\d+)", run.result["scheduler"].get("piq", ""))
    return 100 * int(found[2]) / int(found[1]) if found else None


def mean(way):
    """Return a function of a run: the mean latency in ms."""
    def get(run):
        value = run.result["figures"][f"{way}_mean"]
        if run.job == PACED:
            kernel = run.result["kernel"]
            value = kernel[f"{way}_ms"] / kernel[way]
        return value
    return get


def in_host(way):
    """Return a function of a run: the mean ms in the host, which is the latency beyond that
    of the drive."""
    return lambda run: max(0, mean(way)(run) - run.result["ssdemu"][f"{way}_mean_ns"] / 1e6)


COLUMNS = [*(column for way in ("read", "write") for column in (
               Column(f"{way} mean", mean(way), percent=0),
               Column(f"{way} in host", in_host(way)),
               Column(f"{way} p99", f"{way}_p99"), Column(f"{way} p99.9", f"{way}_p99.9"))),
           Column("IOPS", "iops", percent=0), Column("units busy", "units_busy"),
           Column("write batches first", prioritised, form="{:.0f} %")]


def multiplane(run):
    """Percent of the pages that advanced commands have moved."""
    drive = run.result["ssdemu"]
    return 100 * drive["multiplane"] / (drive["flash_reads"] + drive["flash_programs"])


# Figures 14, 15 and 17: planes that work at the same time by advanced commands.
PLANES = [*COLUMNS, Column("by advanced commands", multiplane, form="{:.1f} % of the pages")]
# Figures 10 and 13, from blktrace.
ORDERS = [Column("reads ahead of an older write", form="{:.0f} %", get=lambda run:
                 100 * run.result["order"]["ahead"] / run.result["order"]["reads"]),
          *(Column(f"{way} {point:g} %", counter("order", way, f"{point:g}"))
            for way in ("read", "write") for point in POINTS)]


def requests(runs):
    """Number of requests of the figures: the fewest and the most, by direction."""
    counted = []
    for way in ("read", "write"):
        counts = [run.result["fio"]["jobs"][0][way]["total_ios"] for run in runs]
        if max(counts):
            counted.append(f"{min(counts):,} to {max(counts):,} {way}s")
    return ", ".join(counted)


def table(title, runs, columns=COLUMNS, base="noop"):
    """A table of runs. Percents refer to the run labelled @base."""
    return Table(title, labelled(runs), columns, base=lambda label: base, note=requests,
                 complete=True)


def costs(title, runs):
    """A table of instructions, and of those that a scheduler adds to the first run's."""
    return table(title, runs, [
        Column("instructions", model.instructions, form="{:.0f}"),
        Column("more than none", form="{:+.0f}", get=lambda run:
               model.instructions(run) - model.instructions(runs[0]))])


# The paper's averages over its traces: percent against NOOP (section V.B.1).
PAPER = {"piq-r": {"read mean": -41.7, "units busy": 9.2},
         "piq-w": {"write mean": -33.7, "units busy": 11.9},
         "piq": {"read mean": -41.7, "write mean": -33.8, "units busy": 22.0},
         "piq+": {"read mean": -41.1, "write mean": -39.7, "units busy": 22.0}}


def with_averages(made):
    """Return the tables @made, and one of the averages over them beside the paper's. The
    paper's waiting time is not comparable: it ends when the chips of a request start."""
    if not made:
        return []
    runs = {scheme: [dict(table.rows)[scheme] for table in made] for scheme in SCHEMES}

    def average(column):
        def get(ours):
            changes = [100 * (column.value(run) / column.value(noop) - 1)
                       for run, noop in zip(ours, runs["noop"], strict=True)]
            paper = PAPER.get(ours[0].label, {}).get(column.head)
            return (f"{statistics.fmean(changes):+.1f}" +
                    (f" ({paper:+.1f})" if paper is not None else ""))
        return get

    columns = [Column(column.head, average(column), form="{}") for column in COLUMNS
               if column.head in ("read mean", "write mean", "units busy")]
    return [*made, Table("On average against noop, in percent; in brackets the paper's",
                         [(scheme, runs[scheme]) for scheme in SCHEMES[1:]], columns,
                         complete=True)]


def run(preset, job, scheduler, **more):
    """A run; @scheduler may be one of PIQ's schemes."""
    tunables = dict(more.pop("tunables", {}))
    label = more.pop("label", scheduler)
    if scheduler in SCHEMES:
        tunables = paper.mode("piq", scheme=scheduler) | tunables
        scheduler = "piq"
    if scheduler != "none":
        tunables = {"nr_requests": TAGS, **tunables}
    return model.Run(preset, job, scheduler, tunables=tunables, label=label, **more)


def mix(sizes, depth, reads=50, time="200ms"):
    """Return the variables of piq.fio."""
    return {"SIZES": sizes, "DEPTH": str(depth), "READS": str(reads), "RAMP": RAMP, "TIME": time}


def rate(requests_s):
    """Return the variables of piq-rate.fio."""
    return {"SIZES": MIXED, "RATE": str(requests_s), "RAMP": RAMP, "TIME": "200ms"}


# Name: (fio job, its variables). In order of arrival the drive serves some 12,000
# requests of 4 to 64 KB a second: these rates are 58 and 92 % of that.
LOADS = {
    "4 KB, 64 outstanding": ("piq", mix(SMALL, 64)),
    "4-64 KB, 64 outstanding": ("piq", mix(MIXED, 64)),
    "4-64 KB, 2 x 3500/s": ("piq-rate", rate(3500)),
    "4-64 KB, 2 x 5500/s": ("piq-rate", rate(5500)),
}


def schemes():
    """six schemes on the paper's drive, and none (figures 8, 9, 11 and 12)"""
    return with_averages([table(name, [
        run("piq", job, "none", keys=CAPACITY, variables=variables),
        *(run("piq", job, scheme, keys=CAPACITY, variables=variables) for scheme in SCHEMES)])
        for name, (job, variables) in LOADS.items()])


def replay_log(source, count):
    """Write logs that replay the first @count requests of a trace, at PAGES_A_SECOND; return the
    variable LOG, the speed against the recorded one, and the number of requests."""
    name = source.name.removesuffix(".csv.gz")
    with gzip.open(source, "rt", encoding="ascii") as lines:
        rows = list(itertools.islice(csv.reader(lines), count + 1))
    short = FOLDER / f"{name}.csv"
    short.write_text("\n".join(map(",".join, rows)) + "\n", encoding="ascii")
    pages = sum((int(row[3]) + int(row[4]) - 1) // PAGE - int(row[3]) // PAGE + 1
                for row in rows[1:])
    seconds = (float(rows[-1][0]) - float(rows[1][0])) / 1e6
    speed = float(f"{PAGES_A_SECOND * seconds / pages:.1e}")
    log = replay.logs(short, FOLDER / name[:12], f"--compress={speed:.0f}",
                      f"--capacity={CAPACITY['capacity_mb']}m")
    return log, speed, len(rows) - 1


def replays():
    """Yield (title, variables of replay.fio) for each trace that is there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, count in TRACES.items():
        source = TRACE_FOLDER / f"{name}.csv.gz"
        if not source.exists():
            print(f"no trace {source}: left out")
            continue
        log, speed, requests = replay_log(source, count)
        yield f"{name}, {requests} requests, {speed:,.0f} times as fast", {"LOG": log}


def traces():
    """the same on real traces, at a multiple of their speed"""
    return with_averages([table(name, [
        run("piq", "replay", scheduler, keys=CAPACITY, variables=variables)
        for scheduler in ("none", *SCHEMES)]) for name, variables in replays()])


def orders():
    """the share of reads dispatched ahead of an older write, and percentiles of the ms from
    the bio to its completion, both from blktrace of requests that do not merge (figures 10
    and 13)"""
    return [table(name, [
        run("piq", "replay", scheme, keys=CAPACITY, tunables={"nomerges": 2},
            variables={**variables, "TRACED": "1"})
        for scheme in ("noop", "rws", "piq", "piq+")], ORDERS) for name, variables in replays()]


def planes():
    """a drive with advanced commands: PIQ at the level of chips and of planes (figures 14,
    15 and 17)"""
    keys = {**CAPACITY, "unit": "plane"}
    return [table(name, [
        run("piq", job, "noop", keys=keys, variables=variables),
        *(run("piq", job, "piq+", keys=keys, variables=variables, label=f"piq+, {level} level",
              tunables={"iosched/level": level}) for level in ("chip", "plane"))], PLANES)
        for name, (job, variables) in LOADS.items()]


def dynamic():
    """a drive that places each write on an idle unit, with noop, beside one that does not,
    with noop and PIQ+ (figure 16)"""
    moving = {**CAPACITY, "allocation": "dynamic"}
    loads = {**LOADS, **{name: ("replay", variables) for name, variables in replays()}}
    return [table(name, [
        run("piq", job, "noop", keys=CAPACITY, variables=variables, label="static, noop"),
        run("piq", job, "noop", keys=moving, variables=variables, label="dynamic, noop"),
        run("piq", job, "piq+", keys=CAPACITY, variables=variables, label="static, piq+")],
        base="static, noop") for name, (job, variables) in loads.items()]


def window():
    """the window, the requests of a direction that PIQ puts into batches, of 512 outstanding
    (figure 18)"""
    load = mix(MIXED, 512)
    return [table("4-64 KB, 512 outstanding", [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/window": size}, label=f"window={size}")
          for size in (1, 4, 16, 32, 64, 128, 512))])]


def claims():
    """claim_us, after which a request that waits for many units is no longer overtaken: not
    in the paper"""
    load = mix(MIXED, 64)
    return [table("4-64 KB, 64 outstanding", [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/claim_us": us}, label=f"claim_us={us}")
          for us in (500, 2000, 4000, 8000, 60_000_000))])]


def guess():
    """PIQ with a wrong number of chips; the drive has 8 x 8 (figure 19)"""
    shapes = ((4, 4), (4, 8), (8, 8), (8, 16), (7, 9))
    return [table(name, [
        run("piq", job, "noop", keys=CAPACITY, variables=variables),
        *(run("piq", job, "piq+", keys=CAPACITY, variables=variables,
              tunables={"iosched/dies": 1, "iosched/planes": 1, "iosched/channels": channels,
                        "iosched/chips": chips}, label=f"{channels} x {chips} chips")
          for channels, chips in shapes)])
        for name, (job, variables) in LOADS.items() if "4-64 KB, 64" in name]


def cpu():
    """instructions of a request, in fio, the block layer and the driver; the second device is
    slower than the CPU, so as many requests wait in the scheduler as are in flight"""
    loads = {
        "4 KB random mixed, 32 outstanding":
            (10_000, 256, matrix.cost_workload("randrw", "4k", 32)),
        "4 KB random mixed, 64 in flight and 64 queued":
            (3_000_000, 64, matrix.cost_workload("randrw", "4k", 128)),
        "128 KB sequential reads, 32 outstanding, in batches of 8":
            (10_000, 256, matrix.cost_workload("read", "128k", 32, 1, 8))}
    made = []
    for name, (nanoseconds, tags, load) in loads.items():
        keys = matrix.TIMED | {"completion_nsec": nanoseconds, "hw_queue_depth": tags}
        common = {"keys": keys, "variables": load | {"RUNTIME": "250ms"}}
        made.append(costs(name, [
            run(model.NULL_BLK, "cost", "none", **common),
            run(model.NULL_BLK, "cost", "mq-deadline", **common),
            run(model.NULL_BLK, "cost", "noop", label="piq, scheme noop", **common),
            *(run(model.NULL_BLK, "cost", "piq+", label=f"piq, {units} units",
                  tunables={"iosched/level": level}, **common)
              for units, level in ((64, "chip"), (256, "plane")))]))
    return made


GROUPS = {group.__name__: group for group in (
    schemes, traces, orders, planes, dynamic, window, claims, guess, cpu)}


def main():
    return paper.tables_of_paper("piq", __doc__, GROUPS, HEADING, "runs.py")


if __name__ == "__main__":
    guests.finish(main)
