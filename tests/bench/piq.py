#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PIQ gains and what it costs, in virtual time: the paper's ablation, figures 8
to 19, and today's drives.

    tests/bench/piq.py [--again] [--into FILE.md] [GROUP...]

Traces come from the folder that TRACES names, ts_us,dev,op,offset,size; without any
they are left out. Groups (default: all), results in build/piq/:
"""
import csv
import dataclasses
import gzip
import itertools
import os
import pathlib
import re
import statistics
import subprocess

import harness
import matrix
import report

FOLDER = harness.PROJECT / "build/piq"
TRACE_FOLDER = pathlib.Path(os.environ.get("TRACES", matrix.TRACE_FOLDER))
HEADING = "## Figures\n"
SCHEMES = ("noop", "rws", "piq-r", "piq-w", "piq", "piq+")
# The paper's drive, smaller for the guest's memory.
CAPACITY = {"capacity_mb": 8192}
SMALL, MIXED = "4k/100", "4k/50:8k/20:16k/15:64k/15"
# Requests for the device's queue and for as many behind it in the scheduler.
TAGS = 512
# Traces, and how many of their requests; all go so fast that so many pages a second
# are asked for: 60 % of what the drive serves in order of arrival.
TRACES = {"umass_financial1_prefix": 4_000, "hplajw_1week_1992": 4_000,
          "msr_hm_0_first1000": 1_000}
PAGES_A_SECOND = 28_000
PAGE = 4096
# Jobs that pace themselves: fio looks for ends when it is ahead of time or all its
# places are in use, so its own latencies have that in them. For means take the kernel's.
PACED = ("piq-trace", "piq-rate")
# Of the distributions of figure 13.
POINTS = (10, 50, 90, 99, 99.9)


def prioritised(each):
    """Percent of the write batches that went before reads, if PIQ says so."""
    said = re.search(r"write (\d+) prioritised (\d+)",
                     each.result.get("scheduler", {}).get("piq", ""))
    return 100 * int(said[2]) / int(said[1]) if said and int(said[1]) else None


def columns(each):
    """What the tables show of a run. Waiting in the host is what the latency
    is beyond that in the drive."""
    figures, drive = each.result["figures"], each.result["ssdemu"]
    cells = {}
    for way in ("read", "write"):
        if f"{way}_mean" not in figures:
            continue
        mean = figures[f"{way}_mean"]
        if each.job in PACED:
            kernel = each.result["kernel"]
            mean = kernel[f"{way}_ms"] / kernel[way]
        cells[f"{way} mean"] = mean
        cells[f"{way} in host"] = max(0, mean - drive[f"{way}_mean_ns"] / 1e6)
        cells[f"{way} p99"] = figures[f"{way}_p99"]
        cells[f"{way} p99.9"] = figures[f"{way}_p99.9"]
    cells["IOPS"] = figures["iops"]
    cells["units busy"] = figures["units_busy"]
    return cells


def percent(value, base):
    """By how much more than @base."""
    return f"{100 * (value / base - 1):+.0f} %"


@dataclasses.dataclass
class Table(harness.RunTable):
    """The means and IOPS are also shown in percent against the run labelled @base."""
    base: str = "noop"

    def requests(self):
        """How many requests the figures are of: the fewest and the most, by direction."""
        said = []
        for way in ("read", "write"):
            counts = [each.result["fio"]["jobs"][0][way]["total_ios"] for each in self.rows]
            if max(counts):
                said.append(f"{min(counts):,} to {max(counts):,} {way}s")
        return ", ".join(said)

    def head(self):
        """The heads of the columns."""
        return ["", *columns(self.rows[0]), "write batches first"]

    def body(self):
        """The rows, as text."""
        reference = columns(next(each for each in self.rows if each.label == self.base))
        for each in self.rows:
            row = [each.label]
            for name, value in columns(each).items():
                text = report.number(value)
                if name in ("read mean", "write mean", "IOPS") and each.label != self.base:
                    text += f" ({percent(value, reference[name])})"
                row.append(text)
            share = prioritised(each)
            yield [*row, "" if share is None else f"{share:.0f} %"]

    def lines(self):
        """As Markdown, if all was measured."""
        if not self.measured():
            return []
        return [f"{self.title} ({self.requests()}):", "",
                *harness.markdown(self.head(), self.body()), ""]


class Costs(Table):
    """Instructions, beside none's."""

    def head(self):
        return ["", "instructions", "more than none"]

    def body(self):
        none = harness.instructions(self.rows[0])
        for each in self.rows:
            cost = harness.instructions(each)
            yield [each.label, f"{cost:.0f}", f"{cost - none:+.0f}"]


