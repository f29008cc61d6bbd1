# SPDX-License-Identifier: GPL-2.0
"""fio as the load: started once for a number of windows, beneath which the schedulers change. What
each job did in a window is in its logs, which have a line for each I/O."""
import contextlib
import dataclasses
import fcntl
import glob
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import numpy

from ssd_common import output
from ssd_common.drive import MERGES, REQUESTS, SECTOR, SECTORS, WAYS, Drive, counters, read
from ssd_common.signals import deferred
from ssd_ctl import CtlError
from ssd_ctl.advice import sandbox, workload
from ssd_ctl.advice.target import Target

# Directions of data.
BOTH = ("read", "write")
# The fields of a drive's counters for flushes, and for the ms that they took.
FLUSHES, FLUSH_MS = 15, 16
# Columns of a log that are used: ms, ns, direction, bytes.
COLUMNS = (0, 1, 2, 3)
# fio's status after SIGINT.
INTERRUPTED = 128
FIRST_S, END_S, ENDS = 120, 20, 6
# The limit of the wait for fio's end after SIGKILL, which is repeated every KILL_S. For most drives
# the kernel gives up I/O that is not answered earlier.
KILLED_S, KILL_S = 120, 1
# The first version of fio that logs by a clock that is named.
OLDEST = (3, 30)
VERSION = re.compile(r"^fio-(\d+)\.(\d+)", re.MULTILINE)
VERSION_S = 30
# Have the kernel forget what it has read of a drive.
BLKFLSBUF = 0x1261
# Folders are in memory, so that what is measured on is not written to.
SHARED, FOLDER = "/dev/shm", "ssdctl-"
# What fio reports of a job begins with its version, the job's name and group, and an error.
REPORTED = re.compile(r"\d+;fio-[^;]*;(\d+);\d+;(\d+);")
MS = 1_000_000
# How often a limited pause looks.
LOOKS = 500


@dataclasses.dataclass
class Window:
    """A time in which one candidate served a phase of the load: ms of the monotonic clock, and what
    the kernel counted on the drive: bytes by direction, and flushes and their ms."""
    candidate: str
    round: int
    begin: int = 0
    end: int = 0
    kernel: tuple[int, int] = (0, 0)
    phase: int = 0
    flushes: tuple[int, int] = (0, 0)

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.begin) / 1e3


def program(command: str) -> list[str]:
    """Return the words of the command that runs fio."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CtlError(f"--fio-program {command}: {error}") from None
    if not words or not shutil.which(words[0]):
        raise CtlError(f"{words[0] if words else 'fio'} is missing: install fio")
    sandbox.check()
    found = version(words)
    if found < OLDEST:
        raise CtlError(f"fio {dotted(found)} is too old: install {dotted(OLDEST)} or a later one")
    return words


def version(words: list[str]) -> tuple[int, int]:
    """Return the version of fio that a command runs in the sandbox."""
    folder, lock = new_folder()
    try:
        done = subprocess.run(sandbox.words(folder, None, [*words, "--version"]), cwd="/",
                              env=sandbox.ENVIRONMENT, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, errors="replace", timeout=VERSION_S, check=False)
    except subprocess.TimeoutExpired:
        raise CtlError(f"--fio-program {shlex.join(words)} does not tell its version in "
                       f"{VERSION_S} s") from None
    finally:
        remove_folder(folder, lock)
    found = VERSION.search(done.stdout)
    if not found:
        why = done.stderr.strip().partition("\n")[0]
        raise CtlError(f"--fio-program {shlex.join(words)} does not run fio in its sandbox"
                       f"{': ' * bool(why)}{why}")
    return int(found[1]), int(found[2])


def dotted(numbers: tuple[int, int]) -> str:
    """Return a version as it is written."""
    return ".".join(map(str, numbers))


def counted(drive: Drive) -> list[int]:
    """Return the kernel's counters of a drive."""
    fields = counters(drive.sysfs)
    if not fields:
        raise CtlError(f"{drive.path} has disappeared")
    return fields


def moved(drive: Drive) -> tuple[int, int]:
    """Return the bytes that the kernel has read from a drive and written to it."""
    fields = counted(drive)
    return tuple(fields[WAYS[way] + SECTORS] * SECTOR for way in BOTH)


def flushed(drive: Drive) -> tuple[int, int]:
    """Return the flushes that a drive has completed, and the ms that they took. Those of several
    processes may be one."""
    fields = counted(drive)
    return fields[FLUSHES], fields[FLUSH_MS]


