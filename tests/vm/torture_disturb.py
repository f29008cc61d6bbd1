# SPDX-License-Identifier: GPL-2.0
"""Imported by torture.py: what happens to the devices while they are under load."""

import collections
import errno
import fcntl
import glob
import os
import pathlib
import sys
import threading
import time
import traceback

from ssd import DEBUG_KERNEL, RELEASE, check
from together import SCSI_DEBUG, insert, modprobe, ours, remove, wait_for
from torture_devices import run
from torture_load import BLOCK, GOING, GONE, MOST_BLOCKS, UP

CPUS = sorted(pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/online"))
CGROUPS = pathlib.Path("/sys/fs/cgroup")
STOCK = ("none", "mq-deadline", "kyber", "bfq")
NUMBERS = (0, 1, 2, 3, 5, 8, 16, 31, 64, 100, 512, 4096)
NAMES = ("anticipatory fair none pas pasa page block paper aligned noop rws piq-r piq-w piq "
         "piq+ chip plane cwdp pdwc dcwp").split()
GENERIC = {"nr_requests": (4, 8, 16, 31, 64, 100, 256), "read_ahead_kb": (0, 4, 128, 512),
           "max_sectors_kb": (4, 16, 64, 128, 512), "nomerges": (0, 1, 2),
           "rq_affinity": (0, 1, 2), "wbt_lat_usec": (0, 1000, 75000), "async_depth": NUMBERS,
           "iostats": (0, 1)}
# A write to sysfs may be refused, or the device may be gone.
REFUSED = (errno.EINVAL, errno.EBUSY, errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP,
           errno.EAGAIN, errno.ENXIO)
# Of scsi_debug: options, every nth command. (Lost commands are waited for: few.)
FAULTS = {"recovered": (0x8, 7), "transport": (0x10, 9), "short": (0x80, 9),
          "busy": (0x8000, 3), "medium": (0x2, 1), "lost": (0x4, 150)}
# Of single commands, where it can: UNMAP, WRITE SAME(10), (16), READ(10), WRITE(10), SYNCHRONIZE
# CACHE, sent back a few times for: preparing anew (an asymmetric access transition), a
# reset elsewhere, an aborted command.
COMMANDS = (0x42, 0x41, 0x93, 0x28, 0x2a, 0x35)
SENSES = ("0x2 0x4 0xa", "0x6 0x29 0x0", "0xb 0x4b 0x0")
ERRORS = "/sys/kernel/debug/scsi_debug/*/error"
# Of any driver, on a debug kernel: completions that get lost, in percent, so many at most.
LOST_COMPLETIONS = pathlib.Path("/sys/kernel/debug/fail_io_timeout")
LOST_PERCENT, LOST_MOST = 20, 3
PROVISIONING = ("unmap", "writesame_16", "writesame_10")
FIFREEZE, FITHAW = 0xc0045877, 0xc0045878


def write(file, value):
    """Write to a file of sysfs; was it taken?"""
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
    """Does what its kinds() are, in random order, each once in a round, while it may go on."""

    def __init__(self, plan, targets, rng):
        """@targets: of these; @rng: a random.Random of its own."""
        super().__init__(daemon=True)
        self.plan, self.targets, self.rng = plan, targets, rng
        self.done, self.seconds = collections.Counter(), collections.Counter()
        self.may_go, self.idle = threading.Event(), threading.Event()
        self.idle.set()
        self.doing, self.wrong = None, None

    def kinds(self):
        """Names of methods; each returns whether it happened."""
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
        """Wait here while it may not go on."""
        if not self.may_go.is_set():
            self.idle.set()
            self.may_go.wait()

    def go_on(self):
        self.idle.clear()
        self.may_go.set()

    def any(self, *properties):
        """A target that has these."""
        return self.rng.choice([target for target in self.targets
                                if all(getattr(target, name) for name in properties)])


class Settings(Disturber):
    """Schedulers, their tunables, the queue's settings, limits of cgroups."""

    def kinds(self):
        return ["switches", "tunables", "generic", "limits"]

    def switches(self):
        free = [target for target in self.targets if target not in self.plan.kept]
        if not free:
            return False
        target = self.rng.choice(free)
        names = ours() * 2 + list(STOCK)
        if target.passthrough and RELEASE == (6, 12):
            # It miscounts what it gets unprepared, and warns of that.
            names.remove("mq-deadline")
        return write(target.queue / "scheduler", self.rng.choice(names))

    def tunables(self):
        target = self.any()
        try:
            file = self.rng.choice(sorted((target.queue / "iosched").iterdir()))
            numeric = file.read_text().strip().isdigit()
        except (OSError, IndexError):
            return False
        values = self.rng.sample(NUMBERS if numeric else NAMES, 8)
        return any(write(file, value) for value in values)

    def generic(self):
        target, name = self.any(), self.rng.choice(sorted(GENERIC))
        value = self.rng.choice(GENERIC[name])
        if name == "max_sectors_kb" and target.polled and RELEASE <= (6, 1):
            # There a polled bio that has to be split is refused for ever.
            value = max(value, BLOCK * MOST_BLOCKS >> 10)
        return write(target.queue / name, value)

    def limits(self):
        target = self.any()
        try:
            number = (target.queue.parent / "dev").read_text().strip()
        except OSError:
            return False
        most = [f"{key}={self.rng.choice(['max', *values])}" for key, values in
                (("rbps", (1 << 20, 16 << 20)), ("wbps", (1 << 20, 16 << 20)),
                 ("riops", (100, 2000)), ("wiops", (100, 2000)))]
        # Of a device that is removed, 6.1 may try for ever to dispatch what is throttled, and
        # 6.12 leaks what io.max allocated.
        spared = (target.removable if RELEASE == (6, 1) else
                  target.leaves if DEBUG_KERNEL and RELEASE == (6, 12) else False)
        done = (not spared and
                write(CGROUPS / "limited/io.max", f"{number} {' '.join(most)}"))
        weight = self.rng.choice((1, 100, 1000))
        # The root's: io.cost on the whole device, or not. 7.2 takes rq_qos_mutex there with
        # the queue frozen, and io.max allocates memory under it: lockdep reports that.
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
    """CPUs, suspended and frozen file systems, modules."""

    def kinds(self):
        return ["suspends", "freezes", "unloads", *["hotplugs"] * bool(CPUS)]

    def hotplugs(self):
        file = self.rng.choice(CPUS)
        if not write(file, 0):
            return False
        time.sleep(self.rng.random())
        return write(file, 1)

    def suspends(self):
        target = self.any("mapping")
        options = self.rng.choice((["--noflush"], ["--nolockfs"], []))
        run("dmsetup", "suspend", *options, target.mapping)
        time.sleep(self.rng.random() / 2)
        run("dmsetup", "resume", target.mapping)
        return True

    def freezes(self):
        fd = os.open(self.any("folder").folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FIFREEZE, 0)
            time.sleep(self.rng.random() / 2)
            fcntl.ioctl(fd, FITHAW, 0)
        finally:
            os.close(fd)
        return True

    def unloads(self):
        """A module goes unless it is in use, and is loaded again."""
        name = self.rng.choice(ours())
        error = remove(name)
        if error and error not in (errno.EAGAIN, errno.EBUSY):
            raise OSError(error, f"unloading {name}")
        if not error and insert(name):
            raise OSError(f"loading {name}")
        return True


class Hardware(Disturber):
    """Faults, resets of a controller, devices that go and return."""

    def kinds(self):
        return ["faults", "removals", "faults", "removals",
                # On 6.1 a reset forgets the second command of a queue that it sends again, if
                # the controller has shadow doorbells: it tells the controller of them later.
                *["resets"] * (RELEASE > (6, 1)),
                *["prepared_anew"] * bool(glob.glob(ERRORS)),
                *["timeouts"] * LOST_COMPLETIONS.is_dir()]

    def faults(self):
        """SCSI commands fail for a while; each kind of fault by itself."""
        target = self.any("scsi")
        kind = self.rng.choice(sorted(FAULTS))
        options, every = FAULTS[kind]
        # A slow machine must not lose what is merely slow.
        seconds = 2 if kind == "lost" and not DEBUG_KERNEL else 20
        (target.queue.parent / "device/timeout").write_text(str(seconds))
        # sd waits 120 s for a WRITE SAME, whatever the disk's timeout; and SCSI handles no
        # lost command before all others have ended. An UNMAP is like any other command.
        disk, = target.queue.parent.glob("device/scsi_disk/*")
        before = [(disk / name, (disk / name).read_text(), value)
                  for name, value in (("provisioning_mode", "unmap"),
                                      ("max_write_same_blocks", "0"))] * (kind == "lost")
        for file, _, value in before:
            file.write_text(value)
        # Writing this one drains the queue.
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
        """Some commands of some kinds are sent back with a sense code a few times."""
        mode, = self.any("scsi").queue.parent.glob("device/scsi_disk/*/provisioning_mode")
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
        """A few completions of a device get lost, until the driver asks for them."""
        target = self.any("times_out")
        before = (target.queue / "io_timeout").read_text()
        write(target.queue / "io_timeout", 5000)
        (LOST_COMPLETIONS / "verbose").write_text("1")
        (LOST_COMPLETIONS / "probability").write_text(str(LOST_PERCENT))
        (LOST_COMPLETIONS / "times").write_text(str(LOST_MOST))
        done = write(target.queue.parent / "io-timeout-fail", 1)
        time.sleep(8)
        write(target.queue.parent / "io-timeout-fail", 0)
        write(target.queue / "io_timeout", before)
        if target.scsi:
            self.revive(target)
        return done

    @staticmethod
    def revive(target):
        """Error handling whose own commands get lost gives a disk up."""
        state = target.queue.parent / "device/state"
        if state.read_text().strip() == "offline":
            state.write_text("running\n")

    def resets(self):
        self.any("passthrough").reset()
        return True

    def removals(self):
        """A device goes under its load, and returns when its workers have closed it."""
        target = self.any("removable")
        target.shared.state = GOING
        target.take()
        target.shared.state = GONE
        workers = [worker for worker in self.plan.workers if worker.target is target]
        wait_for(lambda: all(worker.slot.resting for worker in workers),
                 f"the end of I/O to {target.label}")
        target.back()
        target.shared.life += 1
        target.shared.state = UP
        wait_for(lambda: not any(worker.slot.resting for worker in workers),
                 f"I/O to {target.label} again")
        return True


def prepare():
    """What a guest needs for it: cgroups, all schedulers' modules."""
    modprobe("-a", "bfq", "kyber-iosched", *(f"{name}-iosched" for name in ours()))
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    for name in ("limited", "weighted"):
        (CGROUPS / name).mkdir()
    check(bool(ours()), f"schedulers: {' '.join(ours())}")
