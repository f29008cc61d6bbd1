#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What PAI, PAS and PASA gain and cost, in virtual time: the PAI paper's table 4
and figures 9 and 10, then beside the kernel's own schedulers.

    tests/bench/pai.py [--again] [--into FILE.md] [GROUP...]

Groups (default: all), each in guests of its own, results in build/pai/:
"""
import argparse
import dataclasses
import functools
import json
import pathlib

import harness

FOLDER = harness.PROJECT / "build/pai"
HEADING = "## Figures\n"
SSDS = ("pai-a", "pai-b", "pai-c", "pai-d")
NEUTRAL = ("sata", "nvme", "qlc")
PROFILES = ("pai-fileserver", "pai-webserver", "pai-oltp")
# A file system of a gigabyte, on a drive whose blocks all hold data.
KEYS = {"capacity_mb": 1024, "memory_backed": 1, "fill": 100}
# A queue of the paper's time holds 128 requests; with queue_depth=1 the kernel
# would let a scheduler hold two. Without a scheduler there is nothing to set.
REQUESTS = {"nr_requests": 128}
# What the paper's tables say: clustered page, clustered block, buffers.
PARAMETERS = {
    "pai-a": (16, 4096, 256, 255),
    "pai-b": (128, 16384, 0, 128),
    "pai-c": (4, 5120, 3072, 112),
    "pai-d": (128, 16384, 64, 0),
    # What tests/ssdemu/presets/ say of today's: a plane's page, its block.
    "sata": (16, 1024, 4096, 16384),
    "nvme": (16, 1024, 4096, 4096),
    "qlc": (16, 1536, 2048, 2048),
}
# Postmark's file sizes in KB: files and transactions that write about as much.
POSTMARK = {256: (128, 128), 512: (64, 64), 1024: (32, 32), 2048: (16, 24),
            4096: (8, 16), 8192: (6, 12)}
CONFIGURATIONS = ("NoPAS-NOOP", "NoPAS-PAI", "PAS-PAI", "PASA-PAI")


@dataclasses.dataclass
class Table:
    """Runs that are compared: a row for each of @rows, a column a scheduler."""
    title: str
    rows: dict
    figure: str = ""

    def runs(self):
        return [run for row in self.rows.values() for run in row]

    def lines(self):
        """As Markdown: MB/s of the first column, the others relative to it."""
        labels = [run.label for run in next(iter(self.rows.values()))]
        lines = [f"**{self.title}**", "", "| | " + " | ".join(labels) + " |",
                 "|---|" + "---:|" * len(labels)]
        for name, runs in self.rows.items():
            values = [run.result[self.figure] for run in runs]
            cells = [f"{values[0]:.2f}", *(f"{100 * (value / values[0] - 1):+.1f} %"
                                           for value in values[1:])]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return [*lines, ""]


class Requests(Table):
    """Table 4."""

    def lines(self):
        """As Markdown: the paper's columns."""
        lines = [f"**{self.title}**", "",
                 "| | requests | against NoPAS | aligned | at most 256 KB |",
                 "|---|---:|---:|---:|---:|"]
        for name, runs in self.rows.items():
            base = runs[0].result["table4"]["requests"]
            for run in runs:
                made = run.result["table4"]
                count = made["requests"]
                lines.append(f"| {name}, {run.label} | {count} | "
                             f"{100 * (count / base - 1):+.0f} % | "
                             f"{100 * made['aligned'] / count:.0f} % | "
                             f"{100 * made['small'] / count:.0f} % |")
        return [*lines, ""]


def pai(preset, split, **more):
    """Tunables of PAI for a drive."""
    names = ("clustered_page_kb", "clustered_block_kb", "read_buffer_kb", "write_buffer_kb")
    settings = dict(zip(names, PARAMETERS[preset], strict=True))
    settings.update(split=split, **more)
    return {**REQUESTS, **{f"iosched/{name}": value for name, value in settings.items()}}


def run(preset, job, label, tunables=None, **variables):
    """A run; @label says the scheduler."""
    if label == "NoPAS-NOOP" or label in harness.PEERS:
        scheduler = "none" if label == "NoPAS-NOOP" else label
        tunables = {} if scheduler == "none" else REQUESTS
    else:
        scheduler = "pai"
        if tunables is None:
            splits = {"NoPAS-PAI": "none", "PAS-PAI": "pas", "PASA-PAI": "pasa"}
            tunables = pai(preset, splits[label])
    return harness.Run(preset, job, scheduler, tunables=tunables, keys=KEYS, label=label,
                       variables={key: str(value) for key, value in variables.items()})


def files(size):
    """Postmark's variables for files of so many KB."""
    number, transactions = POSTMARK[size]
    return {"SIZE_KB": size, "FILES": number, "TRANSACTIONS": transactions}


def directions(title, rows):
    """A table of each direction's bandwidth from the same runs."""
    return [Table(f"{title}: {direction}, MB/s", rows, f"{direction}_mbps")
            for direction in ("write", "read")]


def table4():
    """the requests that a drive gets from Postmark, from blktrace"""
    page = PARAMETERS["pai-a"][0]
    return [Requests("Table 4: Postmark on pai-a", {
        f"{size} KB files": [run("pai-a", "postmark", label, PAGE_KB=page, **files(size))
                             for label in CONFIGURATIONS[1:]]
        for size in (256, 8192)})]


def figure9():
    """Postmark with files of 256 KB to 8 MB, four configurations, four drives"""
    return [table for preset in SSDS for table in directions(
        f"Figure 9: Postmark on {preset}", {
            f"{size} KB files": [run(preset, "postmark", label, **files(size))
                                 for label in CONFIGURATIONS]
            for size in POSTMARK})]


