# SPDX-License-Identifier: GPL-2.0
"""What `make bench` measures: cells of runs that are compared with each other.

The peers run with their defaults and with tuned values, ours with the tunables
that a probe of the device would give (harness.probed_tunables). In the full run the
quick run's workloads have ours with their defaults too, and on the drives of today
several seeds: there a few collections of garbage decide about a run.
"""
import dataclasses
import statistics
import subprocess

import harness

# What their documentation advises for fast flash, in Documentation/block/ of the
# kernel: deadline-iosched.rst for latency, kyber's targets halved, bfq-iosched.rst
# for throughput.
TUNED = {
    "mq-deadline": {"iosched/fifo_batch": 1},
    "kyber": {"iosched/read_lat_nsec": 1000000, "iosched/write_lat_nsec": 5000000},
    "bfq": {"iosched/slice_idle": 0, "iosched/low_latency": 0},
}
# As in design.md: each request takes 10 us, as many as come side by side. Left to
# itself null_blk takes 127 KB at most, so that nothing of 128 KB could ever merge, and
# has a second hardware queue for polling.
TIMED = {"size": 1024, "irqmode": 2, "completion_nsec": 10000, "submit_queues": 1,
         "poll_queues": 0, "hw_queue_depth": 256, "max_sectors": 2560}
# A drive that is slower than the CPU, has all its tags in use, and more waiting.
BUSY = TIMED | {"completion_nsec": 300000, "hw_queue_depth": 16}


@dataclasses.dataclass
class Cell:
    """@runs that differ only in their scheduler and their seed; @kind is cpu, benefit,
    depth or trace."""
    kind: str
    device: str
    workload: str
    runs: list = dataclasses.field(default_factory=list)

    def results(self):
        """{label: figures}; of several seeds the means, and by how many percent of that
        their throughput is apart."""
        by_label = {}
        for run in self.runs:
            by_label.setdefault(run.label, []).append(run.result["figures"])
        made = {}
        for label, seeds in by_label.items():
            made[label] = {key: statistics.fmean(figures[key] for figures in seeds)
                           for key in seeds[0]}
            if len(seeds) > 1:
                rates = [figures["mbps"] for figures in seeds]
                made[label]["apart"] = 100 * (max(rates) - min(rates)) / made[label]["mbps"]
        return made


def cost_workload(rw, bs, depth, jobs=1, batch=1):
    """Variables of cost.fio."""
    return {"RW": rw, "BS": bs, "DEPTH": str(depth), "JOBS": str(jobs),
            "BATCH": str(batch)}


COSTS_QUICK = {
    "4k random read, depth 1": cost_workload("randread", "4k", 1),
    "4k random read, depth 32": cost_workload("randread", "4k", 32),
    "4k random write, depth 32": cost_workload("randwrite", "4k", 32),
    "4k random mixed, depth 32": cost_workload("randrw", "4k", 32),
    "4k random mixed, depth 128 in batches of 32": cost_workload("randrw", "4k", 128, 1, 32),
    "128k sequential read, depth 32 in batches of 8": cost_workload("read", "128k", 32, 1, 8),
    "4k random mixed, 4 submitters of depth 32": cost_workload("randrw", "4k", 32, 4),
}
COSTS = COSTS_QUICK | {
    f"4k random {name}, depth {depth}": cost_workload(rw, "4k", depth)
    for name, rw in (("read", "randread"), ("write", "randwrite"), ("mixed", "randrw"))
    for depth in (1, 32, 128)} | {
    "128k sequential write, depth 32 in batches of 8": cost_workload("write", "128k", 32, 1, 8),
    "4k sequential read, depth 128 in batches of 32": cost_workload("read", "4k", 128, 1, 32),
    "4k random read, 4 submitters of depth 32": cost_workload("randread", "4k", 32, 4),
}


def mixed(rw, bs, depth, reads=50):
    """A workload of mixed.fio."""
    return "mixed", {"RW": rw, "BS": bs, "DEPTH": str(depth), "READS": str(reads)}


