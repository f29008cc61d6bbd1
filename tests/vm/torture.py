#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Everything at once: all kinds of I/O on all kinds of devices, through file systems too,
# while schedulers, settings, CPUs, faults and devices come and go at random; each I/O
# ends, the data are right
# cpus: 1 2 4
# check: 6.12@2 6.1@4
# memory: 1536M
# disk: 256M
# nvme: 512M
# nvme: 128M
# timeout: 600
"""See above.

One seed, one duration (DURATION, in seconds). In phases: at the end of each nothing
disturbs any more, polled reads are left alone, and all other I/O has to end all the same;
then the polled reads, and the schedulers' statistics have to balance.
"""

import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import torture_devices as devices
import torture_load as load
from ssd import DEBUG_KERNEL, check
from together import SEED, SOAK, Disk, modprobe, ours, remove_all, wait_for
from torture_disturb import CGROUPS, CPUS, Machine, Settings, prepare

DURATION = int(os.environ.get("DURATION") or (600 if SOAK else 60))
PHASE = 20
# An I/O that takes longer is lost: a hundred times what any has a reason to take.
LIMIT = 480 if DEBUG_KERNEL else 120
MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
REGION_MB = 4
FILE_SYSTEMS = {"nvme-fs": "xfs", "virtio": "ext4", "ssdemu": "f2fs"}


