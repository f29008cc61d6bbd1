# SPDX-License-Identifier: GPL-2.0
"""The cells of `make bench`: runs that are compared with each other.

The peers run with their defaults and with tuned values, this project's schedulers with the
tunables that a probe of the device would find (model.probed_tunables). In the full run the
workloads of the quick run have two additions: this project's schedulers run with their
defaults too, and all schedulers run with several seeds on the drives of today, where a few
garbage collections decide a run.
"""
import collections.abc
import dataclasses
import pathlib
import statistics
import subprocess

import model

# The advice for fast flash in Documentation/block/ of the kernel: deadline-iosched.rst for
# latency, bfq-iosched.rst for throughput; for kyber half of its default targets.
TUNED = {
    "mq-deadline": {"iosched/fifo_batch": 1},
    "kyber": {"iosched/read_lat_nsec": 1000000, "iosched/write_lat_nsec": 5000000},
    "bfq": {"iosched/slice_idle": 0, "iosched/low_latency": 0},
}
# Each request takes 10 us, any number of them in parallel. By default null_blk takes at most
# 127 KB, so that requests of 128 KB cannot merge, and has a second hardware queue for polling.
TIMED = {"size": 1024, "irqmode": 2, "completion_nsec": 10000, "submit_queues": 1,
         "poll_queues": 0, "hw_queue_depth": 256, "max_sectors": 2560}
# A drive that is slower than the CPU: all its tags are in use, and more requests wait.
BUSY = TIMED | {"completion_nsec": 300000, "hw_queue_depth": 16}


@dataclasses.dataclass
class Cell:
    """Runs on a device with a workload that differ in scheduler and seed only. @kind: cpu,
    benefit, depth, trace, or fleet."""
    kind: str
    device: str
    workload: str
    runs: list = dataclasses.field(default_factory=list)

    def results(self) -> dict[str, dict[str, float]]:
        """Return {label: figures}. Figures of several seeds are means; "apart" is the spread
        of their throughput in percent of the mean."""
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


def cost_workload(rw: str, bs: str, depth: int, jobs: int = 1, batch: int = 1) -> dict[str, str]:
    """Return the variables of cost.fio, without RUNTIME."""
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


def mixed(rw: str, bs: str, depth: int, reads: int = 50) -> tuple[str, dict[str, str]]:
    """Return a job and its variables; @reads: percent of reads."""
    return "mixed", {"RW": rw, "BS": bs, "DEPTH": str(depth), "READS": str(reads)}


WORKLOADS_QUICK = {
    "8 threads, 4k random mixed": ("threads", {}),
    "4k random mixed, depth 64": mixed("randrw", "4k", 64),
    "4 sync readers, 1 streaming writer": ("interference", {}),
}
WORKLOADS = WORKLOADS_QUICK | {
    "bursts of 64, mixed": ("bursts", {"PAUSE": "20ms"}),
    **{f"4k random {name}, depth {depth}": mixed(rw, "4k", depth)
       for name, rw in (("read", "randread"), ("write", "randwrite"))
       for depth in (1, 32, 128)},
    **{f"4k random, {reads} % reads, depth {depth}": mixed("randrw", "4k", depth, reads)
       for reads in (30, 70, 90) for depth in (32, 128)},
    **{f"64k sequential {name}, depth 32": mixed(rw, "64k", 32)
       for name, rw in (("read", "read"), ("write", "write"), ("mixed", "rw"))},
}
SEEDS = 3
# {preset: keys}: smaller drives, for the guest's memory.
SMALLER = {"piq": {"capacity_mb": 8192}, "aos": {"capacity_mb": 8192},
           "bp-transcend": {"capacity_mb": 4096}, "bp-samsung": {"capacity_mb": 4096}}
# nr_requests, as in the papers' time. The default gives the scheduler only two requests on a
# drive that takes one at a time. Without a scheduler there is no such setting.
REQUESTS = 128
PRESETS_QUICK = ("pass-ssd1", "piq", "bp-transcend", "pai-a", "sata", "nvme")
# Drives that need a longer run for a similar number of requests.
SLOW = ("pass-ssd1", "bp-transcend", "bp-samsung", "pai-a", "pai-b", "pai-c", "pai-d")
# KB/ms: the write buffer is full before the measurement starts, at 4 KB random writes of
# 55 MB/s.
BUFFERED_KB_MS = 55
# ms of a run of sync readers beside a writer on a drive that takes one request at a time.
# Reads and writes take turns there, under bp of 500 and 125 ms: the run has four of each.
TURNS = 2500
# ms of a run of writing threads on a drive of today, which collects garbage for 100 ms at a
# time.
COLLECTIONS = 1000
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# {trace: factor}: a trace is replayed so many times faster than recorded, to load the device.
TRACES_QUICK = {"umass_financial1_prefix": 100}
TRACES = TRACES_QUICK | {"msr_hm_0_first1000": 400, "hplajw_1week_1992": 100000}
TRACE_FOLDER = model.PROJECT.parent / "shared/traces"


def presets() -> list[str]:
    """Return all presets except the one for functional tests."""
    return sorted(path.stem for path in model.PRESETS.glob("*.conf")
                  if path.stem != "small")


def queue_depth(preset: str) -> int:
    """Return the number of requests that the drive takes at a time."""
    return model.preset_keys(preset).get("queue_depth", 64)


