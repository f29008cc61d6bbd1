# SPDX-License-Identifier: GPL-2.0
"""Imported by window.py and runs.py: what loads a device, fio or, in a simulated guest, the threads
of the module ioload. Both take their jobs from the same files.

A load is made with a device and a run, and started by a with block, whose end stops it:
    ended()         the load has ended by itself
    measured()      a context around the time whose latencies are wanted
    latencies()     after the with block: {direction: sorted ns} of the I/Os that completed
                    between two points of the monotonic clock
"""
import array
import configparser
import contextlib
import pathlib
import re
import signal
import struct
import sys
import tempfile
import time

from common import JOBS, command, end_fio, start_fio

DIRECTIONS = ("read", "write")
# fio writes a line for each I/O: the ms of its completion by the monotonic clock, and the ns
# from submission to completion. fio measures no other latencies.
LOGGED = ("--log_alternate_epoch=1", f"--log_alternate_epoch_clock_id={time.CLOCK_MONOTONIC}",
          "--disable_slat=1", "--disable_clat=1")
COLUMNS = 5
# Bytes of a log that are evaluated at a time.
PART = 1 << 20
IOLOAD = pathlib.Path("/sys/kernel/debug/ioload")
# The latency in a record of ioload's log has the number of the thread from this bit on, and in its
# highest bit whether it was a write.
THREAD = 48
WRITE = 1 << 63
LATENCY = (1 << THREAD) - 1
# What a process needs at least from the interrupt to its next submission. Without, a thread would
# take a tag that becomes free before a thread that waits for one.
WAKE_NS = 2000
# struct ioload_step: us, offset, bytes, write.
STEP = struct.Struct("=QQII")
# Keys of fio that each job has, or that have no effect on these threads.
COMMON = {"filename", "direct", "thread", "norandommap", "randrepeat", "group_reporting",
          "time_based", "ramp_time", "runtime"}
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MICROSECONDS = {"us": 1, "ms": 1000, "s": 1000000}


class Fio:
    """fio with the run's job."""

    def __init__(self, device, run):
        variables = run["variables"] | {"RAMP": "0", "RUNTIME": "1000000s"}
        self.device, self.run = device, {**run, "variables": variables}
        self.stack = contextlib.ExitStack()
        self.folder = self.process = None

    def __enter__(self):
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.process = start_fio(self.device, self.run,
                                 (*LOGGED, f"--write_lat_log={self.folder}/io"))
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        end_fio(self.process, self.run)

    def ended(self):
        """Return True if fio has ended."""
        return self.process.poll() is not None

    @staticmethod
    def measured():
        """Return a context that does nothing: fio logs all I/Os."""
        return contextlib.nullcontext()

    def latencies(self, begin, end):
        """Return {direction: sorted ns}; fio's clock has whole ms."""
        first, last = begin // 1_000_000, end // 1_000_000
        found = {way: array.array("q") for way in DIRECTIONS}
        with self.stack:
            for log in sorted(self.folder.glob("io_lat.*.log")):
                for when, taken, ways, *_ in parts(log):
                    for at, value, way in zip(map(int, when), map(int, taken), ways,
                                              strict=True):
                        if first <= at < last:
                            found[DIRECTIONS[way == b"1"]].append(value)
        return {way: sorted(values) for way, values in found.items()}


def parts(path):
    """Yield the lists of columns of a log of fio, part by part."""
    with open(path, "rb") as file:
        while part := file.read(PART):
            words = (part + file.readline()).replace(b",", b"").split()
            yield [words[at::COLUMNS] for at in range(COLUMNS)]


class Threads:
    """The module ioload with the run's job."""

    def __init__(self, device, run):
        if not IOLOAD.exists():
            command("modprobe", "ioload")
        self.device = device
        self.prepare(run)

    def prepare(self, run):
        """Add the threads of a run."""
        size = int(pathlib.Path(f"/sys/block/{self.device.name}/size").read_text()) * 512
        for thread in threads(run["job"], {"SEED": "1"} | run["variables"], size):
            add(thread)

    def __enter__(self):
        put("device", self.device.path)
        put("run", 1)
        return self

    def __exit__(self, *_):
        put("run", 0)

    @staticmethod
    def ended():
        """Return False: the threads run until they are stopped."""
        return False

    @contextlib.contextmanager
    def measured(self):
        """Log the I/Os that complete meanwhile."""
        put("measure", 1)
        yield
        put("measure", 0)

    @staticmethod
    def latencies(begin, end):
        """Return {direction: sorted ns}."""
        records = array.array("Q", (IOLOAD / "log").read_bytes())
        found = {way: array.array("q") for way in DIRECTIONS}
        for at, taken in zip(records[::2], records[1::2], strict=True):
            if begin <= at < end:
                found[DIRECTIONS[taken >= WRITE]].append(taken & LATENCY)
        return {way: sorted(values) for way, values in found.items()}


