# SPDX-License-Identifier: GPL-2.0
"""Imported by the benchmarks of this folder: runs of fio on the emulated SSD.

A run is one fio job on one device under one scheduler. Runs that are to be
compared go into one guest, each on a device made anew; several guests go side
by side, as virtual time does not depend on how busy this machine is. What a
run's figures mean is in figures().
"""
import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BENCH = PROJECT / "tests/bench"
JOBS = BENCH / "jobs"
PRESETS = PROJECT / "tests/ssdemu/presets"
KERNEL = "6.12"
PEERS = ("none", "mq-deadline", "kyber", "bfq")
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
# A Run's preset for a device that is always faster than the CPU.
NULL_BLK = "null_blk"
# Emulation fills a core: more guests than there are only slow each other down.
GUESTS = int(os.environ.get("GUESTS", min(2, os.cpu_count())))

# No kernel of the papers' time throttled writeback. Today's does so without looking at the
# scheduler: of a drive that takes one request at a time it leaves two writes to choose from,
# and takes a drive whose reads take 1.5 ms for one that is overloaded. With O_DIRECT it
# makes no difference.
UNTHROTTLED = {"wbt_lat_usec": 0}

# Those that run at the moment.
labs = set()


class Failed(Exception):
    """A benchmark cannot go on; the text says why and where the log is."""


@dataclasses.dataclass
class Run:
    """One fio job (@job.fio, its ${VARIABLES} from @variables) on a device
    (@preset with @keys instead of the preset's; or NULL_BLK, with @keys its
    attributes) under a scheduler, with @tunables of the queue, as
    {"iosched/read_batch": 8}. @device and @label are how tables name the device
    and the scheduler."""
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
    if ssdemu:
        made["write_amplification"] = ssdemu["write_amplification_milli"] / 1e3
        made["erases"] = ssdemu["flash_erases"]
        made["units_busy"] = ssdemu["units_busy_milli"] / 1e3
        # While any is busy: fio's own start and end don't count.
        made["utilisation"] = made["units_busy"] / ssdemu["units"]
        made["of_bound"] = made["mbps"] / bound_mbps(ssdemu)
    return made


def instructions(run):
    """Instructions that an I/O of cost.fio took, all of fio's, the block layer's and
    the driver's, none while the CPU was idle (guest.py): one is a nanosecond."""
    return run.result["worked_ns"] / run.result["ios"]


def bound_mbps(ssdemu):
    """MB/s that the device could have served of what it was given: its busiest
    part (units, channels, host interface, controller) at work all the time, with
    the service times that it had. What an order of requests saves in service time
    (switches between reads and writes, cleaning) moves the bound itself."""
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


def ours():
    """The schedulers of this project, as far as they exist."""
    return tuple(sorted(path.name.removesuffix("-iosched.c")
                        for path in PROJECT.glob("*-iosched.c")))


def preset_keys(preset):
    """The keys of a preset, numbers as numbers."""
    pairs = {}
    for line in (PRESETS / f"{preset}.conf").read_text().splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            value = value.strip()
            pairs[key.strip()] = int(value) if value.isdigit() else value
    return pairs


def is_neutral(preset):
    """Is it a drive of today, of no paper?"""
    return (PRESETS / f"{preset}.conf").read_text().startswith("# Neutral")


def probed_tunables(scheduler, preset):
    """What a probe of the device would find out for one of our schedulers, taken
    from the preset's own numbers: {tunable: value}."""
    keys = preset_keys(preset)
    page_kb = keys.get("page_size", 4096) // 1024
    shape = {name: keys.get(name, 1) for name in ("channels", "chips", "dies", "planes")}
    # One flash block of every plane.
    block_kb = keys.get("pages", 64) * page_kb * math.prod(shape.values())
    if scheduler == "pass":
        return {"region_size_mb": keys.get("region_mb", 4096)}
    if scheduler == "piq":
        order = keys.get("allocation", "cwdp")
        return {"page_size_kb": page_kb, **shape,
                "level": "plane" if keys.get("advanced") else "chip",
                **({"buffered_writes": 1} if keys.get("write_buffer_kb") else {}),
                **({"allocation": order} if sorted(order) == list("cdpw") else {})}
    if scheduler == "bp":
        return {"block_size_kb": block_kb, "open_blocks": min(keys.get("open_blocks", 1), 64)}
    if scheduler == "pai":
        at_once = page_kb * (shape["planes"] if keys.get("advanced") else 1)
        return {"clustered_page_kb": keys.get("clustered_page_kb", at_once),
                "clustered_block_kb": block_kb,
                "read_buffer_kb": keys.get("read_buffer_kb", 0),
                "write_buffer_kb": keys.get("write_buffer_kb", 0),
                # As the paper: align, and cut to the buffers where there are any.
                "split": "pasa"}
    return {}