class Planes(Table):
    """Figures 14, 15 and 17: planes that work at the same time by advanced commands."""

    def head(self):
        return [*super().head(), "by advanced commands"]

    def body(self):
        for cells, each in zip(super().body(), self.rows, strict=True):
            drive = each.result["ssdemu"]
            pages = drive["flash_reads"] + drive["flash_programs"]
            yield [*cells, f"{100 * drive['multiplane'] / pages:.1f} % of the pages"]


class Orders(Table):
    """Figures 10 and 13, from blktrace."""

    def head(self):
        return ["", "reads ahead of an older write",
                *(f"{way} {point:g} %" for way in ("read", "write") for point in POINTS)]

    def body(self):
        for each in self.rows:
            order = each.result["order"]
            yield [each.label, f"{100 * order['ahead'] / order['reads']:.0f} %",
                   *(report.number(order[way][f"{point:g}"])
                     for way in ("read", "write") for point in POINTS)]


# The paper's averages over its traces, in percent against NOOP (section V.B.1).
PAPER = {"piq-r": {"read mean": -41.7, "units busy": 9.2},
         "piq-w": {"write mean": -33.7, "units busy": 11.9},
         "piq": {"read mean": -41.7, "write mean": -33.8, "units busy": 22.0},
         "piq+": {"read mean": -41.1, "write mean": -39.7, "units busy": 22.0}}


class Averages(Table):
    """The averages of other tables, @rows, and the paper's beside them. Its waiting time
    is that before a request's chips start, in the host and in the drive: none of ours."""

    def runs(self):
        return []

    def measured(self):
        return all(table.measured() for table in self.rows)

    def head(self):
        return ["", "read mean", "write mean", "units busy"]

    def body(self):
        for scheme in SCHEMES[1:]:
            row = [scheme]
            for name in self.head()[1:]:
                changes = []
                for table in self.rows:
                    by_label = {each.label: columns(each) for each in table.rows}
                    changes.append(100 * (by_label[scheme][name] / by_label["noop"][name] - 1))
                paper = PAPER.get(scheme, {}).get(name)
                row.append(f"{statistics.fmean(changes):+.1f}" +
                           (f" ({paper:+.1f})" if paper is not None else ""))
            yield row

    def lines(self):
        if not self.rows or not self.measured():
            return []
        return [self.title, "", *harness.markdown(self.head(), self.body()), ""]


def with_averages(tables):
    """@tables, and what they are on average."""
    return [*tables, Averages("On average against noop, in percent; in brackets the paper's:",
                              tables)]


def run(preset, job, scheduler, **more):
    """A run; for one of PIQ's schemes, name it as the scheduler."""
    tunables = dict(more.pop("tunables", {}))
    label = more.pop("label", scheduler)
    if scheduler in SCHEMES:
        tunables = {"iosched/scheme": scheduler, **tunables}
        scheduler = "piq"
    if scheduler != "none":
        tunables = {"nr_requests": TAGS, **tunables}
    return harness.Run(preset, job, scheduler, tunables=tunables, label=label, **more)


def mix(sizes, depth, reads=50, time="200ms"):
    """Variables of piq.fio."""
    return {"SIZES": sizes, "DEPTH": str(depth), "READS": str(reads), "TIME": time}


