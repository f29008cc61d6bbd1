# SPDX-License-Identifier: GPL-2.0
"""What the torture test does to the devices while they are under load."""

import collections
import contextlib
import errno
import fcntl
import glob
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback

from checks import DEBUG_KERNEL, RELEASE, check, fail, modprobe, run, wait_for
from iosched import NAMES, SCSI_DEBUG, have_scsi_debug, insert, ours, remove
from linux_calls import FIFREEZE, FITHAW
from torture_load import BLOCK, GOING, GONE, MOST_BLOCKS, UP

CPUS = sorted(pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/online"))
CGROUPS = pathlib.Path("/sys/fs/cgroup")
STOCK = ("none", "mq-deadline", "kyber", "bfq")
NUMBERS = (0, 1, 2, 3, 5, 8, 16, 31, 64, 100, 512, 4096)
GENERIC = {"nr_requests": (4, 8, 16, 31, 64, 100, 256), "read_ahead_kb": (0, 4, 128, 512),
           "max_sectors_kb": (4, 16, 64, 128, 512), "nomerges": (0, 1, 2),
           "rq_affinity": (0, 1, 2), "wbt_lat_usec": (0, 1000, 75000), "async_depth": NUMBERS,
           "iostats": (0, 1)}
# errno of a write to sysfs that is refused or whose device is gone. The kernel allocates a
# scheduler's requests without reclaiming much, and may answer ENOMEM.
REFUSED = (errno.EINVAL, errno.EBUSY, errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP,
           errno.EAGAIN, errno.ENXIO, errno.ENOMEM)
# scsi_debug: (option, every nth command). Few are lost: each is waited for.
FAULTS = {"recovered": (0x8, 7), "transport": (0x10, 9), "short": (0x100, 9),
          "busy": (0x8000, 3), "medium": (0x2, 1), "lost": (0x4, 150)}
# Commands that scsi_debug answers a few times with a sense code, if it supports that: UNMAP,
# WRITE SAME(10), WRITE SAME(16), READ(10), WRITE(10), SYNCHRONIZE CACHE. The codes: asymmetric
# access transition, after which sd prepares the request again; reset; aborted command.
COMMANDS = (0x42, 0x41, 0x93, 0x28, 0x2a, 0x35)
SENSES = ("0x2 0x4 0xa", "0x6 0x29 0x0", "0xb 0x4b 0x0")
ERRORS = "/sys/kernel/debug/scsi_debug/*/error"
# A debug kernel makes any driver lose completions: percent, and at most so many.
LOST_COMPLETIONS = pathlib.Path("/sys/kernel/debug/fail_io_timeout")
LOST_PERCENT, LOST_MOST = 20, 3
# Held while a CPU is off, while an NVMe controller may be reset, and while a device is added. A
# reset while a CPU is off releases hardware queues. On 7.2 the next reset takes them again with
# the mark that they are inactive, and no request gets a tag of theirs. The kernel registers a
# new device's queues for the notice that a CPU went off before it initializes their lists of
# that CPU (blk_mq_init_allocated_queue()), and then follows a null pointer.
ALL_CPUS = threading.Lock()
PROVISIONING = ("unmap", "writesame_16", "writesame_10")


def write(file, value):
    """Write to a file of sysfs; return true if the kernel took the value."""
    try:
        fd = os.open(file, os.O_WRONLY)
    except OSError as error:
        if error.errno in REFUSED:
            return False
        raise
    try:
        os.write(fd, str(value).encode())
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        return False
    finally:
        os.close(fd)
    return True


class Disturber(threading.Thread):
    """A thread that calls the methods named by kinds() in random order, each once per round,
    while it is allowed to."""

    def __init__(self, plan, targets, rng):
        """@targets: what it disturbs; @rng: a random.Random of its own."""
        super().__init__(daemon=True)
        self.plan, self.targets, self.rng = plan, targets, rng
        self.done, self.seconds = collections.Counter(), collections.Counter()
        self.may_go, self.idle = threading.Event(), threading.Event()
        self.idle.set()
        self.doing, self.wrong = None, None

    def kinds(self):
        """Names of methods, each of which returns true if it took effect."""
        raise NotImplementedError

    def run(self):
        try:
            while True:
                kinds = self.kinds()
                for kind in self.rng.sample(kinds, len(kinds)):
                    self.pause()
                    began = time.monotonic()
                    self.doing = (kind, began)
                    self.done[kind] += bool(getattr(self, kind)())
                    self.doing = None
                    self.seconds[kind] += time.monotonic() - began
                    time.sleep(self.rng.random() / 10)
        except Exception:  # noqa: BLE001
            self.wrong = traceback.format_exc()
            self.idle.set()

    def show(self):
        """Print what it is doing, in Python and in the kernel."""
        if self.doing:
            kind, began = self.doing
            print(f"{kind} for {time.monotonic() - began:.0f} s:")
            traceback.print_stack(sys._current_frames()[self.ident], file=sys.stdout)
            print(pathlib.Path(f"/proc/self/task/{self.native_id}/stack").read_text())

    def pause(self):
        """Wait until the thread may go on."""
        if not self.may_go.is_set():
            self.idle.set()
            self.may_go.wait()

    def go_on(self):
        self.idle.clear()
        self.may_go.set()

    def pick(self, *properties):
        """A random target that has these properties."""
        return self.rng.choice([target for target in self.targets
                                if all(getattr(target, name) for name in properties)])


class Settings(Disturber):
    """Changes schedulers, their tunables, the queue's attributes and cgroup limits."""

    def kinds(self):
        return ["switches", "tunables", "generic", "limits"]

    def switches(self):
        free = [target for target in self.targets if target not in self.plan.kept]
        if not free:
            return False
        target = self.rng.choice(free)
        names = ours() * 2 + list(STOCK)
        if target.passthrough and RELEASE == (6, 12):
            # It miscounts requests that were not prepared, and warns about that.
            names.remove("mq-deadline")
        return write(target.queue / "scheduler", self.rng.choice(names))

    def tunables(self):
        target = self.pick()
        try:
            file = self.rng.choice(sorted((target.queue / "iosched").iterdir()))
            numeric = file.read_text().strip().isdigit()
        except (OSError, IndexError):
            return False
        values = self.rng.sample(NUMBERS if numeric else NAMES, 8)
        return any(write(file, value) for value in values)

    def generic(self):
        target, name = self.pick(), self.rng.choice(sorted(GENERIC))
        value = self.rng.choice(GENERIC[name])
        if name == "max_sectors_kb" and target.polled and RELEASE <= (6, 1):
            # 6.1 never accepts a polled bio that has to be split.
            value = max(value, BLOCK * MOST_BLOCKS >> 10)
        return write(target.queue / name, value)

    def limits(self):
        target = self.pick()
        try:
            number = (target.queue.parent / "dev").read_text().strip()
        except OSError:
            return False
        most = [f"{key}={self.rng.choice(['max', *values])}" for key, values in
                (("rbps", (1 << 20, 16 << 20)), ("wbps", (1 << 20, 16 << 20)),
                 ("riops", (100, 2000)), ("wiops", (100, 2000)))]
        # When a device is removed, 6.1 may retry throttled I/O for ever, and 6.12 leaks
        # allocations of io.max.
        spared = (target.removable if RELEASE == (6, 1) else
                  target.leaves if DEBUG_KERNEL and RELEASE == (6, 12) else False)
        done = (not spared and
                write(CGROUPS / "limited/io.max", f"{number} {' '.join(most)}"))
        weight = self.rng.choice((1, 100, 1000))
        # io.cost is enabled on the root, for the whole device. 7.2 takes rq_qos_mutex for that
        # with the queue frozen, and io.max allocates memory under it: lockdep reports that.
        rate = self.rng.choice((25, 100, 400))
        if not DEBUG_KERNEL or RELEASE < (7, 0):
            write(CGROUPS / "io.cost.qos",
                  f"{number} enable={self.rng.randint(0, 1)} ctrl=user min={rate} max={rate}")
        latency = self.rng.choice((0, 50, 9999))
        for name, value in (("io.weight", f"default {weight}"), ("io.bfq.weight", weight),
                            ("io.latency", f"{number} target={latency}")):
            # The removal of a disk with a target frees io.latency's work while it is queued.
            if ((CGROUPS / "weighted" / name).exists() and
                    not (name == "io.latency" and target.leaves)):
                write(CGROUPS / "weighted" / name, value)
        return done


class Machine(Disturber):
    """Unplugs CPUs, suspends and freezes file systems, unloads modules."""

    def kinds(self):
        return ["suspends", "freezes", "unloads", *["hotplugs"] * bool(CPUS)]

    def hotplugs(self):
        file = self.rng.choice(CPUS)
        with ALL_CPUS:
            if not write(file, 0):
                return False
            time.sleep(self.rng.random())
            return write(file, 1)

    def suspends(self):
        target = self.pick("mapping")
        options = self.rng.choice((["--noflush"], ["--nolockfs"], []))
        done = subprocess.run(["dmsetup", "suspend", *options, target.mapping],
                              capture_output=True, text=True, check=False)
        # f2fs refuses to freeze while something is dirty that sync left.
        if (done.returncode and target.mapping.endswith("f2fs") and
                "Invalid argument" in done.stderr):
            return False
        if done.returncode:
            fail(f"suspend {target.mapping}: {done.stderr}")
        time.sleep(self.rng.random() / 2)
        run("dmsetup", "resume", target.mapping)
        return True

    def freezes(self):
        target = self.pick("folder")
        fd = os.open(target.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FIFREEZE, 0)
            time.sleep(self.rng.random() / 2)
            fcntl.ioctl(fd, FITHAW, 0)
        except OSError as error:
            # f2fs refuses to freeze while something is dirty that sync left.
            if error.errno != errno.EINVAL or not target.mapping.endswith("f2fs"):
                raise
            return False
        finally:
            os.close(fd)
        return True

    def unloads(self):
        """Unload a module unless it is in use, and load it again."""
        name = self.rng.choice(ours())
        error = remove(name)
        if error and error not in (errno.EAGAIN, errno.EBUSY):
            raise OSError(error, f"unloading {name}")
        if not error and insert(name):
            raise OSError(f"loading {name}")
        return True


class Hardware(Disturber):
    """Injects faults, resets a controller, removes devices and brings them back."""

    def kinds(self):
        return ["removals", "removals", *["faults"] * 2 * have_scsi_debug(),
                # On 6.1 a reset loses the second requeued command of a queue if the controller
                # has shadow doorbells, which the driver passes to it too late.
                *["resets"] * (RELEASE > (6, 1)),
                *["prepared_anew"] * bool(glob.glob(ERRORS)),
                *["timeouts"] * LOST_COMPLETIONS.is_dir()]

    def faults(self):
        """Make SCSI commands fail for a while, by one kind of fault."""
        target = self.pick("scsi")
        kind = self.rng.choice(sorted(FAULTS))
        options, every = FAULTS[kind]
        # Slow commands must not time out on a slow machine.
        seconds = 2 if kind == "lost" and not DEBUG_KERNEL else 20
        (target.queue.parent / "device/timeout").write_text(str(seconds))
        # sd waits 120 s for a WRITE SAME, whatever the disk's timeout, and SCSI handles no lost
        # command before all others have ended. An UNMAP has the disk's timeout. Without WRITE SAME
        # sd keeps the mode of zeroing, for I/O that enters the queue now.
        disk, = target.queue.parent.glob("device/scsi_disk/*")
        before = [(disk / name, (disk / name).read_text(), value)
                  for name, value in (("provisioning_mode", "unmap"),
                                      ("max_write_same_blocks", "0"),
                                      ("zeroing_mode", "write"))] * (kind == "lost")
        for file, _, value in before:
            file.write_text(value)
        # A write to nr_requests drains the queue.
        depth = target.queue / "nr_requests"
        write(depth, depth.read_text())
        (SCSI_DEBUG / "every_nth").write_text(str(every))
        (SCSI_DEBUG / "opts").write_text(str(options))
        time.sleep(self.rng.random() * 2)
        (SCSI_DEBUG / "opts").write_text("0")
        (SCSI_DEBUG / "every_nth").write_text("0")
        self.revive(target)
        for file, text, _ in before:
            write(file, text)
        return True

    def prepared_anew(self):
        """Have some kinds of commands answered with a sense code a few times."""
        mode, = self.pick("scsi").queue.parent.glob("device/scsi_disk/*/provisioning_mode")
        write(mode, self.rng.choice(PROVISIONING))
        file, = glob.glob(ERRORS)
        for command in COMMANDS:
            write(file, f"2 -{self.rng.randint(1, 3)} {command:#x} 0 0 0x2 "
                        f"{self.rng.choice(SENSES)}")
        time.sleep(self.rng.random() * 2)
        for command in COMMANDS:
            write(file, f"- 2 {command:#x}")
        return True

    def timeouts(self):
        """Lose a few completions of a device, until the driver's timeout finds them."""
        target = self.pick("times_out")
        with ALL_CPUS if target.passthrough else contextlib.nullcontext():
            return self.lose(target)

    def lose(self, target):
        """Lose completions of @target; return after its driver has found them."""
        before = (target.queue / "io_timeout").read_text()
        write(target.queue / "io_timeout", 5000)
        (LOST_COMPLETIONS / "verbose").write_text("1")
        (LOST_COMPLETIONS / "probability").write_text(str(LOST_PERCENT))
        (LOST_COMPLETIONS / "times").write_text(str(LOST_MOST))
        done = write(target.queue.parent / "io-timeout-fail", 1)
        time.sleep(8)
        write(target.queue.parent / "io-timeout-fail", 0)
        if target.passthrough:
            # NVMe sends an Abort at the first timeout, and resets the controller at the second.
            time.sleep(12)
            target.wait_for_reset()
        write(target.queue / "io_timeout", before)
        if target.scsi:
            self.revive(target)
        return done

    @staticmethod
    def revive(target):
        """Set a disk running again: error handling takes it offline if its own commands are
        lost."""
        state = target.queue.parent / "device/state"
        if state.read_text().strip() == "offline":
            state.write_text("running\n")

    def resets(self):
        with ALL_CPUS:
            self.pick("passthrough").reset()
        return True

    def removals(self):
        """Remove a device under load, and bring it back when its workers have closed it."""
        target = self.pick("removable")
        target.shared.state = GOING
        target.take()
        target.shared.state = GONE
        workers = [worker for worker in self.plan.workers if worker.target is target]
        wait_for(lambda: all(worker.slot.resting for worker in workers),
                 f"the end of I/O to {target.label}")
        with ALL_CPUS:
            target.back()
        target.shared.life += 1
        target.shared.state = UP
        wait_for(lambda: not any(worker.slot.resting for worker in workers),
                 f"I/O to {target.label} again")
        return True


def prepare():
    """Load the schedulers' modules and make cgroups."""
    modprobe("-a", "bfq", "kyber-iosched", *(f"{name}-iosched" for name in ours()))
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    for name in ("limited", "weighted"):
        (CGROUPS / name).mkdir()
    check(bool(ours()), f"schedulers: {' '.join(ours())}")
