#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PIQ gains and what it costs: the paper's ablation, and today's drives.

    tests/bench/piq.py [--only PART]... [--match TEXT] [--again] [--traces FOLDER] FILE.md

Measures in virtual time and puts the tables into a Markdown file, below its
heading "Figures"; what stands above stays. The figures are left in
build/piq/PART.json; --again makes the tables from those of the last run. PART:
    schemes   six schemes, chip and plane level, synthetic mixes (figures 8-15)
    traces    six schemes on real traces, for the folder given (figures 8-11)
    window    from 1 to 512 requests in batches (figure 18)
    guess     a wrong number of units (figure 19)
    neutral   today's drives, beside the kernel's own schedulers
    cpu       instructions for a request, on null_blk
"""
import argparse
import functools
import json
import pathlib
import subprocess

import harness
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
# How many times as fast each trace goes: some 28,000 pages a second, 60 % of
# what the drive serves in order of arrival.
TRACES = {"umass_financial1_prefix": 300, "hplajw_1week_1992": 200_000,
          "msr_hm_0_first1000": 1500}


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


def mix(sizes, depth, reads=50, time="600ms"):
    """Variables of piq.fio."""
    return {"SIZES": sizes, "DEPTH": str(depth), "READS": str(reads), "TIME": time}


# Name: (fio job, its variables). In order of arrival the drive serves some 12,000
# requests of 4 to 64 KB a second: these rates are 58 and 92 % of that.
LOADS = {
    "4 KB, 64 outstanding": ("piq", mix(SMALL, 64)),
    "4-64 KB, 64 outstanding": ("piq", mix(MIXED, 64)),
    "4-64 KB, 256 outstanding": ("piq", mix(MIXED, 256)),
    "4-64 KB, 2 x 3500/s": ("piq-rate", {"SIZES": MIXED, "RATE": "3500", "TIME": "600ms"}),
    "4-64 KB, 2 x 5500/s": ("piq-rate", {"SIZES": MIXED, "RATE": "5500", "TIME": "600ms"}),
}


def schemes(_):
    """Each scheme on each load at both levels, and alone on the drive."""
    cells = {}
    for level, keys in LEVELS.items():
        for name, (job, variables) in LOADS.items():
            cells[f"{name}, {level} level"] = [
                run("piq", job, "none", keys=keys, variables=variables),
                *(run("piq", job, scheme, keys=keys, variables=variables,
                      tunables={"iosched/level": level}) for scheme in SCHEMES)]
    return cells


def traces(folder):
    """Each scheme on each trace that is there, at a multiple of its speed."""
    cells = {}
    for name, speed in TRACES.items():
        source = folder / f"{name}.csv.gz"
        if not source.exists():
            print(f"no trace {source}: left out")
            continue
        log = FOLDER / f"{name}.log"
        with open(log, "w", encoding="ascii") as out:
            subprocess.run([harness.PROJECT / "scripts/trace-to-fio", "--compress", str(speed),
                            "--capacity", f"{CAPACITY['capacity_mb']}m", source],
                           stdout=out, check=True)
        variables = {"LOG": str(log)}
        cells[f"{name}, {speed} times as fast"] = [
            run("piq", "piq-trace", scheduler, keys=CAPACITY, variables=variables)
            for scheduler in ("none", *SCHEMES)]
    return cells


def window(_):
    """As many requests in batches."""
    sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    return {f"{name}, 512 outstanding": [
        run("piq", "piq", "noop", keys=CAPACITY, variables=mix(load, 512, time="400ms")),
        *(run("piq", "piq", "piq+", keys=CAPACITY, variables=mix(load, 512, time="400ms"),
              tunables={"iosched/window": size}, label=f"window={size}") for size in sizes)]
        for name, load in (("4 KB", SMALL), ("4-64 KB", MIXED))}


def guess(_):
    """PIQ takes the drive's 8 x 8 chips for another number."""
    shapes = ((1, 8), (4, 4), (4, 8), (8, 8), (8, 16), (8, 32), (7, 9))
    return {name: [
        run("piq", job, "noop", keys=CAPACITY, variables=variables),
        *(run("piq", job, "piq+", keys=CAPACITY, variables=variables,
              tunables={"iosched/dies": 1, "iosched/planes": 1, "iosched/channels": channels,
                        "iosched/chips": chips}, label=f"{channels} x {chips} chips")
          for channels, chips in shapes)]
        for name, (job, variables) in LOADS.items() if "64 outst" in name or "5500" in name}


# What PIQ is told of each drive: its planes, as they work in parallel.
NEUTRAL = {
    "nvme": {"channels": 8, "chips": 4, "dies": 2, "planes": 4, "level": "plane"},
    "sata": {"channels": 8, "chips": 4, "dies": 1, "planes": 4, "level": "plane"},
    "qlc": {"channels": 4, "chips": 4, "dies": 2, "planes": 4, "level": "plane"},
}


