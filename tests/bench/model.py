# SPDX-License-Identifier: GPL-2.0
"""A run of the benchmark, and the figures that are derived from its result."""
import dataclasses
import pathlib
import re

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BENCH = PROJECT / "tests/bench"
# The programs that run in a guest.
GUEST = BENCH / "guest"
JOBS = BENCH / "jobs"
PRESETS = PROJECT / "tests/ssdemu/presets"
KERNEL = "6.12"
PEERS = ("none", "mq-deadline", "kyber", "bfq")
# The core without a policy of a paper: tests/tide/.
ALONE = "tide"
# Figures that have no unit of time; "instructions" has none on the devices it is counted on.
RATIOS = ("write_amplification", "erases", "units_busy", "utilisation", "of_bound")
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
# A Run's preset for a device that is always faster than the CPU.
NULL_BLK = "null_blk"
# No kernel of the papers' time throttled writeback. Current kernels do so independently of
# the scheduler: on a drive that takes one request at a time they leave the scheduler two
# writes, and they take a drive whose reads last 1.5 ms for overloaded. Writes with O_DIRECT
# are not affected.
UNTHROTTLED = {"wbt_lat_usec": 0}


class Failed(Exception):
    """The benchmark cannot continue; the text says why and where the log is."""


@dataclasses.dataclass
class Run:
    """One job on a new device under a scheduler, and its result.

    preset      of the emulated SSD, or NULL_BLK; "" for a real drive
    job         a file in JOBS without .fio, or a benchmark of a guest's program
    tunables    attributes of the queue, such as {"iosched/read_batch": 8}
    keys        values that replace the preset's, or the attributes of null_blk
    variables   of the job, {name: text}; times are the drive's, see dilated()
    simulate    in a simulated guest, whose CPU costs nothing, so the device is not slowed down
    device      the name of the device in tables
    label       the name of the scheduler in tables
    result      what the guest's program printed, with "figures"; {} until then
    seconds     of real time that it took, the guest's start included
    """
    preset: str
    job: str
    scheduler: str
    tunables: dict[str, int | str] = dataclasses.field(default_factory=dict)
    keys: dict[str, int | str] = dataclasses.field(default_factory=dict)
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    simulate: bool = False
    device: str = ""
    label: str = ""
    result: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0

    def __post_init__(self):
        self.device = self.device or self.preset
        self.label = self.label or self.scheduler


def figures_of(run: Run) -> dict[str, float]:
    """Return the figures of a run from its result: MB/s of 10^6 bytes, and ms from submission to
    completion as the application measures them, in the drive's time."""
    result = run.result
    if "window" in result:
        made = window_figures(result["window"], result["ssdemu"])
    elif "fio" in result:
        made = figures(result["fio"], result["ssdemu"])
    else:
        made = result["figures"]
    if "LOG" in run.variables:
        check_complete(result)
        # The trace decides them.
        made = {key: value for key, value in made.items()
                if key not in ("read_mbps", "write_mbps", "of_bound")}
    if run.job == "cost":
        made["instructions"] = instructions(run)
    return undilated(made, time_scale(run))


def check_complete(result: dict):
    """Raise Failed if the load has not seen each I/O of a replayed trace complete, or the kernel
    has seen others."""
    for way in ("read", "write"):
        if "asked" in result:
            seen, wanted = result["window"][way]["latency"]["count"], result["asked"][way]
            if seen != wanted:
                raise Failed(f"replay: {seen} of {wanted} {way}s have completed")
            continue
        got = result["fio"]["jobs"][0][way]
        seen = (got["lat_ns"]["N"], got["io_bytes"])
        wanted = (got["total_ios"], result["kernel"][f"{way}_bytes"])
        if seen != wanted:
            raise Failed(f"replay: latencies and bytes of {way}s {seen}, but I/Os and bytes "
                         f"{wanted}")