WORKLOADS_QUICK = {
    "8 threads, 4k random mixed": ("threads", {}),
    "4k random mixed, depth 64": mixed("randrw", "4k", 64),
    "4 sync readers, 1 streaming writer": ("interference", {}),
}
WORKLOADS = WORKLOADS_QUICK | {
    "bursts of 64, mixed": ("bursts", {}),
    **{f"4k random {name}, depth {depth}": mixed(rw, "4k", depth)
       for name, rw in (("read", "randread"), ("write", "randwrite"))
       for depth in (1, 32, 128)},
    **{f"4k random, {reads} % reads, depth {depth}": mixed("randrw", "4k", depth, reads)
       for reads in (30, 70, 90) for depth in (32, 128)},
    **{f"64k sequential {name}, depth 32": mixed(rw, "64k", 32)
       for name, rw in (("read", "read"), ("write", "write"), ("mixed", "rw"))},
}
SEEDS = 3
# (preset, keys): less than the whole drive where the guest's memory asks for it.
SMALLER = {"piq": {"capacity_mb": 8192}, "aos": {"capacity_mb": 8192},
           "bp-transcend": {"capacity_mb": 4096}, "bp-samsung": {"capacity_mb": 4096}}
# Of a drive that takes one request at a time the kernel gives a scheduler two. So
# all get as many as in the papers' time; without a scheduler there is no such thing.
REQUESTS = 128
PRESETS_QUICK = ("pass-ssd1", "piq", "bp-transcend", "pai-a", "sata", "nvme")
# fio's ramp_time and runtime; slow drives need longer for as many requests.
SLOW = ("pass-ssd1", "bp-transcend", "bp-samsung", "pai-a", "pai-b", "pai-c", "pai-d")
# A write buffer is filled before anything is measured: at 4 KB random writes of 55 MB/s.
BUFFERED_KB_MS = 55
# ms of sync readers beside a writer where a drive takes one request at a time. There
# reads and writes take turns, with bp of 500 and of 125 ms: four of both.
TURNS = 2500
# ms of writing threads where drives of today collect garbage for 100 of them at a time.
COLLECTIONS = 1000
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# How much faster than recorded, so that a device has something to do.
TRACES_QUICK = {"umass_financial1_prefix": 100}
TRACES = TRACES_QUICK | {"msr_hm_0_first1000": 400, "hplajw_1week_1992": 100000}
TRACE_FOLDER = harness.PROJECT.parent / "shared/traces"


def presets():
    """All of them, but the one for functional tests."""
    return sorted(path.stem for path in harness.PRESETS.glob("*.conf")
                  if path.stem != "small")


def queue_depth(preset):
    """Requests that the drive takes at once."""
    return harness.preset_keys(preset).get("queue_depth", 64)


