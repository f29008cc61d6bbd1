#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What the PASS paper measures (its section 4), measured here, table by table.

    tests/bench/pass.py [--again] [--only TABLE...] FILE.md

TABLE is one of threads (table 2, figures 7 and 8), sysbench (figure 9) and erases
(figure 11, table 3). FILE.md gets the tables below its heading "Figures"; what stands
above stays. --again makes the tables from the figures of the last run.
"""
import argparse
import dataclasses
import functools
import json
import pathlib

import harness

FOLDER = harness.PROJECT / "build/pass"
HEADING = "## Figures\n"
PAPER_DRIVE = "pass-ssd1"
SCHEDULERS = (*harness.PEERS, "pass")
# Table 2: MB/s read, written, both; IOPS. AS and CFQ are gone: BFQ is CFQ's heir.
TABLE_2 = {"Noop": (6.06, 5.95, 12.01), "CFQ": (5.87, 5.84, 11.71),
           "Deadline": (6.07, 6.04, 12.12), "AS": (5.93, 5.90, 11.84),
           "PASS": (7.02, 7.05, 14.07)}
TABLE_3 = {"Noop": (1, 1, 1), "Deadline": (2.51, 2.57, 2.34), "CFQ": (3.12, 3.02, 3.21),
           "AS": (2.78, 3.54, 2.96), "PASS": (1.37, 1.79, 1.52)}
# Who stands for whom.
THEIRS = {"none": "Noop", "mq-deadline": "Deadline", "bfq": "CFQ", "pass": "PASS"}
# Drives for figure 8. The paper tells nothing of its five others that could be
# emulated; today's are here instead, smaller than 40 GB and so with smaller files.
DRIVES = {PAPER_DRIVE: 10240, "sata": 3072, "nvme": 3072, "qlc": 3072}
THREADS = (1, 4, 16, 32, 64)
# What the paper says of figure 9: PASS against the best other, in percent.
FIGURE_9 = {16: 36.6, 32: 41.6}


def run(preset, job, scheduler, **variables):
    """A run under a scheduler with the tunables that fit the drive."""
    tunables = {f"iosched/{name}": value for name, value in
                (harness.probed_tunables(scheduler, preset) if scheduler == "pass"
                 else {}).items()}
    return harness.Run(preset, job, scheduler, tunables,
                       variables={name: str(value) for name, value in variables.items()})


def threads_cells():
    """Table 2, figures 7 and 8."""
    return {drive: [run(drive, "pass-files", scheduler, FILES=4, FILE_MB=size, NUMBER=2500)
                    for scheduler in SCHEDULERS] for drive, size in DRIVES.items()}


def sysbench_cells():
    """Figure 9."""
    return {threads: [run(PAPER_DRIVE, "sysbench", scheduler, FILES=128, FILE_MB=160,
                          THREADS=threads, EVENTS=4000) for scheduler in SCHEDULERS]
            for threads in THREADS}


def erases_cells():
    """Figure 11 and table 3: on a full drive that maps pages."""
    cells = {"sysbench": [run("sata", "sysbench", scheduler, FILES=128, FILE_MB=96,
                              THREADS=16, EVENTS=6000) for scheduler in SCHEDULERS]}
    return cells


GROUPS = {"threads": threads_cells, "sysbench": sysbench_cells, "erases": erases_cells}


def run_guest(runs, name, progress):
    """Make @runs one after another in a guest of their own."""
    plan = FOLDER / f"{name}.plan.json"
    plan.write_text(json.dumps([dataclasses.asdict(run) for run in runs]))
    waiting = iter(runs)

    def hear(line):
        if line.startswith("{"):
            made = next(waiting)
            made.result = json.loads(line)
            progress.step(f"{made.preset}, {made.job}, {made.label}: "
                          f"{made.result['mbps']:.1f} MB/s")

    harness.lab(["env", f"PYTHONPATH={harness.PROJECT}/tests/vm:{harness.BENCH}",
                 harness.BENCH / "pass-guest.py", plan], FOLDER / f"{name}.log", hear,
                ["--virtual-time", f"--kernel={harness.KERNEL}", "--memory=2G"])
    if next(waiting, None):
        raise harness.Failed(f"not all runs came back, log: {FOLDER / name}.log")


def measure(group, cells):
    """Make all runs of a group, a guest for each cell; leave them in a file."""
    runs = [run for some in cells.values() for run in some]
    progress = harness.Progress(len(runs))
    harness.run_all([functools.partial(run_guest, some, f"{group}-{name}", progress)
                     for name, some in cells.items()])
    harness.save(FOLDER / f"{group}.json",
                 [run for run in runs if run.job == "pass-files"],
                 all_runs=[dataclasses.asdict(run) for run in runs])


def read_back(group, cells):
    """Take the results of the last run; return all that was saved with them."""
    path = FOLDER / f"{group}.json"
    if not path.exists():
        raise harness.Failed(f"no figures of {group} yet: run it without --again")
    saved = json.loads(path.read_text())
    runs = [run for some in cells.values() for run in some]
    for run_, was in zip(runs, saved["all_runs"], strict=True):
        run_.result = was["result"]
    return saved


def markdown(head, rows):
    """A table, all but the first column to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines] + [""]


