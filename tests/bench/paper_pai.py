#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Measure PAI, PAS and PASA beside the kernel's schedulers in virtual time: the PAI paper's
table 4 and figures 9 and 10, and drives of today.

    tests/bench/paper_pai.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/pai/:
"""
import dataclasses
import statistics

import guests
import intervals
import model
import paper
import probed
from tables import Column, Table

HEADING = "## Figures\n"
SSDS = ("pai-a", "pai-b", "pai-c", "pai-d")
NEUTRAL = ("sata", "nvme", "qlc")
# Number of times that each job runs, with another seed each time: a job varies by 10 to 30 %
# on a drive that merges blocks.
JOBS = {"pai-fileserver": 4, "pai-webserver": 4, "pai-oltp": 6, "pai-streams": 6,
        "postmark": 4}
PROFILES = tuple(job for job in JOBS if job != "postmark")
# The paper's drives in use: all blocks hold data. Drives of today are only made smaller.
USED = {"capacity_mb": 512, "fill": 100}
SMALLER = {"capacity_mb": 4096}
# A queue of the paper's time holds 128 requests. With queue_depth=1 the default gives the
# scheduler only two. Without a scheduler the value cannot be set.
REQUESTS = {"nr_requests": 128}
# The paper's tables: KB of a clustered page, a clustered block, the read and write buffers.
PARAMETERS = {
    "pai-a": (16, 4096, 256, 255),
    "pai-b": (128, 16384, 0, 128),
    "pai-c": (4, 5120, 3072, 112),
    "pai-d": (128, 16384, 64, 0),
}
# Postmark: number of files and of transactions by KB of a file. With as many files as
# transactions no seed runs out of files; the sum written is about the same for each size.
# Ten at least, as Postmark divides by a tenth of the transactions.
POSTMARK = {256: 72, 512: 36, 1024: 18, 2048: 10, 4096: 10, 8192: 10}
CONFIGURATIONS = ("NoPAS-NOOP", "NoPAS-PAI", "PAS-PAI", "PASA-PAI")
EVERYTHING = (*CONFIGURATIONS, *model.PEERS[1:])
SPLITS = {"NoPAS-PAI": "none", "PAS-PAI": "pas", "PASA-PAI": "pasa"}


def compared(values, bases):
    """Return the percent by which @values exceed @bases, which have the same seeds, and
    the half width of the 95 % interval: mean of the pairs' ratios, as logarithms."""
    return dataclasses.astuple(intervals.percent(
        intervals.interval(intervals.logarithms(values, bases))))


def table(title, rows, key):
    """A table of @rows, {name: runs}: MB/s of the first run, mean, least and most; of each
    other the percent by which it is higher, bold if that is more than its interval."""
    def times(run):
        return [each[key] for each in run.result["times"] if key in each]

    def first(runs):
        values = times(runs[0])
        return f"{statistics.fmean(values):.2f} ({min(values):.2f}..{max(values):.2f})"

    def against_first(at):
        def get(runs):
            more, within = compared(times(runs[at]), times(runs[0]))
            mark = "**" if abs(more) > within else ""
            return f"{mark}{more:+.1f}{mark} ±{within:.1f}"
        return get

    labels = [run.label for run in next(iter(rows.values()))]
    return Table(title, list(rows.items()), [
        Column(label, against_first(at) if at else first, form="{}")
        for at, label in enumerate(labels)])


# The text of section 6.2 on table 4, files of 8 MB: percent of the requests that are aligned
# and that are at most 256 KB, and by how many percent there are more than with NoPAS.
TABLE_4 = {"NoPAS-PAI": (38, 23, 0), "PAS-PAI": (35, 100, 171), "PASA-PAI": (88, 100, 186)}


def share(key):
    """Return a function of a row of runs: percent of the first run's requests."""
    return lambda runs: 100 * runs[0].result["table4"][key] / runs[0].result["table4"]["requests"]


def against_nopas(runs):
    """Percent by which the first of @runs has more requests than the second."""
    ours, base = (run.result["table4"]["requests"] for run in runs)
    return 100 * (ours / base - 1)


REQUEST_COLUMNS = [
    Column("requests", lambda runs: runs[0].result["table4"]["requests"], form="{}"),
    Column("against NoPAS", against_nopas, form="{:+.0f} %"),
    Column("aligned", share("aligned"), form="{:.0f} %"),
    Column("at most 256 KB", share("small"), form="{:.0f} %")]


