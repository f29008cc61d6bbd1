#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# No path of a scheduler holds its lock for more than twice as long as mq-deadline's longest, with 1
# to 4,096 requests queued, 16,384 regions, 64 processes and 1,024 units; how long each path does
# kernels: 6.12
# check: none
# virtual-time: yes
# cpus: 2
# memory: 2G
# timeout: 3600
"""An instruction is a nanosecond. A device of 64 TB completes few requests a second, so as many
are queued as there are scheduler tags, 2,048 of each hardware queue. They are submitted by 64
processes in batches of 32, one CPU after another. The longest hold is of those without an
interrupt and without a wait for the lock. A run is printed as a line: {function that takes the
lock: [how often, mean, longest in ns]}. Arguments are numbers of requests to queue instead. Each
2,048 need a CPU, but on a kernel that has 65,536 scheduler tags a hardware queue:

    scripts/lab --kernel small-deep --virtual-time --memory 2G --timeout 7200 -- \
        sh -c 'PYTHONPATH=tests/lib tests/vm/lock-holds.py 2048 16384 65536'
"""
import json
import pathlib
import platform
import re
import subprocess
import sys
import time

from checks import QUICK, SEED, check, modprobe, wait_for
from iosched import ours
from lock_holds import holds, watch
from ssd import NullBlk

# Scheduler tags of a hardware queue, on scripts/small-kernel's kernel with more.
TAGS, DEEP, PROCESSES, BATCH = 2048, 65536, 64, 32
TB = 1 << 20
# Four requests of a hardware queue end at a time, and so late that most are queued at once.
DRIVE = {"size": 64 * TB, "queue_mode": 2, "irqmode": 2, "completion_nsec": 20_000_000,
         "hw_queue_depth": 4}
MANY = 4
LEVELS = (1, 32, TAGS, 2 * TAGS)
TUNABLES = {"pass": {"region_size_mb": 4096}, "bp": {"base": "fair"},
            "piq": {"planes": 1, "dies": 1, "channels": 32, "chips": 32}}
PEERS = ("mq-deadline", "kyber", "bfq")
# What is written meanwhile, of the settings that a scheduler has: those for which it goes
# through all that is queued.
SETTINGS = {"read_expire": 600, "region_size_mb": 8192, "base": "anticipatory", "scheme": "piq",
            "page_size_kb": 8, "align": "block", "depth": 4000, "laps": 0}
# Paths of an I/O; the others are of a setting or a file of debugfs.
OF_IO = ("insert_requests", "dispatch_request", "try_merge", "bio_merge", "limit_depth",
         "finish_request")


def cpus_of(device, queues):
    """One CPU of each hardware queue."""
    folders = (pathlib.Path("/sys/block", device.name, "mq", str(queue)) for queue in range(queues))
    return [folder.joinpath("cpu_list").read_text().split(",")[0].strip() for folder in folders]


def command(device, queued, queues):
    """The command that queues requests, from one CPU after another: random ones of several threads,
    each of which is a process to a scheduler, and ascending ones of one more, which are merged."""
    threads = min(PROCESSES, queued)
    depth = queued // threads
    batch = min(BATCH, depth)
    cpus = cpus_of(device, queues)
    words = ["fio", f"--filename={device.path}", "--direct=1", "--ioengine=libaio", "--bs=4k",
             "--thread=1", "--norandommap=1", "--output-format=terse", f"--randseed={SEED}"]
    for number, cpu in enumerate(cpus):
        words += [f"--name=load{number}", f"--cpus_allowed={cpu}", f"--startdelay={number * 50}ms",
                  "--rw=randrw", "--rwmixread=70", f"--iodepth={depth}",
                  f"--iodepth_batch_submit={batch}", f"--iodepth_batch_complete_max={batch}",
                  f"--number_ios={depth}", f"--numjobs={threads // queues}"]
    if queued > 1:
        words += ["--name=ascending", f"--cpus_allowed={cpus[0]}", "--rw=read", "--iodepth=32",
                  "--number_ios=128", f"--startdelay={queues * 50}ms"]
    return words


def tags_in_use(device):
    """Number of requests that the scheduler and the device have."""
    files = pathlib.Path("/sys/kernel/debug/block", device.name).glob("hctx*/sched_tags")
    return sum(int(re.search(r"busy=(\d+)", file.read_text())[1]) for file in files)


def disturb(device):
    """Read all files of debugfs and change settings."""
    for file in sorted(pathlib.Path("/sys/kernel/debug/block", device.name, "sched").glob("*")):
        try:
            file.read_text()
        except OSError:
            pass
    for name, value in SETTINGS.items():
        file = pathlib.Path("/sys/block", device.name, "queue/iosched", name)
        if file.exists():
            file.write_text(str(value))


def measure(scheduler, queued):
    """Return {function: [holds, mean ns, longest ns]} of a scheduler with so many requests."""
    tags = DEEP if platform.release().endswith("-deep") else TAGS
    queues = -(-queued // tags)
    begun = time.monotonic()
    late = {"completion_nsec": DRIVE["completion_nsec"] * max(1, queues // MANY)}
    with NullBlk("holds", submit_queues=queues, **DRIVE | late) as device:
        device.scheduler(scheduler)
        device.queue("nr_requests", tags)
        for name, value in TUNABLES.get(scheduler, {}).items():
            device.queue(f"iosched/{name}", value)
        known, most = watch(scheduler), 0
        with subprocess.Popen(command(device, queued, queues), stdout=subprocess.DEVNULL) as load:
            wait_for(lambda: tags_in_use(device) >= 0.9 * queued or load.poll() is not None,
                     "requests", step=0.005)
            most = tags_in_use(device)
            if queued > 1:
                disturb(device)
        check(load.returncode == 0 and (queued == 1 or most >= 0.9 * queued),
              f"{most} requests were queued when the settings were changed")
        found = {name: [row["holds"] + row["disturbed"], row["total"] // max(1, row["holds"]),
                        row["longest"] if row["holds"] else row["longest_disturbed"]]
                 for name, row in holds(known).items()}
        device.scheduler("none")
    print(json.dumps({"scheduler": scheduler, "queued": queued, "most": most,
                      "seconds": round(time.monotonic() - begun, 2), "holds": found}), flush=True)
    return found


def longest(found, of_io):
    """The longest hold of an I/O's paths, or of the others."""
    return max([row[2] for name, row in found.items()
                if name.endswith(OF_IO) == of_io], default=0)


def main():
    pathlib.Path("/proc/sys/fs/aio-max-nr").write_text(str(1 << 20))
    modprobe("-a", "bfq", "kyber-iosched")
    levels = [int(word) for word in sys.argv[1:]] or LEVELS[:3 if QUICK else None]
    found = {(name, queued): longest(measure(name, queued), True) for queued in levels
             for name in (*(PEERS if queued == TAGS else PEERS[:1]), *ours())}
    bound = 2 * max(found["mq-deadline", queued] for queued in levels)
    for (name, queued), most in found.items():
        if name not in PEERS:
            check(most <= bound, f"{name}, {queued} queued: an I/O holds the lock for {most} ns at "
                                 f"most, twice mq-deadline's longest is {bound}")


if __name__ == "__main__":
    main()
