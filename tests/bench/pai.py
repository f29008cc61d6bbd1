#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PAI, PAS and PASA gain and cost, in virtual time: the PAI paper's table 4
and figures 9 and 10, beside the kernel's own schedulers, then on drives of today.

    tests/bench/pai.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), results in build/pai/:
"""
import math
import statistics

import harness

HEADING = "## Figures\n"
SSDS = ("pai-a", "pai-b", "pai-c", "pai-d")
NEUTRAL = ("sata", "nvme", "qlc")
# Jobs, and how often each is made, with another seed each time: one and the same
# varies by 10 to 30 % on a drive that merges blocks.
JOBS = {"pai-fileserver": 4, "pai-webserver": 4, "pai-oltp": 6, "pai-streams": 6,
        "postmark": 4}
PROFILES = tuple(job for job in JOBS if job != "postmark")
# Student's t for so many pairs less one: 95 % lie within so many standard errors.
STUDENT = {2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36}
# The paper's drives in use: all blocks hold data. Today's as they are, but smaller.
USED = {"capacity_mb": 512, "fill": 100}
SMALLER = {"capacity_mb": 4096}
# A queue of the paper's time holds 128 requests; with queue_depth=1 the kernel
# would let a scheduler hold two. Without a scheduler there is nothing to set.
REQUESTS = {"nr_requests": 128}
# What the paper's tables say: clustered page, clustered block, buffers.
PARAMETERS = {
    "pai-a": (16, 4096, 256, 255),
    "pai-b": (128, 16384, 0, 128),
    "pai-c": (4, 5120, 3072, 112),
    "pai-d": (128, 16384, 64, 0),
}
# Postmark's file sizes in KB: as many files as transactions, so that it never runs out
# of files whatever the seed, which write about as much; and ten at least, as Postmark
# divides by a tenth of the transactions.
POSTMARK = {256: 72, 512: 36, 1024: 18, 2048: 10, 4096: 10, 8192: 10}
CONFIGURATIONS = ("NoPAS-NOOP", "NoPAS-PAI", "PAS-PAI", "PASA-PAI")
EVERYTHING = (*CONFIGURATIONS, *harness.PEERS[1:])
SPLITS = {"NoPAS-PAI": "none", "PAS-PAI": "pas", "PASA-PAI": "pasa"}


def compared(values, bases):
    """By how many percent @values are above @bases, made with the same seeds, and how
    far, plus or minus, the truth may be from that with 95 %: mean and interval of the
    pairs' ratios, as logarithms."""
    logs = [math.log(value / base) for value, base in zip(values, bases, strict=True)]
    mean = statistics.fmean(logs)
    within = STUDENT[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return 100 * math.expm1(mean), 100 * math.exp(mean) * math.sinh(within)


class Table(harness.Table):
    """A row for each of @rows, a column a scheduler."""

    def cells(self, runs):
        """A row: MB/s of the first run, least to most, and what the others are above
        it, in bold where that is more than the spread."""
        times = [[each[self.figure] for each in run.result.get("times", ())
                  if self.figure in each] for run in runs]
        if not times[0]:
            return []
        first = times[0]
        cells = [f"{statistics.fmean(first):.2f} ({min(first):.2f}..{max(first):.2f})"]
        for values in times[1:]:
            if not values:
                cells.append("")
                continue
            more, within = compared(values, first)
            mark = "**" if abs(more) > within else ""
            cells.append(f"{mark}{more:+.1f}{mark} ±{within:.1f}")
        return cells

    def lines(self):
        """As Markdown; nothing of what was not measured."""
        labels = [run.label for run in max(self.rows.values(), key=len)]
        rows = [[name, *cells, *[""] * (len(labels) - len(cells))]
                for name, runs in self.rows.items() if (cells := self.cells(runs))]
        return [f"**{self.title}**", "", *harness.markdown(["", *labels], rows),
                ""] if rows else []


# The paper's words on its table 4 (section 6.2): files of 8 MB: aligned and at most
# 256 KB, in percent, and more requests than with NoPAS.
TABLE_4 = {"NoPAS-PAI": (38, 23, 0), "PAS-PAI": (35, 100, 171), "PASA-PAI": (88, 100, 186)}


class Requests(Table):
    """Table 4."""

    def lines(self):
        """As Markdown: the paper's columns."""
        rows = []
        for name, runs in self.rows.items():
            done = [run for run in runs if run.result]
            for run in done:
                base = done[0].result["table4"]["requests"]
                made = run.result["table4"]
                count = made["requests"]
                rows.append([f"{name}, {run.label}", count, f"{100 * (count / base - 1):+.0f} %",
                             *(f"{100 * made[key] / count:.0f} %" for key in ("aligned", "small"))])
        if not rows:
            return []
        rows += [[f"paper, 8192 KB files, {label}", "", f"{more:+} %", f"{aligned} %", f"{small} %"]
                 for label, (aligned, small, more) in TABLE_4.items()]
        head = ["", "requests", "against NoPAS", "aligned", "at most 256 KB"]
        return [f"**{self.title}**", "", *harness.markdown(head, rows), ""]


def pai(preset, split, **more):
    """Tunables of PAI for a drive: of the paper's what its tables say, of others what
    a probe would find."""
    if preset in PARAMETERS:
        names = ("clustered_page_kb", "clustered_block_kb", "read_buffer_kb",
                 "write_buffer_kb")
        settings = dict(zip(names, PARAMETERS[preset], strict=True))
    else:
        settings = harness.probed_tunables("pai", preset)
    settings.update(split=split, **more)
    return {**REQUESTS, **{f"iosched/{name}": value for name, value in settings.items()}}


def run(preset, job, label, tunables=None, **variables):
    """A run; @label says the scheduler."""
    scheduler = "pai"
    if label in (CONFIGURATIONS[0], "none"):
        scheduler, tunables = "none", {}
    elif label in harness.PEERS:
        scheduler, tunables = label, REQUESTS
    elif tunables is None:
        tunables = pai(preset, SPLITS[label])
    if preset in SSDS:
        tunables = {**harness.UNTHROTTLED, **tunables}
    variables["TIMES"] = JOBS[job]
    keys = {**(USED if preset in SSDS else SMALLER), "memory_backed": 1}
    return harness.Run(preset, job, scheduler, tunables=tunables, keys=keys, label=label,
                       variables={key: str(value) for key, value in variables.items()})


def files(size):
    """Postmark's variables for files of so many KB."""
    return {"SIZE_KB": size, "FILES": POSTMARK[size], "TRANSACTIONS": POSTMARK[size]}


def directions(title, rows):
    """A table of each direction's bandwidth from the same runs."""
    return [Table(f"{title}: {direction}, MB/s", rows, f"{direction}_mbps")
            for direction in ("write", "read")]


def profile(job):
    """What tables call a job."""
    return job.removeprefix("pai-")


def table4():
    """the requests that a drive gets from Postmark, and from streams that begin
    anywhere, from blktrace"""
    jobs = {f"{size} KB files": ("postmark", files(size)) for size in (256, 8192)}
    jobs["streams"] = "pai-streams", {}
    return [Requests("Table 4: pai-a", {
        name: [run("pai-a", job, label, PAGE_KB=PARAMETERS["pai-a"][0], **more)
               for label in CONFIGURATIONS[1:]] for name, (job, more) in jobs.items()})]


def figure9():
    """Postmark on the paper's drives in its four configurations"""
    return [Table(f"Figure 9: Postmark on {preset}: written, MB/s", {
        f"{size} KB files": [run(preset, "postmark", label, **files(size))
                             for label in CONFIGURATIONS]
        for size in POSTMARK}, "write_mbps") for preset in SSDS]


def figure10():
    """fileserver, webserver, OLTP, and streams that begin anywhere, on the paper's
    drives: its four configurations beside the kernel's own schedulers"""
    return [table for preset in SSDS for table in directions(f"Figure 10: {preset}", {
        profile(job): [run(preset, job, label) for label in EVERYTHING]
        for job in PROFILES})]


def neutral():
    """the same on drives of today: PASA-PAI, and PAI with nothing set, beside the
    kernel's own schedulers"""
    return [table for preset in NEUTRAL for table in directions(preset, {
        profile(job): [*(run(preset, job, label) for label in (*harness.PEERS, "PASA-PAI")),
                       run(preset, job, "PAI as it comes", {})] for job in PROFILES})]


def defaults():
    """well_split and the pending times, for the choice of their defaults: PASA-PAI"""
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
    return harness.tables_of_paper("pai", __doc__, GROUPS, HEADING, postmark=POSTMARK,
                                   seeds="712 and on, the same for every scheduler")


if __name__ == "__main__":
    harness.finish(main)
