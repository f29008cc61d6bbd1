# SPDX-License-Identifier: GPL-2.0
"""Imported by torture.py: what happens to the devices while they are under load."""

import collections
import contextlib
import errno
import fcntl
import os
import pathlib
import threading
import time
import traceback

from ssd import DEBUG_KERNEL, RELEASE, check
from together import SCSI_DEBUG, insert, modprobe, ours, remove, wait_for
from torture_devices import run
from torture_load import GOING, GONE, UP

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
    """Does what its kinds() are, in random order, each once in a round, until it is told to
    stop and has done each at least once."""

    def __init__(self, plan, targets, rng):
        super().__init__(daemon=True)
        self.plan, self.targets, self.rng = plan, targets, rng
        self.done = collections.Counter()
        self.go, self.idle = threading.Event(), threading.Event()
        self.idle.set()
        self.wrong = None
        self.doing = ""

    def kinds(self):
        raise NotImplementedError

    def missing(self):
        """Kinds that have not happened yet."""
        return [kind for kind in self.kinds() if not self.done[kind]]

    def run(self):
        try:
            while True:
                kinds = self.kinds()
                for kind in self.rng.sample(kinds, len(kinds)):
                    if not self.go.is_set():
                        self.idle.set()
                        self.go.wait()
                        self.idle.clear()
                    self.doing = kind
                    self.done[kind] += bool(getattr(self, kind)())
                    self.doing = ""
                    time.sleep(self.rng.random() / 4)
        except Exception:  # noqa: BLE001
            self.wrong = traceback.format_exc()


class Settings(Disturber):
    """Schedulers, their tunables, the queue's settings, cgroups' limits, modules."""

    def kinds(self):
        return ["switches", "tunables", "generic", "switches", "limits", "tunables", "unloads"]

    def switches(self):
        target = self.rng.choice([target for target in self.targets
                                  if target not in self.plan.kept])
        names = ours() * 2 + list(STOCK)
        if target.passthrough and RELEASE == (6, 12):
            # It miscounts what it gets unprepared, and warns of that.
            names.remove("mq-deadline")
        return write(target.queue / "scheduler", self.rng.choice(names))

    def tunables(self):
        target = self.rng.choice(self.targets)
        try:
            file = self.rng.choice(sorted((target.queue / "iosched").iterdir()))
            numeric = file.read_text().strip().isdigit()
        except (OSError, IndexError):
            return False
        for value in self.rng.sample(NUMBERS if numeric else NAMES, 8):
            if write(file, value):
                return True
        return False

    def generic(self):
        target = self.rng.choice(self.targets)
        name = self.rng.choice(sorted(GENERIC))
        return write(target.queue / name, self.rng.choice(GENERIC[name]))

    def limits(self):
        target = self.rng.choice(self.targets)
        try:
            number = (target.queue.parent / "dev").read_text().strip()
        except OSError:
            return False
        most = [f"{key}={self.rng.choice(['max', *values])}" for key, values in
                (("rbps", (1 << 20, 16 << 20)), ("wbps", (1 << 20, 16 << 20)),
                 ("riops", (100, 2000)), ("wiops", (100, 2000)))]
        done = write(CGROUPS / "limited/io.max", f"{number} {' '.join(most)}")
        weight = self.rng.choice((1, 100, 1000))
        for name, value in (("io.weight", f"default {weight}"), ("io.bfq.weight", weight),
                            ("io.latency", f"{number} target={self.rng.choice((0, 50, 9999))}")):
            if (CGROUPS / "weighted" / name).exists():
                write(CGROUPS / "weighted" / name, value)
        return done

    def unloads(self):
        """A module goes unless it is in use, and is loaded again."""
        name = self.rng.choice(ours())
        error = remove(name)
        if error and error not in (errno.EAGAIN, errno.EBUSY):
            raise OSError(error, f"unloading {name}")
        if not error and insert(name):
            raise OSError(f"loading {name}")
        return True


class Machine(Disturber):
    """CPUs, suspended and frozen queues, faults, resets and removals."""

    def kinds(self):
        kinds = ["suspends", "freezes", "faults", "removals", "resets"]
        if CPUS:
            kinds.append("hotplugs")
        return kinds

    def hotplugs(self):
        file = self.rng.choice(CPUS)
        if not write(file, 0):
            return False
        time.sleep(self.rng.random())
        return write(file, 1)

    def suspends(self):
        target = self.rng.choice([target for target in self.targets if target.mapping])
        options = self.rng.choice((["--noflush"], ["--nolockfs"], []))
        run("dmsetup", "suspend", *options, target.mapping)
        time.sleep(self.rng.random() / 2)
        run("dmsetup", "resume", target.mapping)
        return True

    def freezes(self):
        target = self.rng.choice([target for target in self.targets if target.folder])
        fd = os.open(target.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FIFREEZE, 0)
            time.sleep(self.rng.random() / 2)
            fcntl.ioctl(fd, FITHAW, 0)
        finally:
            os.close(fd)
        return True

    def faults(self):
        """SCSI commands fail for a while; each kind by itself."""
        target, = (target for target in self.targets if target.label == "scsi")
        kind = self.rng.choice(sorted(FAULTS))
        options, every = FAULTS[kind]
        # A slow machine must not lose what is merely slow.
        seconds = 2 if kind == "lost" and not DEBUG_KERNEL else 20
        write(target.queue.parent / "device/timeout", seconds)
        (SCSI_DEBUG / "every_nth").write_text(str(every))
        (SCSI_DEBUG / "opts").write_text(str(options))
        time.sleep(self.rng.random() * 2)
        (SCSI_DEBUG / "opts").write_text("0")
        (SCSI_DEBUG / "every_nth").write_text("0")
        self.revive(target)
        return True

    def revive(self, target):
        """A disk whose error handling got lost is offline."""
        state = target.queue.parent / "device/state"
        with contextlib.suppress(OSError):
            if state.read_text().strip() == "offline":
                self.done["offline"] += 1
                state.write_text("running\n")

    def resets(self):
        target = self.rng.choice([target for target in self.targets
                                  if target.passthrough])
        target.reset()
        return True

    def removals(self):
        """A device goes under its load and returns when its workers have closed it."""
        target = self.rng.choice([target for target in self.targets if target.removable])
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
        self.done[f"removals of {target.label}"] += 1
        return True


def prepare():
    """What a guest needs for it: cgroups, all schedulers' modules."""
    modprobe("-a", "bfq", "kyber-iosched", *(f"{name}-iosched" for name in ours()))
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    for name in ("limited", "weighted"):
        (CGROUPS / name).mkdir()
    check(bool(ours()), f"schedulers: {' '.join(ours())}")
