# SPDX-License-Identifier: GPL-2.0
"""The cells of `make bench`: runs that are compared with each other.

The peers run with their defaults, this project's schedulers with the tunables that a probe of
the device would find (probed.tunables). In the full run, the workloads of the quick run
have peers with tuned values, too, and this project's schedulers with their defaults.

All times are the drive's.
"""
import collections.abc
import dataclasses
import math

import model
import probed
import replay

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
# ms: of programs beside each other the second begins so much later.
DELAY = 1000


@dataclasses.dataclass
class Cell:
    """Runs on a device with a workload that differ in scheduler and seed only.

    kind        selected, programs, front, cpu, benefit, depth, trace, or fleet
    ordering    more requests are outstanding than the device takes, so that there is something
                to order; None if it depends
    """
    kind: str
    device: str
    workload: str
    runs: list = dataclasses.field(default_factory=list)
    ordering: bool | None = None

    def by_label(self) -> dict[str, list[dict[str, float]]]:
        """Return {label: [figures of each seed]}."""
        found = {}
        for run in self.runs:
            found.setdefault(run.label, []).append(run.result["figures"])
        return found

    def results(self) -> dict[str, dict[str, list[float | None]]]:
        """Return {label: {figure: [its value with each seed]}}, None where there was no I/O; a
        percentile beyond the I/Os is its lower bound."""
        found = {label: [model.lower_bounds(figures) | figures for figures in seeds]
                 for label, seeds in self.by_label().items()}
        keys = list({key: None for seeds in found.values() for figures in seeds
                     for key in figures})
        return {label: {key: [figures.get(key) for figures in seeds] for key in keys}
                for label, seeds in found.items()}

    def bounds(self) -> dict[str, list[str]]:
        """Return {label: figures that are a lower bound with at least one seed}."""
        return {label: sorted({key for figures in seeds for key in model.lower_bounds(figures)})
                for label, seeds in self.by_label().items()}

    def content(self) -> dict:
        """Return the cell for results.json."""
        first = self.runs[0]
        return {"kind": self.kind, "device": self.device, "workload": self.workload,
                "ordering": self.ordering, "results": self.results(), "bounds": self.bounds(),
                "time_scale": model.time_scale(first), "window": first.variables.get("RUNTIME"),
                "keys": first.keys, "job": first.job,
                "paper": model.paper_of(first.preset) if first.preset else ""}


def cost_workload(rw: str, bs: str, depth: int, jobs: int = 1, batch: int = 1) -> dict[str, str]:
    """Return the variables of cost.fio, without RUNTIME, with a seed."""
    return {"RW": rw, "BS": bs, "DEPTH": str(depth), "JOBS": str(jobs),
            "BATCH": str(batch), "SEED": "1"}


COSTS_QUICK = {
    "4k random read, depth 1": cost_workload("randread", "4k", 1),
    "4k random mixed, depth 32": cost_workload("randrw", "4k", 32),
    "4k random mixed, depth 128 in batches of 32": cost_workload("randrw", "4k", 128, 1, 32),
    "128k sequential read, depth 32 in batches of 8": cost_workload("read", "128k", 32, 1, 8),
}
COSTS = COSTS_QUICK | {
    f"4k random {name}, depth {depth}": cost_workload(rw, "4k", depth)
    for name, rw in (("read", "randread"), ("write", "randwrite"), ("mixed", "randrw"))
    for depth in (1, 32, 128)} | {
    "128k sequential write, depth 32 in batches of 8": cost_workload("write", "128k", 32, 1, 8),
    "4k sequential read, depth 128 in batches of 32": cost_workload("read", "4k", 128, 1, 32),
    "4k random read, 4 submitters of depth 32": cost_workload("randread", "4k", 32, 4),
    "4k random mixed, 4 submitters of depth 32": cost_workload("randrw", "4k", 32, 4),
}