def cpu_seconds():
    """CPU time, user and system, of all that was run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Store:
    """Results that are kept, each by what it is the result of: the sources, the
    kernel, and the run with the text of its job and preset. What an interrupted
    benchmark has measured is not measured again."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.base = [sources(), release(), said("fio", "--version"),
                     said("qemu-system-x86_64", "--version")]

    def path(self, run):
        """The file of a run's result."""
        spec = {key: value for key, value in dataclasses.asdict(run).items()
                if key not in ("result", "label", "device")}
        # A job that is not fio's is in the guest's program, one of the sources.
        job = JOBS / f"{run.job}.fio"
        texts = [job.read_text()] if job.exists() else []
        if run.preset != NULL_BLK:
            texts.append((PRESETS / f"{run.preset}.conf").read_text())
        if "LOG" in run.variables:
            texts.append((PROJECT / run.variables["LOG"]).read_text())
        key = json.dumps([self.base, spec, texts], sort_keys=True)
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    def recall(self, run):
        """Take the result of a run, if it is known."""
        try:
            run.result = json.loads(self.path(run).read_text())
        except FileNotFoundError:
            return False
        return True

    def keep(self, run):
        """Keep the result of a run."""
        path = self.path(run)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(run.result))
        part.rename(path)


def sources():
    """What decides what a guest does: a digest of the modules' sources, of what runs in
    it, and of what makes it."""
    digest = hashlib.sha256()
    for pattern in ("*-iosched.c", "include/*.h", "tests/ssdemu/*.[ch]", "Kbuild",
                    "scripts/guest_root.py", "scripts/initramfs.py", "scripts/lab*",
                    "tests/bench/*guest.py", "tests/bench/database.py", "tests/lib/ssd.py"):
        for path in sorted(PROJECT.glob(pattern)):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


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


def lab(command, log, hear, options=("--virtual-time", f"--kernel={KERNEL}"), files=()):
    """Run @command in a guest, in virtual time unless @options are others, with @files,
    (name there, path); @hear gets each line it prints. All of it, and what the lab says,
    is left in @log."""
    options = [*options, *(f"--file={name}={path}" for name, path in files)]
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            [PROJECT / "scripts/lab", *options, "--timeout=36000", "--", *command],
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


def run_script(command, log):
    """Run a program of this folder on this machine, what it says in @log."""
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              cwd=PROJECT, check=False)
    if done.returncode:
        raise Failed(f"{command[0].name} ended with status {done.returncode}, log: {log}")


def packages(program):
    """Options of the lab for the Debian packages that a program of the guest's names on
    top, as in "# packages: sysbench"."""
    head = re.search(r"^# packages: (.+)$", program.read_text(), re.MULTILINE)
    return [f"--package={name}" for name in head[1].split()] if head else []


def run_guest(runs, name, folder, progress, keep=None, program="guest.py"):
    """Run @runs one after another in a guest of their own, by a @program of this
    folder that takes a plan and prints results; @keep gets each as soon as it is
    done."""
    plan = folder / f"{name}.plan.json"
    # Nothing in it of what is known already: the guest could tell.
    plan.write_text(json.dumps([dataclasses.asdict(dataclasses.replace(run, result={}))
                                for run in runs]))
    waiting = iter(runs)

    def hear(line):
        if not line.startswith("{"):
            return
        run = next(waiting)
        run.result = json.loads(line)
        if "fio" in run.result:
            run.result["figures"] = figures(run.result["fio"], run.result["ssdemu"])
        if keep:
            keep(run)
        what = ", ".join([run.device, run.job, *run.variables.values(), run.label])
        progress.step(f"{what}: {run.result['figures']['mbps']:.1f} MB/s")

    logs = sorted({run.variables["LOG"] for run in runs if "LOG" in run.variables})
    # The guest's own copy of tests/lib/ssd.py is the one that knows the device.
    # A name of another length would be enough for another figure, in the last digit.
    lab(["env", f"PYTHONPATH={PROJECT}/tests/lib", BENCH / program, "plan.json"],
        folder / f"{name}.log", hear,
        ["--virtual-time", f"--kernel={KERNEL}", *packages(BENCH / program)],
        [("plan.json", plan), *((log, PROJECT / log) for log in logs)])
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
    """What somebody else needs to get the same figures. A job without a file is
    what a program of this folder does."""
    presets = sorted({run.preset for run in runs} - {NULL_BLK, ""})
    jobs = sorted({run.job for run in runs if (JOBS / f"{run.job}.fio").exists()})
    return {
        "what": "emulated device, virtual time",
        "command": [os.path.relpath(sys.argv[0], PROJECT), *sys.argv[1:]],
        "commit": commit(),
        "sources": sources(),
        "kernel": release(),
        "guest": "scripts/lab --virtual-time: 1 CPU, 1 instruction = 1 ns",
        "qemu": said("qemu-system-x86_64", "--version"),
        "fio": said("fio", "--version"),
        "host": platform.platform(),
        "seeds": "each run's SEED, else fio's own (allrandrepeat=1): the same for every "
                 "scheduler",
        "presets": {name: (PRESETS / f"{name}.conf").read_text() for name in presets},
        "jobs": {name: (JOBS / f"{name}.fio").read_text() for name in jobs},
    }


