#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Measure PASS beside the kernel's schedulers in virtual time: the PASS paper's tables 2 and
3 and figures 7 to 11.

    tests/bench/paper_pass.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/pass/:
"""
import guests
import model
import paper
from tables import Column, Table, counter, labelled

HEADING = "## Figures\n"
SCHEDULERS = (*model.PEERS, "pass")
# The paper's names. The kernel has no AS and no CFQ any more; BFQ descends from CFQ.
THEIRS = {"none": "Noop", "mq-deadline": "Deadline", "bfq": "CFQ", "pass": "PASS"}
# Table 2: MB/s read, written, both. Its IOPS contradict them.
TABLE_2 = {"Noop": (6.06, 5.95, 12.01), "CFQ": (5.87, 5.84, 11.71),
           "Deadline": (6.07, 6.04, 12.12), "PASS": (7.02, 7.05, 14.07)}
# Table 3: write amplification against Noop, sysbench's files and complex OLTP, by job.
TABLE_3 = {"sysbench": {"Noop": 1, "Deadline": 2.51, "CFQ": 3.12, "PASS": 1.37},
           "oltp": {"Noop": 1, "Deadline": 2.34, "CFQ": 3.21, "PASS": 1.52}}
# Figure 11 as in the text of section 4.5: erases against Noop, complex OLTP.
FIGURE_11 = {"oltp": {"Noop": 1, "Deadline": 0.65 / 0.58, "CFQ": 0.65 / 0.58, "PASS": 0.65}}
PAPER_DRIVE, FULL_DRIVE = "pass-ssd1", "sata"
# Figures 8 (the mean of its drives) and 9 (by threads) in the text: percent by which PASS is
# better than the best other.
FIGURE_8, FIGURE_9 = {PAPER_DRIVE: 25}, {"16": 36.6, "32": 41.6}
# Figure 8: the paper does not describe its five other drives well enough to emulate them.
# Drives of today replace them. They are smaller than the paper's 40 GB of files: MB that all
# files of a test have on each, four fifths of the drive.
TODAY = {"sata": 6144, "nvme": 6144, "qlc": 2816}
THREADS, USUAL = (1, 4, 16, 32, 64), 16
DEPTHS = (0, 4, 8, 16)
# Transactions a second vary from one run to the next.
SEEDS = (712, 713, 714)
TWO, PERCENT = "{:.2f}", "{:+.1f} %"
OLTP = {"simple": ("oltp_point_select", 1000), "complex": ("oltp_read_write", 100)}


def figure(key, at):
    """Return a function of a row of runs: this figure of the run at a place."""
    return lambda runs: runs[at].result["figures"][key]


def by_scheduler(title, rows, key="mbps"):
    """A table of @rows, {name: runs}, with a column for each run."""
    runs = next(iter(rows.values()))
    return Table(title, list(rows.items()),
                 [Column(run.label, figure(key, at), form=TWO) for at, run in enumerate(runs)])


def gains(title, rows, key="mbps", paper=None):
    """The same with the percent by which PASS, the last, is better than the best of the
    others; @paper gives the paper's percent for a run."""
    def gain(runs):
        *others, ours = (run.result["figures"][key] for run in runs)
        return 100 * (ours / max(others) - 1)

    table = by_scheduler(title, rows, key)
    table.columns.append(Column("PASS against the best other", gain, form=PERCENT))
    if paper:
        table.columns.append(Column("paper", lambda runs: paper(runs[0]), form=PERCENT))
    return table


def published(at):
    """Return a function of a run: the paper's MB/s in a column of table 2."""
    return lambda run: TABLE_2[THEIRS[run.scheduler]][at]


BANDWIDTHS = [
    Column("read MB/s", "read_mbps", form=TWO), Column("write", "write_mbps", form=TWO),
    Column("all", "mbps", form=TWO), Column("IOPS", "iops", form="{:.0f}"),
    *(Column(head, published(at), form="{}")
      for at, head in enumerate(("paper: read", "write", "all"))),
    Column("ours / paper", lambda run: run.result["figures"]["mbps"] / published(2)(run),
           form=TWO)]


def both(run, what=""):
    """Sum of the kernel's counters of reads and writes: requests, or "_ms"."""
    return sum(run.result["kernel"][f"{way}{what}"] for way in ("read", "write"))


def seconds(run):
    """Duration of a run."""
    ssdemu = run.result["ssdemu"]
    return ((ssdemu["host_read_bytes"] + ssdemu["host_write_bytes"]) /
            run.result["figures"]["mbps"] / 1e6)


# A scheduler can save turns of the drive's controller between reads and writes, and waiting
# in a crowded region.
RESPONSES = [
    Column("mean ms, block layer", lambda run: both(run, "_ms") / both(run), form=TWO),
    Column("pending", lambda run: both(run, "_ms") / seconds(run) / 1e3, form="{:.1f}"),
    Column("switches a request", lambda run: run.result["ssdemu"]["rw_switches"] / both(run),
           form=TWO),
    Column("crowded us", lambda run: run.result["ssdemu"]["crowd_ns"] / both(run) / 1e3,
           form="{:.0f}"),
    *(Column(f"reads: {percentile} %", f"read_p{percentile}", form=TWO)
      for percentile in (10, 25, 50, 75, 90, 95, 99))]