@dataclasses.dataclass
class Workload:
    """A job, its variables, and the number of requests it has outstanding, None if that depends
    on more than the job.

    writes      it writes, so drives of today collect garbage
    deep        a writer whose DEPTH exceeds the device's tags: twice their number, at least 64
    drives      presets that begin with one of these names; () for all
    """
    job: str
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    outstanding: int | None = 0
    writes: bool = True
    deep: bool = False
    drives: tuple[str, ...] = ()

    def on(self, tags: int) -> "Workload":
        """Return the workload with the depth for a drive that takes @tags requests."""
        if not self.deep:
            return self
        depth = max(64, 2 * tags)
        return dataclasses.replace(self, variables=self.variables | {"DEPTH": str(depth)},
                                   outstanding=self.outstanding + depth)


def mixed(rw: str, bs: str, depth: int, reads: int = 50, size: str = "100%"
          ) -> tuple[str, dict[str, str]]:
    """Return a random job and its variables; @reads: percent of reads."""
    return "mixed", {"RW": rw, "BS": bs, "DEPTH": str(depth), "READS": str(reads), "SIZE": size}


def random(rw: str, depth: int, *more, **other) -> Workload:
    """Return a workload of 4k random I/O."""
    return Workload(*mixed(rw, "4k", depth, *more), depth, rw != "randread", **other)


def sequential(rw: str) -> Workload:
    """Return a workload of 64k sequential I/O."""
    return Workload("sequential", {"RW": rw, "BS": "64k", "DEPTH": "32"}, 32, rw != "read")


def readers(write: str, bs: str, depth: int = 0) -> Workload:
    """Return a workload of synchronous readers beside a writer of this depth; 0: deep."""
    return Workload("interference", {"WRITE": write, "BS": bs, "DEPTH": str(depth),
                                     "DELAY": f"{DELAY}ms"}, 4 + depth,
                    deep=not depth)


def streams(number: int) -> Workload:
    """Return a workload of interleaved sequential writers."""
    return Workload("streams", {"STREAMS": str(number), "DEPTH": "16"}, 16 * number)


def beside(program: str) -> Workload:
    """Return a workload of a guest's program beside readers."""
    return Workload("beside", {"BESIDE": program}, None, drives=TODAY)


# {name of the cell: (program, job of ioload beside it, tunables)}
PROGRAMS = {"start beside a copy": ("start", "", {}),
            "start beside a copy, wbt off": ("start", "", model.UNTHROTTLED),
            "key-value store beside a backup": ("store", "backup", {}),
            "package installation beside 4 sync readers": ("install", "beside", {})}
# Values of write_share by which the front of reads and writes is drawn, of the recommended one.
FRONT, RECOMMENDED = (5, 10, 25, 50, 75, 90, 100), "pass"
FRONT_PROGRAMS = ("start beside a copy", "key-value store beside a backup")
TODAY = ("nvme", "qlc", "sata", "sd")
WORKLOADS_QUICK = {
    "8 threads, 4k random mixed": Workload("threads", {}, 64),
    "4k random mixed, depth 64": random("randrw", 64),
    "4 sync readers, deep 4k random writer": readers("randwrite", "4k"),
    "4 sync readers, deep 128k writer": readers("write", "128k"),
}
WORKLOADS = WORKLOADS_QUICK | {
    "4 sync readers, 128k writer of depth 16": readers("write", "128k", 16),
    "bursts of 64, mixed": Workload("bursts", {"GAP": "20ms"}, 64),
    **{f"4k random {name}, depth {depth}": random(rw, depth)
       for name, rw in (("read", "randread"), ("write", "randwrite"))
       for depth in (1, 128)},
    "4k random, 70 % reads, depth 128": random("randrw", 128, 70),
    **{f"64k sequential {name}, depth 32": sequential(rw)
       for name, rw in (("read", "read"), ("write", "write"), ("mixed", "rw"))},
    **{f"{number} sequential writers": streams(number) for number in (4, 8)},
    **{f"4k random {name} in {size}, depth {depth}":
       random(rw, depth, 50, size, drives=("pass-",))
       for name, rw in (("read", "randread"), ("mixed", "randrw"))
       for size in ("8g", "16g") for depth in (64, 128)},
    "database and its log, backup": Workload("database", {"DELAY": f"{DELAY}ms"}, 21, deep=True,
                                             drives=(*TODAY, "pass-")),
    "untar beside 4 sync readers": beside("untar"),
    "copy beside 4 sync readers": beside("copy"),
}
# Measured also with nothing set but the scheduler.
SELECTED = ("4 sync readers, deep 4k random writer", "4 sync readers, deep 128k writer")
# Random writes within so many erase blocks of a block-mapped drive.
FEW_BLOCKS = (8, 16)
SEEDS, SEEDS_QUICK = 3, 2
# {preset: keys}: smaller drives, for the guest's memory; block-mapped drives in use, because merges
# become dearer as the drive fills up.
ADAPTED = {**dict.fromkeys(("piq", "aos"), {"capacity_mb": 8192}),
           **dict.fromkeys(("bp-transcend", "bp-samsung"), {"capacity_mb": 4096, "fill": 100}),
           **dict.fromkeys(("pai-a", "pai-b", "pai-c", "pai-d"), {"fill": 100})}