def save(path, runs, **more):
    """Leave results in a JSON file: what, under which circumstances."""
    path.write_text(json.dumps({
        **circumstances(runs), **more,
        "runs": [dataclasses.asdict(run) for run in runs]}, indent=1) + "\n")


def read_back(path, runs):
    """Give @runs the results that save() has left in a file, in the same order;
    return all that is there."""
    try:
        saved = json.loads(path.read_text())
    except FileNotFoundError:
        raise Failed(f"no {os.path.relpath(path, PROJECT)} yet: run it without --again") from None
    if len(runs) != len(saved["runs"]):
        raise Failed(f"{os.path.relpath(path, PROJECT)} holds other runs: run it without --again")
    for run, was in zip(runs, saved["runs"], strict=True):
        run.result = was["result"]
    return saved


def group_arguments(name, text, groups):
    """The command line of tests/bench/@name, which measures @groups, {name: function
    whose docstring says what}: all of them, or those that are named."""
    width = max(map(len, groups)) + 1
    listed = "\n".join(textwrap.fill(" ".join(function.__doc__.split()), 88,
                                     initial_indent=f"    {group:{width}}",
                                     subsequent_indent=" " * (4 + width))
                       for group, function in groups.items())
    parser = argparse.ArgumentParser(
        usage=f"tests/bench/{name} [--again] [--into FILE.md] [GROUP...]",
        description=f"{text}{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="tables from the last figures")
    parser.add_argument("--into", type=pathlib.Path,
                        help="Markdown file; what stands above its figures stays")
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=[])
    args = parser.parse_args()
    unknown = set(args.groups) - set(groups)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    args.groups = args.groups or list(groups)
    return args


def markdown(head, rows):
    """A table's lines; figures are to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(map(str, row)) + " |" for row in (head, rule, *rows)]


def put_figures(into, heading, text):
    """Put @text below the @heading of a Markdown file, or print it."""
    if not into:
        print(text)
        return
    kept = into.read_text().partition(heading)[0] if into.exists() else ""
    into.write_text(f"{kept}{heading}\n{text.rstrip()}\n")


@dataclasses.dataclass
class Table:
    """Runs that are compared, some in each of @rows, by a @figure of each."""
    title: str
    rows: dict
    figure: str = "mbps"

    def runs(self):
        """All of them."""
        return [run for runs in self.rows.values() for run in runs]


@dataclasses.dataclass
class RunTable:
    """Runs that are compared, each of @rows one."""
    title: str
    rows: list

    def runs(self):
        """All of them."""
        return self.rows

    def measured(self):
        """Has each a result?"""
        return all(run.result for run in self.rows)


def measure_groups(groups, folder, program, **more):
    """Make the runs of @groups, {name: runs}, that are not known yet, by a @program of
    this folder, and leave each group's in a file of @folder, with @more: also what there
    is of them when it is broken off."""
    store = Store(PROJECT / "build/bench-store")
    # Groups may ask for the same.
    runs = list({store.path(run): run for each in groups.values() for run in each
                 if not store.recall(run)}.values())
    progress = Progress(len(runs))
    part = max(1, (len(runs) + GUESTS - 1) // GUESTS)
    try:
        run_all([functools.partial(run_guest, runs[at:at + part], f"runs-{at}", folder,
                                   progress, store.keep, program=program)
                 for at in range(0, len(runs), part)])
    finally:
        for name, each in groups.items():
            for run in each:
                store.recall(run)
            save(folder / f"{name}.json", each, **more)


def tables_of_paper(name, text, groups, heading, program=None, **more):
    """What tests/bench/@name.py is: measures @groups, {name: function that gives its
    tables}, by a @program of this folder, and puts their tables below the @heading of a
    document. A table has runs() and lines(), of which nothing is shown that was not
    measured."""
    args = group_arguments(f"{name}.py", text, groups)
    folder = PROJECT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {group: groups[group]() for group in args.groups}
    # Each run once: tables may share theirs.
    runs = {group: list({id(run): run for table in tables for run in table.runs()}.values())
            for group, tables in chosen.items()}
    if not args.again:
        measure_groups(runs, folder, program or f"{name}-guest.py", **more)
    lines = []
    for group, tables in chosen.items():
        saved = read_back(folder / f"{group}.json", runs[group])
        made = [line for table in tables for line in table.lines()]
        if not made:
            continue
        what = " ".join(groups[group].__doc__.split())
        lines += [f"### {what[0].upper()}{what[1:]}", "",
                  f"`tests/bench/{name}.py {group}`, commit {saved['commit']}, "
                  f"kernel {saved['kernel']}.", "", *made]
    put_figures(args.into, heading, "\n".join(lines))
    return 0


def commit():
    """The commit that is measured, and whether it was changed."""
    return said("git", "describe", "--always", "--dirty", "--abbrev=12")


def job_says(job):
    """What a job is: the first line of its file's comment."""
    for line in (JOBS / f"{job}.fio").read_text().splitlines():
        if line.startswith("#") and not re.match("# SPDX", line):
            return line[1:].strip().rstrip(".")
    return job


def finish(main):
    """Call @main as a program's main function. Whatever ends it, its guests end with it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
