#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What BP gains and costs, on both of its bases with and without preference,
beside the kernel's own schedulers, in virtual time.

    tests/bench/bp.py [GROUP...]

Groups (default: all), each a guest of its own:
"""
import argparse
import dataclasses
import functools
import json

import harness

FOLDER = harness.PROJECT / "build/bp"
# A queue of the paper's time holds 128 requests; with queue_depth=1 the kernel
# would let a scheduler hold two. Without a scheduler there is nothing to set.
REQUESTS = {"nr_requests": 128}
PAPER = ("bp-transcend", "bp-samsung")
# Drives in use: all blocks hold data.
USED = {"fill": 100}
SMALL = {**USED, "capacity_mb": 1024, "memory_backed": 1}
BASES = {"a": "anticipatory", "f": "fair"}


@dataclasses.dataclass
class Column:
    """A figure of a run: head, how to get it from the result, digits."""
    head: str
    get: object
    digits: int = 1

    def cell(self, result):
        """As text; nothing where there is no such figure."""
        try:
            value = self.get(result)
        except (KeyError, ZeroDivisionError):
            return ""
        return "" if value is None else f"{value:,.{self.digits}f}"


def jobs(result, kind):
    """The jobs of fio's result that read, or write."""
    return [job[kind] for job in result["fio"]["jobs"] if job[kind]["total_ios"]]


def mbps(result, kinds=("read", "write")):
    """MB/s of all jobs, each over its own time."""
    if "files" in result:
        return result["files"]["mbps"]
    return sum(job["bw_bytes"] for kind in kinds for job in jobs(result, kind)) / 1e6


def latency(result, kind, what):
    """Latency in ms; the worst of several jobs."""
    found = jobs(result, kind)
    if what == "mean":
        return max(job["lat_ns"]["mean"] for job in found) / 1e6 if found else None
    return max(job["lat_ns"]["percentile"][what] for job in found) / 1e6 if found else None


def jain(values):
    """1 when all are equal, 1 / n when one has all."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def jain_of(result, kinds):
    """Jain's index of the bytes of the jobs."""
    return jain([job["io_bytes"] for kind in kinds for job in jobs(result, kind)])


def expired(result):
    """Requests that went because their deadline had passed."""
    return result["bp"].get("expired")


MBPS = Column("MB/s", mbps, 2)
SECONDS = Column("s", lambda r: r["files"]["seconds"], 1)
MERGES = Column("blocks merged", lambda r: r["ssdemu"]["merges"], 0)
PEAK = "99.000000"
READ_MEAN = Column("read mean ms", lambda r: latency(r, "read", "mean"), 2)
READ_P99 = Column("read p99 ms", lambda r: latency(r, "read", PEAK), 2)
WRITE_MEAN = Column("write mean ms", lambda r: latency(r, "write", "mean"), 1)
WRITE_P99 = Column("write p99 ms", lambda r: latency(r, "write", PEAK), 1)
READS = Column("read MB/s", lambda r: mbps(r, ("read",)), 2)
WRITES = Column("write MB/s", lambda r: mbps(r, ("write",)), 2)
CROSSINGS = Column("crossings", lambda r: r["bp"]["crossings"], 0)
AVOIDED = Column("avoided", lambda r: r["bp"]["avoided"], 0)
EXPIRED = Column("expired", expired, 0)
HITS = Column("hits", lambda r: r["bp"]["hits"], 0)
MISSES = Column("misses", lambda r: r["bp"]["misses"], 0)
WAITED = Column("waited ms", lambda r: r["bp"]["waited_us"] / 1e3, 1)
JAINS = (Column("Jain all", lambda r: jain_of(r, ("read", "write")), 3),
         Column("Jain readers", lambda r: jain_of(r, ("read",)), 3),
         Column("Jain writers", lambda r: jain_of(r, ("write",)), 3))


def bp(base, preference=1, label=None, **tunables):
    """Scheduler, tunables and label of BP."""
    settings = {"iosched/base": BASES[base], "iosched/preference": preference}
    settings.update({f"iosched/{key}": value for key, value in tunables.items()})
    return "bp", settings, label or f"bp {BASES[base]}, preference={preference}"


ALL_BP = [bp(base, preference) for base in BASES for preference in (0, 1)]
PEERS = [(peer, {}, peer) for peer in harness.PEERS]


