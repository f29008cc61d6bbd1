#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: instructions that a request costs on null_blk, by scheduler;
prints a line of JSON. One instruction is one nanosecond there, and the drive is
faster than the CPU, so the time that a request takes is the instructions that it
costs. With one tag all others outstanding wait in the scheduler."""
import json
import pathlib
import subprocess

NULL = pathlib.Path("/sys/kernel/config/nullb/cpu")
SCHEDULERS = {
    "none": ("none", {}), "mq-deadline": ("mq-deadline", {}), "kyber": ("kyber", {}),
    "bfq": ("bfq", {}), "piq noop": ("piq", {"scheme": "noop"}),
    "piq, 64 units": ("piq", {"scheme": "piq+", "level": "chip"}),
    "piq, 256 units": ("piq", {"scheme": "piq+", "level": "plane"}),
}


def cost(path, depth):
    """Nanoseconds a request, with so many outstanding."""
    done = subprocess.run(
        ["fio", "--name=cpu", f"--filename={path}", "--rw=randrw", "--bs=4k", "--direct=1",
         "--ioengine=libaio", f"--iodepth={depth}", "--norandommap=1", "--gtod_reduce=1",
         "--thread", "--ramp_time=50ms", "--time_based", "--runtime=300ms",
         "--output-format=json"], check=True, capture_output=True, text=True)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return 1e9 / (job["read"]["iops"] + job["write"]["iops"])


def measure(tags, depth):
    """Each scheduler on a device with so many tags."""
    NULL.mkdir()
    for key, value in (("size", 1024), ("queue_mode", 2), ("irqmode", 2), ("submit_queues", 1),
                       ("completion_nsec", 1000), ("hw_queue_depth", tags), ("power", 1)):
        (NULL / key).write_text(str(value))
    name = "cpu" if pathlib.Path("/sys/block/cpu").exists() else \
        f"nullb{(NULL / 'index').read_text().strip()}"
    queue = pathlib.Path("/sys/block") / name / "queue"
    result = {}
    for case, (scheduler, tunables) in SCHEDULERS.items():
        (queue / "scheduler").write_text(scheduler)
        if scheduler != "none":
            (queue / "nr_requests").write_text("128")
        for key, value in tunables.items():
            (queue / "iosched" / key).write_text(value)
        result[f"{case}, {depth} outstanding, {tags} tags"] = cost(f"/dev/{name}", depth)
    (queue / "scheduler").write_text("none")
    NULL.rmdir()
    return result


def main():
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
    subprocess.run(["modprobe", "-a", "bfq", "kyber-iosched", "piq-iosched"], check=True)
    print(json.dumps({**measure(64, 32), **measure(1, 64)}))


if __name__ == "__main__":
    main()