def rate(each):
    """Variables of piq-rate.fio."""
    return {"SIZES": MIXED, "RATE": str(each), "TIME": "200ms"}


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
    return with_averages([Table(name, [
        run("piq", job, "none", keys=CAPACITY, variables=variables),
        *(run("piq", job, scheme, keys=CAPACITY, variables=variables) for scheme in SCHEMES)])
        for name, (job, variables) in LOADS.items()])


def replay_log(source, count):
    """The first requests of a trace for fio, at the speed that TRACES tells of;
    (file, speed, requests)."""
    name = source.name.removesuffix(".csv.gz")
    with gzip.open(source, "rt", encoding="ascii") as lines:
        rows = list(itertools.islice(csv.reader(lines), count + 1))
    short = FOLDER / f"{name}.csv"
    short.write_text("\n".join(map(",".join, rows)) + "\n", encoding="ascii")
    pages = sum((int(row[3]) + int(row[4]) - 1) // PAGE - int(row[3]) // PAGE + 1
                for row in rows[1:])
    seconds = (float(rows[-1][0]) - float(rows[1][0])) / 1e6
    # Two digits are enough.
    speed = float(f"{PAGES_A_SECOND * seconds / pages:.1e}")
    log = FOLDER / f"{name}.log"
    with open(log, "w", encoding="ascii") as out:
        subprocess.run([harness.PROJECT / "scripts/trace-to-fio", "--compress", f"{speed:.0f}",
                        "--capacity", f"{CAPACITY['capacity_mb']}m", short],
                       stdout=out, check=True)
    return log.relative_to(harness.PROJECT), speed, len(rows) - 1


def replays():
    """What there is of the traces: (title, variables of piq-trace.fio)."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, count in TRACES.items():
        source = TRACE_FOLDER / f"{name}.csv.gz"
        if not source.exists():
            print(f"no trace {source}: left out")
            continue
        log, speed, requests = replay_log(source, count)
        yield f"{name}, {requests} requests, {speed:,.0f} times as fast", {"LOG": str(log)}


def traces():
    """the same on real traces, at a multiple of their speed"""
    return with_averages([Table(name, [
        run("piq", "piq-trace", scheduler, keys=CAPACITY, variables=variables)
        for scheduler in ("none", *SCHEMES)]) for name, variables in replays()])


def orders():
    """how many reads go before writes, and latencies as a distribution, in ms from the
    bio to the end, both from blktrace of requests that don't merge (figures 10 and 13)"""
    return [Orders(name, [
        run("piq", "piq-trace", scheme, keys=CAPACITY, tunables={"nomerges": 2},
            variables={**variables, "TRACED": "1"})
        for scheme in ("noop", "rws", "piq", "piq+")]) for name, variables in replays()]


def planes():
    """a drive with advanced commands: PIQ at the level of chips and of planes (figures 14,
    15 and 17)"""
    keys = {**CAPACITY, "advanced": 1}
    return [Planes(name, [
        run("piq", job, "noop", keys=keys, variables=variables),
        *(run("piq", job, "piq+", keys=keys, variables=variables, label=f"piq+, {level} level",
              tunables={"iosched/level": level}) for level in ("chip", "plane"))])
        for name, (job, variables) in LOADS.items()]


def dynamic():
    """a drive that puts each write where nothing else is going on, with noop, beside
    one that does not, with noop and PIQ+ (figure 16)"""
    moving = {**CAPACITY, "allocation": "dynamic"}
    loads = {**LOADS, **{name: ("piq-trace", variables) for name, variables in replays()}}
    return [Table(name, [
        run("piq", job, "noop", keys=CAPACITY, variables=variables, label="static, noop"),
        run("piq", job, "noop", keys=moving, variables=variables, label="dynamic, noop"),
        run("piq", job, "piq+", keys=CAPACITY, variables=variables, label="static, piq+")],
        "static, noop") for name, (job, variables) in loads.items()]