def run(preset, job, scheduler, keys=None, requests=True, **variables):
    """A run; @scheduler as from bp()."""
    name, tunables, label = scheduler
    if requests and name != "none":
        tunables = {**REQUESTS, **tunables}
    return harness.Run(preset, job, name, tunables=tunables, keys=keys or {},
                       variables={key: str(value) for key, value in variables.items()},
                       label=label)


def variables(job):
    """What the job wants to know."""
    return {"SIZE": "16m"} if job == "bp-blocks" else {}


@dataclasses.dataclass
class Table:
    """Runs that are compared: rows of a table."""
    title: str
    runs: list
    columns: list

    def lines(self):
        """As Markdown."""
        rows = [["", *(column.head for column in self.columns)]]
        rows += [[run.label, *(column.cell(run.result) for column in self.columns)]
                 for run in self.runs]
        used = [i for i in range(len(rows[0])) if not i or any(row[i] for row in rows[1:])]
        rows = [[row[i] for i in used] for row in rows]
        rows.insert(1, ["---", *["---:"] * (len(rows[0]) - 1)])
        return [f"**{self.title}**", "", *("| " + " | ".join(row) + " |" for row in rows)]


def paper_drive(preset):
    """What the preference is for, on a drive of the paper."""
    columns = [MBPS, READS, WRITES, MERGES, READ_MEAN, WRITE_MEAN, WRITE_P99, CROSSINGS,
               AVOIDED, EXPIRED]
    return [Table(f"{harness.job_says(job)}; {preset}, in use",
                  [run(preset, job, scheduler, USED, **variables(job))
                   for scheduler in PEERS + ALL_BP], columns)
            for job in ("bp-blocks", "bp-streams", "bp-mixed", "bp-sequential")]


def writes():
    """random, interleaved, mixed and sequential writes on bp-transcend"""
    return paper_drive("bp-transcend")


def samsung():
    """the same on bp-samsung"""
    return paper_drive("bp-samsung")


def files(job, title, columns, numbers, presets=PAPER):
    """A benchmark on ext4."""
    return [Table(f"{title}; ext4 on {preset}, in use",
                  [run(preset, job, scheduler, SMALL, A=numbers[0], B=numbers[1])
                   for scheduler in PEERS + ALL_BP], columns)
            for preset in presets]


def postmark():
    """Debian's postmark on ext4"""
    return files("postmark", "postmark, 2000 files, 10000 transactions",
                 [SECONDS, MERGES, CROSSINGS, AVOIDED, EXPIRED], (2000, 10000))


def dbench():
    """Debian's dbench on ext4"""
    return files("dbench", "dbench, 4 clients, 15 s", [MBPS, MERGES, CROSSINGS, AVOIDED, EXPIRED],
                 (4, 15))


def neutral():
    """today's drives: what BP costs there"""
    columns = [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_MEAN, WRITE_P99]
    return [Table(f"{harness.job_says(job)}; {preset}",
                  [run(preset, job, scheduler, requests=False)
                   for scheduler in PEERS + [bp("a"), bp("f")]], columns)
            for preset, job in (("sata", "readers"), ("nvme", "readers"), ("qlc", "readers"))]


def fairness():
    """two readers against four writers: Jain's index, p99"""
    schedulers = [("mq-deadline", {}, "mq-deadline"), ("bfq", {}, "bfq"), *ALL_BP]
    return [Table(f"{harness.job_says('bp-fair')}; {preset}",
                  [run(preset, "bp-fair", scheduler, keys) for scheduler in schedulers],
                  [READS, WRITES, *JAINS, READ_MEAN, READ_P99, WRITE_P99, HITS, MISSES])
            for preset, keys in (("bp-transcend", USED), ("sata", {}))]


def open_blocks():
    """open_blocks on a drive that keeps four blocks open"""
    return [Table(f"{harness.job_says(job)}; bp-transcend with four open blocks, in use",
                  [run("bp-transcend", job, PEERS[1], keys, **variables(job)),
                   *(run("bp-transcend", job, bp("a", 1, f"open_blocks={n}", open_blocks=n), keys,
                         **variables(job)) for n in (1, 2, 4, 8))],
                  [MBPS, MERGES, WRITE_MEAN, WRITE_P99, CROSSINGS, AVOIDED, EXPIRED])
            for keys in ({**USED, "open_blocks": 4},) for job in ("bp-blocks", "bp-streams")]


