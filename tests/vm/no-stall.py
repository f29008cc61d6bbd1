#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# No request waits longer than its deadline plus 200 ms, with every bound set
# to 1, odd sizes, floods, and abrupt silences after which nobody comes to wake
# whoever was forgotten
# virtual-time: yes
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
"""See above.

With one request in flight at a time, all those before an overdue one in the FIFO
have to be served first: 64 at most (16 of each of four jobs), of 3 ms each at
worst: hence the slack. A request that was forgotten never ends at all.
"""

import glob
import json
import os
import pathlib
import random
import re
import subprocess
import sys

from ssd import Device, check

READ_MS, WRITE_MS, SLACK_MS = 50, 200, 200
ODD = (3, 5, 7, 13, 1000)
LOADS = (
    {"thinktime": "300ms", "thinktime_blocks": 24, "numjobs": 3, "number_ios": 150},
    {"thinktime": "1s", "thinktime_blocks": 1, "numjobs": 2, "number_ios": 6},
    {"numjobs": 4, "number_ios": 300},
)


def schedulers():
    modules = f"/lib/modules/{os.uname().release}/updates/*-iosched.ko"
    return sorted(os.path.basename(path)[:-len("-iosched.ko")] for path in glob.glob(modules))


def descriptions(name):
    """What each tunable is, in the words of modinfo."""
    told = subprocess.run(["modinfo", "-p", f"{name}-iosched"], capture_output=True, text=True,
                          check=True).stdout
    return dict(re.findall(r"^(\w+):(.*)$", told, re.M))


def squeeze(tunables, what, rng):
    """Every bound 1, every size odd, deadlines short; the rest as it is."""
    for name, told in what.items():
        path = tunables / name
        values = ()
        if "expire" in name:
            continue
        if "most" in told:
            values = (1,)
        elif re.search("MB|KB|pages|sectors|units|channels|size", told):
            values = rng.sample(ODD, len(ODD))
        for value in values:
            try:
                path.write_text(str(value))
                break
            except OSError:
                continue    # out of this one's range
    (tunables / "read_expire").write_text(str(READ_MS))
    (tunables / "write_expire").write_text(str(WRITE_MS))
    (tunables / "depth").write_text("1")
    paths = sorted(tunables.iterdir())
    return " ".join(f"{path.name}={path.read_text().strip()}" for path in paths)


def longest(device, load):
    """Milliseconds that the slowest read and write took."""
    command = ["fio", "--name=job", f"--filename={device.path}", "--rw=randrw", "--direct=1",
               "--ioengine=libaio", "--iodepth=16", "--bsrange=4k-64k", "--group_reporting",
               "--output-format=json"] + [f"--{key}={value}" for key, value in load.items()]
    # No time limit but the test's own: while the guest waits for a file of the
    # host's to start fio, virtual time runs ahead, by minutes at times.
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return [job[kind]["lat_ns"]["max"] / 1e6 for kind in ("read", "write")]


def main():
    rng = random.Random(int(os.environ.get("SEED", "1")))
    for name in schedulers():
        subprocess.run(["modprobe", f"{name}-iosched"], check=True)
        for queues in (1, 3):
            with Device("small", hw_queues=queues, queue_depth=16) as device:
                device.scheduler(name)
                tunables = pathlib.Path(f"/sys/block/{device.name}/queue/iosched")
                print(squeeze(tunables, descriptions(name), rng))
                for load in LOADS:
                    read, write = longest(device, load)
                    check(read <= READ_MS + SLACK_MS and write <= WRITE_MS + SLACK_MS,
                          f"{name}, {queues} queues, {load.get('thinktime', 'flood')}: slowest "
                          f"read {read:.0f} ms, write {write:.0f} ms")
                device.scheduler("none")
        subprocess.run(["modprobe", "-r", f"{name}-iosched"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
