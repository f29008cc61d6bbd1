#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan (harness.py), print a line of JSON
for each: fio's result and the device's counters."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from harness import BENCH, NULL_BLK, PERCENTILES
from ssd import Device, NullBlk


def fio(device, run):
    """fio's result of the run's job on @device."""
    job = BENCH / f"{run['job']}.fio"
    percentiles = ":".join(map(str, PERCENTILES))
    done = subprocess.run(
        ["fio", "--output-format=json", "--lat_percentiles=1",
         "--clat_percentiles=0", f"--percentile_list={percentiles}", job],
        env={**os.environ, **run["variables"], "DEVICE": device.path},
        capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or done.stdout[-500:]
        sys.exit(f"fio {job.name}, {run['preset']}, {run['scheduler']}: {said}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def warm_up(runs):
    """Have all that a run needs in memory: virtual time runs ahead whenever
    the guest waits for a file of the host's."""
    program = shutil.which("fio")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True,
                               check=True).stdout.split()
    for path in [program, *filter(os.path.isfile, libraries)]:
        pathlib.Path(path).read_bytes()
    with Device("small") as device:
        for scheduler in dict.fromkeys(run["scheduler"] for run in runs):
            device.scheduler(scheduler)
            subprocess.run(["fio", "--name=warm-up", f"--filename={device.path}",
                            "--rw=randrw", "--direct=1", "--ioengine=libaio",
                            "--io_size=256k", "--thread", "--output-format=json"],
                           stdout=subprocess.DEVNULL, check=True)


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


def measure(run):
    """One run on a device made for it."""
    if run["preset"] == NULL_BLK:
        with NullBlk(**run["keys"]) as device:
            prepare(device, run)
            return {"fio": fio(device, run), "ssdemu": {}}
    with Device(run["preset"], **run["keys"]) as device:
        prepare(device, run)
        device.reset()
        result = fio(device, run)
        stats = device.stats()
        said = scheduler_says(device)
    # Of what each single unit did only how many there are.
    counters = {key: value for key, value in stats.items()
                if not isinstance(value, list) or not isinstance(value[0], dict)}
    counters.update({key: len(stats[key]) for key in ("units", "channels")})
    return {"fio": result, "ssdemu": counters, "scheduler": said}


def main():
    runs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    warm_up(runs)
    for run in runs:
        print(json.dumps(measure(run)), flush=True)


if __name__ == "__main__":
    main()