def completions(drive: Drive) -> int:
    """Return the number of requests that a drive has completed, with those merged into them."""
    fields = counted(drive)
    return sum(fields[first + field] for first in WAYS.values() for field in (REQUESTS, MERGES))


def pause(drive: Drive, seconds: float, most: int):
    """Wait for @seconds, or until a drive has completed @most requests."""
    end, before = time.monotonic() + seconds, completions(drive)
    while time.monotonic() < end and completions(drive) - before < most:
        time.sleep(seconds / LOOKS)


def milliseconds() -> int:
    """Return the whole ms of the monotonic clock, as fio logs them."""
    return time.monotonic_ns() // MS


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and those that they have, a parent before
    its children. Not every kernel lists the children of a process."""
    children: dict[int, list[int]] = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        # The name may have spaces and parentheses.
        fields = read(pathlib.Path(path)).rpartition(")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(int(path.split("/")[2]))
    found = [process]
    for parent in found:
        found += sorted(children.get(parent, []))
    return found[1:]


def forget(place: Target):
    """Have reads find what is measured on, and not the page cache. fio may not do that itself."""
    if place.device_number:
        fcntl.ioctl(place.descriptor, BLKFLSBUF)
    else:
        os.posix_fadvise(place.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def locked(path: str, how: int = 0) -> int | None:
    """Return a descriptor that locks a folder; None if there is no such folder (any more), or,
    with LOCK_NB, if another process has locked it."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | how)
        if os.path.isdir(path):
            return folder
    os.close(folder)
    return None


def new_folder() -> tuple[str, int]:
    """Return a new folder, and the descriptor that locks it: before, remove_left() of another
    process may remove it."""
    while True:
        path = tempfile.mkdtemp(prefix=FOLDER, dir=SHARED if os.path.isdir(SHARED) else None)
        lock = locked(path)
        if lock is not None:
            return path, lock


def remove_folder(path: str, lock: int):
    """Remove a folder that is locked."""
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def remove_left():
    """Remove the folders of processes that were killed: their locks ended with them. A process may
    be in another PID namespace, so its number says nothing."""
    for path in glob.glob(f"{SHARED}/{FOLDER}*"):
        lock = locked(path, fcntl.LOCK_NB)
        if lock is not None:
            remove_folder(path, lock)