class Replay(Threads):
    """The module ioload with the logs of a trace, a thread for each (tests/bench/replay.py).
    @asked: {direction: requests of the trace}."""

    def prepare(self, run):
        """Add the threads of a run."""
        self.asked = dict.fromkeys(DIRECTIONS, 0)
        for log in run["variables"]["LOG"].split(":"):
            steps = list(steps_of(log))
            # A thread without steps would make I/O by its settings.
            if not steps:
                continue
            for *_, write in steps:
                self.asked[DIRECTIONS[write]] += 1
            add({"block": max(size for _, _, size, _ in steps), "sync": 1,
                 "size": 1 << 20, "wake_ns": WAKE_NS})
            (IOLOAD / "steps").write_bytes(b"".join(STEP.pack(*step) for step in steps))

    @staticmethod
    def ended():
        """Return True once all steps have been made."""
        return int((IOLOAD / "working").read_text()) == 0


def steps_of(log):
    """Yield (us, offset, bytes, write) of each request in a log of fio, whose waits are ms."""
    at = 0
    for line in pathlib.Path(log).read_text().splitlines()[1:]:
        action, *numbers = line.split()[1:]
        if action == "wait":
            at = int(numbers[0]) * 1000
        elif action in DIRECTIONS:
            yield at, int(numbers[0]), int(numbers[1]), int(action == "write")


def add(thread):
    """Add a thread with these settings to ioload."""
    put("thread", " ".join(f"{key}={value}" for key, value in thread.items()))


def put(name, value):
    """Write to a file of ioload."""
    (IOLOAD / name).write_text(str(value))


def sections(job, variables):
    """Return the options of each section of a job file, {key: text}, with its global ones."""
    text = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]],
                  (JOBS / f"{job}.fio").read_text().replace("${DEVICE}", ""))
    parser = configparser.ConfigParser(default_section="global", interpolation=None,
                                       delimiters="=")
    parser.read_string(text)
    return [dict(parser[name]) for name in parser.sections()]


def threads(job, variables, device_bytes):
    """Return the settings of ioload's threads, {key: number}, for a job file of fio."""
    made = []
    for options in sections(job, variables):
        for number in range(int(options.pop("numjobs", 1))):
            made.append(settings(dict(options), number, device_bytes))
            # As fio does: each job has random numbers of its own.
            made[-1]["seed"] = made[-1]["seed"] * 1000 + len(made)
    return made


def settings(options, number, device_bytes):
    """Return the settings of the thread of this number of a section with @options."""
    take = options.pop
    block = amount(take("bs"), device_bytes)
    way = take("rw")
    sync = take("ioengine") == "psync"
    offset = (amount(take("offset", "0"), device_bytes) +
              number * amount(take("offset_increment", "0"), device_bytes))
    # fio rounds a start up to whole blocks.
    offset = -(-offset // block) * block
    size = min(amount(take("size", "100%"), device_bytes), device_bytes - offset)
    reads = int(take("rwmixread", 50))
    found = {
        "random": int(way.startswith("rand")), "block": block, "offset": offset, "size": size,
        "reads": {"read": 100, "write": 0}.get(way.removeprefix("rand"), reads),
        "depth": int(take("iodepth", 1)), "batch": int(take("iodepth_batch_submit", 1)),
        "think_us": microseconds(take("thinktime", "0us")),
        "delay_us": microseconds(take("startdelay", "0us")), "rate": int(take("rate_iops", 0)),
        "flush": int(take("fsync", 0)) or int(take("fdatasync", 0)),
        "wake_ns": WAKE_NS, "sync": int(sync),
        "dsync": int(take("sync", "") == "dsync"), "logged": int(take("disable_lat", "0") == "0"),
        "seed": int(take("randseed", 1))}
    if int(take("thinktime_blocks", found["batch"])) != found["batch"]:
        sys.exit("ioload pauses after each batch only: thinktime_blocks is not the batch")
    unknown = options.keys() - COMMON
    if unknown:
        sys.exit(f"ioload does not know fio's {', '.join(sorted(unknown))}")
    return found


def amount(text, whole):
    """Return the bytes of a size such as 4k, 16m or 40%, a part of @whole."""
    if text.endswith("%"):
        return whole * int(text[:-1]) // 100
    number, unit = re.fullmatch(r"(\d+)([kmg]?)", text.lower()).groups()
    return int(number) * UNITS[unit]


def microseconds(text):
    """Return the us of a time such as 20ms."""
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s)", text).groups()
    return round(float(number) * MICROSECONDS[unit])