def pai(preset, split, **more):
    """Return PAI's tunables for a drive: those of the paper's tables for its drives, for
    others those that a probe would find."""
    if preset in PARAMETERS:
        names = ("clustered_page_kb", "clustered_block_kb", "read_buffer_kb",
                 "write_buffer_kb")
        settings = dict(zip(names, PARAMETERS[preset], strict=True))
    else:
        settings = probed.tunables("pai", preset)
    return REQUESTS | paper.mode("pai", **{**settings, "split": split, **more})


def run(preset, job, label, tunables=None, **variables):
    """A run; @label names the scheduler."""
    scheduler = "pai"
    if label in (CONFIGURATIONS[0], "none"):
        scheduler, tunables = "none", {}
    elif label in model.PEERS:
        scheduler, tunables = label, REQUESTS
    elif tunables is None:
        tunables = pai(preset, SPLITS[label])
    if preset in SSDS:
        tunables = {**model.UNTHROTTLED, **tunables}
    variables["TIMES"] = JOBS[job]
    keys = {**(USED if preset in SSDS else SMALLER), "memory_backed": 1}
    return model.Run(preset, job, scheduler, tunables=tunables, keys=keys, label=label,
                     variables={key: str(value) for key, value in variables.items()})


def files(size):
    """Return Postmark's variables for files of @size KB."""
    return {"SIZE_KB": size, "FILES": POSTMARK[size], "TRANSACTIONS": POSTMARK[size]}


def directions(title, rows):
    """Return two tables of the same runs: MB/s written and read."""
    return [table(f"{title}: {direction}, MB/s", rows, f"{direction}_mbps")
            for direction in ("write", "read")]


def profile(job):
    """Return a job's name in tables."""
    return job.removeprefix("pai-")


def table4():
    """the requests that Postmark and unaligned streams send to a drive, from blktrace"""
    jobs = {f"{size} KB files": ("postmark", files(size)) for size in (256, 8192)}
    jobs["streams"] = "pai-streams", {}
    rows = []
    for name, (job, more) in jobs.items():
        runs = [run("pai-a", job, label, PAGE_KB=PARAMETERS["pai-a"][0], **more)
                for label in CONFIGURATIONS[1:]]
        rows += [(f"{name}, {each.label}", [each, runs[0]]) for each in runs]
    return [Table("Table 4: pai-a", rows, REQUEST_COLUMNS, below=[
        [f"paper, 8192 KB files, {label}", "", f"{more:+} %", f"{aligned} %", f"{small} %"]
        for label, (aligned, small, more) in TABLE_4.items()])]


def figure9():
    """Postmark on the paper's drives in its four configurations"""
    return [table(f"Figure 9: Postmark on {preset}: written, MB/s", {
        f"{size} KB files": [run(preset, "postmark", label, **files(size))
                             for label in CONFIGURATIONS]
        for size in POSTMARK}, "write_mbps") for preset in SSDS]


def figure10():
    """fileserver, webserver, OLTP and unaligned streams on the paper's drives: its four
    configurations beside the kernel's schedulers"""
    return [each for preset in SSDS for each in directions(f"Figure 10: {preset}", {
        profile(job): [run(preset, job, label) for label in EVERYTHING]
        for job in PROFILES})]


def neutral():
    """the same on drives of today: PASA-PAI and PAI with its defaults, beside the kernel's
    schedulers"""
    return [each for preset in NEUTRAL for each in directions(preset, {
        profile(job): [*(run(preset, job, label) for label in (*model.PEERS, "PASA-PAI")),
                       run(preset, job, "PAI, defaults", {})] for job in PROFILES})]


def defaults():
    """PASA-PAI by well_split and the pending times, to choose their defaults"""
    settings = {f"{well} {read}/{write}": {
        "well_split": well, "read_pending_us": read, "write_pending_us": write}
        for well in ("paper", "aligned") for read, write in (
            (0, 0), (100, 1000), (1000, 10000))}
    rows = {f"{preset}, {profile(job)}": [
        run(preset, job, label, pai(preset, "pasa", **values))
        for label, values in settings.items()]
        for preset, job in (("pai-a", "pai-oltp"), ("pai-a", "pai-streams"),
                            ("pai-c", "pai-oltp"), ("pai-d", "pai-streams"))}
    return directions("Read/write pending time in us", rows)


GROUPS = {group.__name__: group for group in (table4, figure9, figure10, neutral, defaults)}


def main():
    return paper.tables_of_paper("pai", __doc__, GROUPS, HEADING, postmark=POSTMARK,
                                 seeds="712 and on, the same for every scheduler")


if __name__ == "__main__":
    guests.finish(main)
