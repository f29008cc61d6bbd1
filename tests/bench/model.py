# SPDX-License-Identifier: GPL-2.0
"""A run of the benchmark, and the figures that are derived from its result."""
import dataclasses
import math
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
    variables   of the job, {name: text}
    device      the name of the device in tables
    label       the name of the scheduler in tables
    result      what the guest's program printed, with "figures"; {} until then
    """
    preset: str
    job: str
    scheduler: str
    tunables: dict[str, int | str] = dataclasses.field(default_factory=dict)
    keys: dict[str, int | str] = dataclasses.field(default_factory=dict)
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    device: str = ""
    label: str = ""
    result: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.device = self.device or self.preset
        self.label = self.label or self.scheduler


def figures(fio: dict, ssdemu: dict) -> dict[str, float]:
    """Return the figures of a run from fio's result, whose jobs group_reporting has joined,
    and the device's counters, {} without: MB/s of 10^6 bytes, and ms from submission to
    completion as the application measures them. Both are in the time of the device, which
    "time_scale" says."""
    scale = ssdemu.get("time_scale", 1)
    job = fio["jobs"][0]
    if len(fio["jobs"]) != 1:
        raise Failed("a fio job file must have group_reporting=1")
    made = {"mbps": 0.0, "iops": 0.0, "time_scale": scale}
    for direction in ("read", "write"):
        got = job[direction]
        if not got["total_ios"]:
            continue
        made["mbps"] += got["bw_bytes"] * scale / 1e6
        made["iops"] += got["iops"] * scale
        made[f"{direction}_mbps"] = got["bw_bytes"] * scale / 1e6
        made[f"{direction}_mean"] = got["lat_ns"]["mean"] / scale / 1e6
        made[f"{direction}_max"] = got["lat_ns"]["max"] / scale / 1e6
        for percentile in PERCENTILES:
            value = got["lat_ns"]["percentile"][f"{percentile:.6f}"]
            made[f"{direction}_p{percentile:g}"] = value / scale / 1e6
    if ssdemu:
        made["write_amplification"] = ssdemu["write_amplification_milli"] / 1e3
        made["erases"] = ssdemu["flash_erases"]
        made["units_busy"] = ssdemu["units_busy_milli"] / 1e3
        # A mean over the time in which any unit is busy: fio's start and end do not count.
        made["utilisation"] = made["units_busy"] / ssdemu["units"]
        made["of_bound"] = made["mbps"] / bound_mbps(ssdemu)
    return made


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


def time_scale(run: Run) -> int:
    """Return the ns of the guest for a ns of the run's device."""
    if run.preset in ("", NULL_BLK):
        return 1
    return int((preset_keys(run.preset) | run.keys).get("time_scale", 1))


def guest_variables(run: Run) -> dict[str, str]:
    """Return the variables of the run's job with times, such as 200ms, in the time of the
    guest. In a run they are in the time of the device."""
    scale = time_scale(run)
    return {name: f"{int(text[:-2]) * scale}ms" if re.fullmatch(r"[0-9]+ms", text) else text
            for name, text in run.variables.items()}


def is_neutral(preset: str) -> bool:
    """Return True if the preset is a drive of today and not of a paper."""
    return (PRESETS / f"{preset}.conf").read_text().startswith("# Neutral")


def probed_tunables(scheduler: str, preset: str) -> dict[str, int | str]:
    """Return the tunables, {name: value}, that a probe of the device would find for one of
    this project's schedulers. They are taken from the preset."""
    keys = preset_keys(preset)
    page_kb = keys.get("page_size", 4096) // 1024
    shape = {name: keys.get(name, 1) for name in ("channels", "chips", "dies", "planes")}
    # One flash block of each plane.
    block_kb = keys.get("pages", 64) * page_kb * math.prod(shape.values())
    if scheduler == "pass":
        return {"region_size_mb": keys.get("region_mb", 4096)}
    if scheduler == "piq":
        order = keys.get("allocation", "cwdp")
        if keys.get("unit") == "die":
            # The units that a probe finds; PIQ's smallest one but a plane is a chip.
            shape.update(chips=shape["chips"] * shape["dies"], dies=1)
        return {"page_size_kb": page_kb, **shape,
                "level": "plane" if keys.get("unit") == "plane" else "chip",
                **({"buffered_writes": 1} if keys.get("write_buffer_kb") else {}),
                **({"allocation": order} if sorted(order) == list("cdpw") else {})}
    if scheduler == "bp":
        return {"block_size_kb": block_kb, "open_blocks": min(keys.get("open_blocks", 1), 64)}
    if scheduler == "pai":
        at_once = page_kb * keys.get("program_pages",
                                     shape["planes"] if keys.get("unit") == "plane" else 1)
        return {"clustered_page_kb": keys.get("clustered_page_kb", at_once),
                "clustered_block_kb": block_kb,
                "read_buffer_kb": keys.get("read_buffer_kb", 0),
                "write_buffer_kb": keys.get("write_buffer_kb", 0),
                # As in the paper: align, and split at the size of a buffer.
                "split": "pasa"}
    return {}


def job_says(job: str) -> str:
    """Return the first line of a job's comment, which says what the job does."""
    for line in (JOBS / f"{job}.fio").read_text().splitlines():
        if line.startswith("#") and not re.match("# SPDX", line):
            return line[1:].strip().rstrip(".")
    return job
