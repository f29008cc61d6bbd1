#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Everything at once: all kinds of I/O on all kinds of devices, through file systems too,
# while schedulers, settings, CPUs, faults and devices come and go at random; each I/O
# ends, the data are right
# cpus: 1 2 4
# check: 6.12@2
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

import concurrent.futures
import itertools
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
from torture_disturb import CGROUPS, CPUS, Hardware, Machine, Settings, prepare

DURATION = int(os.environ.get("DURATION") or (600 if SOAK else 60))
PHASE = 60 if DEBUG_KERNEL else 20
# So much longer if not all has happened yet.
MORE = 5 * PHASE
# An I/O that takes longer is lost: a hundred times what any has a reason to take.
LIMIT = 480 if DEBUG_KERNEL else 120
MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
HUNG_TASK = pathlib.Path("/proc/sys/kernel/hung_task_timeout_secs")
REGION_MB = 4
FILE_SYSTEMS = {"nvme-fs": "xfs", "virtio": "ext4", "ssdemu": "f2fs"}


class Plan:
    """All targets, workers and disturbers."""

    def __init__(self):
        self.rng = random.Random(SEED)
        self.control = load.shared(load.Control)
        self.targets, self.workers, self.kept = [], [], set()
        self.processes, self.disturbers = {}, []
        # How often each scheduler's statistics were looked at.
        self.checked = dict.fromkeys(ours(), 0)

    def make_targets(self):
        """Devices, and what is on top of them."""
        modprobe("-a", "dm-mod", "loop", "virtio_blk")
        modprobe("nvme", "poll_queues=1")
        # Such a kernel also has it send every twentieth request back.
        modprobe("null_blk", "nr_devices=0", *["requeue=1,5,0,-1"] * DEBUG_KERNEL)
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
                    # io.latency makes a task wait for its own polled I/O before it polls.
                    group = "" if isinstance(worker, load.Polled) else \
                        ("", "limited", "weighted", "")[number % 4]
                    (CGROUPS / group / "cgroup.procs").write_text(str(os.getpid()))
                    # Some 50 busy workers leave a slow kernel's threads, and what disturbs
                    # them, little of the CPU.
                    os.nice(15 if DEBUG_KERNEL else 0)
                    worker.run(self.control)
                    status = 0
                finally:
                    sys.stdout.flush()
                    os._exit(status)
            self.processes[pid] = worker

    def watch(self):
        """Fail when a worker or a disturber is wrong, or an I/O does not end."""
        now = time.monotonic_ns()
        for worker in self.workers:
            slot = worker.slot
            if slot.wrong:
                check(False, f"{worker.label}: {slot.wrong.decode(errors='replace')}")
            # Read once: the worker may set it to 0 at any time.
            since = slot.since
            if since and now - since > LIMIT * 10**9:
                self.lost(f"{worker.label}: an I/O has not ended for {LIMIT} s")
        for each in self.disturbers:
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
        for each in self.disturbers:
            each.show()
        for worker in self.workers:
            since = worker.slot.since
            if since:
                print(f"{worker.label}: {worker.slot.submitted} submitted, "
                      f"{worker.slot.ended} ended, the oldest for "
                      f"{(time.monotonic_ns() - since) / 1e9:.1f} s", flush=True)
        for pid, worker in self.processes.items():
            if worker.slot.since and time.monotonic_ns() - worker.slot.since > LIMIT * 5 * 10**8:
                self.threads(pid, worker)
        for target in self.targets:
            folder = pathlib.Path("/sys/kernel/debug/block", target.name)
            for file in sorted([*folder.glob("sched/*"), *folder.glob("hctx*/*"),
                                folder / "state"]):
                if file.name in ("stats", "queue", "busy", "dispatch", "state", "flags",
                                 "sched_tags", "tags") or "fifo" in file.name:
                    self.show(file)
        pathlib.Path("/proc/sysrq-trigger").write_text("w")
        print(kernel_log()[-30000:], flush=True)
        # Last: reading these may hang as well.
        for target in self.targets:
            self.show(target.queue / "scheduler")
        time.sleep(5)
        pathlib.Path("/proc/sysrq-trigger").write_text("b")

    def threads(self, pid, worker):
        """Where the threads of a worker are, those of io_uring too, and its rings."""
        print(f"{worker.label}:")
        folder = pathlib.Path("/proc", str(pid))
        for file in sorted(folder.glob("task/*/stat")):
            print(file.read_text().strip()[:40], (file.parent / "syscall").read_text().strip())
            self.show(file.parent / "stack")
        # Python's mmap() duplicates what it maps: all are the same ring.
        rings = [file.name for file in folder.glob("fd/*") if "io_uring" in os.readlink(file)]
        if rings:
            self.show(folder / "fdinfo" / max(rings, key=int))
        sys.stdout.flush()

    @staticmethod
    def show(file):
        """Print a file of debugfs, unless it is empty."""
        try:
            text = file.read_text()
        except OSError as error:
            text = str(error)
        if text.strip():
            print(f"{file}:\n{text}")

    def wait(self, condition, what):
        """Until something is so, within the limit."""
        end = time.monotonic() + LIMIT
        while not condition():
            self.watch()
            if time.monotonic() > end:
                self.lost(f"no end of waiting for {what}")
            time.sleep(0.05)

    def within(self, function, what):
        """Call a @function that may hang, within the limit."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(function)
            self.wait(call.done, what)
            call.result()

    def phase(self, seconds):
        """Load and disturbances for a while, then what has to be so afterwards."""
        # Half of them keep theirs for the whole phase: what leaks adds up.
        order = self.rng.sample(self.targets, len(self.targets))
        self.kept = set(order[:len(order) // 2])
        for target, name in zip(order, itertools.cycle(ours()), strict=False):
            (target.queue / "scheduler").write_text(name)
        self.control.want = load.RUN
        for each in self.disturbers:
            each.go_on()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.watch()
            time.sleep(0.2)
        for each in self.disturbers:
            each.may_go.clear()
        self.wait(lambda: all(each.idle.is_set() for each in self.disturbers), "disturbances")
        self.rest()

    def rest(self):
        """All I/O ends, the polled one last."""
        late = [worker for worker in self.workers if isinstance(worker, load.Polled)]
        others = [worker for worker in self.workers if worker not in late]
        self.within(self.ours_where_polled, "a switch")
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
        self.within(os.sync, "a sync of all file systems")
        for target in self.targets:
            self.balance(target)

    def ours_where_polled(self):
        """BFQ dispatches nothing else while it waits for a polled read to complete."""
        for target in self.targets:
            if target.polled and self.scheduler(target) not in ours():
                (target.queue / "scheduler").write_text(self.rng.choice(ours()))

    @staticmethod
    def scheduler(target):
        """Name of the one that is selected."""
        return (target.queue / "scheduler").read_text().split("[")[1].split("]")[0]

    def balance(self, target):
        """Nothing is left in a scheduler of ours."""
        name = self.scheduler(target)
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
        self.within(self.take_apart, "the end of the devices")

    def take_apart(self):
        """All file systems, devices and modules."""
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


def kernel_log():
    """What the kernel has said."""
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout


def happened(plan):
    """How often each kind of I/O and of disturbance was there, and a look at each scheduler's
    statistics."""
    counts = {name: sum(getattr(worker.slot, name) for worker in plan.workers)
              for name in load.COUNTS}
    counts |= {kind: sum(each.done[kind] for each in plan.disturbers)
               for each in plan.disturbers for kind in each.kinds()}
    return counts | plan.checked


def report(plan):
    """Say what happened; fail for what did not."""
    counts = happened(plan)
    for kind in sorted({kind for each in plan.disturbers for kind in each.kinds()}):
        seconds = sum(each.seconds[kind] for each in plan.disturbers)
        print(f"{kind}: {counts[kind]} in {seconds:.1f} s")
    for worker in plan.workers:
        print(f"{worker.label}: {worker.slot.submitted} I/Os, {worker.slot.failed} failed")
    print(f"counted: requests={counts['ended']} verified_mb={counts['verified_kb'] >> 10} "
          f"switches={counts['switches']} rewrites={counts['tunables'] + counts['generic']} "
          f"removed={counts['removals']} hotplugs={counts.get('hotplugs', 0)} "
          f"faults={counts['failed'] - counts['gone']}")
    check(counts["submitted"] == counts["ended"], "each I/O submitted has ended")
    missing = [name for name, count in counts.items() if not count and name != "gone"]
    check(not missing, f"each kind was there: {counts} {missing}")


def main():
    print(f"SEED={SEED} DURATION={DURATION} cpus={len(CPUS) + 1}")
    before = MODPROBE.read_text()
    plan = Plan()
    prepare()
    plan.make_targets()
    # Modules are unloaded and loaded by this test only.
    MODPROBE.write_text("\n")
    # The kernel's own limit is the same.
    HUNG_TASK.write_text(str(LIMIT))
    plan.make_workers()
    plan.control.want = load.REST_ALL
    plan.start()
    try:
        plan.disturbers = [Settings(plan, plan.targets[number::3], plan.rng_of(901 + number))
                           for number in range(3)]
        plan.disturbers += [Machine(plan, plan.targets, plan.rng_of(904)),
                            Hardware(plan, plan.targets, plan.rng_of(905))]
        for each in plan.disturbers:
            each.start()
        end = time.monotonic() + DURATION
        while time.monotonic() < end or (time.monotonic() < end + MORE and
                                         not all(happened(plan).values())):
            plan.phase(PHASE)
        plan.finish()
    except BaseException:
        print(kernel_log()[-5000:], flush=True)
        raise
    finally:
        # Nothing stays frozen or suspended.
        for each in plan.disturbers:
            each.may_go.clear()
        for each in plan.disturbers:
            each.idle.wait(LIMIT)
        MODPROBE.write_text(before)
        for pid in plan.processes:
            os.kill(pid, signal.SIGKILL)
    report(plan)


if __name__ == "__main__":
    main()