def times(preset, job, quick):
    """Variables for how long a run takes."""
    ramp, run = (150, 700) if preset in SLOW else (75, 200)
    if not quick:
        ramp, run = 2 * ramp, 3 * run
    ramp = max(ramp, harness.preset_keys(preset).get("write_buffer_kb", 0) // BUFFERED_KB_MS)
    if job == "interference" and queue_depth(preset) == 1:
        run = TURNS
    elif job == "threads" and harness.is_neutral(preset):
        run = max(run, COLLECTIONS)
    return {"RAMP": f"{ramp}ms", "RUNTIME": f"{run}ms"}


def competitors(preset, defaults):
    """(scheduler, label, tunables) of all that run on an emulated device; ours with
    their @defaults too, or not."""
    for peer in harness.PEERS:
        yield peer, peer, {}
        if peer in TUNED:
            said = " ".join(f"{name.rpartition('/')[2]}={value}"
                            for name, value in TUNED[peer].items())
            yield peer, f"{peer} {said}", TUNED[peer]
    for scheduler in harness.ours():
        probed = harness.probed_tunables(scheduler, preset)
        yield scheduler, scheduler, {f"iosched/{name}": value
                                     for name, value in probed.items()}
        if defaults:
            yield scheduler, f"{scheduler} defaults", {}


def emulated(kind, preset, workload, job, variables, quick):
    """A cell on an emulated device."""
    keys = SMALLER.get(preset, {})
    backlog = {"nr_requests": REQUESTS} if queue_depth(preset) < REQUESTS / 2 else {}
    thorough = kind == "benefit" and workload in WORKLOADS_QUICK and not quick
    seeds = SEEDS if thorough and harness.is_neutral(preset) else 1
    if kind != "trace":
        variables = variables | times(preset, job, quick)
    return Cell(kind, preset, workload, [
        harness.Run(preset, job, scheduler, {} if scheduler == "none" else
                    backlog | tunables, keys, variables | {"SEED": str(seed)}, label=label)
        for seed in range(1, seeds + 1)
        for scheduler, label, tunables in competitors(preset, thorough)])


def cpu_cell(workload, keys, settings, quick):
    """What each costs on a null_blk."""
    variables = settings | {"RUNTIME": "400ms" if quick else "2000ms"}
    backlog = {"nr_requests": REQUESTS} if keys is BUSY else {}
    return Cell("cpu", harness.NULL_BLK, workload, [
        harness.Run(harness.NULL_BLK, "cost", scheduler, {} if scheduler == "none" else
                    backlog, keys, variables)
        for scheduler in (*harness.PEERS, *harness.ours())])


def cpu_cells(quick):
    """What each costs, on a device that is faster than the CPU, and on one that is not."""
    for workload, settings in (COSTS_QUICK if quick else COSTS).items():
        yield cpu_cell(workload, TIMED, settings, quick)
    yield cpu_cell("4k random mixed, depth 64, all 16 tags in use", BUSY,
                   cost_workload("randrw", "4k", 64), quick)


def benefit_cells(quick):
    """What each gains."""
    for preset in PRESETS_QUICK if quick else presets():
        for workload, (job, variables) in (WORKLOADS_QUICK if quick else WORKLOADS).items():
            # Much the same as the threads.
            if quick and preset != "piq" and job == "mixed":
                continue
            yield emulated("benefit", preset, workload, job, variables, quick)


def depth_cells(quick):
    """Throughput by depth, for curves; two points would be none."""
    for preset in () if quick else ("pass-ssd1", "piq", "sata", "nvme"):
        for depth in DEPTHS:
            job, variables = mixed("randrw", "4k", depth)
            yield emulated("depth", preset, f"4k random mixed, depth {depth}", job,
                           variables, quick)


def replay_log(trace, capacity_mb, compress):
    """The replay of a trace, below build/, where the guest finds it."""
    source = TRACE_FOLDER / f"{trace}.csv.gz"
    log = harness.PROJECT / f"build/bench/{trace}-{capacity_mb}-{compress}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(
            [harness.PROJECT / "scripts/trace-to-fio", f"--compress={compress}",
             f"--capacity={capacity_mb}m", "--align=4k", source], stdout=out, check=False)
    if done.returncode:
        raise harness.Failed(f"no replay of {source}")
    return log.relative_to(harness.PROJECT)


def trace_cells(quick):
    """Replays of recorded traces; those that are not at hand are left out."""
    for preset in ("piq",) if quick else ("pass-ssd1", "piq", "pai-a", "sata", "qlc"):
        capacity = 4096
        for trace, compress in (TRACES_QUICK if quick else TRACES).items():
            if not (TRACE_FOLDER / f"{trace}.csv.gz").exists():
                print(f"bench: no {trace} in {TRACE_FOLDER}: left out", flush=True)
                continue
            log = replay_log(trace, capacity, compress)
            yield emulated("trace", preset, f"{trace}, {compress} times as fast", "replay",
                           {"LOG": str(log)}, quick)


KINDS = {"cpu": cpu_cells, "benefit": benefit_cells, "depth": depth_cells,
         "trace": trace_cells}