def figure10():
    """fileserver, webserver, OLTP: four configurations, four drives"""
    return [table for preset in SSDS for table in directions(
        f"Figure 10: {preset}", {
            job.partition("-")[2]: [run(preset, job, label) for label in CONFIGURATIONS]
            for job in PROFILES})]


def beside(presets):
    """PASA-PAI beside the kernel's own schedulers."""
    labels = (*harness.PEERS, "PASA-PAI")
    return [table for preset in presets for table in directions(
        f"Beside the kernel's own: {preset}", {
            "postmark, 8 MB": [run(preset, "postmark", label, **files(8192))
                               for label in labels],
            **{job.partition("-")[2]: [run(preset, job, label) for label in labels]
               for job in PROFILES}})]


def peers():
    """beside none, mq-deadline, kyber, bfq on the paper's drives"""
    return beside(SSDS)


def neutral():
    """the same on drives of today"""
    return beside(NEUTRAL)


def sweep(title, settings):
    """One setting after another, on each drive: the sum of both directions would
    hide what one pays, so each has its table."""
    return [table for preset in SSDS + NEUTRAL[1:2] for table in directions(
        f"{title}: {preset}", {
            job.partition("-")[2]: [
                run(preset, job, label, pai(preset, "pasa", **values))
                for label, values in settings.items()]
            for job in PROFILES})]


def defaults():
    """the pending times and well_split, for the choice of their defaults"""
    return sweep("Defaults, PASA-PAI", {
        "paper 0/0": {"well_split": "paper", "read_pending_us": 0, "write_pending_us": 0},
        "aligned 0/0": {"well_split": "aligned", "read_pending_us": 0, "write_pending_us": 0},
        "paper 100/1000": {"well_split": "paper", "read_pending_us": 100,
                           "write_pending_us": 1000},
        "aligned 100/1000": {"well_split": "aligned", "read_pending_us": 100,
                             "write_pending_us": 1000},
        "paper 1000/10000": {"well_split": "paper", "read_pending_us": 1000,
                             "write_pending_us": 10000}})


GROUPS = {group.__name__: group for group in (table4, figure9, figure10, peers, neutral,
                                              defaults)}


def run_guest(runs, name, progress):
    """Make @runs one after another in a guest of their own."""
    plan = FOLDER / f"{name}.plan.json"
    plan.write_text(json.dumps([dataclasses.asdict(run) for run in runs]))
    waiting = iter(runs)

    def hear(line):
        if not line.startswith("{"):
            return
        made = next(waiting)
        made.result = json.loads(line)
        progress.step(f"{made.preset}, {made.job}, {made.label}: "
                      f"{made.result['write_mbps']:.1f} MB/s written")

    harness.lab(["env", f"PYTHONPATH={harness.PROJECT}/tests/vm:{harness.BENCH}",
                 harness.BENCH / "pai-guest.py", plan], FOLDER / f"{name}.log", hear)
    if next(waiting, None):
        raise harness.Failed(f"not all runs came back, log: {FOLDER / name}.log")


def different(tables):
    """Each run once: the tables of both directions share theirs."""
    return list({id(run): run for table in tables for run in table.runs()}.values())


def measure(group, tables):
    """Make all runs of a group, a guest for each drive; leave them in a file."""
    runs = different(tables)
    progress = harness.Progress(len(runs))
    harness.run_all([functools.partial(
        run_guest, [run for run in runs if run.preset == preset], f"{group}-{preset}",
        progress) for preset in dict.fromkeys(run.preset for run in runs)])
    fio_jobs = [run for run in runs if run.job != "postmark"]
    (FOLDER / f"{group}.json").write_text(json.dumps({
        **harness.circumstances(fio_jobs), "postmark": POSTMARK,
        "runs": [dataclasses.asdict(run) for run in runs]}, indent=1) + "\n")


def read_back(group, tables):
    """Take the results of the last run; return all that was saved with them."""
    path = FOLDER / f"{group}.json"
    if not path.exists():
        raise harness.Failed(f"no figures of {group} yet: run it without --again")
    saved = json.loads(path.read_text())
    for run, was in zip(different(tables), saved["runs"], strict=True):
        run.result = was["result"]
    return saved


def main():
    groups = "\n".join(f"    {name:10} {group.__doc__}" for name, group in GROUPS.items())
    parser = argparse.ArgumentParser(
        usage="tests/bench/pai.py [--again] [--into FILE.md] [GROUP...]",
        description=f"{__doc__}{groups}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="tables from the last figures")
    parser.add_argument("--into", type=pathlib.Path,
                        help="Markdown file; what stands above its figures stays")
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=[])
    args = parser.parse_args()
    unknown = set(args.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in args.groups or GROUPS:
        tables = GROUPS[name]()
        if not args.again:
            measure(name, tables)
        saved = read_back(name, tables)
        what = GROUPS[name].__doc__
        how = f"`tests/bench/pai.py {name}`, commit {saved['commit']}, kernel {saved['kernel']}."
        lines += [f"### {what[0].upper()}{what[1:]}", "", how, ""]
        lines += [line for table in tables for line in table.lines()]
    if args.into:
        kept = args.into.read_text().partition(HEADING)[0] if args.into.exists() else ""
        args.into.write_text(kept + HEADING + "\n" + "\n".join(lines).rstrip() + "\n")
    else:
        print("\n".join(lines))
    return 0


if __name__ == "__main__":
    harness.finish(main)
