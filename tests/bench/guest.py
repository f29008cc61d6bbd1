#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan (harness.py), print a line of JSON
for each: fio's result and the device's counters."""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from harness import JOBS, NULL_BLK, PERCENTILES, PROJECT
from ssd import Device, NullBlk


def command(*words, **more):
    """Output of a command; ends it all when it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.stdout[-500:]}")
    return done.stdout


def sync(mount):
    """Wait until all of a file system has reached the drive; the seconds that it took."""
    begun = time.monotonic()
    folder = os.open(mount, os.O_RDONLY)
    if ctypes.CDLL(None).syncfs(folder):
        sys.exit("syncfs failed")
    os.close(folder)
    return time.monotonic() - begun


def settle(device):
    """Wait until the drive has written what it has in its buffer, and cleaned for it: that
    is of the run, and how much of it is over when fio ends is not always the same."""
    before, now = None, device.stats()
    while now["unit_busy_ns"] != before:
        time.sleep(0.05)
        before, now = now["unit_busy_ns"], device.stats()


def counters(device):
    """What the device has counted, its buffer written; of what each single unit did only
    how many there are."""
    settle(device)
    stats = device.stats()
    found = {key: value for key, value in stats.items()
             if not isinstance(value, list) or not isinstance(value[0], dict)}
    found.update({key: len(stats[key]) for key in ("units", "channels")})
    return found


def set_dirty(background, limit):
    """So many MB of memory for dirty pages, as in a machine of the papers' time: the drive
    is at work while the benchmark is."""
    for name, value in (("dirty_background_bytes", background), ("dirty_bytes", limit)):
        pathlib.Path(f"/proc/sys/vm/{name}").write_text(str(value << 20))


def wait_for_second():
    """Begin where the clock's ticks fall as they do in every other run. Waiting costs
    nothing in virtual time."""
    time.sleep(1 - time.monotonic() % 1)


def fio_command(job):
    """fio, with a @job of this folder and all that figures() wants to know."""
    percentiles = ":".join(map(str, PERCENTILES))
    return ["fio", "--output-format=json", "--lat_percentiles=1", "--clat_percentiles=0",
            f"--percentile_list={percentiles}", JOBS / f"{job}.fio"]


def start_fio(device, run):
    """fio, started with the run's job on @device."""
    wait_for_second()
    return subprocess.Popen(
        fio_command(run["job"]),
        env={**os.environ, "SEED": "1", **run["variables"], "DEVICE": device.path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_fio(process, run):
    """The result of a fio that was started."""
    out, error = process.communicate()
    if process.returncode:
        sys.exit(f"fio {run['job']}, {run['preset']}, {run['scheduler']}: "
                 f"{error.strip() or out[-500:]}")
    return json.loads(out[out.index("{"):])


def fio(device, run):
    """fio's result of the run's job on @device."""
    return end_fio(start_fio(device, run), run)


def scheduler_says(device):
    """What one of our schedulers tells of the run: its files in debugfs."""
    folder = pathlib.Path("/sys/kernel/debug/block") / device.name / "sched"
    return {name: (folder / name).read_text() for name in ("stats", "piq")
            if (folder / name).exists()}


def prepare(device, run):
    """Put a device under the run's scheduler."""
    device.scheduler(run["scheduler"])
    for name, value in run["tunables"].items():
        device.queue(name, value)


def kernel_stat(device):
    """The kernel's count of a device: what it has ended so far, merged, ms that took."""
    stat = list(map(int, pathlib.Path(f"/sys/block/{device.name}/stat").read_text().split()))
    return {"read": stat[0], "read_merged": stat[1], "read_ms": stat[3],
            "write": stat[4], "write_merged": stat[5], "write_ms": stat[7]}


def kernel_since(device, before):
    """What of that has come since it was @before."""
    return {key: value - before[key] for key, value in kernel_stat(device).items()}


def done(device):
    """I/Os that a device has ended so far, merged ones too."""
    stat = kernel_stat(device)
    return stat["read"] + stat["read_merged"] + stat["write"] + stat["write_merged"]


def work(device):
    """I/Os so far, and nanoseconds that the CPU has worked: was not idle. By the
    kernel's list of timers, which is exact, other than /proc/stat."""
    ios = done(device)
    idle = re.findall(r"\.(?:idle|iowait)_sleeptime *: (\d+)",
                      pathlib.Path("/proc/timer_list").read_text())
    return ios, time.monotonic_ns() - sum(map(int, idle))


def cost(device, run):
    """What I/Os take, in the middle of a run, so that neither the start nor the end of
    fio is in it: their number and the work that they were."""
    milliseconds = int(run["variables"]["RUNTIME"].removesuffix("ms"))
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    # Whoever looked for partitions was first.
    begun = done(device)
    process = start_fio(device, run)
    while done(device) == begun and process.poll() is None:
        time.sleep(0.001)
    # Not to be interrupted between the two figures of a look.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    time.sleep(0.05)
    before = work(device)
    time.sleep(milliseconds / 1000 - 0.1)
    after = work(device)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return {"fio": end_fio(process, run), "ssdemu": {}, "ios": after[0] - before[0],
            "worked_ns": after[1] - before[1]}


@contextlib.contextmanager
def traced(device):
    """Trace a device with blktrace; a list that has the events of reads and writes when
    this ends: seconds, action, direction, sector, sectors."""
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


def order(events):
    """Who went when, by traced(), where nothing merges: how many reads, how many of them
    ahead of a write that had come to the scheduler before, and percentiles of the time
    from bio to end, in ms."""
    came, inserted = collections.defaultdict(list), collections.defaultdict(list)
    taken = {"R": [], "W": []}
    reads = ahead = 0
    # Several may be for the same place: the first of them goes first, and ends first.
    for when, action, *request in events:
        way, place = request[0], tuple(request)
        if action == "Q":
            came[place].append(when)
        elif action == "I":
            inserted[place].append(when)
        elif action == "D" and inserted[place]:
            mine = inserted[place].pop(0)
            if way == "R":
                reads += 1
                ahead += any(times and times[0] < mine for (other, *_), times in inserted.items()
                             if other == "W")
        elif action == "C" and came[place]:
            taken[way].append(1e3 * (when - came[place].pop(0)))
    found = {"reads": reads, "ahead": ahead}
    for name, times in (("read", taken["R"]), ("write", taken["W"])):
        # 1000 parts of it: the first border is 0.1 %.
        borders = statistics.quantiles(times, n=1000, method="inclusive")
        found[name] = {f"{point:g}": borders[round(10 * point) - 1]
                       for point in PERCENTILES if 10 * point == round(10 * point)}
    return found


def measure(run):
    """One run on a device made for it."""
    if run["preset"] == NULL_BLK:
        with NullBlk(**run["keys"]) as device:
            prepare(device, run)
            return cost(device, run)
    with Device(run["preset"], **run["keys"]) as device:
        prepare(device, run)
        device.reset()
        before = kernel_stat(device)
        with traced(device) if "TRACED" in run["variables"] else contextlib.nullcontext() as seen:
            result = fio(device, run)
            kernel = kernel_since(device, before)
        return {"fio": result, "kernel": kernel, "ssdemu": counters(device),
                "scheduler": scheduler_says(device), **({"order": order(seen)} if seen else {})}


def make_runs(how):
    """What a guest's program is: make the runs of the plan that the command line names,
    each as @how does it, and print what it returns as a line of JSON."""
    for run in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(json.dumps(how(run)), flush=True)


if __name__ == "__main__":
    make_runs(measure)