class Fio:
    """fio under way with a phase of a load. The end of the with block ends it; logs() are there
    then."""

    def __init__(self, command: list[str], load: workload.Workload, drive: Drive, place: Target,
                 seed: int, phase: int = 0):
        self.command, self.load, self.drive = command, load, drive
        self.place, self.seed, self.phase = place, seed, phase
        self.folder, self.lock = "", None
        self.process: subprocess.Popen | None = None
        self.begun = False
        # Its processes: one of each job that is no thread, and its own.
        self.running = 0

    def __enter__(self):
        remove_left()
        self.folder, self.lock = new_folder()
        try:
            self.start()
            self.wait_for_first()
            self.check()
        except BaseException:
            try:
                self.end()
            finally:
                self.remove()
            raise
        return self

    def start(self):
        """Start fio, which reads its jobs from stdin: it has no file of ours. It gets what is held:
        the kernel's claim lasts as long as any process of fio, however we end."""
        job, report, errors = (pathlib.Path(self.folder, name)
                               for name in ("job.fio", "report", "errors"))
        # Without a namespace of processes only the first one is killed with us.
        text = self.load.job_file(sandbox.path_of(self.place), self.place.size, sandbox.LOGS,
                                  self.seed, self.phase, "pid" not in sandbox.present())
        job.write_text(text, encoding="ascii")
        forget(self.place)
        words = sandbox.words(self.folder, self.place,
                              [*self.command, "--output-format=terse", "-"])
        with (job.open("rb") as jobs, report.open("wb") as out, errors.open("wb") as said,
              deferred()):
            self.process = subprocess.Popen(
                words, cwd="/", env=sandbox.ENVIRONMENT, stdin=jobs, stdout=out, stderr=said,
                pass_fds=(self.place.descriptor,), start_new_session=True)

    def __exit__(self, kind, *_):
        failed = True
        try:
            self.end()
            failed = bool(kind)
        finally:
            if failed:
                self.remove()

    def wait_for_first(self):
        """Wait until the load has begun."""
        before, until = completions(self.drive), time.monotonic() + FIRST_S
        while completions(self.drive) - before < len(self.load.phases[self.phase]):
            self.check_runs()
            if time.monotonic() > until:
                raise CtlError(f"fio made no I/O on {self.drive.path} in {FIRST_S} s")
            time.sleep(0.005)
        self.begun = True

    def check(self):
        """Raise CtlError if fio or one of its jobs has ended, or writes to something else."""
        self.check_runs()
        processes = self.processes()
        if len(processes) < self.running:
            self.end()
            # fio's report says which one if it was an error.
            self.check_jobs()
            raise CtlError("a job of fio has ended while others went on")
        self.running = len(processes)
        foreign = sandbox.foreign_files(processes, self.place, self.folder)
        if foreign:
            self.kill()
            raise CtlError(f"fio has {', '.join(foreign)} open and was killed: it may write to "
                           "nothing but what is measured on")

    def check_runs(self):
        """Raise CtlError if fio has ended."""
        if self.process.poll() is not None:
            raise CtlError(f"fio ended: {self.said() or f'status {self.process.returncode}'}")

    def processes(self) -> list[int]:
        """Return the processes of fio, the first one first: not the one that waits for it."""
        return descendants(self.process.pid)

    def said(self) -> str:
        """Return the first thing that fio has complained of."""
        lines = (self.lines("errors") + [line for line in self.lines("report")
                                         if not REPORTED.match(line)])
        return next((line.removeprefix("fio: ") for line in lines if line.strip()), "")

    def lines(self, name: str) -> list[str]:
        """Return the lines of one of its files."""
        return read(pathlib.Path(self.folder, name)).splitlines()

    def check_jobs(self):
        """Raise CtlError if a job has failed while others went on."""
        for line in self.lines("report"):
            found = REPORTED.match(line)
            if found and found[2] != "0":
                name = self.load.jobs[int(found[1])].name
                raise CtlError(f"fio's job [{name}] failed: "
                               f"{self.said() or os.strerror(int(found[2]))}")

    def end(self):
        """End fio, also if a signal ends us meanwhile. The settings are restored next, and the
        drive is free: no process of fio may be left."""
        if not self.process:
            return
        try:
            self.ask()
        finally:
            with deferred():
                self.kill_and_wait()

    def ask(self):
        """Ask fio to end. It reports what it had under way. A job that starts late misses a signal,
        so it is repeated; not soon, since fio's handler is not safe while fio prints."""
        for _ in range(ENDS if self.begun else 0):
            for process in self.processes()[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
                return

    def kill_and_wait(self):
        """Kill fio if it has not ended, and wait for that: with I/O under way it takes as long as
        that does. Raise CtlError if it takes too long."""
        until = time.monotonic() + KILLED_S
        while self.process.poll() is None and time.monotonic() < until:
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(KILL_S)
        if self.process.poll() is None:
            # At once: what restores the settings may wait for the drive, too.
            output.say(f"ssdctl: fio was killed and still has I/O under way on {self.drive.path}, "
                       "which it holds until that ends: do not write to the drive; unplug it, or "
                       "reboot")
            raise CtlError(f"{self.drive.path} does not answer")

    def kill(self):
        """Kill the processes of fio, but not the one that waits for them, which ends after them."""
        for process in self.processes() or [self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def remove(self):
        """Remove its files."""
        if self.lock is not None:
            remove_folder(self.folder, self.lock)
            self.lock = None

    def logs(self) -> list[numpy.ndarray]:
        """Return the logs of each job, rows of COLUMNS; and remove them."""
        try:
            if self.process.returncode not in (0, INTERRUPTED):
                raise CtlError("fio failed: " +
                               (self.said() or f"status {self.process.returncode}"))
            self.check_jobs()
            return [log_of(sorted(glob.glob(f"{self.folder}/logs/{number}_lat.*.log")))
                    for number in range(len(self.load.jobs))]
        finally:
            self.remove()


def log_of(paths: list[str]) -> numpy.ndarray:
    """Return the rows of some logs of fio, in whose folder it can do what it likes."""
    parts = []
    try:
        for path in paths:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK),
                      encoding="ascii") as file:
                if os.fstat(file.fileno()).st_size:
                    parts.append(numpy.loadtxt(file, delimiter=",", usecols=COLUMNS,
                                               dtype=numpy.int64, ndmin=2))
    except (OSError, ValueError):
        raise CtlError(f"a log of fio is cut: there is no room in {os.path.dirname(paths[0])}"
                       ) from None
    return numpy.concatenate(parts) if parts else numpy.empty((0, len(COLUMNS)), numpy.int64)