def gain(runs):
    """By how many percent PASS has more throughput than the best of the others."""
    mbps = {run.scheduler: run.result["mbps"] for run in runs}
    return 100 * (mbps.pop("pass") / max(mbps.values()) - 1)


def threads_lines(cells):
    """Table 2, figures 7 and 8."""
    keys = ("read_mbps", "write_mbps", "mbps")
    rows = []
    for made in cells[PAPER_DRIVE]:
        theirs = TABLE_2.get(THEIRS.get(made.scheduler))
        rows.append([made.scheduler, *(f"{made.result[key]:.2f}" for key in keys),
                     *(theirs or [""] * 3),
                     f"{made.result['mbps'] / theirs[2]:.2f}" if theirs else ""])
    yield from [("Table 2: the multithreaded file benchmark on SSD1, MB/s; ours, and the "
                "paper's under noop, deadline, CFQ (beside BFQ), PASS:"), ""]
    yield from markdown(["", "read", "write", "all", "paper: read", "write", "all",
                         "ours / paper"], rows)
    percentiles = (10, 25, 50, 75, 90, 95, 99)
    yield from [("Figure 7: ms within which so many of the threads' reads are answered "
                "(writes go to the page cache; the paper shows all requests of the block "
                "layer):"), ""]
    yield from markdown(["", *(f"{p} %" for p in percentiles)], [
        [made.scheduler, *(f"{made.result[f'read_p{p}']:.2f}" for p in percentiles)]
        for made in cells[PAPER_DRIVE]])
    yield from [("Figure 8: what PASS gains over the best of the others, by drive (the paper: "
                "25 % on average over its six; of the five that are not SSD1 it tells too "
                "little to emulate them):"), ""]
    yield from markdown(["", *SCHEDULERS, "PASS"], [
        [drive, *(f"{made.result['mbps']:.1f}" for made in runs), f"{gain(runs):+.1f} %"]
        for drive, runs in cells.items()])


def sysbench_lines(cells):
    """Figure 9."""
    yield from [("Figure 9: sysbench fileio, 20 GB in 128 files, random reads and writes, "
                "MB/s by threads:"), ""]
    yield from markdown(["threads", *SCHEDULERS, "PASS", "paper"], [
        [threads, *(f"{made.result['mbps']:.2f}" for made in runs), f"{gain(runs):+.1f} %",
         f"{FIGURE_9[threads]:+.1f} %" if threads in FIGURE_9 else ""]
        for threads, runs in cells.items()])


def erases_lines(cells):
    """Figure 11 and table 3."""
    for name, runs in cells.items():
        device = {made.scheduler: made.result["ssdemu"] for made in runs}
        first = device["none"]
        yield from [(f"Figure 11 and table 3: erases and write amplification of {name} (16 "
                    "threads) on a full drive that maps pages (sata), and relative to none; "
                    "the paper's column is table 3's for sysbench's files:"), ""]
        yield from markdown(["", "erases", "relative", "write amplification", "relative",
                             "paper"], [
            [scheduler, row["flash_erases"],
             f"{row['flash_erases'] / max(first['flash_erases'], 1):.2f}",
             f"{row['write_amplification_milli'] / 1e3:.3f}",
             f"{row['write_amplification_milli'] / first['write_amplification_milli']:.2f}",
             TABLE_3[THEIRS[scheduler]][0] if scheduler in THEIRS else ""]
            for scheduler, row in device.items()])


LINES = {"threads": threads_lines, "sysbench": sysbench_lines, "erases": erases_lines}


def main():
    parser = argparse.ArgumentParser(
        usage="tests/bench/pass.py [--again] [--only TABLE...] FILE.md",
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="tables from the last figures")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("file", type=pathlib.Path, help="Markdown file to write")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = []
    for group in args.only:
        cells = GROUPS[group]()
        if not args.again:
            measure(group, cells)
        saved = read_back(group, cells)
        lines += [(f"Emulated device, virtual time; commit {saved['commit']}, kernel "
                  f"{saved['kernel']}, `tests/bench/pass.py --only {group}`."), "",
                  *LINES[group](cells)]
    kept = args.file.read_text().partition(HEADING)[0] if args.file.exists() else ""
    args.file.write_text(kept + HEADING + "\n" + "\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    harness.finish(main)
