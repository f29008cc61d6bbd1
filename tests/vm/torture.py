#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Each I/O ends and all data are right with all kinds of I/O on all kinds of devices and file
# systems at once, while schedulers, settings, CPUs, faults and devices change at random
# kernels: 6.1 6.12 6.1-arm64 newest-arm64
# cpus: 1 2 4
# check: 6.12@2 6.1@2 newest@2 6.1-arm64@2 newest-arm64@2
# memory: 1536M
# append: log_buf_len=8M
# disk: 256M
# nvme: 512M
# nvme: 128M
# timeout: 600
# quick: 6.1@2 newest@2
"""The seed is SEED, the time DURATION seconds, in phases. At the end of each phase the
disturbances stop and polled reads stay unreaped: all other I/O has to end nevertheless. Then
the polled reads have to end, and the schedulers' statistics have to balance. Faults are those of
scsi_debug, which Debian's kernels for arm64 lack. A kernel with KCSAN watches ten times as many
accesses as it would."""

import concurrent.futures
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import torture_devices as devices
import torture_load as load
from checks import DEBUG_KERNEL, QUICK, SEED, SLOW, check, modprobe, run, select_scheduler, wait_for
from iosched import have_scsi_debug, ours, remove_all, statistics
from torture_disturb import CGROUPS, CPUS, Hardware, Machine, Settings, prepare

PHASE = 60 if DEBUG_KERNEL else 20
DURATION = int(os.environ.get("DURATION") or (PHASE if QUICK or SLOW else 60))
# At most this much longer, until every kind of I/O and disturbance has happened.
MORE = 12 * PHASE
# A child that cannot reach its exec would stop all threads of this process: Python holds its lock
# while vfork() lasts.
subprocess._USE_VFORK = False
# Seconds after which an I/O counts as lost: a hundred times what the slowest should take.
LIMIT = 480 if DEBUG_KERNEL else 120
MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
HUNG_TASK = pathlib.Path("/proc/sys/kernel/hung_task_timeout_secs")
KCSAN = pathlib.Path("/sys/module/kcsan/parameters/skip_watch")
REGION_MB = 4
# Their requests may bypass a queue, as all are of one priority class.
ONE_CLASS = ("scsi", "loop")
FILE_SYSTEMS = {"nvme-fs": "xfs", "virtio": "ext4", "ssdemu": "f2fs"}


