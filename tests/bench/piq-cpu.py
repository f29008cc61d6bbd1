#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: instructions that a request costs on null_blk, by scheduler;
prints a line of JSON. One instruction is one nanosecond there, so the time that
the CPU was not idle counts them; twice as many requests take the rest out."""
import json
import pathlib
import subprocess

NULL = pathlib.Path("/sys/kernel/config/nullb/cpu")
COUNT = 15000
PLANES = {"level": "plane"}
# Name: (scheduler, its tunables, requests outstanding).
CASES = {
    f"{name}, {depth} outstanding": (scheduler, tunables, depth)
    for depth in (32, 64)
    for name, scheduler, tunables in (
        ("none", "none", {}), ("mq-deadline", "mq-deadline", {}), ("kyber", "kyber", {}),
        ("bfq", "bfq", {}), ("piq noop", "piq", {"scheme": "noop"}),
        ("piq, 64 units", "piq", {}), ("piq, 256 units", "piq", PLANES),
        ("piq, 1024 units", "piq", {**PLANES, "chips": 32}))
}


def busy_ns():
    """Time that the CPU was not idle since boot."""
    uptime, idle = pathlib.Path("/proc/uptime").read_text().split()
    return (float(uptime) - float(idle)) * 1e9


def busy(path, depth, count):
    """The same for so many requests."""
    before = busy_ns()
    subprocess.run(["fio", "--name=cpu", f"--filename={path}", "--rw=randrw", "--bs=4k",
                    "--direct=1", "--ioengine=libaio", f"--iodepth={depth}", "--norandommap=1",
                    "--gtod_reduce=1", "--thread", f"--number_ios={count}", "--io_size=100g"],
                   check=True, stdout=subprocess.DEVNULL)
    return busy_ns() - before


def main():
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
    subprocess.run(["modprobe", "-a", "bfq", "kyber-iosched"], check=True)
    NULL.mkdir()
    for key, value in (("size", 1024), ("queue_mode", 2), ("irqmode", 2),
                       ("completion_nsec", 100000), ("submit_queues", 1),
                       ("hw_queue_depth", 64), ("power", 1)):
        (NULL / key).write_text(str(value))
    name = "cpu" if pathlib.Path("/sys/block/cpu").exists() else \
        f"nullb{(NULL / 'index').read_text().strip()}"
    queue = pathlib.Path("/sys/block") / name / "queue"
    busy(f"/dev/{name}", 32, 1000)
    result = {}
    for case, (scheduler, tunables, depth) in CASES.items():
        (queue / "scheduler").write_text(scheduler)
        for key, value in tunables.items():
            (queue / "iosched" / key).write_text(str(value))
        once = busy(f"/dev/{name}", depth, COUNT)
        result[case] = (busy(f"/dev/{name}", depth, 2 * COUNT) - once) / COUNT
    (queue / "scheduler").write_text("none")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