# {preset: keys}: without its SLC cache, which is empty at first. The flash behind it then is as it
# becomes once the cache is full: it collects, with all data in it. With the cache a window would
# straddle the point at which it is full, which the slower scheduler reaches later. Bursts of
# writes are what the cache is for.
BEHIND_CACHE = {"qlc": {"slc_mb": 0}}
# Programs on a file system need a drive that keeps its data.
KEPT = {"memory_backed": 1}
# Least nr_requests, as in the papers' time.
REQUESTS = 128
PRESETS_QUICK = ("pass-ssd1", "piq", "bp-transcend", "pai-a", "sata", "qlc")
# Drives that are similar to another one have the workloads of the quick run. nvme is similar to
# sata; it has these, too.
SIMILAR = {**dict.fromkeys(("aos", "bp-samsung", "pai-b", "pai-d"), ()),
           "nvme": ("4k random read, depth 128", "64k sequential mixed, depth 32",
                    "database and its log, backup", "untar beside 4 sync readers",
                    "copy beside 4 sync readers")}
# Further drives of a paper: of this project's schedulers the paper's only.
FURTHER = ("aos", "bp-samsung", "pai-b", "pai-c", "pai-d")
# Drives on which no peer is tuned, and ours do not run with defaults.
UNTUNED = (*FURTHER, "nvme")
# ms: {drives: (ramp, window with writes, window of reads only)}. A window with writes lasts for
# many of the drive's collections or block merges; it is as long as gives most percentiles
# enough requests.
WINDOWS = {("bp-",): (2000, 12000, 3000), ("pai-c",): (3000, 8000, 3000),
           ("pai-",): (7000, 21000, 3000), ("sd",): (30000, 60000, 5000),
           ("pass-",): (500, 5000, 5000), ("piq", "aos"): (100, 1000, 1000),
           ("nvme", "qlc", "sata"): (1000, 5000, 500)}
# {drives: factor}: the quick run's times are shorter by this factor.
SHORTER = {TODAY: 12, ("",): 4}
# ms: with nothing set, ours let reads be alone on such a drive for a while, every 2 s. A window
# lasts for many of these phases.
PHASED = {"qlc": 20000}
# Seconds of real time that a full run takes on an idle CPU, where none was measured before.
SECONDS = {("null_blk",): 4, ("bp-", "pass-", "pai-d", "qlc", "sd"): 0.4, ("nvme",): 3, ("",): 1.2}
# The window begins later with each seed, by this part of it: seeds differ in phase too, also
# where nothing is random.
PHASE = 0.1
# KB/ms: the write buffer is full before the measurement starts, at 4 KB random writes of
# 55 MB/s.
BUFFERED_KB_MS = 55
DEPTHS = (1, 4, 16, 64, 256)
# {trace: factor}: a trace is replayed so many times faster than recorded, to load the device;
# with each seed at another speed, by JITTER.
TRACES = {"umass_financial1_prefix": 100, "msr_hm_0_first1000": 400, "hplajw_1week_1992": 100000}
JITTER = 0.02
# The traces are folded to so many MB, {preset: MB} to what a smaller drive has.
TRACE_MB = 4096
TRACE_MB_OF = {"qlc": 3072}
TRACE_FOLDER = model.PROJECT.parent / "shared/traces"


