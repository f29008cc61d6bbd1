#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PIQ gains and what it costs: the paper's ablation, and today's drives.

    tests/bench/piq.py [--only PART]... [--match TEXT] [--again] [--traces FOLDER] FILE.md

Measures in virtual time and puts the tables into a Markdown file, below its
heading "Figures"; what stands above stays. What was measured with the same
sources is not measured again; --again makes the tables from the figures of the
last run, whatever has changed since. They are left in build/piq/PART.json. PART:
    schemes   six schemes, chip and plane level, synthetic mixes (figures 8-15)
    traces    six schemes on real traces, for the folder given (figures 8-12)
    claims    how long large requests are overtaken
    window    from 1 to 512 requests in batches (figure 18)
    guess     a wrong number of units (figure 19)
    gc        with busy_units, on drives that collect garbage
    neutral   today's drives, beside the kernel's own schedulers
    cpu       instructions for a request, on null_blk
"""
import argparse
import csv
import functools
import gzip
import itertools
import pathlib
import re
import subprocess

import harness
import matrix
import report

FOLDER = harness.PROJECT / "build/piq"
HEADING = "## Figures\n"
SCHEMES = ("noop", "rws", "piq-r", "piq-w", "piq", "piq+")
# The paper's drive, smaller for the guest's memory; chips work in parallel, or
# with advanced commands planes.
CAPACITY = {"capacity_mb": 8192}
LEVELS = {"chip": CAPACITY, "plane": {**CAPACITY, "advanced": 1}}
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


def schemes(_):
    """Each scheme on each load, and alone on the drive; at plane level on one of them."""
    cells = {}
    for level, keys in LEVELS.items():
        for name, (job, variables) in LOADS.items():
            if level == "plane" and name != "4-64 KB, 64 outstanding":
                continue
            cells[f"{name}, {level} level"] = [
                run("piq", job, "none", keys=keys, variables=variables),
                *(run("piq", job, scheme, keys=keys, variables=variables,
                      tunables={"iosched/level": level}) for scheme in SCHEMES)]
    return cells


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


def traces(folder):
    """Each scheme on each trace that is there, at a multiple of its speed."""
    cells = {}
    for name, count in TRACES.items():
        source = folder / f"{name}.csv.gz"
        if not source.exists():
            print(f"no trace {source}: left out")
            continue
        log, speed, requests = replay_log(source, count)
        cells[f"{name}, {requests} requests, {speed:,.0f} times as fast"] = [
            run("piq", "piq-trace", scheduler, keys=CAPACITY, variables={"LOG": str(log)})
            for scheduler in ("none", *SCHEMES)]
    return cells


def window(_):
    """As many requests of a direction in batches, of 512 outstanding."""
    load = mix(MIXED, 512)
    return {"4-64 KB, 512 outstanding": [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/window": size}, label=f"window={size}")
          for size in (1, 4, 16, 32, 64, 128, 512))]}


def claims(_):
    """How long until what waits for many units is no longer overtaken: beyond the paper."""
    load = mix(MIXED, 64)
    return {"4-64 KB, 64 outstanding": [
        run("piq", "piq", "noop", keys=CAPACITY, variables=load),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=load,
              tunables={"iosched/claim_us": us}, label=f"claim_us={us}")
          for us in (500, 2000, 4000, 8000, 60_000_000))]}


def guess(_):
    """PIQ takes the drive's 8 x 8 chips for another number."""
    shapes = ((4, 4), (4, 8), (8, 8), (8, 16), (7, 9))
    return {name: [
        run("piq", job, "noop", keys=CAPACITY, variables=variables),
        *(run("piq", job, "piq+", keys=CAPACITY, variables=variables,
              tunables={"iosched/dies": 1, "iosched/planes": 1, "iosched/channels": channels,
                        "iosched/chips": chips}, label=f"{channels} x {chips} chips")
          for channels, chips in shapes)]
        for name, (job, variables) in LOADS.items() if "4-64 KB, 64" in name}


def told(preset):
    """PIQ's tunables for a preset, as a probe would find them."""
    return {f"iosched/{name}": value
            for name, value in harness.probed_tunables("piq", preset).items()}


