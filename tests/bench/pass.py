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
THREADS = (1, 4, 16, 32, 64)
OLTP = {"simple": ("oltp_point_select", 100), "complex": ("oltp_read_write", 10)}


@dataclasses.dataclass
class Table:
    """Runs that are compared, one for each scheduler in each of @rows; @figure of each
    and what PASS gains over the best other, beside the @paper's percent."""
    title: str
    rows: dict
    figure: str = "mbps"
    paper: dict = dataclasses.field(default_factory=dict)

    def runs(self):
        """All of them."""
        return [run for runs in self.rows.values() for run in runs]

    def head(self):
        """The heads of the columns."""
        return ["", *SCHEDULERS, "PASS against the best other", *(["paper"] if self.paper else [])]

    def body(self):
        """The rows, as text."""
        for name, runs in self.rows.items():
            values = [run.result["figures"][self.figure] for run in runs]
            gain = 100 * (values[-1] / max(values[:-1]) - 1)
            theirs = f"{self.paper[name]:+.1f} %" if name in self.paper else ""
            yield [name, *(f"{value:.2f}" for value in values), f"{gain:+.1f} %",
                   *([theirs] if self.paper else [])]

    def lines(self):
        """As Markdown; nothing of what was not measured."""
        self.rows = {name: runs for name, runs in self.rows.items()
                     if all(run.result for run in runs)}
        if not self.rows:
            return []
        rows = [self.head(), ["---", *["---:"] * (len(self.head()) - 1)], *self.body()]
        return [f"**{self.title}**", "",
                *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


class Bandwidths(Table):
    """Table 2."""

    def head(self):
        return ["", "read MB/s", "write", "all", "IOPS", "paper: read", "write", "all",
                "ours / paper"]

    def body(self):
        for run in self.runs():
            made = run.result["figures"]
            theirs = TABLE_2.get(THEIRS.get(run.scheduler), [""] * 3)
            yield [run.scheduler, *(f"{made[key]:.2f}" for key in
                                    ("read_mbps", "write_mbps", "mbps")),
                   f"{made['iops']:.0f}", *theirs,
                   f"{made['mbps'] / theirs[2]:.2f}" if theirs[2] else ""]


class Responses(Table):
    """Figure 7."""
    percentiles = (10, 25, 50, 75, 90, 95, 99)

    def head(self):
        return ["", "mean ms, block layer", "requests pending",
                *(f"reads: {percentile} %" for percentile in self.percentiles)]

    def body(self):
        for run in self.runs():
            made, kernel = run.result["figures"], run.result["kernel"]
            spent = kernel["read_ms"] + kernel["write_ms"]
            yield [run.scheduler, f"{spent / (kernel['read'] + kernel['write']):.2f}",
                   f"{spent * 1e6 / run.result['ssdemu']['elapsed_ns']:.1f}",
                   *(f"{made[f'read_p{percentile}']:.2f}" for percentile in self.percentiles)]


class Wear(Table):
    """Figure 11 and table 3."""

    def head(self):
        return ["", "pages written", "erases", "against none", "paper", "write amplification",
                "against none", "paper"]

    def body(self):
        for name, runs in self.rows.items():
            first = runs[0].result["ssdemu"]
            for run in runs:
                made, theirs = run.result["ssdemu"], THEIRS.get(run.scheduler)
                columns = [f"{name}, {run.scheduler}", made["host_write_bytes"] // 4096]
                for key, scale, paper in (("flash_erases", 1, FIGURE_11),
                                          ("write_amplification_milli", 1000, TABLE_3)):
                    value = paper.get(name, {}).get(theirs)
                    columns += [made[key] / scale, f"{made[key] / max(first[key], 1):.3f}",
                                "" if value is None else f"{value:.2f}"]
                yield columns


def runs(preset, job, **variables):
    """A run under each scheduler, PASS with the tunables that fit the drive."""
    return [harness.Run(
        preset, job, scheduler,
        {f"iosched/{name}": value for name, value in
         (harness.probed_tunables(scheduler, preset) if scheduler == "pass" else {}).items()},
        variables={name: str(value) for name, value in variables.items()})
        for scheduler in SCHEDULERS]


def pass_files(preset, direct, number):
    """The multithreaded file benchmark."""
    return runs(preset, "pass-files", FILES=4, FILE_MB=DRIVES[preset], NUMBER=number,
                DIRECT=direct)


def fileio(preset, file_mb, threads, events):
    """sysbench's random reads and writes of files."""
    return runs(preset, "sysbench", FILES=128, FILE_MB=file_mb, THREADS=threads, EVENTS=events)


def oltp_runs(preset, kind, threads):
    """sysbench's OLTP: as many queries in both kinds, roughly."""
    test, events = OLTP[kind]
    file_mb = 1500 if preset == PAPER_DRIVE else 360
    return runs(preset, "oltp", FILES=40, FILE_MB=file_mb, TEST=test, THREADS=threads,
                EVENTS=20 * events)


def threads():
    """the multithreaded file benchmark: four threads that read and write 4 KB at random,
    each in a file of its own"""
    drives = {drive: pass_files(drive, 1, 2500) for drive in DRIVES}
    ways = {"past the page cache": drives[PAPER_DRIVE],
            "through the page cache": pass_files(PAPER_DRIVE, 0, 5000)}
    return [*(table(f"{name}: {PAPER_DRIVE}, {way}", {PAPER_DRIVE: made})
              for name, table in (("Table 2", Bandwidths), ("Figure 7", Responses))
              for way, made in ways.items()),
            Table("Figure 8: MB/s, past the page cache; of the paper the average of its drives",
                  drives, paper={PAPER_DRIVE: FIGURE_8})]


def sysbench():
    """sysbench's random reads and writes of 20 GB in 128 files, by threads"""
    return [Table(f"Figure 9: {PAPER_DRIVE}, MB/s", {
        count: fileio(PAPER_DRIVE, 160, count, 4560) for count in THREADS}, paper=FIGURE_9)]


def oltp():
    """MariaDB with sysbench's OLTP, by threads"""
    return [Table(f"Figure 10, {kind}: {drive}, transactions/s", {
        count: oltp_runs(drive, kind, count) for count in counts}, "tps")
        for drive, counts in ((PAPER_DRIVE, (16, 32)), (FULL_DRIVE, (16,)))
        for kind in OLTP]


def erases():
    """erases and write amplification on a full drive that maps pages, 16 threads"""
    return [Wear(f"Figure 11 and table 3: {FULL_DRIVE}", {
        "fileio": fileio(FULL_DRIVE, 96, 16, 9120),
        "complex": oltp_runs(FULL_DRIVE, "complex", 16)})]


GROUPS = {group.__name__: group for group in (threads, sysbench, oltp, erases)}


def main():
    return harness.tables_of_paper("pass", __doc__, GROUPS, HEADING)


if __name__ == "__main__":
    harness.finish(main)