def window():
    """as many requests of a direction in batches, from 1 to 512, of 512 outstanding
    (figure 18)"""
    load = mix(MIXED, 512)
    return [Table("4-64 KB, 512 outstanding", [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/window": size}, label=f"window={size}")
          for size in (1, 4, 16, 32, 64, 128, 512))])]


def claims():
    """how long until what waits for many units is no longer overtaken: beyond the paper"""
    load = mix(MIXED, 64)
    return [Table("4-64 KB, 64 outstanding", [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/claim_us": us}, label=f"claim_us={us}")
          for us in (500, 2000, 4000, 8000, 60_000_000))])]


def guess():
    """PIQ takes the drive's 8 x 8 chips for another number (figure 19)"""
    shapes = ((4, 4), (4, 8), (8, 8), (8, 16), (7, 9))
    return [Table(name, [
        run("piq", job, "noop", keys=CAPACITY, variables=variables),
        *(run("piq", job, "piq+", keys=CAPACITY, variables=variables,
              tunables={"iosched/dies": 1, "iosched/planes": 1, "iosched/channels": channels,
                        "iosched/chips": chips}, label=f"{channels} x {chips} chips")
          for channels, chips in shapes)])
        for name, (job, variables) in LOADS.items() if "4-64 KB, 64" in name]


def told(preset):
    """PIQ's tunables for a preset, as a probe would find them."""
    return {f"iosched/{name}": value
            for name, value in harness.probed_tunables("piq", preset).items()}


def neutral():
    """today's drives, beside the kernel's own schedulers: PIQ as it comes and told the
    geometry"""
    loads = {"4 KB reads, 64 outstanding": ("piq", mix(SMALL, 64, 100, "60ms")),
             "4-64 KB, 64 outstanding": ("piq", mix(MIXED, 64, 70, "100ms"))}
    return [Table(f"{preset}: {name}", [
        *(run(preset, job, peer, variables=variables) for peer in harness.PEERS),
        run(preset, job, "piq+", variables=variables, label="piq, defaults"),
        run(preset, job, "piq+", variables=variables, tunables=told(preset),
            label="piq, told")], "none")
        for preset in ("sata", "nvme", "qlc") for name, (job, variables) in loads.items()]


def cpu():
    """instructions that a request costs, all of fio's, the block layer's and the driver's;
    the second device is slower than the CPU, so that as many wait in the scheduler as are
    in flight"""
    loads = {
        "4 KB random mixed, 32 outstanding":
            (10_000, 256, matrix.cost_workload("randrw", "4k", 32)),
        "4 KB random mixed, 64 in flight and 64 queued":
            (3_000_000, 64, matrix.cost_workload("randrw", "4k", 128)),
        "128 KB sequential reads, 32 outstanding, in batches of 8":
            (10_000, 256, matrix.cost_workload("read", "128k", 32, 1, 8))}
    tables = []
    for name, (nanoseconds, tags, load) in loads.items():
        keys = matrix.TIMED | {"completion_nsec": nanoseconds, "hw_queue_depth": tags}
        common = {"keys": keys, "variables": load | {"RUNTIME": "250ms"}}
        tables.append(Costs(name, [
            run(harness.NULL_BLK, "cost", "none", **common),
            run(harness.NULL_BLK, "cost", "mq-deadline", **common),
            run(harness.NULL_BLK, "cost", "noop", label="piq, scheme noop", **common),
            *(run(harness.NULL_BLK, "cost", "piq+", label=f"piq, {units} units",
                  tunables={"iosched/level": level}, **common)
              for units, level in ((64, "chip"), (256, "plane")))]))
    return tables


GROUPS = {group.__name__: group for group in (
    schemes, traces, orders, planes, dynamic, window, claims, guess, neutral, cpu)}


def main():
    return harness.tables_of_paper("piq", __doc__, GROUPS, HEADING, "guest.py")


if __name__ == "__main__":
    harness.finish(main)