class Plan:
    """All targets, workers and disturbers."""

    def __init__(self):
        self.rng = random.Random(SEED)
        self.control = load.shared(load.Control)
        self.targets, self.workers, self.kept = [], [], set()
        self.processes = {}
        self.checked = collections.Counter()

    def make_targets(self):
        """Devices, and what is on top of them."""
        modprobe("-a", "dm-mod", "loop", "virtio_blk")
        modprobe("nvme", "poll_queues=1")
        for name in ("nvme0n1", "nvme1n1"):
            wait_for(pathlib.Path("/dev", name).exists, name)
        # Probed side by side, they have either order.
        small, large = sorted(("nvme0n1", "nvme1n1"), key=lambda name: int(
            pathlib.Path("/sys/block", name, "size").read_text()))
        self.targets = [devices.Nvme("nvme-fs", large), devices.Nvme("nvme-bare", small),
                        devices.Virtio("virtio", "vda"), devices.Scsi("scsi"),
                        devices.Null("nullp", polled=True),
                        devices.Null("nullf", hw_queue_depth=8), devices.Ssdemu("ssdemu")]
        self.targets[1].removable = True
        for target in self.targets:
            if target.label in FILE_SYSTEMS:
                devices.stack(target, 48, FILE_SYSTEMS[target.label])
                if target.label == "virtio":
                    self.targets.append(devices.Loop("loop", target.folder / "file"))

    def rng_of(self, number):
        return random.Random(SEED * 1000 + number)

    def make_workers(self):
        """Several for each target, each with a region of its own."""
        for target in self.targets:
            kinds = [(load.Plain, "be"), (load.Plain, "idle"), (load.Uring, "rt"),
                     (load.Uring, "be")]
            if target.polled:
                kinds.append((load.Polled, "be"))
            if target.passthrough:
                kinds.append((load.Mixed, "be"))
            if target.label == "scsi":
                kinds.append((load.Sg, "be"))
            for number, (kind, priority) in enumerate(kinds):
                owner = len(self.workers) + 1
                region = load.Region(owner, number * REGION_MB << 20,
                                     (REGION_MB << 20) // load.BLOCK)
                self.workers.append(kind(target, region, self.rng_of(owner), priority))
            if target.folder:
                for priority in ("be", "rt"):
                    owner = len(self.workers) + 1
                    self.workers.append(load.Files(target, target.folder, self.rng_of(owner),
                                                   priority))

    def start(self):
        """Fork the workers, some in cgroups."""
        sys.stdout.flush()
        for number, worker in enumerate(self.workers):
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    group = ("", "limited", "weighted", "")[number % 4]
                    (CGROUPS / group / "cgroup.procs").write_text(str(os.getpid()))
                    worker.run(self.control)
                    status = 0
                finally:
                    sys.stdout.flush()
                    os._exit(status)
            self.processes[pid] = worker

    def watch(self, disturbers=()):
        """Fail when a worker is wrong, or an I/O does not end."""
        now = time.monotonic_ns()
        for worker in self.workers:
            slot = worker.slot
            if slot.wrong:
                check(False, f"{worker.label}: {slot.wrong.decode(errors='replace')}")
            if slot.since and now - slot.since > LIMIT * 10**9:
                self.lost(f"{worker.label}: an I/O has not ended for {LIMIT} s")
        for each in disturbers:
            if each.wrong:
                check(False, each.wrong)
        pid, status = os.waitpid(-1, os.WNOHANG) if self.processes else (0, 0)
        if pid in self.processes and status:
            worker = self.processes[pid]
            check(False, f"{worker.label} ended: {worker.slot.wrong.decode()} {status}")
        self.processes.pop(pid, None)

    def lost(self, what):
        """Say what is known of a hang. The guest is of no use any more."""
        print(f"FAIL  {what}")
        for worker in self.workers:
            if worker.slot.since:
                print(f"{worker.label}: {worker.slot.submitted} submitted, "
                      f"{worker.slot.ended} ended, the oldest for "
                      f"{(time.monotonic_ns() - worker.slot.since) / 1e9:.1f} s")
        for target in self.targets:
            folder = pathlib.Path("/sys/kernel/debug/block", target.name)
            for file in sorted([*folder.glob("sched/*"), *folder.glob("hctx*/*"),
                                folder / "state"]):
                if file.name in ("stats", "queue", "busy", "dispatch", "state", "flags",
                                 "sched_tags", "tags") or "fifo" in file.name:
                    self.show(file)
        pathlib.Path("/proc/sysrq-trigger").write_text("w")
        print(subprocess.run(["dmesg"], capture_output=True, text=True,
                             check=False).stdout[-30000:], flush=True)
        time.sleep(5)
        pathlib.Path("/proc/sysrq-trigger").write_text("b")

    @staticmethod
    def show(file):
        """Print a file of debugfs, unless it is empty."""
        try:
            text = file.read_text()
        except OSError as error:
            text = str(error)
        if text.strip():
            print(f"{file}:\n{text}")

    def wait(self, condition, what, disturbers=()):
        """Until something is so, within the limit."""
        end = time.monotonic() + LIMIT
        while not condition():
            self.watch(disturbers)
            if time.monotonic() > end:
                self.lost(f"no end of waiting for {what}")
            time.sleep(0.05)

    def phase(self, seconds, disturbers):
        """Load and disturbances for a while, then what has to be so afterwards."""
        self.kept = set(self.rng.sample(self.targets, len(self.targets) // 2))
        for target in self.targets:
            (target.queue / "scheduler").write_text(self.rng.choice(ours()))
        self.control.want = load.RUN
        for each in disturbers:
            each.go.set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.watch(disturbers)
            time.sleep(0.2)
        for each in disturbers:
            each.go.clear()
        self.wait(lambda: all(each.idle.is_set() for each in disturbers), "disturbances",
                  disturbers)
        self.rest()

    def rest(self):
        """All I/O ends, the polled one last."""
        late = [worker for worker in self.workers if isinstance(worker, load.Polled)]
        others = [worker for worker in self.workers if worker not in late]
        self.control.want = load.HOLD
        self.wait(lambda: all(worker.slot.holding for worker in late), "polled reads")
        time.sleep(1)
        self.control.want = load.REST
        self.wait(lambda: all(worker.slot.resting for worker in others),
                  "I/O beside polled reads")
        self.control.want = load.REST_ALL
        self.wait(lambda: all(worker.slot.resting for worker in late), "the polled reads")
        for worker in self.workers:
            if worker.slot.submitted != worker.slot.ended:
                check(False, f"{worker.label}: {worker.slot.submitted} submitted, "
                             f"{worker.slot.ended} ended")
        for target in self.targets:
            if target.folder:
                os.sync()
        for target in self.targets:
            self.balance(target)

    def balance(self, target):
        """Nothing is left in a scheduler of ours."""
        name = (target.queue / "scheduler").read_text().split("[")[1].split("]")[0]
        if name not in ours():
            return
        disk = Disk.__new__(Disk)
        disk.name = target.name

        def even():
            now = disk.counters()
            return (now["inserted"] == now["merged"] + now["completed"] and
                    not now["queued"] and not now["in_flight"])
        # A file system writes on its own at times.
        end = time.monotonic() + (120 if DEBUG_KERNEL else 30)
        while not even():
            if time.monotonic() > end:
                check(False, f"{name} on {target.label}: {disk.counters()}")
            time.sleep(0.1)
        self.checked[name] += 1

    def finish(self):
        """End the workers, take all apart."""
        self.control.want = load.END
        self.wait(lambda: self.watch() or not self.processes, "the workers")
        for target in self.targets:
            (target.queue / "scheduler").write_text("none")
        for target in reversed(self.targets):
            if target.label == "loop":
                target.remove()
        for target in self.targets:
            if target.folder:
                devices.unstack(target)
        for target in self.targets:
            if target.label != "loop":
                target.remove()
        for name in ("limited", "weighted"):
            (CGROUPS / name).rmdir()
        remove_all()


def report(plan, disturbers):
    """What happened; fails for what did not."""
    sums = {name: sum(getattr(worker.slot, name) for worker in plan.workers)
            for name in load.COUNTS}
    happened = collections.Counter()
    for each in disturbers:
        happened += each.done
    print("checked: " + ", ".join(f"{name} {count}" for name, count in plan.checked.items()))
    print("done: " + ", ".join(f"{name} {count}" for name, count in sorted(happened.items())))
    for worker in plan.workers:
        print(f"{worker.label}: {worker.slot.submitted} I/Os, {worker.slot.failed} failed")
    print(f"counted: requests={sums['ended']} verified_mb={sums['verified_kb'] >> 10} "
          f"switches={happened['switches']} rewrites={happened['tunables'] + happened['generic']} "
          f"removed={happened['removals']} hotplugs={happened['hotplugs']} "
          f"faults={sums['failed']}")
    check(sums["submitted"] == sums["ended"], f"{sums['submitted']} I/Os submitted and ended")
    for name in load.COUNTS:
        check(sums[name] > 0 or name == "failed", f"{sums[name]} {name}")
    for each in disturbers:
        check(not each.missing(), f"each kind of disturbance happened {each.missing()}")
    check(set(plan.checked) == set(ours()), f"all schedulers were checked: {dict(plan.checked)}")


def main():
    print(f"SEED={SEED} DURATION={DURATION} cpus={len(CPUS) + 1}")
    before = MODPROBE.read_text()
    plan = Plan()
    prepare()
    plan.make_targets()
    # Modules are unloaded and loaded by this test only.
    MODPROBE.write_text("\n")
    plan.make_workers()
    plan.control.want = load.REST_ALL
    plan.start()
    try:
        disturbers = [Settings(plan, plan.targets, plan.rng_of(901)),
                      Machine(plan, plan.targets, plan.rng_of(902))]
        for each in disturbers:
            each.start()
        end = time.monotonic() + DURATION
        while time.monotonic() < end or any(each.missing() for each in disturbers):
            plan.phase(PHASE, disturbers)
        plan.finish()
    finally:
        MODPROBE.write_text(before)
        for pid in plan.processes:
            os.kill(pid, signal.SIGKILL)
    report(plan, disturbers)


if __name__ == "__main__":
    main()
