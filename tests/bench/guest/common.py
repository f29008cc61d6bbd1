# SPDX-License-Identifier: GPL-2.0
"""What the programs inside the guest share: the runs of the plan, fio, counters.

The host passes the plan as a JSON file, a list of runs. A run is a dictionary:
    preset       of the emulated SSD; null for a null_blk device
    keys         values that replace the preset's, or the attributes of null_blk
    scheduler    and @tunables, {attribute of the queue: value}
    job          a file in tests/bench/jobs/, or a benchmark that the program knows
    variables    of the job, {name: text}
    percentiles  of the latencies that fio reports
    time_scale   of the emulated SSD; the variables are as many times as long already

These programs import the standard library, each other, and tests/lib.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from ssd import PROJECT

JOBS = PROJECT / "tests/bench/jobs"
# In a guest of scripts/lab --simulate.
SIMULATED = os.environ.get("LAB_SIMULATED") == "1"
# By default fio reads the CPU's counter, which in a simulated guest is the host's.
FIO = ["fio", *(["--clocksource=clock_gettime"] if SIMULATED else [])]
# fio's status after SIGINT, upon which it ends its jobs and reports them.
INTERRUPTED = 128
# Names of tunables that are times.
TIME = re.compile("_(us|usec|ms|nsec|expire|expire_sync|expire_async|sync_timeout)$|^timeout_")


def command(*words, **more):
    """Return the output of a command; exit if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.stdout[-500:]}")
    return done.stdout


def make_runs(measure):
    """Make the runs of the plan that the command line names. Print what @measure returns
    for each as a line of JSON."""
    for run in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(json.dumps(measure(run)), flush=True)


def prepare(device, run):
    """Select the run's scheduler for a device and set its tunables, with times in the time of
    the device."""
    device.scheduler(run["scheduler"])
    for name, value in run["tunables"].items():
        device.queue(name, value)
    if run.get("time_scale", 1) != 1:
        stretch(device, run["time_scale"])


def stretch(device, factor):
    """Multiply all times that the scheduler and the block layer let be set by @factor: the
    device's are as many times as long."""
    queue = pathlib.Path("/sys/block", device.name, "queue")
    for path in sorted([*queue.glob("iosched/*"), queue / "wbt_lat_usec"]):
        # slice_idle is slice_idle_us in ms.
        if TIME.search(path.name) and path.name != "slice_idle" and path.exists():
            value = int(path.read_text())
            # 0: off, and to set wbt_lat_usec would turn it on.
            if value:
                path.write_text(str(value * factor))


def scheduler_file(device, name):
    """Path of a debugfs file of the device's scheduler."""
    return pathlib.Path("/sys/kernel/debug/block", device.name, "sched", name)


def settle(device):
    """Wait until the drive has written its buffer, and has cleaned for it. This work belongs
    to the run, and the part of it that is done when fio ends varies."""
    before, now = None, device.stats()
    while now["unit_busy_ns"] != before:
        time.sleep(0.05)
        before, now = now["unit_busy_ns"], device.stats()


def counters(device):
    """Return the counters of the emulated SSD once its buffer is written."""
    settle(device)
    return numbers(device.stats())


def numbers(stats):
    """Return the counters of an emulated SSD without its lists of units and channels, of which
    only the lengths are kept."""
    found = {key: value for key, value in stats.items()
             if not isinstance(value, list) or not isinstance(value[0], dict)}
    found.update({key: len(stats[key]) for key in ("units", "channels")})
    return found


def kernel_stat(device):
    """Return the kernel's counters of a device: requests completed, requests merged, bytes, and
    ms from submission to completion, by direction."""
    stat = list(map(int, pathlib.Path(f"/sys/block/{device.name}/stat").read_text().split()))
    return {f"{way}{name}": stat[first + at] * unit
            for way, first in (("read", 0), ("write", 4))
            for at, (name, unit) in enumerate((("", 1), ("_merged", 1), ("_bytes", 512),
                                               ("_ms", 1)))}


def kernel_since(device, before):
    """Return the difference of these counters to @before, with ms in the time of the
    device."""
    made = {key: value - before[key] for key, value in kernel_stat(device).items()}
    for key in ("read_ms", "write_ms"):
        made[key] /= device.time_scale
    return made


def wait_for_second():
    """Wait for the start of a second, so that the clock's ticks have the same phase in each
    run. Waiting costs nothing in virtual time."""
    time.sleep(1 - time.monotonic() % 1)


def fio_command(run, measured=None):
    """Return the command for the run's job. @measured: options that say what fio measures; by
    default the latencies that the host evaluates."""
    percentiles = ":".join(map(str, run["percentiles"]))
    return [*FIO, "--output-format=json", *(measured or (
        "--lat_percentiles=1", "--clat_percentiles=0", f"--percentile_list={percentiles}")),
        JOBS / f"{run['job']}.fio"]


def fio_result(text):
    """Return fio's result from its output; text in front of it is skipped."""
    return json.loads(text[text.index("{"):])


def start_fio(device, run, measured=None):
    """Start fio with the run's job on a device; return the process. @measured: see
    fio_command()."""
    wait_for_second()
    return subprocess.Popen(
        fio_command(run, measured),
        env={**os.environ, "SEED": "1", **run["variables"], "DEVICE": device.path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_fio(process, run):
    """Wait for a process of start_fio() and return fio's result."""
    out, error = process.communicate()
    if process.returncode not in (0, INTERRUPTED):
        sys.exit(f"fio {run['job']}, {run['preset']}, {run['scheduler']}: "
                 f"{error.strip() or out[-500:]}")
    return fio_result(out)


def fio(device, run):
    """Run the run's job on a device; return fio's result."""
    return end_fio(start_fio(device, run), run)


@contextlib.contextmanager
def traced(device):
    """Trace a device with blktrace. Yield a list, which at the end holds the events of reads
    and writes: seconds, action, direction, sector, sectors."""
    events = []
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(["blktrace", "-d", device.path, "-D", folder, "-o", "trace",
                               "-b", "1024", "-n", "16"], stdout=subprocess.DEVNULL) as tracer:
            while not os.path.exists(f"/sys/kernel/debug/block/{device.name}/trace0"):
                time.sleep(0.01)
            yield events
            tracer.terminate()
        for line in command(PROJECT / "scripts/read-trace", f"{folder}/trace").splitlines():
            seconds, _, action, *rest = line.split()
            if action != "m" and rest[0] in "RW" and int(rest[2]):
                events.append((float(seconds), action, rest[0], int(rest[1]), int(rest[2])))