def lookahead():
    """the paper's claim that looking further than two does not help"""
    return [Table(f"{harness.job_says('bp-blocks')}, over {size}; bp-transcend, in use",
                  [run("bp-transcend", "bp-blocks", bp("a", 1, f"lookahead={n}", lookahead=n), USED,
                       SIZE=size) for n in (1, 2, 4, 8, 16)],
                  [MBPS, MERGES, WRITE_MEAN, WRITE_P99, CROSSINGS, AVOIDED, EXPIRED])
            for size in ("16m", "64m")]


def anticipation():
    """antic_us: what its default should be"""
    return [Table(f"{harness.job_says(job)}; {preset}",
                  [run(preset, job, bp("a", 1, f"antic_us={us}", antic_us=us), keys,
                       requests=preset in PAPER)
                   for us in (0, 100, 300, 1000, 3000)],
                  [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_P99, HITS, MISSES, WAITED])
            for preset, keys, job in (("bp-transcend", USED, "bp-mixed"),
                                      ("bp-transcend", USED, "bp-fair"),
                                      ("sata", {}, "bp-fair"))]


def batches():
    """write_batch_ms: what its default should be"""
    return [Table(f"{harness.job_says(job)}; {preset}",
                  [run(preset, job, bp("a", 1, f"write_batch_ms={ms}", write_batch_ms=ms), keys,
                       requests=preset in PAPER)
                   for ms in (4, 16, 32, 125)],
                  [MBPS, READS, WRITES, READ_MEAN, READ_P99, WRITE_MEAN, WRITE_P99, MERGES])
            for preset, keys, job in (("bp-transcend", USED, "bp-fair"),
                                      ("sata", {}, "readers"))]


GROUPS = {group.__name__: group for group in
          (writes, samsung, postmark, dbench, neutral, fairness, open_blocks, lookahead,
           anticipation, batches)}


def measure(name, tables, progress):
    """Make the runs of a group in a guest, and leave its tables in the folder."""
    runs = [run for table in tables for run in table.runs]
    plan = FOLDER / f"{name}.plan.json"
    plan.write_text(json.dumps([dataclasses.asdict(run) for run in runs]))
    waiting = iter(runs)

    def hear(line):
        if not line.startswith("{"):
            return
        run = next(waiting)
        run.result = json.loads(line)
        progress.step(f"{name}: {run.preset}, {run.job}, {run.label}")

    harness.lab(["env", f"PYTHONPATH={harness.PROJECT}/tests/vm:{harness.BENCH}",
                 harness.BENCH / "bp-guest.py", plan], FOLDER / f"{name}.log", hear)
    if next(waiting, None):
        raise harness.Failed(f"not all runs came back, log: {FOLDER / name}.log")
    save(name, runs)
    text = "\n\n".join("\n".join(table.lines()) for table in tables) + "\n"
    (FOLDER / f"{name}.md").write_text(text)
    print(text, flush=True)


def save(name, runs):
    """Leave a group's results, and what they were made from, as JSON."""
    fio = [run for run in runs if run.job not in ("postmark", "dbench")]
    about = harness.circumstances(fio)
    about["presets"].update({preset: (harness.PRESETS / f"{preset}.conf").read_text()
                             for preset in {run.preset for run in runs}})
    (FOLDER / f"{name}.json").write_text(json.dumps(
        {**about, "runs": [dataclasses.asdict(run) for run in runs]}, indent=1) + "\n")


def main():
    doc = __doc__ + "\n".join(f"    {name:13} {group.__doc__}" for name, group in GROUPS.items())
    parser = argparse.ArgumentParser(usage="tests/bench/bp.py [GROUP...]", description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", choices=[[], *GROUPS],
                        help="what to measure")
    groups = parser.parse_args().groups or list(GROUPS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    tables = {name: GROUPS[name]() for name in groups}
    progress = harness.Progress(sum(len(table.runs) for group in tables.values()
                                    for table in group))
    harness.run_all([functools.partial(measure, name, group, progress)
                     for name, group in tables.items()])
    return 0


if __name__ == "__main__":
    harness.finish(main)