def neutral(_):
    """Beside the peers, as it comes and told the geometry."""
    loads = {"4 KB reads, 64 outstanding": ("piq", mix(SMALL, 64, 100, "300ms")),
             "4-64 KB, 64 outstanding": ("piq", mix(MIXED, 64, 70, "300ms")),
             "4-64 KB, 256 outstanding": ("piq", mix(MIXED, 256, 70, "300ms"))}
    cells = {}
    for preset, geometry in NEUTRAL.items():
        told = {f"iosched/{name}": value for name, value in geometry.items()}
        for name, (job, variables) in loads.items():
            cells[f"{preset}: {name}"] = [
                *(run(preset, job, peer, variables=variables) for peer in harness.PEERS),
                run(preset, job, "piq+", variables=variables, label="piq, defaults"),
                run(preset, job, "piq+", variables=variables, tunables=told,
                    label="piq, told")]
    return cells


def cpu(_):
    """Instructions for a request of 4 KB, on null_blk (piq-cpu.py)."""
    return {}


def measure_cpu():
    """Run piq-cpu.py and leave its figures in the folder."""
    found = {}

    def hear(line):
        if line.startswith("{"):
            found.update(json.loads(line))

    harness.lab([harness.BENCH / "piq-cpu.py"], FOLDER / "cpu.log", hear)
    harness.save(FOLDER / "cpu.json", [], cpu=found)


def cpu_table(saved):
    """A row a case, beside none."""
    lines = ["| | instructions | more than none |", "| --- | ---: | ---: |"]
    for case, cost in saved["cpu"].items():
        none = saved["cpu"]["none, " + ", ".join(case.split(", ")[-2:])]
        lines.append(f"| {case} | {cost:.0f} | {cost - none:+.0f} |")
    return lines


PARTS = {part.__name__: part for part in (schemes, traces, window, guess, neutral, cpu)}


def measure(part, cells):
    """Make all runs of a part and leave them in the folder."""
    if part == "cpu":
        measure_cpu()
        return
    runs = [each for cell in cells.values() for each in cell]
    progress = harness.Progress(len(runs))
    half = (len(runs) + harness.GUESTS - 1) // harness.GUESTS
    harness.run_all([functools.partial(harness.run_guest, runs[at:at + half],
                                       f"{part}-{at}", FOLDER, progress)
                     for at in range(0, len(runs), half)])
    harness.save(FOLDER / f"{part}.json", runs,
                 cpu_seconds=round(harness.cpu_seconds(), 1))


def read_back(part, cells):
    """Take the results of the last run; return all that was saved with them."""
    try:
        saved = json.loads((FOLDER / f"{part}.json").read_text())
    except FileNotFoundError:
        raise harness.Failed(f"no figures of {part} yet: run it without --again") from None
    results = iter(saved["runs"])
    for runs in cells.values():
        for each in runs:
            each.result = next(results)["result"]
    return saved


def columns(each):
    """What the tables show of a run. Waiting in the host is what the latency
    is beyond that in the drive."""
    figures, drive = each.result["figures"], each.result["ssdemu"]
    cells = {}
    for way in ("read", "write"):
        if f"{way}_mean" not in figures:
            continue
        cells[f"{way} mean"] = figures[f"{way}_mean"]
        cells[f"{way} in host"] = figures[f"{way}_mean"] - drive[f"{way}_mean_ns"] / 1e6
        cells[f"{way} p99"] = figures[f"{way}_p99"]
        cells[f"{way} p99.9"] = figures[f"{way}_p99.9"]
    cells["IOPS"] = figures["iops"]
    cells["units busy"] = figures["units_busy"]
    return cells


def table(runs, base):
    """A row a run; the means also against the run labelled @base, in percent."""
    rows, reference = [], None
    for each in runs:
        cells = columns(each)
        if each.label == base:
            reference = cells
    for each in runs:
        cells = columns(each)
        row = [each.label]
        for name, value in cells.items():
            text = report.number(value)
            if name in ("read mean", "write mean", "IOPS") and reference and each.label != base:
                text += f" ({100 * (value / reference[name] - 1):+.0f} %)"
            row.append(text)
        rows.append(row)
    head = ["", *columns(runs[0])]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


BASES = {"schemes": "noop", "traces": "noop", "window": "noop", "guess": "noop",
         "neutral": "none"}


def markdown(part, cells, saved):
    """The part's tables."""
    lines = ["", f"### {part}", "", (PARTS[part].__doc__ or "").splitlines()[0], "",
             f"`{' '.join(saved['command'])}`, commit {saved['commit']}, kernel "
             f"{saved['kernel']}. Latencies in ms."]
    if part == "cpu":
        lines += ["", *cpu_table(saved)]
    for name, runs in cells.items():
        lines += ["", f"{name}:", "", *table(runs, BASES[part])]
    return lines


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
    lines = []
    for part in args.only or PARTS:
        cells = {name: runs for name, runs in PARTS[part](args.traces).items()
                 if args.match in name}
        if not args.again:
            measure(part, cells)
        lines += markdown(part, cells, read_back(part, cells))
    kept = ""
    if args.file.exists():
        kept = args.file.read_text().partition(HEADING)[0]
    args.file.write_text(kept + HEADING + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    harness.finish(main)
