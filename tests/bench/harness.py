# SPDX-License-Identifier: GPL-2.0
"""Imported by the benchmarks of this folder: runs of fio on the emulated SSD.

A run is one fio job on one device under one scheduler. Runs that are to be
compared go into one guest, each on a device made anew; several guests go side
by side, as virtual time does not depend on how busy this machine is. What a
run's figures mean is in figures().
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import threading
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BENCH = PROJECT / "tests/bench"
PRESETS = PROJECT / "tests/ssdemu/presets"
KERNEL = "6.12"
PEERS = ("none", "mq-deadline", "kyber", "bfq")
PERCENTILES = (50, 90, 99, 99.9, 99.99)
# Emulation fills a core: more guests than there are only slow each other down.
GUESTS = int(os.environ.get("GUESTS", min(2, os.cpu_count())))


# Those that run at the moment.
labs = set()


class Failed(Exception):
    """A benchmark cannot go on; the text says why and where the log is."""


@dataclasses.dataclass
class Run:
    """One fio job (@job.fio, its ${VARIABLES} from @variables) on a device
    (@preset with @keys instead of the preset's) under a scheduler, with
    @tunables of the queue, as {"iosched/read_batch": 8}. @device and @label
    are how tables name the device and the scheduler."""
    preset: str
    job: str
    scheduler: str
    tunables: dict = dataclasses.field(default_factory=dict)
    keys: dict = dataclasses.field(default_factory=dict)
    variables: dict = dataclasses.field(default_factory=dict)
    device: str = ""
    label: str = ""
    result: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.device = self.device or self.preset
        self.label = self.label or self.scheduler


def figures(fio, ssdemu):
    """What tables show of a run, from fio's result (its jobs joined by
    group_reporting) and the device's counters: MB/s in 10^6 bytes, latencies
    in ms from submission to completion, as the application sees them."""
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
            made[f"{direction}_p{percentile:g}"] = value / 1e6
    made["write_amplification"] = ssdemu["write_amplification_milli"] / 1e3
    made["erases"] = ssdemu["flash_erases"]
    made["units_busy"] = ssdemu["units_busy_milli"] / 1e3
    return made


def cpu_seconds():
    """CPU time, user and system, of all that was run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Progress:
    """Tells of each step done, and when the rest may be."""

    def __init__(self, steps):
        self.steps = steps
        self.done = 0
        self.started = time.monotonic()
        self.lock = threading.Lock()

    @staticmethod
    def clock(seconds):
        """Minutes and seconds."""
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

    def step(self, text):
        """Tell of one more step done."""
        with self.lock:
            self.done += 1
            gone = time.monotonic() - self.started
            left = gone / self.done * (self.steps - self.done)
            print(f"[{self.done:{len(str(self.steps))}}/{self.steps}] "
                  f"{self.clock(gone)}, about {self.clock(left)} to go  {text}",
                  file=sys.stderr, flush=True)


def lab(command, log, hear):
    """Run @command in a virtual-time guest; @hear gets each line it prints.
    All of it, and what the lab says, is left in @log."""
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            [PROJECT / "scripts/lab", "--virtual-time", "--kernel", KERNEL,
             "--timeout=36000", "--", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out,
            cwd=PROJECT, text=True) as process:
        labs.add(process)
        for line in process.stdout:
            out.write(line)
            out.flush()
            hear(line)
        status = process.wait()
        labs.discard(process)
    if status:
        said = log.read_text(encoding="utf-8", errors="replace")
        said = [line for line in said.splitlines() if line and len(line) < 300]
        raise Failed("\n".join([f"guest ended with status {status}, log: {log}",
                                *(f"    {line}" for line in said[-8:])]))


def run_guest(runs, name, folder, progress):
    """Run @runs one after another in a guest of their own."""
    plan = folder / f"{name}.plan.json"
    plan.write_text(json.dumps([dataclasses.asdict(run) for run in runs]))
    waiting = iter(runs)

    def hear(line):
        if not line.startswith("{"):
            return
        run = next(waiting)
        run.result = json.loads(line)
        run.result["figures"] = figures(run.result["fio"], run.result["ssdemu"])
        what = ", ".join([run.device, run.job, *run.variables.values(), run.label])
        progress.step(f"{what}: {run.result['figures']['mbps']:.1f} MB/s")

    # The guest's own copy of tests/vm/ssd.py is the one that knows the device.
    lab(["env", f"PYTHONPATH={PROJECT}/tests/vm", BENCH / "guest.py", plan],
        folder / f"{name}.log", hear)
    if next(waiting, None):
        raise Failed(f"not all runs came back, log: {folder / name}.log")


def run_all(tasks):
    """Call all @tasks, as many side by side as there can be guests; the first
    that fails ends it all."""
    with concurrent.futures.ThreadPoolExecutor(GUESTS) as pool:
        jobs = [pool.submit(task) for task in tasks]
        try:
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(labs):
                process.terminate()
            raise


def said(*command):
    """First line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, cwd=PROJECT, capture_output=True,
                              text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().partition("\n")[0]


def release():
    """The kernel that the guests run."""
    name = said(PROJECT / "scripts/fetch-kernel", "--cached", KERNEL)
    return name or said(PROJECT / "scripts/fetch-kernel", KERNEL)


def circumstances(runs):
    """What somebody else needs to get the same figures."""
    presets = sorted({run.preset for run in runs})
    jobs = sorted({run.job for run in runs})
    return {
        "what": "emulated device, virtual time",
        "command": [os.path.relpath(sys.argv[0], PROJECT), *sys.argv[1:]],
        "commit": said("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "kernel": release(),
        "guest": "scripts/lab --virtual-time: 1 CPU, 1 instruction = 1 ns",
        "qemu": said("qemu-system-x86_64", "--version"),
        "fio": said("fio", "--version"),
        "host": platform.platform(),
        "seeds": "fio's own (allrandrepeat=1): the same for every scheduler",
        "presets": {name: (PRESETS / f"{name}.conf").read_text() for name in presets},
        "jobs": {name: (BENCH / f"{name}.fio").read_text() for name in jobs},
    }


def save(path, runs, **more):
    """Leave results in a JSON file: what, under which circumstances."""
    path.write_text(json.dumps({
        **circumstances(runs), **more,
        "runs": [dataclasses.asdict(run) for run in runs]}, indent=1) + "\n")


def job_says(job):
    """What a job is: the first line of its file's comment."""
    for line in (BENCH / f"{job}.fio").read_text().splitlines():
        if line.startswith("#") and not re.match("# SPDX", line):
            return line[1:].strip().rstrip(".")
    return job


def finish(main):
    """Call @main as a program's main function."""
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