def wear(title, rows):
    """Erases and write amplification of the runs of @rows, {name: runs}, against the first
    run of the same job."""
    none = {run.job: run for runs in rows.values() for run in runs[:1]}

    def against_none(key):
        return lambda run: (run.result["ssdemu"][key] /
                            max(none[run.job].result["ssdemu"][key], 1))

    columns = [Column("pages written", lambda run: run.result["ssdemu"]["host_write_bytes"] // 4096,
                      form="{}")]
    for head, key, scale, theirs in (
            ("erases", "flash_erases", 1, FIGURE_11),
            ("write amplification", "write_amplification_milli", 1000, TABLE_3)):
        columns += [Column(head, counter("ssdemu", key, scale=scale), form="{:g}"),
                    Column("against none", against_none(key), form="{:.3f}"),
                    Column("paper", lambda run, theirs=theirs:
                           theirs[run.job][THEIRS[run.scheduler]], form=TWO)]
    return Table(title, [(f"{name}, {run.scheduler}", run) for name, runs in rows.items()
                         for run in runs], columns)


def one(preset, job, scheduler, variables, label="", **tunables):
    """A run. PASS is its paper's, with @tunables."""
    if scheduler == "pass":
        tunables = paper.mode(scheduler, **tunables)
    return model.Run(preset, job, scheduler, label=label,
                     tunables={**model.UNTHROTTLED, **tunables},
                     variables={name: str(value) for name, value in variables.items()})


def files(preset, number, file_mb):
    """Variables of a number of files: each of @file_mb MB on the paper's drive, on another as
    large as fits."""
    return {"FILES": number,
            "FILE_MB": file_mb if preset == PAPER_DRIVE else TODAY[preset] // number}


def pass_files(preset, direct, number):
    """The multithreaded file benchmark."""
    return preset, "pass-files", {**files(preset, 4, 10240), "NUMBER": number, "DIRECT": direct}


def fileio(preset, threads, events):
    """sysbench's random reads and writes of files."""
    return preset, "sysbench", {**files(preset, 128, 160), "THREADS": threads,
                                "EVENTS": events}


def database(preset, kind, threads, seed=SEEDS[0]):
    """sysbench's OLTP. Each kind issues about as many queries to the drive. Many threads
    issue more, as their start and end would dominate otherwise."""
    test, events = OLTP[kind]
    return preset, "oltp", {**files(preset, 40, 1500), "TEST": test, "THREADS": threads,
                            "EVENTS": events * max(1, threads // USUAL), "SEED": seed}


# More requests wait than four threads can issue: writeback submits the writes.
CACHED = pass_files(PAPER_DRIVE, 0, 5000)


def beside_peers(cells):
    """Return rows of runs, {name: one under each scheduler}."""
    return {name: [one(preset, job, scheduler, variables) for scheduler in SCHEDULERS]
            for name, (preset, job, variables) in cells.items()}


def threads():
    """the multithreaded file benchmark: four threads that read and write 4 KB at random,
    each in a file of its own"""
    drives = beside_peers({drive: pass_files(drive, 1, 2500) for drive in (PAPER_DRIVE, *TODAY)})
    ways = {"past the page cache": {PAPER_DRIVE: drives[PAPER_DRIVE]},
            "through the page cache": beside_peers({PAPER_DRIVE: CACHED})}
    return [*(Table(f"{name}: {PAPER_DRIVE}, {way}", labelled(made[PAPER_DRIVE]), columns)
              for name, columns in (("Table 2", BANDWIDTHS), ("Figure 7", RESPONSES))
              for way, made in ways.items()),
            gains("Figure 8: MB/s, past the page cache; of the paper the average of its drives",
                  drives, paper=lambda run: FIGURE_8.get(run.preset))]


def sysbench():
    """sysbench's random reads and writes of 20 GB in 128 files, by threads"""
    return [gains(f"Figure 9: {PAPER_DRIVE}, MB/s", beside_peers({
        count: fileio(PAPER_DRIVE, count, 4560) for count in THREADS}),
        paper=lambda run: FIGURE_9.get(run.variables["THREADS"]))]


def oltp():
    """MariaDB with sysbench's OLTP, by threads"""
    return [gains(f"Figure 10, {kind}: {PAPER_DRIVE}, transactions/s", beside_peers({
        f"{count}, seed {seed}": database(PAPER_DRIVE, kind, count, seed)
        for count in THREADS for seed in (SEEDS if count == USUAL else SEEDS[:1])}), "tps")
        for kind in OLTP]


def today():
    """sysbench's files and OLTP on drives of today (the paper's section 4.4)"""
    return [gains("sysbench's files, 32 threads, MB/s", beside_peers({
                drive: fileio(drive, 32, 9120) for drive in TODAY})),
            gains(f"Complex OLTP, {USUAL} threads, transactions/s", beside_peers({
                drive: database(drive, "complex", USUAL) for drive in TODAY}), "tps")]


def erases():
    """erases and write amplification on a full drive that maps pages, 16 threads"""
    return [wear(f"Figure 11 and table 3: {FULL_DRIVE}", beside_peers({
        "fileio": fileio(FULL_DRIVE, USUAL, 9120),
        "complex": database(FULL_DRIVE, "complex", USUAL)}))]


def depths():
    """PASS with region_depth, the paper's N, under more requests than a region serves at
    once"""
    def rows(cells):
        return {name: [one(preset, job, "pass", variables, f"region_depth={depth}",
                           region_depth=depth) for depth in DEPTHS]
                for name, (preset, job, variables) in cells.items()}

    return [by_scheduler(f"{PAPER_DRIVE}, MB/s", rows({
                "four threads, through the page cache": CACHED,
                "sysbench's files, 32 threads": fileio(PAPER_DRIVE, 32, 4560)})),
            by_scheduler(f"{PAPER_DRIVE}, transactions/s", rows({
                "complex OLTP, 16 threads": database(PAPER_DRIVE, "complex", USUAL)}), "tps")]


GROUPS = {group.__name__: group for group in (threads, sysbench, oltp, today, erases, depths)}


def main():
    return paper.tables_of_paper("pass", __doc__, GROUPS, HEADING)


if __name__ == "__main__":
    guests.finish(main)
