#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PASS gains and costs, in virtual time: the PASS paper's tables 2 and 3 and
figures 7 to 11, beside the kernel's own schedulers.

    tests/bench/pass.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/pass/:
"""
import dataclasses

import harness

HEADING = "## Figures\n"
SCHEDULERS = (*harness.PEERS, "pass")
# Who stands for whom. AS and CFQ are gone: BFQ is CFQ's heir.
THEIRS = {"none": "Noop", "mq-deadline": "Deadline", "bfq": "CFQ", "pass": "PASS"}
# Table 2: MB/s read, written, both. Its IOPS contradict them.
TABLE_2 = {"Noop": (6.06, 5.95, 12.01), "CFQ": (5.87, 5.84, 11.71),
           "Deadline": (6.07, 6.04, 12.12), "PASS": (7.02, 7.05, 14.07)}
# Table 3, write amplification against Noop: sysbench's files, complex OLTP.
TABLE_3 = {"fileio": {"Noop": 1, "Deadline": 2.51, "CFQ": 3.12, "PASS": 1.37},
           "complex": {"Noop": 1, "Deadline": 2.34, "CFQ": 3.21, "PASS": 1.52}}
# Figure 11 as the text of section 4.5 has it: complex OLTP, erases against Noop.
FIGURE_11 = {"complex": {"Noop": 1, "Deadline": 0.65 / 0.58, "CFQ": 0.65 / 0.58, "PASS": 0.65}}
# What the text says of figures 8 (on average) and 9: PASS against the best other, %.
FIGURE_8, FIGURE_9 = 25, {16: 36.6, 32: 41.6}
PAPER_DRIVE, FULL_DRIVE = "pass-ssd1", "sata"
# Figure 8: the paper tells nothing of its five others that could be emulated. Today's
# are here instead, which are smaller than 40 GB, and so are the files.
DRIVES = {PAPER_DRIVE: 10240, "sata": 3072, "nvme": 3072, "qlc": 3072}
THREADS, USUAL = (1, 4, 16, 32, 64), 16
DEPTHS = (0, 4, 8, 16)
# Transactions a second vary from one run to the next.
SEEDS = (712, 713, 714)
OLTP = {"simple": ("oltp_point_select", 1000), "complex": ("oltp_read_write", 100)}


class Table(harness.Table):
    """A column for each run of a row."""

    def head(self):
        """The heads of the columns."""
        return ["", *(run.label for run in next(iter(self.rows.values())))]

    def values(self, runs):
        """Their figures, None for what was not measured."""
        return [run.result["figures"][self.figure] if run.result else None for run in runs]

    def body(self):
        """The rows, as text."""
        for name, runs in self.rows.items():
            yield [name, *("" if value is None else f"{value:.2f}"
                           for value in self.values(runs))]

    def lines(self):
        """As Markdown; nothing of what was not measured."""
        self.rows = {name: runs for name, runs in self.rows.items()
                     if any(run.result for run in runs)}
        if not self.rows:
            return []
        return [f"**{self.title}**", "", *harness.markdown(self.head(), self.body()), ""]


@dataclasses.dataclass
class Gains(Table):
    """The same, with what PASS gains over the best of the others, beside the @paper's
    percent."""
    paper: dict = dataclasses.field(default_factory=dict)

    def head(self):
        return [*super().head(), "PASS against the best other",
                *(["paper"] if self.paper else [])]

    def body(self):
        for cells, (name, runs) in zip(super().body(), self.rows.items(), strict=True):
            *others, ours = self.values(runs)
            known = ours is not None and None not in others
            theirs = [f"{self.paper[name]:+.1f} %" if name in self.paper else ""]
            yield [*cells, f"{100 * (ours / max(others) - 1):+.1f} %" if known else "",
                   *(theirs if self.paper else [])]


class Bandwidths(Table):
    """Table 2."""

    def head(self):
        return ["", "read MB/s", "write", "all", "IOPS", "paper: read", "write", "all",
                "ours / paper"]

    def body(self):
        for run in filter(lambda run: run.result, self.runs()):
            made = run.result["figures"]
            theirs = TABLE_2.get(THEIRS.get(run.scheduler), [""] * 3)
            yield [run.scheduler, *(f"{made[key]:.2f}" for key in
                                    ("read_mbps", "write_mbps", "mbps")),
                   f"{made['iops']:.0f}", *theirs,
                   f"{made['mbps'] / theirs[2]:.2f}" if theirs[2] else ""]


class Responses(Table):
    """Figure 7, and what of the drive's time a scheduler could save: turns of its units
    between reads and writes, and waiting in a crowded region."""
    percentiles = (10, 25, 50, 75, 90, 95, 99)

    def head(self):
        return ["", "mean ms, block layer", "pending", "switches a request", "crowded us",
                *(f"reads: {percentile} %" for percentile in self.percentiles)]

    def body(self):
        for run in filter(lambda run: run.result, self.runs()):
            made, kernel, ssdemu = (run.result[key] for key in ("figures", "kernel", "ssdemu"))
            spent, requests = (kernel[f"read{what}"] + kernel[f"write{what}"]
                               for what in ("_ms", ""))
            seconds = (ssdemu["host_read_bytes"] + ssdemu["host_write_bytes"]) / made["mbps"] / 1e6
            yield [run.scheduler, f"{spent / requests:.2f}", f"{spent / seconds / 1e3:.1f}",
                   f"{ssdemu['rw_switches'] / requests:.2f}",
                   f"{ssdemu['crowd_ns'] / requests / 1e3:.0f}",
                   *(f"{made[f'read_p{percentile}']:.2f}" for percentile in self.percentiles)]


class Wear(Table):
    """Figure 11 and table 3."""

    def head(self):
        return ["", "pages written", "erases", "against none", "paper", "write amplification",
                "against none", "paper"]

    def body(self):
        for name, runs in self.rows.items():
            if not runs[0].result:
                continue
            first = runs[0].result["ssdemu"]
            for run in filter(lambda run: run.result, runs):
                ssdemu, theirs = run.result["ssdemu"], THEIRS.get(run.scheduler)
                columns = [f"{name}, {run.scheduler}", ssdemu["host_write_bytes"] // 4096]
                for key, scale, paper in (("flash_erases", 1, FIGURE_11),
                                          ("write_amplification_milli", 1000, TABLE_3)):
                    value = paper.get(name, {}).get(theirs)
                    columns += [f"{ssdemu[key] / scale:g}",
                                f"{ssdemu[key] / max(first[key], 1):.3f}",
                                "" if value is None else f"{value:.2f}"]
                yield columns


def one(preset, job, scheduler, variables, label="", **tunables):
    """A run; PASS with the tunables that fit the drive, and others."""
    if scheduler == "pass":
        tunables = {**harness.probed_tunables(scheduler, preset), **tunables}
    tunables = {f"iosched/{name}": value for name, value in tunables.items()}
    return harness.Run(preset, job, scheduler, label=label,
                       tunables={**harness.UNTHROTTLED, **tunables},
                       variables={name: str(value) for name, value in variables.items()})


def pass_files(preset, direct, number):
    """The multithreaded file benchmark."""
    return preset, "pass-files", {"FILES": 4, "FILE_MB": DRIVES[preset], "NUMBER": number,
                                  "DIRECT": direct}


def fileio(preset, file_mb, threads, events):
    """sysbench's random reads and writes of files."""
    return preset, "sysbench", {"FILES": 128, "FILE_MB": file_mb, "THREADS": threads,
                                "EVENTS": events}