def times(preset: str, job: str, quick: bool) -> dict[str, str]:
    """Return the variables RAMP and RUNTIME of a run."""
    ramp, run = (150, 700) if preset in SLOW else (75, 200)
    if not quick:
        ramp, run = 2 * ramp, 3 * run
    ramp = max(ramp, model.preset_keys(preset).get("write_buffer_kb", 0) // BUFFERED_KB_MS)
    if job == "interference" and queue_depth(preset) == 1:
        run = TURNS
    elif job == "threads" and model.is_neutral(preset):
        run = max(run, COLLECTIONS)
    return {"RAMP": f"{ramp}ms", "RUNTIME": f"{run}ms"}


def competitors(preset: str, defaults: bool) -> collections.abc.Iterator[tuple[str, str, dict]]:
    """Yield (scheduler, label, tunables) of each run of a cell on an emulated device;
    @defaults: this project's schedulers with their defaults, too."""
    for peer in model.PEERS:
        yield peer, peer, {}
        if peer in TUNED:
            values = " ".join(f"{name.rpartition('/')[2]}={value}"
                            for name, value in TUNED[peer].items())
            yield peer, f"{peer} {values}", TUNED[peer]
    for scheduler in model.ours():
        probed = model.probed_tunables(scheduler, preset)
        yield scheduler, scheduler, {f"iosched/{name}": value
                                     for name, value in probed.items()}
        if defaults:
            yield scheduler, f"{scheduler} defaults", {}


def emulated(kind: str, preset: str, workload: str, job: str, variables: dict[str, str],
             quick: bool) -> Cell:
    """Return a cell on an emulated device."""
    keys = SMALLER.get(preset, {})
    backlog = {"nr_requests": REQUESTS} if queue_depth(preset) < REQUESTS / 2 else {}
    thorough = kind == "benefit" and workload in WORKLOADS_QUICK and not quick
    seeds = SEEDS if thorough and model.is_neutral(preset) else 1
    if kind != "trace":
        variables = variables | times(preset, job, quick)
    return Cell(kind, preset, workload, [
        model.Run(preset, job, scheduler, {} if scheduler == "none" else backlog | tunables,
                  keys, variables | {"SEED": str(seed)}, label=label)
        for seed in range(1, seeds + 1)
        for scheduler, label, tunables in competitors(preset, thorough)])


def cpu_cell(workload: str, keys: dict, settings: dict[str, str], quick: bool) -> Cell:
    """Return a cell of instructions of an I/O on a null_blk device."""
    variables = settings | {"RUNTIME": "400ms" if quick else "2000ms"}
    backlog = {"nr_requests": REQUESTS} if keys is BUSY else {}
    return Cell("cpu", model.NULL_BLK, workload, [
        model.Run(model.NULL_BLK, "cost", scheduler, {} if scheduler == "none" else backlog,
                  keys, variables)
        for scheduler in (*model.PEERS, *model.ours())])


def cpu_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of instructions of an I/O, on a device that is faster than the CPU and on
    one that is slower."""
    for workload, settings in (COSTS_QUICK if quick else COSTS).items():
        yield cpu_cell(workload, TIMED, settings, quick)
    yield cpu_cell("4k random mixed, depth 64, all 16 tags in use", BUSY,
                   cost_workload("randrw", "4k", 64), quick)


def benefit_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of throughput and latencies."""
    for preset in PRESETS_QUICK if quick else presets():
        for workload, (job, variables) in (WORKLOADS_QUICK if quick else WORKLOADS).items():
            # Its figures are similar to those of the threads.
            if quick and preset != "piq" and job == "mixed":
                continue
            yield emulated("benefit", preset, workload, job, variables, quick)


def depth_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of throughput by depth, for curves; none in the quick run."""
    for preset in () if quick else ("pass-ssd1", "piq", "sata", "nvme"):
        for depth in DEPTHS:
            job, variables = mixed("randrw", "4k", depth)
            yield emulated("depth", preset, f"4k random mixed, depth {depth}", job,
                           variables, quick)


def replay_log(trace: str, capacity_mb: int, compress: float) -> pathlib.Path:
    """Write a log for fio that replays a trace @compress times faster than recorded, below
    build/; return its path in the project."""
    source = TRACE_FOLDER / f"{trace}.csv.gz"
    log = model.PROJECT / f"build/bench/{trace}-{capacity_mb}-{compress:g}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(
            [model.PROJECT / "scripts/trace-to-fio", f"--compress={compress:g}",
             f"--capacity={capacity_mb}m", "--align=4k", source], stdout=out, check=False)
    if done.returncode:
        raise model.Failed(f"scripts/trace-to-fio fails for {source}")
    return log.relative_to(model.PROJECT)


def trace_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of replayed traces; a trace that is not in TRACE_FOLDER is skipped."""
    for preset in ("piq",) if quick else ("pass-ssd1", "piq", "pai-a", "sata", "qlc"):
        capacity = 4096
        scale = model.preset_keys(preset).get("time_scale", 1)
        for trace, compress in (TRACES_QUICK if quick else TRACES).items():
            if not (TRACE_FOLDER / f"{trace}.csv.gz").exists():
                print(f"bench: no {trace} in {TRACE_FOLDER}: skipped", flush=True)
                continue
            # A device that is slowed down takes a trace that is slowed down as much.
            log = replay_log(trace, capacity, compress / scale)
            yield emulated("trace", preset, f"{trace}, {compress} times as fast", "replay",
                           {"LOG": str(log)}, quick)


KINDS = {"cpu": cpu_cells, "benefit": benefit_cells, "depth": depth_cells,
         "trace": trace_cells}