def presets() -> list[str]:
    """Return all presets except the one for functional tests."""
    return sorted(path.stem for path in model.PRESETS.glob("*.conf")
                  if path.stem != "small")


def queue_depth(preset: str) -> int:
    """Return the number of requests that the drive takes at a time."""
    return model.preset_keys(preset).get("queue_depth", 64)


def delayed(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables of a run with the ramp that it has: in ms, after the delay."""
    if "DELAY" not in variables:
        return variables
    return variables | {"RAMP": f"{int(variables['RAMP'].removesuffix('ms')) + DELAY}ms"}


def times(preset: str, writes: bool, seed: int, quick: bool, window: int | None = None
          ) -> dict[str, str]:
    """Return the variables RAMP and RUNTIME of a run; @window: ms, None as in WINDOWS."""
    ramp, long, short = next(times for names, times in WINDOWS.items()
                             if preset.startswith(names))
    shorter = (next(factor for names, factor in SHORTER.items() if preset.startswith(names))
               if quick else 1)
    length = window or (long if writes else short) // shorter
    ramp = max((ramp if writes else ramp // 10) // shorter,
               model.preset_keys(preset).get("write_buffer_kb", 0) // BUFFERED_KB_MS)
    return {"RAMP": f"{ramp + length * PHASE * (seed - 1):.0f}ms", "RUNTIME": f"{length}ms"}


def seconds(run: model.Run) -> float:
    """Return an estimate of the real time of a run."""
    return next(value for names, value in SECONDS.items() if run.preset.startswith(names))


def competitors(preset: str, both: bool) -> collections.abc.Iterator[tuple[str, str, dict]]:
    """Yield (scheduler, label, tunables) of each run of a cell on an emulated device; @both:
    also peers with tuned values, and this project's schedulers with defaults."""
    for peer in model.PEERS:
        yield peer, peer, {}
        if both and peer in TUNED:
            values = " ".join(f"{name.rpartition('/')[2]}={value}"
                            for name, value in TUNED[peer].items())
            yield peer, f"{peer} {values}", TUNED[peer]
    for scheduler in model.ours():
        if preset in FURTHER and scheduler != model.paper_of(preset):
            continue
        found = probed.tunables(scheduler, preset)
        yield scheduler, scheduler, {f"iosched/{name}": value
                                     for name, value in found.items()}
        if both:
            yield scheduler, f"{scheduler} defaults", {}


def selected(preset: str) -> collections.abc.Iterator[tuple[str, str, dict]]:
    """Yield the same with nothing set but the scheduler; and of this project's what a user keeps
    with ssdctl persist who has asked ssd-probe, if that sets more."""
    for scheduler in (*model.PEERS, *model.ours(), model.ALONE):
        yield scheduler, scheduler, {}
    for scheduler in model.ours():
        found = probed.tunables(scheduler, preset)
        if found:
            yield scheduler, f"{scheduler} as probed", {f"iosched/{name}": value
                                                         for name, value in found.items()}


def front(_preset: str) -> collections.abc.Iterator[tuple[str, str, dict]]:
    """Yield the same for each point of the front."""
    for share in FRONT:
        yield RECOMMENDED, f"{RECOMMENDED} {share} %", {"iosched/write_share": share}


def keys_of(preset: str, workload: Workload) -> dict[str, int]:
    """Return the keys that replace the preset's."""
    return (ADAPTED.get(preset, {})
            | (BEHIND_CACHE.get(preset, {}) if workload.job != "bursts" else {})
            | (KEPT if "BESIDE" in workload.variables else {}))


def emulated(kind: str, preset: str, name: str, workload: Workload, quick: bool,
             seeded: collections.abc.Callable[[int], dict[str, str]] | None = None,
             among: collections.abc.Callable | None = None) -> Cell:
    """Return a cell on an emulated device. @seeded: the variables of a seed's run; None: its
    times. @among: the competitors, with nothing set but what it yields."""
    tags = queue_depth(preset)
    workload = workload.on(tags)
    ordering = None if workload.outstanding is None else workload.outstanding > tags
    keys = keys_of(preset, workload)
    # At least twice the tags, so that requests can wait in the scheduler; as many as are
    # outstanding, so that none waits for a place in it. Without a scheduler there is none.
    places = max(REQUESTS, 2 * tags, workload.outstanding or 0)
    backlog = ({"nr_requests": places} if not among and (ordering or tags < REQUESTS / 2) else
               {})
    both = (kind == "benefit" and name in WORKLOADS_QUICK and preset not in UNTUNED
            and not quick)
    cell = Cell(kind, preset, name, [], ordering)
    for seed in range(1, (SEEDS_QUICK if quick else SEEDS) + 1):
        variables = delayed(workload.variables | {"SEED": str(seed)} | (
            seeded(seed) if seeded else times(preset, workload.writes, seed, quick)))
        cell.runs += [
            model.Run(preset, workload.job, scheduler,
                      {} if scheduler == "none" else backlog | tunables, keys, variables,
                      simulate=True, label=label)
            for scheduler, label, tunables in (
                among(preset) if among else competitors(preset, both))]
    return cell


def cpu_cell(workload: str, keys: dict, settings: dict[str, str], quick: bool) -> Cell:
    """Return a cell of instructions of an I/O on a null_blk device. What ran before in the same
    guest counts a little, so each seed has another order."""
    runtime = {"RUNTIME": "200ms" if quick else "400ms"}
    backlog = {"nr_requests": REQUESTS} if keys is BUSY else {}
    schedulers = [*model.PEERS, *model.ours()]
    cell = Cell("cpu", model.NULL_BLK, workload, [])
    for seed in range(SEEDS_QUICK if quick else SEEDS):
        first = seed * len(schedulers) // SEEDS
        cell.runs += [
            model.Run(model.NULL_BLK, "cost", scheduler, {} if scheduler == "none" else backlog,
                      keys, settings | runtime | {"SEED": str(seed + 1)})
            for scheduler in schedulers[first:] + schedulers[:first]]
    return cell


def cpu_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of instructions of an I/O, on a device that is faster than the CPU and on
    one that is slower."""
    for workload, settings in (COSTS_QUICK if quick else COSTS).items():
        yield cpu_cell(workload, TIMED, settings, quick)
    yield cpu_cell("4k random mixed, depth 64, all 16 tags in use", BUSY,
                   cost_workload("randrw", "4k", 64), quick)


def erase_block_kb(keys: dict[str, int | str]) -> int:
    """Return the size of an erase block of a block-mapped drive: one flash block of each plane."""
    planes = math.prod(keys.get(name, 1) for name in ("channels", "chips", "dies", "planes"))
    return keys.get("pages", 64) * keys.get("page_size", 4096) // 1024 * planes


def few_blocks(preset: str) -> collections.abc.Iterator[tuple[str, Workload]]:
    """Yield (name, workload) of random writes within few erase blocks of a block-mapped
    drive, more than it keeps open."""
    keys = model.preset_keys(preset)
    if keys.get("mapping") != "block":
        return
    block_kb = erase_block_kb(keys)
    for blocks in FEW_BLOCKS:
        if blocks > keys.get("open_blocks", 1):
            yield (f"4k random write in {blocks} erase blocks, depth 64",
                   random("randwrite", 64, 0, f"{blocks * block_kb}k"))


def workloads(preset: str, quick: bool) -> collections.abc.Iterator[tuple[str, Workload]]:
    """Yield (name, workload) for a drive."""
    chosen = WORKLOADS_QUICK if quick else WORKLOADS if preset not in SIMILAR else {
        name: WORKLOADS[name] for name in (*WORKLOADS_QUICK, *SIMILAR[preset])}
    for name, workload in chosen.items():
        # Its figures are similar to those of the threads.
        similar = quick and preset != "piq" and workload.job == "mixed"
        if not similar and preset.startswith(workload.drives or preset):
            yield name, workload
    if not quick:
        yield from few_blocks(preset)


def benefit_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of throughput and latencies."""
    for preset in PRESETS_QUICK if quick else presets():
        for name, workload in workloads(preset, quick):
            yield emulated("benefit", preset, name, workload, quick)


def beside_writers(kind: str, quick: bool, among: collections.abc.Callable
                   ) -> collections.abc.Iterator[Cell]:
    """Yield cells of readers beside writers on drives of today, with nothing set but what @among
    yields; none in the quick run."""
    for preset in () if quick else presets():
        if not preset.startswith(TODAY):
            continue
        for name in SELECTED:
            yield emulated(kind, preset, name, WORKLOADS[name], quick,
                           lambda seed, preset=preset: times(preset, True, seed, False,
                                                             PHASED.get(preset)), among)


def programs(kind: str, quick: bool, names: collections.abc.Iterable[str],
             among: collections.abc.Callable) -> collections.abc.Iterator[Cell]:
    """Yield cells of programs on a file system of drives of today, as beside_writers() does. The
    kernel's own throttling of writeback is on, as it is by default, and off for a row."""
    for preset in () if quick else presets():
        if not preset.startswith(TODAY):
            continue
        ramp, length = (5000, 20000) if preset == "sd" else (2000, PHASED.get(preset, 4000))
        for name in names:
            program, load, tunables = PROGRAMS[name]
            cell = Cell(kind, preset, name)
            for seed in range(1, SEEDS + 1):
                variables = {"SEED": str(seed), "RUNTIME": f"{length}ms", "LOAD": load,
                             "RAMP": f"{ramp * (1 + PHASE * (seed - 1)):.0f}ms"}
                cell.runs += [
                    model.Run(preset, program, scheduler, tunables | more,
                              BEHIND_CACHE.get(preset, {}) | KEPT, variables, simulate=True,
                              label=label)
                    for scheduler, label, more in among(preset)]
            yield cell


def selected_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells with nothing set but the scheduler: what a user gets who selects one."""
    yield from beside_writers("selected", quick, selected)


def program_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of programs with nothing set but the scheduler."""
    yield from programs("programs", quick, PROGRAMS, selected)


def front_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of the recommended scheduler with each share for writes."""
    yield from beside_writers("front", quick, front)
    yield from programs("front", quick, FRONT_PROGRAMS, front)


def depth_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of throughput by depth, for curves; none in the quick run."""
    for preset in () if quick else ("pass-ssd1", "piq"):
        for depth in DEPTHS:
            yield emulated("depth", preset, f"4k random mixed, depth {depth}",
                           random("randrw", depth), quick)


def replay_log(trace: str, capacity_mb: int, compress: float) -> str:
    """Write logs that replay a trace @compress times faster than recorded, below build/;
    return them as the variable LOG."""
    # Short, because fio takes 8 KB of names.
    folder = model.PROJECT / f"build/replay/{trace[:12]}-{capacity_mb}-{compress:g}"
    return replay.logs(TRACE_FOLDER / f"{trace}.csv.gz", folder, f"--compress={compress:g}",
                       f"--capacity={capacity_mb}m", "--align=4k")


def trace_cell(preset: str, trace: str, compress: int, quick: bool) -> Cell:
    """Return a cell of a replayed trace."""
    workload = Workload("replay", {}, None)

    def seeded(seed):
        speed = compress * (1 + JITTER * (seed - 2))
        return {"LOG": replay_log(trace, TRACE_MB_OF.get(preset, TRACE_MB), speed)}

    return emulated("trace", preset, f"{trace}, {compress} times as fast",
                    workload, quick, seeded)


def trace_cells(quick: bool) -> collections.abc.Iterator[Cell]:
    """Yield cells of replayed traces, none in the quick run; a trace that is not in
    TRACE_FOLDER is skipped."""
    for preset in () if quick else ("pass-ssd1", "piq", "pai-a", "sata", "qlc"):
        for trace, compress in TRACES.items():
            if (TRACE_FOLDER / f"{trace}.csv.gz").exists():
                yield trace_cell(preset, trace, compress, quick)
            else:
                print(f"bench: no {trace} in {TRACE_FOLDER}: skipped", flush=True)


KINDS = {"selected": selected_cells, "programs": program_cells, "front": front_cells,
         "cpu": cpu_cells, "benefit": benefit_cells, "depth": depth_cells, "trace": trace_cells}