class Plan:
    """All targets, workers and disturbers."""

    def __init__(self):
        self.rng = random.Random(SEED)
        self.control = load.shared(load.Control)
        self.targets, self.workers, self.kept = [], [], set()
        self.processes, self.disturbers, self.guarding = {}, [], None
        # How often each scheduler's statistics were checked.
        self.checked = dict.fromkeys(ours(), 0)

    def make_targets(self):
        """Make the devices and the file systems on them."""
        modprobe("-a", "dm-mod", "loop", "virtio_blk")
        modprobe("nvme", "poll_queues=1")
        # Built with fault injection, it also requeues every twentieth request.
        modprobe("null_blk", "nr_devices=0", *["requeue=1,5,0,-1"] * DEBUG_KERNEL)
        for name in ("nvme0n1", "nvme1n1"):
            wait_for(pathlib.Path("/dev", name).exists, name)
        # The kernel probes both at once, so their order varies.
        small, large = sorted(("nvme0n1", "nvme1n1"), key=lambda name: int(
            pathlib.Path("/sys/block", name, "size").read_text()))
        self.targets = [devices.Nvme("nvme-fs", large), devices.Nvme("nvme-bare", small),
                        devices.Virtio("virtio", "vda"),
                        *([devices.Scsi("scsi")] if have_scsi_debug() else []),
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
        """Make several workers for each target, each with a region of its own."""
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
                self.workers.append(kind(target, region, self.rng_of(owner),
                                         "be" if target.label in ONE_CLASS else priority))
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
                    # io.latency would make a task wait for its own polled I/O before it polls.
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
        """Fail if a worker or disturber reports an error, or an I/O does not end."""
        now = time.monotonic_ns()
        for worker in self.workers:
            slot = worker.slot
            if slot.wrong:
                check(False, f"{worker.label}: {slot.wrong.decode(errors='replace')}")
            # Read it once: the worker may set it to 0 at any time.
            since = slot.since
            if since and now - since > LIMIT * 10**9:
                self.lost(f"{worker.label}: an I/O has not ended for {LIMIT} s")
        for each in self.disturbers:
            if each.wrong:
                check(False, each.wrong)
        # Only these: the disturbers wait for programs of their own.
        for each in list(self.processes):
            pid, status = os.waitpid(each, os.WNOHANG)
            if pid:
                worker = self.processes.pop(pid)
                check(not status, f"{worker.label} ended: {worker.slot.wrong.decode()} {status}")
        self.control.beat = now

    def guard(self):
        """Fork a process that resets the guest if this one does not go on, even to report a
        hang."""
        parent = os.getpid()
        self.control.beat = time.monotonic_ns()
        self.guarding = os.fork()
        if self.guarding:
            return
        while os.getppid() == parent:
            time.sleep(5)
            if time.monotonic_ns() - self.control.beat > 3 * LIMIT * 10**9:
                print(f"FAIL  the test has stood still for {3 * LIMIT} s", flush=True)
                # Print all messages, blocked tasks and what each CPU executes; reset.
                sysrq("9wlb", seconds=5)
        os._exit(0)

    def lost(self, what):
        """Print what is known about a hang, and reset the guest, which is unusable."""
        try:
            self.describe(what)
        finally:
            time.sleep(5)
            sysrq("b")

    def describe(self, what):
        """Print what is known about a hang."""
        print(f"FAIL  {what}", flush=True)
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
        # Blocked tasks, what each CPU executes, and what uses the CPU.
        sysrq("wl")
        print(kernel_log()[-30000:], flush=True)
        for _ in range(2):
            print(run("ps", "-eo", "cputimes,stat,wchan:24,comm", "--sort=-cputimes")[:2000],
                  flush=True)
            time.sleep(5)
        for target in self.targets:
            print(f"{target.label} is {target.name}", flush=True)
            folder = pathlib.Path("/sys/kernel/debug/block", target.name)
            for file in sorted([*folder.glob("sched/*"), *folder.glob("hctx*/*"),
                                folder / "state"]):
                if file.name in ("stats", "queue", "busy", "dispatch", "state", "flags",
                                 "sched_tags", "tags") or "fifo" in file.name:
                    self.show(file)
        for target in self.targets:
            self.show(target.queue / "scheduler")

    def threads(self, pid, worker):
        """Print the stacks of a worker's threads, also those of io_uring, and its ring."""
        print(f"{worker.label}:")
        folder = pathlib.Path("/proc", str(pid))
        for file in sorted(folder.glob("task/*/stat")):
            print(file.read_text().strip()[:40], (file.parent / "syscall").read_text().strip())
            self.show(file.parent / "stack")
        # Python's mmap() duplicates the file descriptor: all are of the same ring.
        rings = [file.name for file in folder.glob("fd/*") if "io_uring" in os.readlink(file)]
        if rings:
            self.show(folder / "fdinfo" / max(rings, key=int))
        sys.stdout.flush()

    @staticmethod
    def show(file):
        """Print a file unless it is empty. Another process reads it, as that may hang."""
        reader = subprocess.Popen(["cat", file], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            text = reader.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            text = "its reader hangs"
        if text.strip():
            print(f"{file}:\n{text}", flush=True)

    def wait(self, condition, what):
        """Wait until @condition() holds, within the limit."""
        end = time.monotonic() + LIMIT
        while not condition():
            self.watch()
            if time.monotonic() > end:
                self.lost(f"{what}: not within {LIMIT} s")
            time.sleep(0.05)

    def within(self, function, what):
        """Call a @function that may hang, within the limit."""
        call = concurrent.futures.Future()

        def answer():
            try:
                call.set_result(function())
            except BaseException as error:  # noqa: BLE001
                call.set_exception(error)

        # A pool would wait for its thread without limit if the wait here ends by an error.
        threading.Thread(target=answer, daemon=True).start()
        self.wait(call.done, what)
        call.result()

    def phase(self, seconds):
        """Load and disturb the devices for a while, then check them at rest."""
        # Half of the targets keep their scheduler for the whole phase, so that leaks add up.
        order = self.rng.sample(self.targets, len(self.targets))
        self.kept = set(order[:len(order) // 2])

        def switches():
            for target, name in zip(order, itertools.cycle(ours()), strict=False):
                self.select(target, name)
        self.within(switches, "the switches")
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
        """Check that all I/O ends, the polled I/O last."""
        late = [worker for worker in self.workers if isinstance(worker, load.Polled)]
        others = [worker for worker in self.workers if worker not in late]
        self.within(self.deselect_bfq, "a switch")
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

    def deselect_bfq(self):
        """Select one of the project's schedulers where I/O is polled: BFQ would dispatch nothing
        else before a polled read completes."""
        for target in self.targets:
            if target.polled and self.scheduler(target) not in ours():
                self.select(target, self.rng.choice(ours()))

    @staticmethod
    def select(target, name):
        """Select a scheduler."""
        select_scheduler(target.queue / "scheduler", name)

    @staticmethod
    def scheduler(target):
        """Name of the selected scheduler."""
        return (target.queue / "scheduler").read_text().split("[")[1].split("]")[0]

    def balance(self, target):
        """Check that the statistics balance if a scheduler of the project is selected."""
        name = self.scheduler(target)
        if name not in ours():
            return
        def even():
            now = statistics(target.name)
            return (now["inserted"] == now["merged"] + now["completed"] and
                    not now["queued"] and not now["in_flight"])
        # A file system may write at any time.
        end = time.monotonic() + (120 if DEBUG_KERNEL else 30)
        while not even():
            if time.monotonic() > end:
                check(False, f"{name} on {target.label}: {statistics(target.name)}")
            time.sleep(0.1)
        self.checked[name] += 1

    def finish(self):
        """End the workers and remove the devices."""
        self.control.want = load.END
        self.wait(lambda: self.watch() or not self.processes, "the workers")
        self.within(self.take_apart, "the end of the devices")

    def take_apart(self):
        """Remove all file systems, devices and modules."""
        for target in self.targets:
            self.select(target, "none")
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


def sysrq(keys, seconds=0):
    """Press magic SysRq @keys; leave @seconds for the output of each."""
    for key in keys:
        pathlib.Path("/proc/sysrq-trigger").write_text(key)
        time.sleep(seconds)


def kernel_log():
    """The kernel's log."""
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout


def happened(plan):
    """Number of I/Os and disturbances of each kind, and of checks of each scheduler."""
    counts = {name: sum(getattr(worker.slot, name) for worker in plan.workers)
              for name in load.COUNTS if name != "sg_io" or have_scsi_debug()}
    counts |= {kind: sum(each.done[kind] for each in plan.disturbers)
               for each in plan.disturbers for kind in each.kinds()}
    return counts | plan.checked


def report(plan):
    """Print what happened; fail if some kind of it did not."""
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
    check(not missing, f"each kind happened: {counts} {missing}")


def main():
    print(f"SEED={SEED} DURATION={DURATION} cpus={len(CPUS) + 1}")
    before = MODPROBE.read_text()
    plan = Plan()
    prepare()
    plan.make_targets()
    # Only the test itself unloads and loads modules.
    MODPROBE.write_text("\n")
    # The kernel's own limit is the same.
    HUNG_TASK.write_text(str(LIMIT))
    HUNG_TASK.with_name("hung_task_warnings").write_text("-1")
    if KCSAN.exists():
        KCSAN.write_text("400")
    plan.make_workers()
    plan.control.want = load.REST_ALL
    plan.start()
    plan.guard()
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
        # Let the disturbers thaw and resume what they froze and suspended.
        for each in plan.disturbers:
            each.may_go.clear()
        for each in plan.disturbers:
            each.idle.wait(LIMIT)
        MODPROBE.write_text(before)
        for pid in (*plan.processes, plan.guarding):
            os.kill(pid, signal.SIGKILL)
    report(plan)


if __name__ == "__main__":
    main()