def gc(_):
    """busy_units, on drives whose garbage collection never ends."""
    drives = {"piq, full": ("piq", {**CAPACITY, "fill": 100}), "qlc": ("qlc", {})}
    cells = {}
    for name, (preset, keys) in drives.items():
        load = mix(MIXED, 64, time="400ms")
        cells[f"{name}: 4-64 KB, 64 outstanding"] = [
            run(preset, "piq", "none", keys=keys, variables=load),
            *(run(preset, "piq", "piq+", keys=keys, variables=load, label=f"busy_units={us}",
                  tunables={**told(preset), "iosched/busy_units": us})
              for us in (0, 200, 1000, 5000))]
    return cells


def neutral(_):
    """Beside the peers, as it comes and told the geometry."""
    loads = {"4 KB reads, 64 outstanding": ("piq", mix(SMALL, 64, 100, "60ms")),
             "4-64 KB, 64 outstanding": ("piq", mix(MIXED, 64, 70, "100ms"))}
    return {f"{preset}: {name}": [
        *(run(preset, job, peer, variables=variables) for peer in harness.PEERS),
        run(preset, job, "piq+", variables=variables, label="piq, defaults"),
        run(preset, job, "piq+", variables=variables, tunables=told(preset),
            label="piq, told")]
        for preset in ("sata", "nvme", "qlc") for name, (job, variables) in loads.items()}


def cpu(_):
    """Instructions that a request costs, all of fio's, the block layer's and the driver's.
    The second device is slower than the CPU, so that as many wait in the scheduler as are
    in flight."""
    loads = {
        "4 KB random mixed, 32 outstanding":
            (10_000, 256, matrix.cost_workload("randrw", "4k", 32)),
        "4 KB random mixed, 64 in flight and 64 queued":
            (3_000_000, 64, matrix.cost_workload("randrw", "4k", 128)),
        "128 KB sequential reads, 32 outstanding, in batches of 8":
            (10_000, 256, matrix.cost_workload("read", "128k", 32, 1, 8))}
    cells = {}
    for name, (nanoseconds, tags, load) in loads.items():
        keys = matrix.TIMED | {"completion_nsec": nanoseconds, "hw_queue_depth": tags}
        common = {"keys": keys, "variables": load | {"RUNTIME": "250ms"}}
        cells[name] = [
            run(harness.NULL_BLK, "cost", "none", **common),
            run(harness.NULL_BLK, "cost", "mq-deadline", **common),
            run(harness.NULL_BLK, "cost", "noop", label="piq, scheme noop", **common),
            *(run(harness.NULL_BLK, "cost", "piq+", label=f"piq, {units} units",
                  tunables={"iosched/level": level}, **common)
              for units, level in ((64, "chip"), (256, "plane")))]
    return cells


def cpu_table(runs):
    """A row a scheduler, beside none."""
    lines = ["| | instructions | more than none |", "| --- | ---: | ---: |"]
    none = harness.instructions(runs[0])
    for each in runs:
        cost = harness.instructions(each)
        lines.append(f"| {each.label} | {cost:.0f} | {cost - none:+.0f} |")
    return lines


PARTS = {part.__name__: part for part in (schemes, traces, claims, window, guess, gc, neutral, cpu)}


def measure(parts):
    """Make all runs of {part: cells} that are not known and leave them in the folder."""
    store = harness.Store(harness.PROJECT / "build/bench-store")
    by_part = {part: [each for cell in cells.values() for each in cell]
               for part, cells in parts.items()}
    missing = [each for runs in by_part.values() for each in runs if not store.recall(each)]
    progress = harness.Progress(len(missing))
    size = (len(missing) + harness.GUESTS - 1) // harness.GUESTS
    harness.run_all([functools.partial(harness.run_guest, missing[at:at + size], f"guest-{at}",
                                       FOLDER, progress, store.keep)
                     for at in range(0, len(missing), size or 1)])
    for part, runs in by_part.items():
        harness.save(FOLDER / f"{part}.json", runs)


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