def beyond(count: int, percentile: float) -> bool:
    """Return True if a percentile of @count values would be their maximum."""
    return -int(-count * percentile // 100) >= count


def lower_bounds(made: dict[str, float]) -> dict[str, float]:
    """Return a lower bound of each percentile that these figures do not have, because it would be
    beyond the I/Os: the maximum. Without an I/O there is none."""
    return {f"{way}_p{percentile:g}": made[f"{way}_max"] for way in ("read", "write")
            if f"{way}_max" in made for percentile in PERCENTILES
            if f"{way}_p{percentile:g}" not in made}


def window_figures(window: dict, ssdemu: dict) -> dict[str, float]:
    """Return the figures of a @window of a run (guest/window.py) in which the device has the
    counters @ssdemu."""
    made = {"mbps": 0.0}
    for direction in ("read", "write"):
        got = window[direction]
        mbps = got["bytes"] / window["seconds"] / 1e6
        made["mbps"] += mbps
        made[f"{direction}_mbps"] = mbps
        made |= {f"{direction}_{key}": value for key, value in got["latency"].items()
                 if key != "count"}
    made |= drive_figures(ssdemu)
    # The window is in the guest's time, the counters are in the drive's.
    bound = bound_mbps(ssdemu)
    made["of_bound"] = made["mbps"] * ssdemu["time_scale"] / bound if bound else 0.0
    return made


def figures(fio: dict, ssdemu: dict) -> dict[str, float]:
    """Return the figures of a whole run from fio's result, whose jobs group_reporting has joined,
    and the device's counters, {} without. For a given number of requests: fio's runtime ends
    with the last of them."""
    job = fio["jobs"][0]
    if len(fio["jobs"]) != 1:
        raise Failed("a fio job file must have group_reporting=1")
    made = {"mbps": 0.0, "iops": 0.0}
    for direction in ("read", "write"):
        got = job[direction]
        if not got["total_ios"]:
            continue
        made["mbps"] += got["bw_bytes"] / 1e6
        made["iops"] += got["iops"]
        made[f"{direction}_mbps"] = got["bw_bytes"] / 1e6
        made[f"{direction}_mean"] = got["lat_ns"]["mean"] / 1e6
        made[f"{direction}_max"] = got["lat_ns"]["max"] / 1e6
        for percentile in PERCENTILES:
            value = got["lat_ns"]["percentile"][f"{percentile:.6f}"]
            if not beyond(got["total_ios"], percentile):
                made[f"{direction}_p{percentile:g}"] = value / 1e6
    return made | (drive_figures(ssdemu) if ssdemu else {})


def drive_figures(ssdemu: dict) -> dict[str, float]:
    """Return figures of the device's counters."""
    busy = ssdemu["units_busy_milli"] / 1e3
    return {"write_amplification": ssdemu["write_amplification_milli"] / 1e3,
            "erases": ssdemu["flash_erases"], "units_busy": busy,
            # A mean over the time in which any unit is busy.
            "utilisation": busy / ssdemu["units"]}


def undilated(made: dict[str, float], scale: int) -> dict[str, float]:
    """Return figures of a device whose times are @scale times as long, as they are without."""
    if scale == 1:
        return made
    return {key: value if key in RATIOS else
            value * scale if re.search("(mbps|iops|tps)$", key) else value / scale
            for key, value in made.items()}


def time_scale(run: Run) -> int:
    """Return how many times as long as the drive's the emulated device's times are."""
    if run.simulate or run.preset in (NULL_BLK, ""):
        return 1
    return (preset_keys(run.preset) | run.keys).get("time_scale", 1)


def plan_of(run: Run) -> dict:
    """Return the run as the guest's programs know it (guest/common.py)."""
    keys = run.keys | ({"time_scale": 1} if run.simulate else {})
    return {"preset": run.preset if run.preset != NULL_BLK else None, "keys": keys,
            "scheduler": run.scheduler, "tunables": run.tunables, "job": run.job,
            "variables": dilated(run), "time_scale": time_scale(run),
            "percentiles": PERCENTILES}


def dilated(run: Run) -> dict[str, str]:
    """Return the variables of a run for its device: times, as "250ms", are as many times as long
    as the device's."""
    scale = time_scale(run)
    found = {name: re.fullmatch(r"([0-9.]+)(us|ms|s)", text)
             for name, text in run.variables.items()}
    return {name: f"{float(time[1]) * scale:g}{time[2]}" if time and scale != 1 else
            run.variables[name] for name, time in found.items()}


def instructions(run: Run) -> float:
    """Return the instructions of an I/O of cost.fio: those of fio, the block layer and the
    driver while the CPU was not idle. In virtual time one instruction is one ns."""
    return run.result["worked_ns"] / run.result["ios"]


def bound_mbps(ssdemu: dict) -> float:
    """Return the MB/s that the device could have served of its requests if its busiest part
    (units, channels, host interface, controller) had worked all the time, with the service
    times of this run. An order of requests that saves service time (switches between reads
    and writes, cleaning) raises the bound itself."""
    config = ssdemu["config"]
    moved = {"read": ssdemu["host_read_bytes"], "write": ssdemu["host_write_bytes"]}
    requests = ssdemu["read_count"] + ssdemu["write_count"]
    needs = [ssdemu["unit_busy_ns"] / ssdemu["units"],
             ssdemu["channel_utilisation_ppm"] / 1e6 * ssdemu["elapsed_ns"],
             requests * config.get("firmware_ns", 0)]
    if config.get("host_mbps"):
        host = max(moved.values()) if config.get("host_duplex") else sum(moved.values())
        needs.append(host * 1e3 / config["host_mbps"])
    return sum(moved.values()) / max(*needs, 1) * 1e3


def ours() -> tuple[str, ...]:
    """Return the names of this project's schedulers."""
    return tuple(sorted(path.name.removesuffix("-iosched.c")
                        for path in PROJECT.glob("*-iosched.c")))


def preset_keys(preset: str) -> dict[str, int | str]:
    """Return the keys of a preset."""
    pairs = {}
    for line in (PRESETS / f"{preset}.conf").read_text().splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            value = value.strip()
            pairs[key.strip()] = int(value) if value.isdigit() else value
    return pairs


def paper_of(preset: str) -> str:
    """Return the scheduler whose paper describes the drive; "" for a drive of today. AOS has the
    drive of PIQ."""
    name = preset.partition("-")[0]
    return "piq" if name == "aos" else name if name in ours() else ""


def job_says(job: str) -> str:
    """Return the first line of a job's comment, which says what the job does."""
    for line in (JOBS / f"{job}.fio").read_text().splitlines():
        if line.startswith("#") and not re.match("# SPDX", line):
            return line[1:].strip().rstrip(".")
    return job