def database(preset, kind, threads, seed=SEEDS[0]):
    """sysbench's OLTP, each kind with about as many queries to the drive, more by many
    threads, else all that is seen of these is how they begin and end."""
    test, events = OLTP[kind]
    return preset, "oltp", {"FILES": 40, "FILE_MB": 1500 if preset == PAPER_DRIVE else 360,
                            "TEST": test, "THREADS": threads,
                            "EVENTS": events * max(1, threads // USUAL), "SEED": seed}


# So that more is waiting than four threads can: writes leave the page cache by themselves.
CACHED = pass_files(PAPER_DRIVE, 0, 5000)


def beside_peers(cells):
    """Rows of runs: {name: what to run under each scheduler}."""
    return {name: [one(preset, job, scheduler, variables) for scheduler in SCHEDULERS]
            for name, (preset, job, variables) in cells.items()}


def threads():
    """the multithreaded file benchmark: four threads that read and write 4 KB at random,
    each in a file of its own"""
    drives = beside_peers({drive: pass_files(drive, 1, 2500) for drive in DRIVES})
    ways = {"past the page cache": {PAPER_DRIVE: drives[PAPER_DRIVE]},
            "through the page cache": beside_peers({PAPER_DRIVE: CACHED})}
    return [*(table(f"{name}: {PAPER_DRIVE}, {way}", made)
              for name, table in (("Table 2", Bandwidths), ("Figure 7", Responses))
              for way, made in ways.items()),
            Gains("Figure 8: MB/s, past the page cache; of the paper the average of its drives",
                  drives, paper={PAPER_DRIVE: FIGURE_8})]


def sysbench():
    """sysbench's random reads and writes of 20 GB in 128 files, by threads"""
    return [Gains(f"Figure 9: {PAPER_DRIVE}, MB/s", beside_peers({
        count: fileio(PAPER_DRIVE, 160, count, 4560) for count in THREADS}), paper=FIGURE_9)]


def oltp():
    """MariaDB with sysbench's OLTP, by threads"""
    return [Gains(f"Figure 10, {kind}: {PAPER_DRIVE}, transactions/s", beside_peers({
        f"{count}, seed {seed}": database(PAPER_DRIVE, kind, count, seed)
        for count in THREADS for seed in (SEEDS if count == USUAL else SEEDS[:1])}), "tps")
        for kind in OLTP]


def today():
    """sysbench's files and OLTP on drives of today (the paper's section 4.4)"""
    drives = [drive for drive in DRIVES if drive != PAPER_DRIVE]
    return [Gains("sysbench's files, 32 threads, MB/s", beside_peers({
                drive: fileio(drive, 96, 32, 9120) for drive in drives})),
            Gains(f"Complex OLTP, {USUAL} threads, transactions/s", beside_peers({
                drive: database(drive, "complex", USUAL) for drive in drives}), "tps")]


def erases():
    """erases and write amplification on a full drive that maps pages, 16 threads"""
    return [Wear(f"Figure 11 and table 3: {FULL_DRIVE}", beside_peers({
        "fileio": fileio(FULL_DRIVE, 96, USUAL, 9120),
        "complex": database(FULL_DRIVE, "complex", USUAL)}))]


def depths():
    """PASS with region_depth, the paper's N, where more requests come than a region
    serves at once"""
    def rows(cells):
        return {name: [one(preset, job, "pass", variables, f"region_depth={depth}",
                           **({"region_depth": depth} if depth else {})) for depth in DEPTHS]
                for name, (preset, job, variables) in cells.items()}

    return [Table(f"{PAPER_DRIVE}, MB/s", rows({
                "four threads, through the page cache": CACHED,
                "sysbench's files, 32 threads": fileio(PAPER_DRIVE, 160, 32, 4560)})),
            Table(f"{PAPER_DRIVE}, transactions/s", rows({
                "complex OLTP, 16 threads": database(PAPER_DRIVE, "complex", USUAL)}), "tps")]


GROUPS = {group.__name__: group for group in (threads, sysbench, oltp, today, erases, depths)}


def main():
    return harness.tables_of_paper("pass", __doc__, GROUPS, HEADING)


if __name__ == "__main__":
    harness.finish(main)