def table(runs, base):
    """A row a run; the means also against the run labelled @base, in percent."""
    rows = []
    reference = next((columns(each) for each in runs if each.label == base), None)
    for each in runs:
        row = [each.label]
        for name, value in columns(each).items():
            text = report.number(value)
            if name in ("read mean", "write mean", "IOPS") and reference and each.label != base:
                text += f" ({percent(value, reference[name])})"
            row.append(text)
        share = prioritised(each)
        rows.append([*row, "" if share is None else f"{share:.0f} %"])
    head = ["", *columns(runs[0]), "write batches first"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def requests(runs):
    """How many requests the figures are of: the fewest and the most, by direction."""
    said = []
    for way in ("read", "write"):
        counts = [each.result["fio"]["jobs"][0][way]["total_ios"] for each in runs]
        if max(counts):
            said.append(f"{min(counts):,} to {max(counts):,} {way}s")
    return ", ".join(said)


# The paper's averages over its traces, in percent against NOOP (section V.B.1).
PAPER = {"piq-r": {"read mean": -41.7, "read in host": -51.3, "units busy": 9.2},
         "piq-w": {"write mean": -33.7, "write in host": -46.1, "units busy": 11.9},
         "piq": {"read mean": -41.7, "read in host": -51.3, "write mean": -33.8,
                 "write in host": -46.3, "units busy": 22.0},
         "piq+": {"read mean": -41.1, "write mean": -39.7, "write in host": -70.5,
                  "units busy": 22.0}}


def against_paper(cells):
    """The averages of all tables, and the paper's beside them. Its waiting time is that
    before a request's chips start, in the host and in the drive: none of ours."""
    names = ("read mean", "write mean", "units busy")
    lines = ["", "On average against noop, in percent; in brackets the paper's:", "",
             "| | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for scheme in SCHEMES[1:]:
        row = [scheme]
        for name in names:
            changes = []
            for runs in cells.values():
                by_label = {each.label: columns(each) for each in runs}
                changes.append(100 * (by_label[scheme][name] / by_label["noop"][name] - 1))
            paper = PAPER.get(scheme, {}).get(name)
            row.append(f"{sum(changes) / len(changes):+.1f}" +
                       (f" ({paper:+.1f})" if paper is not None else ""))
        lines.append("| " + " | ".join(row) + " |")
    return lines


BASES = {"neutral": "none", "gc": "busy_units=0"}


def markdown(part, cells, saved):
    """The part's tables."""
    lines = ["", f"### {part}", "", " ".join((PARTS[part].__doc__ or "").split()), "",
             f"`{' '.join(saved['command'])}`, commit {saved['commit']}, kernel "
             f"{saved['kernel']}."]
    for name, runs in cells.items():
        if part == "cpu":
            lines += ["", f"{name}:", "", *cpu_table(runs)]
            continue
        lines += ["", f"{name} ({requests(runs)}):", "", *table(runs, BASES.get(part, "noop"))]
    if part in ("schemes", "traces"):
        lines += against_paper(cells)
    return lines


def figures(parts):
    """All that stands below the heading, from what the last runs have left."""
    lines = ["", f"{report.LABEL.capitalize()}. Latencies in ms, percentages against noop "
             "(`neutral`: none, `gc`: busy_units=0); \"in host\" is what the latency is beyond "
             "that in the drive; \"units busy\" while any is; the last column is the share of "
             "write batches that went before reads (figure 12). Where requests come at a given "
             "time, means are the kernel's (/sys/block/X/stat), percentiles fio's, which "
             "sees an end late then."]
    for part, cells in parts.items():
        runs = [each for cell in cells.values() for each in cell]
        lines += markdown(part, cells, harness.read_back(FOLDER / f"{part}.json", runs))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage="tests/bench/piq.py [options] FILE",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART",
                        help="one of " + ", ".join(PARTS) + "; may be repeated")
    parser.add_argument("--match", default="", metavar="TEXT",
                        help="only tables that have TEXT in their names")
    parser.add_argument("--again", action="store_true",
                        help="tables from the figures of the last run")
    parser.add_argument("--traces", type=pathlib.Path,
                        default=harness.PROJECT.parent / "shared/traces",
                        help="folder of traces, ts_us,dev,op,offset,size")
    parser.add_argument("file", type=pathlib.Path, help="Markdown file to write")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = {part: {name: runs for name, runs in PARTS[part](args.traces).items()
                    if args.match in name} for part in args.only or PARTS}
    if not args.again:
        measure(parts)
    kept = ""
    if args.file.exists():
        kept = args.file.read_text().partition(HEADING)[0]
    args.file.write_text(kept + HEADING + figures(parts))
    return 0


if __name__ == "__main__":
    harness.finish(main)
