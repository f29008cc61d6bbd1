#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PASS's region_depth costs and gains, and so what its default should be.

Sweeps region_depth over devices and random workloads in virtual time, beside
the kernel's own schedulers, and puts the tables into a Markdown file, below its
heading "Figures"; what stands above stays.

    tests/bench/region-depth.py [--again] FILE.md

Takes about a quarter of an hour (GUESTS=1 in the environment: one guest at a
time, for a busy machine). --again makes the tables from the last run's figures.
"""
import argparse
import functools
import pathlib

import harness
import report

FOLDER = harness.PROJECT / "build/region-depth"
DEPTHS = (0, 2, 4, 8, 16)
HEADING = "## Figures\n"
DEVICES = {
    "pass-ssd1": ("pass-ssd1", {}),
    "sata": ("sata", {}),
    "nvme": ("nvme", {}),
}
WORKLOADS = {"read": "randread", "write": "randwrite", "mixed": "randrw"}
# 4 GB are one of PASS's regions.
SETS = {"one": "4096m", "all": "100%"}


def cell(device, workload, part):
    """The runs that are compared: the peers, and PASS at each depth."""
    preset, keys = DEVICES[device]
    variables = {"RW": WORKLOADS[workload], "SIZE": SETS[part]}

    def run(scheduler, **more):
        return harness.Run(preset, "region", scheduler, keys=keys, device=device,
                           variables=variables, **more)

    return [*map(run, harness.PEERS),
            *(run(report.OURS, tunables={"iosched/region_depth": depth},
                  label=f"region_depth={depth}") for depth in DEPTHS)]


def measure(cells):
    """Make all runs and leave them in the folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    runs = [run for cell_runs in cells.values() for run in cell_runs]
    progress = harness.Progress(len(runs))
    harness.run_all([functools.partial(
        harness.run_guest, [run for run in runs if run.device == device],
        device.replace(" ", "-"), FOLDER, progress) for device in DEVICES])
    harness.save(FOLDER / "region-depth.json", runs,
                 cpu_seconds=round(harness.cpu_seconds(), 1))


def p99(figures):
    """The worse of the two directions' p99, ms."""
    return max(figures.get(key, 0) for key in ("read_p99", "write_p99"))


def markdown(head, rows):
    """A table."""
    lines = [head, ["---", "---", "---", *["---:"] * (len(head) - 3)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def percent(value, base):
    """How much more than @base."""
    return f"{100 * (value / base - 1):+.1f}"


def sweep_table(cells, value):
    """A row a cell: the figure at region_depth=0, the others relative to it."""
    rows = []
    for name, runs in cells.items():
        by_label = {run.label: run.result["figures"] for run in runs}
        base = value(by_label["region_depth=0"])
        rows.append([*name, report.number(base), *(
            percent(value(by_label[f"region_depth={depth}"]), base)
            for depth in DEPTHS[1:])])
    return markdown(["device", "workload", "regions", "0", *map(str, DEPTHS[1:])],
                    rows)


def peer_table(cells):
    """A row a cell: each scheduler's throughput, and what PASS gains."""
    rows = []
    for name, runs in cells.items():
        by_label = {run.label: run.result["figures"]["mbps"] for run in runs}
        peers = [by_label[peer] for peer in harness.PEERS]
        rows.append([*name, *map(report.number, peers), *(
            percent(by_label[f"region_depth={depth}"], max(peers))
            for depth in (0, 8))])
    return markdown(["device", "workload", "regions", *harness.PEERS, "pass, 0",
                     "pass, 8"], rows)


def main():
    parser = argparse.ArgumentParser(usage="tests/bench/region-depth.py [--again] FILE",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true",
                        help="tables from the figures of the last run")
    parser.add_argument("file", type=pathlib.Path, help="Markdown file to write")
    args = parser.parse_args()
    cells = {(device, workload, part): cell(device, workload, part)
             for device in DEVICES for workload in WORKLOADS for part in SETS}
    if not args.again:
        measure(cells)
    saved = harness.read_back(FOLDER / "region-depth.json",
                              [run for runs in cells.values() for run in runs])
    kept = ""
    if args.file.exists():
        kept = args.file.read_text().partition(HEADING)[0]
    args.file.write_text(kept + HEADING + "\n".join([
        "", f"{report.LABEL.capitalize()}; kernel {saved['kernel']}, "
        f"{saved['fio']}, commit {saved['commit']}.", "",
        "### Throughput", "", "In MB/s without a bound, then by how many percent "
        "more (less) with region_depth=N.", "",
        *sweep_table(cells, lambda f: f["mbps"]), "",
        "### p99 latency", "", "In ms without a bound, the worse of reads and "
        "writes, then by how many percent longer (shorter).", "",
        *sweep_table(cells, p99), "",
        "### Beside the kernel's own schedulers", "", "Throughput in MB/s; PASS "
        "with region_depth=N against the best of them, in percent.", "",
        *peer_table(cells)]) + "\n")
    return 0


if __name__ == "__main__":
    harness.finish(main)
